"""Quantiles of mixtures of Student's t, one mixture a column: the predictive distribution."""

from __future__ import annotations

import numpy as np
from scipy import special

# The distribution function is met to this part of p, or of 1 - p where that is smaller.
_PRECISION = 1.0e-10
# Far more than bisection needs, which is one for each bit of a number.
_MOST_STEPS = 500
_LARGEST = np.finfo(float).max


def mixture_quantile(
    p: float, weights: np.ndarray, means: np.ndarray, scales: np.ndarray, df: float | np.ndarray
) -> np.ndarray:
    """Return the p-quantile of each column's mixture.

    Parameters
    ----------
    p : float in (0, 1)
    weights, means, scales : ndarray of shape (n_components, n_columns)
        A component counts where its weight is above 0 and its mean and scale are finite; elsewhere
        they may be anything. A scale of 0 is a point mass.
    df : float or ndarray of shape (n_components,)
        Degrees of freedom, of all components or of each; infinite for normal ones, which either
        all are or none.

    Returns
    -------
    ndarray of shape (n_columns,)
        nan where no component counts.

    Examples
    --------
    >>> import numpy as np
    >>> one = np.ones((1, 1))
    >>> mixture_quantile(0.95, one, 10 * one, 2 * one, np.inf).round(3)
    array([13.29])
    """
    df = np.broadcast_to(np.asarray(df, dtype=float), len(weights))[:, None]
    # What does not count must not come near a sum: 0 times nan is nan.
    counts = (weights > 0) & np.isfinite(means) & np.isfinite(scales)
    share = np.where(counts, weights, 0.0)
    total = share.sum(axis=0)
    known = total > 0
    share = share / np.where(known, total, 1.0)
    means, scales = np.where(counts, means, 0.0), np.where(counts, scales, 1.0)
    with np.errstate(all="ignore"):
        parts = np.clip(means + scales * _quantile(p, df), -_LARGEST, _LARGEST)
    # The quantile of the mixture lies between the smallest and the largest of its parts, both
    # included.
    low = np.where(counts, parts, np.inf).min(axis=0)
    high = np.where(counts, parts, -np.inf).max(axis=0)
    active = np.flatnonzero(known & (low < high))
    with np.errstate(all="ignore"):
        low = np.nextafter(low, -np.inf)
        width = high - low
    (middle,) = weighted_quantiles((0.5,), parts, share)
    result = np.where(known, middle, np.nan)
    for _ in range(_MOST_STEPS):
        if not len(active):
            break
        x = result[active]
        below, slope = _cdf(x, share[:, active], means[:, active], scales[:, active], df)
        too_high = below >= p
        high[active] = np.where(too_high, x, high[active])
        low[active] = np.where(too_high, low[active], x)
        middle = _between(low[active], high[active])
        with np.errstate(all="ignore"):
            step = x - (below - p) / slope
            # Newton where it stays inside and gets on, else bisection.
            inside = (step > low[active]) & (step < high[active])
            quick = inside & (np.abs(step - x) < 0.25 * width[active])
            width[active] = np.where(quick, np.abs(step - x), high[active] - low[active])
        close = np.abs(below - p) <= _PRECISION * min(p, 1.0 - p)
        # Where the ends are neighbours as numbers, the upper one is where p is reached.
        done = close | (middle <= low[active]) | (middle >= high[active])
        end = np.where(close, x, high[active])
        result[active] = np.where(done, end, np.where(quick, step, middle))
        active = active[~done]
    return result


def weighted_quantiles(
    levels: tuple[float, ...], values: np.ndarray, weights: np.ndarray
) -> list[np.ndarray]:
    """Return quantiles of each column of values; the middle of two where either is one.

    Values of weight 0 do not count. Where all weights are 0 it is one of the values.
    """
    order, columns = np.argsort(values, axis=0), np.arange(values.shape[1])
    reached = np.cumsum(np.take_along_axis(weights, order, axis=0), axis=0)

    def value_beyond(level: float) -> np.ndarray:
        place = np.argmax(reached > level * reached[-1], axis=0)
        return values[order[place, columns], columns]

    # A sum that is the level but for rounding is the level.
    return [
        0.5 * value_beyond(level - _PRECISION) + 0.5 * value_beyond(level + _PRECISION)
        for level in levels
    ]


def surely_inside(
    tail: float, x: np.ndarray, share: np.ndarray, means: np.ndarray, scales: np.ndarray
) -> np.ndarray:
    """Return where at least `tail` of each column's mixture surely lies on either side of x.

    It takes no degrees of freedom: a Student's t distribution lies between Cauchy's and the normal
    one, which are quick to compute. So False may be a false alarm, and True never is.
    """
    with np.errstate(all="ignore"):
        z = (x - means) / scales
        near = 0.5 + np.arctan(np.abs(z)) / np.pi
        beyond = special.ndtr(-np.abs(z))
        point = (scales == 0) & (x == means)
        at_most = np.where(point, 1.0, np.where(z > 0, near, beyond))
        at_least = np.where(point, 1.0, np.where(z < 0, near, beyond))
        below, above = (
            np.sum(np.where(share > 0, share * sure, 0.0), axis=0) for sure in (at_most, at_least)
        )
        return (below >= tail) & (above >= tail)


def _between(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Return the number halfway, as numbers are counted.

    A part that takes off makes brackets huge; this halves any of them to nothing in 64 steps.
    """
    a, b = _rank(low.view(np.int64)), _rank(high.view(np.int64))
    return _rank((a >> 1) + (b >> 1) + (a & b & 1)).view(np.float64)


def _rank(bits: np.ndarray) -> np.ndarray:
    """Return the places of numbers among all numbers from their bits, and the bits from those."""
    return np.where(bits < 0, np.iinfo(np.int64).min - bits, bits)


def _quantile(p: float, df: np.ndarray) -> np.ndarray:
    return np.where(np.isinf(df), special.ndtri(p), special.stdtrit(df, p))


def _cdf(
    x: np.ndarray, share: np.ndarray, means: np.ndarray, scales: np.ndarray, df: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return distribution function and density of each column's mixture."""
    with np.errstate(all="ignore"):
        z = 2.0 * ((0.5 * x - 0.5 * means) / scales)  # halves, so that no difference overflows
        point = scales == 0
        z = np.where(point, np.where(x >= means, np.inf, -np.inf), z)
        if np.isinf(df).any():
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
        return np.sum(share * below, axis=0), np.sum(share * density, axis=0)
