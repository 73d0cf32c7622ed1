"""Least squares for a few constants, to the last digits, whatever their units."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.optimize import least_squares

#: Rows looked at, at most: constants do not need a million.
MOST_ROWS = 2000
# Times the constants are fitted, each time from where the last fit ended, if that gained so much.
_TIMES, _WORTH_ANOTHER = 3, 0.999
_MOST_EVALUATIONS = 40
# Where residuals are rounding errors, every digit counts. Noise, more than this part of the spread
# of y, makes all but the first ones meaningless.
_NOISE, _TOLERANCE, _NOISY_TOLERANCE = 1.0e-4, 1.0e-15, 1.0e-12
# Increment of a constant for a derivative, relative to its size; it grows until residuals, in units
# of the spread of y, change by at least so much.
_INCREMENT, _INCREASE, _MOST_INCREASES, _LEAST_CHANGE = 1.0e-6, 100.0, 12, 1.0e-9

Residual = Callable[[np.ndarray], np.ndarray]


def refit(residual: Residual, values: np.ndarray, unit: float = 1.0) -> np.ndarray:
    """Return constants with a smaller sum of squares, or the same ones.

    `residual`, in units of the spread of y, may return nan where there is none, but not at the
    start. `unit` is the size of a constant that is 0.
    """
    if not len(values):
        return values
    for _ in range(_TIMES):
        before = residual(values)
        size = float(np.sqrt(np.mean(before**2)))
        if not 0.0 < size < np.inf:
            return values
        scale = _scales(residual, values, before, unit)
        tolerance = _NOISY_TOLERANCE if size > _NOISE else _TOLERANCE

        def scaled(z, start=values, size=size, scale=scale):
            # In units of the present residual: the tolerances are absolute.
            with np.errstate(all="ignore"):
                found = residual(start + scale * z) / size
            return found if np.isfinite(found).all() else np.full(len(found), 1e6)

        with np.errstate(all="ignore"):
            result = least_squares(
                scaled, np.zeros(len(values)), x_scale="jac", max_nfev=_MOST_EVALUATIONS,
                ftol=tolerance, xtol=tolerance, gtol=tolerance,
            )  # fmt: skip
        with np.errstate(all="ignore"):
            trial = values + scale * result.x
            after = float(np.sqrt(np.mean(residual(trial) ** 2)))
        if not after < size:
            return values
        values = trial
        if after > _WORTH_ANOTHER * size:
            return values
    return values


def slopes(residual: Residual, values: np.ndarray, base: np.ndarray, unit: float) -> np.ndarray:
    """Return the derivatives of the residuals, one column a constant, by differences.

    `base` are the residuals as they are. An increment that drowns in rounding is made larger: the
    present value of a constant may be a rounding error itself.
    """
    result = np.zeros((len(base), len(values)))
    for i in range(len(values)):
        increment = _INCREMENT * (abs(values[i]) or unit)
        with np.errstate(all="ignore"):
            for _ in range(_MOST_INCREASES):
                shifted = values.copy()
                shifted[i] += increment
                difference = residual(shifted) - base
                change = np.sqrt(np.mean(difference**2))
                if not change < _LEAST_CHANGE:
                    break
                increment *= _INCREASE
        if np.isfinite(change):
            result[:, i] = difference / increment
    return result


def _scales(residual: Residual, values: np.ndarray, base: np.ndarray, unit: float) -> np.ndarray:
    """Return by how much each constant has to change for the residuals to change by about 1."""
    columns = slopes(residual, values, base, unit)
    largest = np.abs(columns).max(axis=0)
    with np.errstate(all="ignore"):
        # By the largest entry first: squares of extreme numbers overflow or vanish.
        natural = 1.0 / (largest * np.sqrt(np.mean((columns / largest) ** 2, axis=0)))
    plain = np.where(values == 0.0, unit, np.abs(values))
    return np.where(np.isfinite(natural) & (natural > 0.0), natural, plain)
