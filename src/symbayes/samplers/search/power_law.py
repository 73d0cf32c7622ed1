"""Power laws: is the response a constant plus one product of powers of columns?

So many laws of physics are that they are worth a look before any search: on a logarithmic scale it
is a linear regression, but for the constant, which is tried out. For the search phase only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from scipy.optimize import least_squares

from ...formula.trees import evaluate_trees, product_of_powers
from .targets import Target, carry_back

# Columns at most, as a part of the rows.
_COLUMNS_A_ROW = 0.25
# Constants to try: so far outside the values, in units of their range, on either side.
_DISTANCES = np.geomspace(1.0e-3, 1.0e2, 40)
# An exponent this close to a whole or half number is taken to be one; others are no power law.
_SIMPLE, _LARGEST = 0.1, 6.0
_MOST_EVALUATIONS = 50


def power_law_trees(
    columns: np.ndarray,
    y: np.ndarray,
    targets: Sequence[Target],
    operators: Mapping[str, float],
    stop: Callable[[], bool] = lambda: False,
) -> list[np.ndarray]:
    """Return y as power laws, and as what power laws for other targets come to, where there are.

    Those are tried one by one until it is time to `stop`.
    """
    result = []
    for target in (None, *targets):
        if stop():
            break
        z = y if target is None else target.forward(y)
        exponents = power_law(columns, z)
        if exponents is None:
            continue
        chosen = np.flatnonzero(exponents)
        tree = product_of_powers(chosen.tolist(), exponents[chosen].tolist(), operators)
        if tree is None:
            continue
        if target is None:
            result.append(tree)
            continue
        (values,) = evaluate_trees([tree], columns)
        line = _line(values, z)
        if line is not None:
            intercept, slope = line
            result += carry_back(target, [tree], intercept, np.array([slope]), operators)
    return result


def _line(x: np.ndarray, y: np.ndarray) -> tuple[float, float] | None:
    """Return intercept and slope of the least-squares line; None if they are no numbers."""
    unit = np.abs(x).max()
    with np.errstate(all="ignore"):  # columns in extreme units, whose product may be 0 or infinite
        u = x / unit
        u -= u.mean()
        slope = (u @ y) / (u @ u) / unit
        intercept = y.mean() - slope * x.mean()
    if not (np.isfinite(intercept) and np.isfinite(slope)):
        return None
    return float(intercept), float(slope)


def power_law(columns: np.ndarray, z: np.ndarray) -> np.ndarray | None:
    """Return the exponents of a power law for z, a column each; None if it does not look like one.

    `columns` has one row a column. Those that are not positive everywhere have the exponent 0.
    """
    usable = (columns > 0).all(axis=1) & (columns.max(axis=1) > columns.min(axis=1))
    if not usable.any() or usable.sum() > _COLUMNS_A_ROW * len(z) or not np.ptp(z) > 0:
        return None
    logs = np.log(columns[usable])
    logs -= logs.mean(axis=1, keepdims=True)
    scaled = (z - z.mean()) / np.ptp(z)
    start = _best_start(logs, scaled)
    found = np.zeros(len(columns))
    found[usable] = _refine(logs, scaled, *start)
    simple = np.round(2.0 * found) / 2.0
    close = np.abs(found - simple) <= _SIMPLE
    if not close.all() or not simple.any() or np.abs(simple).max() > _LARGEST:
        return None
    return simple


def _best_start(logs: np.ndarray, z: np.ndarray) -> tuple[float, float, np.ndarray]:
    """Return sign, constant and exponents that make the logarithms most nearly linear."""
    design = np.vstack([np.ones(len(z)), logs]).T
    q, r = np.linalg.qr(design)
    best, result = np.inf, (1.0, 0.0, np.zeros(len(logs)))
    for sign in (1.0, -1.0):
        edge = (sign * z).min()
        for distance in _DISTANCES:
            constant = sign * (edge - distance)
            u = np.log(sign * (z - constant))
            coefficients = q.T @ u
            # The error on the scale of z, not of its logarithm.
            error = np.exp(q @ coefficients) - np.exp(u)
            size = float(np.sum(error**2))
            if size < best:
                exponents = np.linalg.lstsq(r, coefficients, rcond=1e-10)[0][1:]
                best, result = size, (sign, constant, exponents)
    return result


def _refine(
    logs: np.ndarray, z: np.ndarray, sign: float, constant: float, exponents: np.ndarray
) -> np.ndarray:
    """Return the exponents of the best fit on the scale of z, constant and factor solved for."""

    def residual(a: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            values = np.exp(np.clip(a @ logs, -50.0, 50.0))
            values -= values.mean()
            return z - values * (values @ z) / max(values @ values, 1e-300)

    with np.errstate(all="ignore"):  # steps that go too far are taken back
        return least_squares(residual, exponents, max_nfev=_MOST_EVALUATIONS).x
