"""Quantiles of mixtures of Student's t, one mixture a column: the predictive distribution."""

from __future__ import annotations

import numpy as np
from scipy import special

# Steps end when the distribution function is so close to p, when the ends of the bracket are
# neighbours as numbers, or after so many.
_PRECISION, _MOST_STEPS = 1.0e-10, 200


def mixture_quantile(
    p: float, weights: np.ndarray, means: np.ndarray, scales: np.ndarray, df: float
) -> np.ndarray:
    """Return the p-quantile of each column's mixture.

    Parameters
    ----------
    p : float in (0, 1)
    weights, means, scales : ndarray of shape (n_components, n_columns)
        Components of weight 0 may have any mean. A scale of 0 is a point mass.
    df : float
        Degrees of freedom of all components; infinite for normal ones.

    Returns
    -------
    ndarray of shape (n_columns,)
        nan where all weights are 0.

    Examples
    --------
    >>> import numpy as np
    >>> one = np.ones((1, 1))
    >>> mixture_quantile(0.95, one, 10 * one, 2 * one, np.inf).round(3)
    array([13.29])
    """
    counts = weights > 0
    total = weights.sum(axis=0)
    known = total > 0
    with np.errstate(all="ignore"):
        share = np.where(counts, weights, 0.0) / np.where(known, total, 1.0)
        means = np.where(counts, means, 0.0)
        # The quantile of the mixture lies between the smallest and the largest of its parts.
        parts = means + np.where(counts, scales, 0.0) * _quantile(p, df)
    low = np.where(counts, parts, np.inf).min(axis=0)
    high = np.where(counts, parts, -np.inf).max(axis=0)
    low, high = np.where(known, low, 0.0), np.where(known, high, 0.0)
    width = high - low
    active = np.flatnonzero(known & (width > 0))
    # A part that takes off makes the bracket huge: it is halved in its logarithm, but for values
    # below the smallest scale.
    unit = np.where(counts & (scales > 0), scales, np.inf).min(axis=0)
    unit = np.where(np.isfinite(unit), unit, np.finfo(float).tiny)
    result = _between(low, high, unit)
    for _ in range(_MOST_STEPS):
        if not len(active):
            break
        x = result[active]
        below, slope = _cdf(x, share[:, active], means[:, active], scales[:, active], df)
        too_high = below >= p
        high[active] = np.where(too_high, x, high[active])
        low[active] = np.where(too_high, low[active], x)
        with np.errstate(all="ignore"):
            step = x - (below - p) / slope
        middle = _between(low[active], high[active], unit[active])
        # Newton where it stays inside and gets on, else bisection.
        inside = (step > low[active]) & (step < high[active])
        quick = inside & (np.abs(step - x) < 0.25 * width[active])
        width[active] = np.where(quick, np.abs(step - x), high[active] - low[active])
        close = np.abs(below - p) <= _PRECISION
        result[active] = np.where(close, x, np.where(quick, step, middle))
        active = active[~close & (middle > low[active]) & (middle < high[active])]
    return np.where(known, result, np.nan)


def _between(low: np.ndarray, high: np.ndarray, unit: np.ndarray) -> np.ndarray:
    """Return a value in the middle, of logarithms where they are many units from zero."""
    with np.errstate(all="ignore"):
        middle = unit * np.sinh(0.5 * np.arcsinh(low / unit) + 0.5 * np.arcsinh(high / unit))
    return np.clip(np.where(np.isfinite(middle), middle, 0.5 * low + 0.5 * high), low, high)


def _quantile(p: float, df: float) -> float:
    return float(special.ndtri(p) if np.isinf(df) else special.stdtrit(df, p))


def _cdf(
    x: np.ndarray, share: np.ndarray, means: np.ndarray, scales: np.ndarray, df: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return distribution function and density of each column's mixture."""
    with np.errstate(all="ignore"):
        z = (x - means) / scales
        point = scales == 0
        z = np.where(point, np.where(x >= means, np.inf, -np.inf), z)
        if np.isinf(df):
            below = special.ndtr(z)
            density = np.exp(-0.5 * z * z) / np.sqrt(2 * np.pi)
        else:
            below = special.stdtr(df, z)
            log_constant = (
                special.gammaln(0.5 * (df + 1))
                - special.gammaln(0.5 * df)
                - 0.5 * np.log(df * np.pi)
            )
            density = np.exp(log_constant - 0.5 * (df + 1) * np.log1p(z * z / df))
        density = np.where(point, 0.0, density / scales)
    return np.sum(share * below, axis=0), np.sum(share * np.where(share > 0, density, 0.0), axis=0)
