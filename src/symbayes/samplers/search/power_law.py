"""Power laws: is the response a constant plus one product of powers of columns?

Many laws of physics are, so they are worth a look before anything else: on a logarithmic scale it
is a linear regression, except for the constant, which is tried out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from scipy.optimize import least_squares

from ...formula.trees import evaluate_trees, product_of_powers
from ...inputs.problem import Problem
from .heuristics import State, response, usable_columns
from .targets import carry_back, targets_of

# The largest number of columns, as a part of the number of rows.
_COLUMNS_PER_ROW = 0.25
# Constants to try: distances from the values, in units of their range, on either side.
_DISTANCES = np.geomspace(1.0e-3, 1.0e2, 40)
# An exponent this close to a whole or half number is taken to be one; others are no power law.
_SIMPLE, _LARGEST = 0.1, 6.0
_MOST_EVALUATIONS = 50


def suggest(
    problem: Problem, state: State | None = None, stop: Callable[[], bool] = lambda: False
) -> Iterator[list[np.ndarray]]:
    """Yield y as a power law, and as what power laws for other targets come to."""
    columns, y, operators = usable_columns(problem), response(problem), problem.operator_weights
    for target in (None, *targets_of(y, operators)):
        if stop():
            return
        z = y if target is None else target.forward(y)
        exponents = power_law(columns, z)
        if exponents is None:
            continue
        chosen = np.flatnonzero(exponents)
        tree = product_of_powers(chosen.tolist(), exponents[chosen].tolist(), operators)
        if tree is None:
            continue
        if target is None:
            yield [tree]
            continue
        (values,) = evaluate_trees([tree], columns)
        intercept, slope = _line(values, z)
        for back in carry_back(target, [tree], intercept, np.array([slope]), operators):
            yield [back]


def _line(x: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """Return intercept and slope of the least-squares line."""
    unit = np.abs(x).max()
    with np.errstate(all="ignore"):  # columns in extreme units, whose product may be 0 or infinite
        u = x / unit
        u -= u.mean()
        slope = (u @ y) / (u @ u) / unit
        return float(y.mean() - slope * x.mean()), float(slope)


def power_law(columns: np.ndarray, z: np.ndarray) -> np.ndarray | None:
    """Return the exponents of a power law for z, one per column; None if z is no power law.

    `columns` has one row per column. Columns that are not positive everywhere get the exponent 0.
    """
    usable = (columns > 0).all(axis=1) & (columns.max(axis=1) > columns.min(axis=1))
    if not usable.any() or usable.sum() > _COLUMNS_PER_ROW * len(z) or not np.ptp(z) > 0:
        return None
    logs = np.log(columns[usable])
    logs -= logs.mean(axis=1, keepdims=True)
    scaled = (z - z.mean()) / np.ptp(z)
    found = np.zeros(len(columns))
    found[usable] = _refined(logs, scaled, _first_exponents(logs, scaled))
    simple = np.round(2.0 * found) / 2.0
    close = np.abs(found - simple) <= _SIMPLE
    if not close.all() or not simple.any() or np.abs(simple).max() > _LARGEST:
        return None
    return simple


def _first_exponents(logs: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Return the exponents with the constant that makes the logarithms most nearly linear."""
    q, r = np.linalg.qr(np.vstack([np.ones(len(z)), logs]).T)
    least, best = np.inf, np.zeros(len(logs))
    for sign in (1.0, -1.0):
        edge = (sign * z).min()
        for distance in _DISTANCES:
            u = np.log(sign * (z - sign * (edge - distance)))
            coefficients = q.T @ u
            # The error on the scale of z, not of its logarithm.
            error = float(np.sum((np.exp(q @ coefficients) - np.exp(u)) ** 2))
            if error < least:
                least, best = error, np.linalg.lstsq(r, coefficients, rcond=1e-10)[0][1:]
    return best


def _refined(logs: np.ndarray, z: np.ndarray, exponents: np.ndarray) -> np.ndarray:
    """Return the exponents of the best fit on the scale of z, constant and factor solved for."""

    def residual(a: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            values = np.exp(np.clip(a @ logs, -50.0, 50.0))
            values -= values.mean()
            return z - values * (values @ z) / max(values @ values, 1e-300)

    with np.errstate(all="ignore"):  # steps that go too far are taken back
        return least_squares(residual, exponents, max_nfev=_MOST_EVALUATIONS).x
