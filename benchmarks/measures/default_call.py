"""How long the default call takes where nobody sets a limit: it has to end by itself."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from time import perf_counter

import numpy as np

from benchmarks.report import Cell, Section, Table, at_most
from symbayes import BayesianSymbolicRegressor

Law = Callable[[np.ndarray], np.ndarray]

_TARGET = 60.0
_ROWS, _COLUMNS = 1_000, 10
_FIGURE = "longest default call, seconds"


def _product(x: np.ndarray) -> np.ndarray:
    return x[0] * x[1] / x[2]


def _field(x: np.ndarray) -> np.ndarray:
    return x[0] * (x[1] + x[2] * x[3] * np.sin(x[4]))


def _radiation(x: np.ndarray) -> np.ndarray:
    return x[0] ** 3 / (np.exp(x[0] * x[1] / (x[2] * x[3])) - 1.0)


def _bell(x: np.ndarray) -> np.ndarray:
    return np.exp(-(((x[0] - x[1]) / x[2]) ** 2) / 2.0) / x[2]


def _rough(x: np.ndarray) -> np.ndarray:
    return np.abs(x[0] - 3.0) * np.maximum(x[1], 3.0) + np.floor(x[2]) + np.sin(3.0 * x[3] * x[4])


def _nothing(x: np.ndarray) -> np.ndarray:
    return np.zeros(x.shape[1])


#: What y is, with the noise as a part of its spread.
_PROBLEMS = (
    ("x0 x1 / x2, no noise", _product, 0.0),
    ("x0 (x1 + x2 x3 sin(x4)), 1 % noise", _field, 0.01),
    ("x0^3 / (exp(x0 x1 / (x2 x3)) - 1), 0.1 % noise", _radiation, 0.001),
    ("exp(-((x0 - x1) / x2)^2 / 2) / x2, 0.1 % noise", _bell, 0.001),
    ("steps, edges and waves that no short formula follows, 10 % noise", _rough, 0.1),
    ("noise alone", _nothing, 1.0),
)


def measure(quick: bool) -> Section:
    """Fit each problem with all defaults but the seed."""
    seeds = (0,) if quick else (0, 1, 2)
    fit(*table(*_PROBLEMS[0][1:], 0), 0)  # once for nothing: compiled code is loaded
    rows: list[list[Cell]] = []
    for name, law, noise in _PROBLEMS:
        fits = [fit(*table(law, noise, seed), seed) for seed in seeds]
        seconds = [s for s, _ in fits]
        rows.append(
            [name, min(seconds), max(seconds), str(fits[0][1].best_formula_.text(digits=3))]
        )
    return Section(
        "default_call",
        f"The default call on {_ROWS:,} rows and {_COLUMNS} columns",
        [Table(["y", "least, s", "most, s", "best formula of the first seed"], rows)],
        [at_most(_FIGURE, _TARGET, max(float(row[2]) for row in rows))],
        [
            f"`BayesianSymbolicRegressor(random_state=seed).fit(X, y)`, seeds 0 to {seeds[-1]}, "
            "columns uniform on [1, 5], no time limit, all cores, compiled code from the cache.",
        ],
    )


def table(law: Law, noise: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return X and y of one problem."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(1.0, 5.0, (_ROWS, _COLUMNS))
    y = law(X.T)
    return X, y + noise * (y.std() or 1.0) * rng.normal(size=_ROWS)


def fit(X: np.ndarray, y: np.ndarray, seed: int) -> tuple[float, BayesianSymbolicRegressor]:
    """Return the seconds of a default fit, and the model."""
    model = BayesianSymbolicRegressor(random_state=seed)
    start = perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y)
    return perf_counter() - start, model
