"""Five relevant columns among 200: 500 rows, 10 % noise."""

from __future__ import annotations

from pathlib import Path

from symbayes.formula.operators import OPERATOR_SETS

from ..problems import TEST, TRAIN, Problem, stream, synthetic, uniform

_COLUMNS, _ROWS, _TEST_ROWS, _NOISE = 200, 500, 1000, 0.1
_RANGES = ((-2.0, 2.0),) * _COLUMNS

#: A product, a curve, a square and a straight line, of comparable size.
FORMULAS = {"mixed": "2*x11*x42 + 3*sin(x87) + x133**2 - 1.5*x178"}
#: The columns that matter.
RELEVANT = {"mixed": ("x11", "x42", "x87", "x133", "x178")}


def names(data: Path) -> list[str]:
    """Return the formulas."""
    return list(FORMULAS)


def own_noise(name: str) -> float:
    """Return 10 %."""
    return _NOISE


def load(name: str, noise: float, seed: int, data: Path) -> Problem:
    """Return the problem of a formula."""
    X, X_test = (
        uniform(stream("columns", name, seed, purpose), _RANGES, n_rows)
        for purpose, n_rows in ((TRAIN, _ROWS), (TEST, _TEST_ROWS))
    )
    return synthetic(
        "columns", name, noise, seed, FORMULAS[name], _RANGES, X, X_test, OPERATOR_SETS["default"]
    )
