"""Proposals per second against pyoperon's evaluations, at three sizes of table, one core each."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import numpy as np

from benchmarks.chains import ladder_at, problem_for
from benchmarks.peers.environments import PeerFailed, install, run
from benchmarks.peers.registry import PYOPERON
from benchmarks.report import Section, Table, at_least
from symbayes import Formula, TemperedSampler, TermsPrior
from symbayes.formula.trees import state_size
from symbayes.inputs.problem import Problem
from symbayes.kernels.chain import EVALUATED, PROPOSED

_ROWS = (100, 10_000, 1_000_000)
# Problem I.12.11 of the Feynman collection: the force on a charge.
_TRUTH = "x0*x1 + x0*x2*x3*sin(x4)"
_NAMES = [f"x{i}" for i in range(5)]
_NOISE = 0.01
_SYMBOLS = {
    "+": "add", "-": "sub", "*": "mul", "/": "div", "sin": "sin", "cos": "cos", "exp": "exp",
    "log": "log", "sqrt": "sqrt", "square": "square",
}  # fmt: skip
# Twice as many nodes as the truth has: its trees are then about as large as our states.
_MAX_LENGTH = 20
# Where a tree takes milliseconds, a generation of 1,000 takes longer than the whole run.
_POPULATION = {100: 1000, 10_000: 1000, 1_000_000: 100}
_LOCAL = 10
_STEPS = 50
# Least duration of a call of the loop, so that the cost of calling does not matter.
_SECONDS_PER_CALL = 0.02


@dataclass
class _Runs:
    """Figures of several runs, by name."""

    figures: dict[str, list[float]] = field(default_factory=dict)

    def note(self, **figures: float) -> None:
        for name, value in figures.items():
            self.figures.setdefault(name, []).append(value)

    def __getitem__(self, name: str) -> float | None:
        values = self.figures.get(name)
        return median(values) if values else None


def measure(quick: bool) -> Section:
    """Run the two alternately at each number of rows."""
    rounds, seconds = (1, 4.0) if quick else (3, 20.0)
    problem = ""
    try:
        install(PYOPERON)
    except PeerFailed as failure:
        problem = f"not installed: {failure}"
    runs = {}
    for n_rows in _ROWS:
        runs[n_rows] = _Runs()
        X, y = _data(n_rows)
        whole = problem_for(X, y, TermsPrior(), operators=[*_SYMBOLS, "lt"])
        sampler = TemperedSampler()
        for seed in range(rounds):
            runs[n_rows].note(**_ours(sampler.in_stages(whole), sampler, seed, seconds))
            if whole.data.n > 5_000:
                alone = _ours(whole, sampler, seed, seconds)
                runs[n_rows].note(all_rows=alone["proposals"])
            for iterations in (0, _LOCAL):
                try:
                    if not problem:
                        runs[n_rows].note(**_theirs(X, y, seconds, seed, iterations))
                except PeerFailed as failure:
                    problem = f"failed: {failure}"
    return _section(runs, rounds, seconds, problem)


def _section(runs: dict[int, _Runs], rounds: int, seconds: float, problem: str) -> Section:
    return Section(
        "operon",
        "Proposals per second against pyoperon's evaluations, one core",
        [
            Table(
                ["rows", "symbayes, proposals/s", "new trees/s", "judged on all rows at once, "
                 "proposals/s", "nodes per state"],
                [[n, r["proposals"], r["trees"], r["all_rows"] or r["proposals"], r["nodes"]]
                 for n, r in runs.items()],
                "symbayes:",
            ),
            Table(
                ["rows", "trees/s", "nodes per tree", "trees/s, local search",
                 "all evaluations/s, local search", "nodes per tree, local search"],
                [[n, r["trees_0"], r["nodes_0"], r["trees_10"], r["all_10"], r["nodes_10"]]
                 for n, r in runs.items()],
                f"{PYOPERON.requirements[0].replace('==', ' ')}:",
            ),
            Table(
                ["rows", "proposals / its trees", "proposals / its trees, local search",
                 "proposals / its fastest figure", "judged on all rows at once / the same"],
                [[n, _ratio(r, "proposals", "trees_0"), _ratio(r, "proposals", "trees_10"),
                  _ratio(r, "proposals"), _ratio(r, "all_rows") or _ratio(r, "proposals")]
                 for n, r in runs.items()],
                "symbayes / pyoperon:",
            ),
        ],
        [
            at_least(f"proposals / pyoperon's fastest figure, {n:,} rows", 1.0,
                     _ratio(r, "proposals"))
            for n, r in runs.items()
        ],
        [
            f"Data: {_TRUTH} (I.12.11 of the Feynman collection, columns uniform between 1 and 3), "
            f"noise {_NOISE:.0%} of the spread. Operators of both: {' '.join(_SYMBOLS)}, and "
            f"constants. {seconds:g} s each, alternately, median of {rounds}.",
            "symbayes: one ladder of 12 temperatures that starts at the formula, as it is when "
            "draws are made. Proposals of every kind count, as `diagnostics_` counts them; new "
            "trees leave out those that need no evaluation. Each is judged with all coefficients "
            "of the model fitted.",
            "From 5,000 rows on, a proposal is judged on 1,024 rows first, and only what passes "
            "there on all rows; hot temperatures see no more than those 1,024 (delayed "
            "acceptance, see the theory). So most proposals never see all rows, which is how the "
            "posterior of all rows is drawn from; pyoperon looks at all rows every time. The "
            "column of proposals judged on all rows at once is that of `first_rows=None`, without "
            "delayed acceptance.",
            f"pyoperon: one thread, in its own environment, at most {_MAX_LENGTH} nodes, "
            "populations of "
            + ", ".join(f"{size:,} at {n:,} rows" for n, size in _POPULATION.items())
            + f"; without local search, and with {_LOCAL} iterations of it for each tree. All "
            "evaluations are its trees and the evaluations inside local search together. Its "
            "fastest figure is the largest of the three, which is in its favour.",
            f"Counted: {PYOPERON.counted}",
            f"Handicaps: {PYOPERON.handicaps}",
            *([f"pyoperon {problem}"] if problem else []),
        ],
    )  # fmt: skip


def _ratio(runs: _Runs, ours: str, theirs: str | None = None) -> float | None:
    """Return our figure over one of theirs, over the largest if none is named."""
    names = [theirs] if theirs else ["trees_0", "trees_10", "all_10"]
    largest = max((runs[name] or 0.0 for name in names), default=0.0)
    mine = runs[ours]
    return mine / largest if mine and largest else None


def _data(n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.uniform(1.0, 3.0, (n_rows, len(_NAMES)))
    y = Formula(_TRUTH, _NAMES).predict(X)
    return X, y + _NOISE * y.std() * rng.normal(size=n_rows)


def _ours(
    problem: Problem, sampler: TemperedSampler, seed: int, seconds: float
) -> dict[str, float]:
    """Return what a ladder that starts at the truth does in a second."""
    powers = sampler.powers(problem.data.n)
    ladder = ladder_at(_TRUTH, _NAMES, problem, powers, seed)
    ladder.run(_STEPS, 1, 1)
    out_nodes, out_terms, _ = ladder.output
    before, started, sizes, draws = ladder.chains.counts.copy(), time.perf_counter(), [], 1
    while (elapsed := time.perf_counter() - started) < seconds:
        ladder.run(_STEPS, 1, draws)
        sizes.append(state_size(out_nodes[0], int(out_terms[0])))
        if time.perf_counter() - started - elapsed < _SECONDS_PER_CALL:
            draws = min(2 * draws, len(out_terms))
    made = (ladder.chains.counts - before).sum(axis=0)
    return {
        "proposals": float(made[PROPOSED].sum() / elapsed),
        "trees": float(made[EVALUATED].sum() / elapsed),
        "nodes": float(np.mean(sizes)),
    }


def _theirs(
    X: np.ndarray, y: np.ndarray, seconds: float, seed: int, iterations: int
) -> dict[str, float]:
    done: dict[str, Any] = run(
        PYOPERON, X, y, seconds, seed, symbols=list(_SYMBOLS.values()), iterations=iterations,
        max_length=_MAX_LENGTH, population=_POPULATION[len(y)],
    )  # fmt: skip
    inside = done["remarks"]["residuals"] + done["remarks"]["jacobians"]
    return {
        f"trees_{iterations}": done["evaluated"] / done["seconds"],
        f"all_{iterations}": (done["evaluated"] + inside) / done["seconds"],
        f"nodes_{iterations}": done["remarks"]["nodes"],
    }
