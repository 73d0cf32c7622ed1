"""The front of size and error, ours and that of pyoperon: who has the closer short formula.

    python -m benchmarks.checks.fronts --seconds 30

Sixteen tables of measured data, each split at random with three quarters for training, the same
seconds and one core for both. Both fronts are read by our own parser and counted in our own nodes;
at each of five sizes the formula with the smallest error on the training rows counts that is not
larger. pyoperon minimises error and length together (NSGA-II), with the settings of
`quality/methods/registry.py`. With `--records` finished fits are kept.
"""

from __future__ import annotations

import argparse
import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.quality.jobs import RunFailed, interpreter, run
from benchmarks.quality.problems import DATA, MissingData, Problem
from benchmarks.quality.registry import METHODS
from benchmarks.quality.suites import real
from benchmarks.quality.sweeps import _MEASURED
from symbayes import BayesianSymbolicRegressor, Formula
from symbayes.experiments.records import Record, Records
from symbayes.formula.expression import n_nodes
from symbayes.formula.parser import FormulaSyntaxError
from symbayes.formula.rewriting import folded

KEY = ("method", "table", "split", "seconds", "label")
SIZES = (5, 10, 15, 20, 30)
#: An error that is larger by no more than this part is the same.
SAME = 1.0e-3


def ours(problem: Problem, seconds: float, options: dict[str, Any]) -> list[str]:
    """Return our front as texts."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = BayesianSymbolicRegressor(
            timeout=seconds, n_jobs=1, random_state=problem.seed, **options
        )
        model.fit(problem.X, problem.y)
    return [formula.text(digits=17) for formula in model.pareto_objects_]


def theirs(problem: Problem, seconds: float) -> list[str]:
    """Return the front of pyoperon as texts."""
    method = METHODS["pyoperon"]
    result = run(method, interpreter(method), problem, seconds, 1)
    return [formula["text"] for formula in result["formulas"]]


def measured(problem: Problem, texts: list[str]) -> list[tuple[int, float, float]]:
    """Return nodes of each formula, and its error on training and on test rows."""
    names = [f"x{i}" for i in range(problem.X.shape[1])]
    found = []
    for text in texts:
        try:
            formula = Formula(text, names)
        except FormulaSyntaxError:
            continue  # too large a number, for instance
        with np.errstate(all="ignore"):
            errors = [
                float(np.sqrt(np.mean((formula.predict(X) - y) ** 2)) / np.std(problem.y))
                for X, y in ((problem.X, problem.y), (problem.X_test, problem.y_test))
            ]
        if np.isfinite(errors[0]):
            found.append((n_nodes(folded(formula._expression)), *errors))
    return sorted(found)


def at_size(front: list[tuple[int, float, float]], size: int) -> tuple[float, float]:
    """Return the errors of the formula of at most this size that is closest on training rows."""
    fitting = [(train, test) for nodes, train, test in front if nodes <= size]
    return min(fitting, default=(np.inf, np.inf))


def summary(fronts: dict[str, dict[str, list[tuple[int, float, float]]]]) -> str:
    """Return for how many tables ours is at most theirs, at each size."""
    lines = []
    for place, rows in enumerate(("training", "test")):
        for size in SIZES:
            pairs = [
                (at_size(of["symbayes"], size)[place], at_size(of["pyoperon"], size)[place])
                for of in fronts.values()
            ]
            pairs = [pair for pair in pairs if np.isfinite(pair).any()]
            won = sum(a <= b * (1.0 + SAME) for a, b in pairs)
            both = np.array([pair for pair in pairs if np.isfinite(pair).all()]).reshape(-1, 2)
            with np.errstate(all="ignore"):
                ratio = np.median(both[:, 0] / both[:, 1]) if len(both) else np.nan
            lines.append(
                f"{rows:8} rows, up to {size:2} nodes: at most theirs on {won} of {len(pairs)} "
                f"tables, median ratio of errors {ratio:.3f}"
            )
    return "\n".join(lines)


def main(words: list[str] | None = None) -> int:
    """Run the comparison."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=30.0, help="per fit (default: 30)")
    parser.add_argument("--tables", nargs="*", default=list(_MEASURED), help="names of tables")
    parser.add_argument("--split", type=int, default=0)
    parser.add_argument("--label", default="", help="what tells our fits apart in the records")
    parser.add_argument("--options", type=json.loads, default={}, help="our parameters, as JSON")
    parser.add_argument("--data", type=Path, default=DATA, help="folder with the folder 'real'")
    parser.add_argument("--records", type=Path, help="where finished fits are kept")
    options = parser.parse_args(words)
    kept = {} if options.records is None else Records(options.records, KEY)
    fronts: dict[str, dict[str, list[tuple[int, float, float]]]] = {}
    for table in options.tables:
        try:
            problem = real.load(table, 0.0, options.split, options.data)
        except MissingData as error:
            print(error)
            return 2
        fronts[table] = {}
        for method in ("symbayes", "pyoperon"):
            label = options.label if method == "symbayes" else ""
            record: Record = {
                "method": method, "table": table, "split": options.split,
                "seconds": options.seconds, "label": label,
            }  # fmt: skip
            known = kept.get(tuple(record[name] for name in KEY))
            try:
                texts = (
                    known["formulas"]
                    if known
                    else ours(problem, options.seconds, options.options)
                    if method == "symbayes"
                    else theirs(problem, options.seconds)
                )
            except RunFailed as error:
                print(f"{table}: {method} {error}")
                texts = []
            if not known and isinstance(kept, Records):
                kept.append({**record, "formulas": texts})
            fronts[table][method] = measured(problem, texts)
        print(_line(table, fronts[table]), flush=True)
    print(summary(fronts))
    return 0


def _line(table: str, of: dict[str, list[tuple[int, float, float]]]) -> str:
    """Return the training errors of both at each size in one line, in spreads of y."""
    pairs = [
        f"{size}: {at_size(of['symbayes'], size)[0]:.4f} {at_size(of['pyoperon'], size)[0]:.4f}"
        for size in SIZES
    ]
    return f"{table[:24]:24} " + "   ".join(pairs)


if __name__ == "__main__":
    raise SystemExit(main())
