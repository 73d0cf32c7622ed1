"""What each heuristic of the search is worth: fits with one of them turned off at a time.

    python -m benchmarks.quality.ablation --tune 4000 --processes 2 --out FOLDER
    python -m benchmarks.quality.ablation --tune 4000 --report --out FOLDER

Every finished fit is a line of `FOLDER/ablation.jsonl`; the same command continues where it was
stopped. Problems come in random order, each with all heuristics in turn, so that a part of the fits
compares heuristics on the same problems. Each fit has one core. With `--seconds` fits end by the
clock; with `--tune` they end by counts alone, so that a busy machine changes no result.

Without noise and with 1 %, on the formulas of the suites `feynman` and `classic`. Pairs of columns
matter only for tables with hundreds of columns; for these there are a few formulas in five of
400 columns (`wide`).
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import time
import warnings
from collections import defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks import environment

from . import suites
from .problems import DATA, TEST, TRAIN, Problem, stream, synthetic, uniform
from .verdicts import Truth

NOISES = (0.0, 0.01)
KEY = ("suite", "problem", "noise", "seed", "off", "limit", "tune")
_WIDE_COLUMNS, _WIDE_ROWS = 400, 500
_WIDE = {
    "product": ((-2.0, 2.0), "x17*x230 + 2*sin(x44) - x311"),
    "two products": ((-2.0, 2.0), "x5*x120 + 1.5*x77*x301"),
    "ratio": ((1.0, 3.0), "x61/x208 + 0.5*x350"),
    "product of three": ((1.0, 3.0), "x9*x150*x333 - 2*x270"),
}


def main(words: Sequence[str] | None = None) -> int:
    """Fit what has not been fitted, or print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--report", action="store_true", help="print the table of what is there, and fit nothing")
    add("--suites", nargs="+", choices=("feynman", "classic", "wide"),
        default=["feynman", "classic", "wide"])  # fmt: skip
    add("--off", nargs="+", metavar="NAME", help="only these: none, a heuristic, or several, A+B")
    add("--noise", nargs="+", type=float, default=NOISES, help="parts of the rms of y")
    add("--only", nargs="+", metavar="NAME", help="only these problems")
    add("--seconds", type=float, default=None, help="time limit of a fit")
    add("--tune", type=int, default=None, help="draws of a search at most")
    add("--first-seed", type=int, default=0)
    add("--seeds", type=int, default=1, help="how many")
    add("--processes", type=int, default=1, help="fits side by side")
    add("--minutes", type=float, default=np.inf, help="no fit begins that might end later")
    add("--out", type=Path, default=environment.ROOT / "benchmarks" / "results" / "ablation")
    add("--data", type=Path, default=DATA)
    options = parser.parse_args(words)
    unknown = set("+".join(options.off or ()).split("+")) - {"", "none", *_heuristics()}
    if unknown:
        parser.error(f"--off: there is no heuristic {', '.join(sorted(unknown))}")
    environment.prepare()
    from symbayes.experiments.records import Records

    records = Records(options.out / "ablation.jsonl", KEY)
    if options.report:
        wanted = {"limit": options.seconds, "tune": options.tune}
        print(report([record for record in records.values() if wanted.items() <= record.items()]))
        return 0
    everything = list(plan(options))
    tasks = [task for task in everything if records.key_of(task) not in records]
    print(f"{len(everything)} fits, {len(everything) - len(tasks)} of them done", flush=True)
    work(tasks, options, records)
    return 0


def plan(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Yield what tells each fit from the others, all variants of a problem one after the other."""
    problems = [
        (suite, name, seed)
        for suite in options.suites
        for name in (_WIDE if suite == "wide" else suites.names(suite, options.data))
        for seed in range(options.first_seed, options.first_seed + options.seeds)
        if not options.only or name in options.only
    ]
    np.random.default_rng(0).shuffle(problems)
    for suite, name, seed in problems:
        for noise in options.noise:
            for off in options.off or ("none", *_heuristics()):
                of_interest = off in ("none", "library", "pairs") if suite == "wide" else True
                # Elsewhere there are too few columns for pairs to have a part in it.
                if off == "pairs" and suite != "wide":
                    of_interest = False
                if of_interest:
                    yield {
                        "suite": suite, "problem": name, "noise": float(noise), "seed": int(seed),
                        "off": off, "limit": options.seconds, "tune": options.tune,
                    }  # fmt: skip


def work(tasks: list[dict[str, Any]], options: argparse.Namespace, records: Any) -> None:
    """Fit side by side in processes forked from this one, which has compiled everything."""
    last_start = time.monotonic() + 60.0 * options.minutes - 1.3 * (options.seconds or 60.0)
    with threadpool_limits(1):
        _warm_up()
        context = multiprocessing.get_context("fork")
        with ProcessPoolExecutor(options.processes, context) as pool:
            waiting, running, done = iter(tasks), set(), 0
            while True:
                while len(running) < options.processes and time.monotonic() < last_start:
                    task = next(waiting, None)
                    if task is None:
                        break
                    running.add(pool.submit(perform, task, options.data))
                if not running:
                    break
                finished, running = wait(running, return_when=FIRST_COMPLETED)
                for future in finished:
                    record = future.result()
                    records.append(record)
                    done += 1
                    print(f"{done} of {len(tasks)}: {describe(record)}", flush=True)


def perform(task: dict[str, Any], data: Path) -> dict[str, Any]:
    """Return the record of one fit: formula, whether it is right, and the seconds of its core."""
    from symbayes import BayesianSymbolicRegressor
    from symbayes.samplers.search import heuristics

    heuristics.in_use = heuristics.Heuristics()
    if task["off"] != "none":
        off = dict.fromkeys(task["off"].split("+"), False)
        heuristics.in_use = replace(heuristics.in_use, **off)
    if task["suite"] == "wide":
        problem = _wide(task["problem"], task["noise"], task["seed"])
    else:
        problem = suites.load(task["suite"], task["problem"], task["noise"], task["seed"], data)
    model = BayesianSymbolicRegressor(
        problem.operators,
        timeout=task["limit"], tune=task["tune"], draws=1000 if task["tune"] is None else 100,
        n_jobs=1, random_state=task["seed"],
    )  # fmt: skip
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model.fit(problem.X, problem.y)
            text = model.formula_objects_[0].text(digits=17)
        except (ValueError, RuntimeError) as error:
            seconds = time.process_time() - start
            return task | {"failure": str(error), "right": False, "seconds": seconds}
        seconds = time.process_time() - start
        assert problem.truth is not None
        assert problem.ranges is not None
        structure = Truth(problem.truth, problem.ranges, problem.X).structure(text)
    return task | {
        "formula": text,
        "right": structure.right,
        "reason": structure.reason,
        "nodes": structure.nodes,
        "seconds": seconds,
        "timed_out": bool(model.diagnostics_.get("timed_out", False)),
    }


def describe(record: dict[str, Any]) -> str:
    """Return one line on a finished fit."""
    verdict = "right" if record["right"] else record.get("failure") or record["reason"]
    return (
        f"{record['suite']} {record['problem']} noise {record['noise']:g} without {record['off']}: "
        f"{verdict} after {record['seconds']:.1f} s"
    )


def report(records: list[dict[str, Any]]) -> str:
    """Return tables in Markdown: each heuristic off against all on, on the fits that have both.

    Where no formula is exact, `shortening` does nothing: with noise, what its row shows is what the
    clock alone does to fits that a time limit ends, and other rows say no more unless they differ
    by more than that.
    """
    fits: dict[tuple, dict[str, dict[str, Any]]] = defaultdict(dict)
    for record in records:
        fits[tuple(record[name] for name in KEY if name != "off")][record["off"]] = record
    heads = ["heuristic off", "noise", "fits", "found with it", "found without", "lost", "gained",
             "smaller", "larger", "seconds with it", "seconds without",
             "ended by the limit"]  # fmt: skip
    lines = []
    for title, wide in (("Formulas of feynman and classic", False), ("400 columns", True)):
        lines += [f"{title}\n", "| " + " | ".join(heads) + " |", "| --- " * len(heads) + "|"]
        for off in sorted({record["off"] for record in records} - {"none"}):
            for noise in sorted({record["noise"] for record in records}):
                both = [
                    (of["none"], of[off])
                    for key, of in fits.items()
                    if "none" in of and off in of and key[2] == noise and (key[0] == "wide") == wide
                ]
                if both:
                    lines.append(f"| {off} | {noise:g} | " + " | ".join(_compared(both)) + " |")
        lines.append("")
    return "\n".join(lines)


def _compared(both: list[tuple[dict[str, Any], dict[str, Any]]]) -> list[str]:
    """Return the cells of a row, of pairs of records with a heuristic and without it."""
    right = [(a, b) for a, b in both if a["right"] and b["right"]]
    return [
        str(len(both)),
        str(sum(a["right"] for a, _ in both)),
        str(sum(b["right"] for _, b in both)),
        str(sum(a["right"] and not b["right"] for a, b in both)),
        str(sum(b["right"] and not a["right"] for a, b in both)),
        str(sum(b["nodes"] < a["nodes"] for a, b in right)),
        str(sum(b["nodes"] > a["nodes"] for a, b in right)),
        f"{sum(a['seconds'] for a, _ in both):.0f}",
        f"{sum(b['seconds'] for _, b in both):.0f}",
        f"{sum(b.get('timed_out', False) for _, b in both)}",
    ]


def _heuristics() -> list[str]:
    from symbayes.samplers.search.heuristics import Heuristics

    return [field.name for field in fields(Heuristics)]


def _warm_up() -> None:
    """Compile what fits need, so that no fit waits for it."""
    from symbayes import BayesianSymbolicRegressor

    X = np.random.default_rng(0).normal(size=(20, 2))
    model = BayesianSymbolicRegressor(timeout=0.5, n_jobs=1, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, X[:, 0] + 2.0 * X[:, 1]).predict(X)


def _wide(name: str, noise: float, seed: int) -> Problem:
    from symbayes.formula.operators import OPERATOR_SETS

    limits, truth = _WIDE[name]
    ranges = [limits] * _WIDE_COLUMNS
    X, X_test = (
        uniform(stream("wide", name, seed, purpose), ranges, _WIDE_ROWS)
        for purpose in (TRAIN, TEST)
    )
    operators = OPERATOR_SETS["default"]
    return synthetic("wide", name, noise, seed, truth, ranges, X, X_test, operators)


if __name__ == "__main__":
    sys.exit(main())
