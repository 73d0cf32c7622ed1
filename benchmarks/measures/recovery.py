"""Whether the paper's simulated tasks are found, by the default sampler on one core."""

from __future__ import annotations

import time
from statistics import median

import numpy as np

from benchmarks.report import Section, Table, at_least
from symbayes import BayesianSymbolicRegressor
from symbayes.datasets import PAPER_FORMULAS, paper_task

_SEEDS = 10
_TIMEOUT = 30.0
_RANGES = ((-3.0, 3.0), (-6.0, 6.0), (3.0, 6.0))
# Errors below this part of the spread of y on each test range count as exact.
_EXACT = 1.0e-6
_GOOD_F1 = 0.02


def measure(quick: bool) -> Section:
    """Fit every task from several seeds, data and sampler both new for each."""
    seeds = range(2 if quick else _SEEDS)
    rows, exact, good = [], {}, 0
    for task in PAPER_FORMULAS:
        results = [_fit(task, seed) for seed in seeds]
        exact[task] = sum(worst < _EXACT for worst, _, _ in results)
        if task == "f1":
            good = sum(rmse <= _GOOD_F1 for _, rmse, _ in results)
        rows.append(
            [
                task,
                f"{exact[task]} of {len(seeds)}",
                median(rmse for _, rmse, _ in results),
                max(rmse for _, rmse, _ in results),
                median(seconds for *_, seconds in results),
            ]
        )
    share = 0.9 * len(seeds)
    targets = [at_least("f1: seeds with RMSE of 0.02 or less on [-3, 3]", share, good)]
    targets += [at_least(f"{t}: seeds exact", share, exact[t]) for t in ("f2", "f3", "f4", "f5")]
    return Section(
        "recovery",
        "The paper's tasks, found or not",
        [
            Table(
                ["task", "exact", "median RMSE on [-3, 3]", "largest", "median seconds"],
                rows,
            )
        ],
        targets,
        [
            "100 rows from [-3, 3], no noise; operators `paper-simulation`, all other parameters "
            f"at their defaults, one core, at most {_TIMEOUT:g} s. The formula judged is "
            "`best_formula_`; exact means an RMSE below 1e-6 of the spread of y on 30 new rows of "
            "each of [-3, 3], [-6, 6] and [3, 6].",
            f"Seeds 0 to {len(seeds) - 1}: each has its own training rows, test rows and sampler.",
        ],
    )


def _fit(task: str, seed: int) -> tuple[float, float, float]:
    """Return the worst relative RMSE over the ranges, the RMSE on the first, and the seconds."""
    X, y = paper_task(task, random_state=100 + seed)
    started = time.monotonic()
    model = BayesianSymbolicRegressor(
        "paper-simulation", timeout=_TIMEOUT, n_jobs=1, random_state=seed
    ).fit(X, y)
    seconds = time.monotonic() - started
    errors, relative = [], []
    for low, high in _RANGES:
        X_test, y_test = paper_task(task, 30, low, high, random_state=1000 + seed)
        error = float(np.sqrt(np.mean((model.best_formula_.predict(X_test) - y_test) ** 2)))
        error = error if np.isfinite(error) else float("inf")
        errors.append(error)
        relative.append(error / float(np.std(y_test)))
    return max(relative), errors[0], seconds
