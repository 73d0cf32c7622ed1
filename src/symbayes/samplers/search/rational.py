"""Ratios of polynomials: is the response, without noise, one in a single column?

On a narrow range such a ratio is drowned by approximations that fit almost as well. Multiplied by
its denominator it is linear in all coefficients, so that regression finds it. For the search phase
only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise

import numpy as np

from ...formula.trees import join, leaf, power, transform

# Highest powers above and below.
_MOST_ABOVE, _MOST_BELOW = 6, 4
# Rows for each coefficient.
_ROWS_A_COEFFICIENT = 1.5
# The error, as a part of the spread, falls at once from above the first to below the second. A
# series that approximates something else gains only a few digits with every power.
_NOT_YET, _EXACT = 1.0e-7, 1.0e-11
# Coefficients below this part of the largest are rounding errors.
_NEGLIGIBLE = 1.0e-8
# Columns that are tried.
_MOST_COLUMNS = 20


def rational_trees(
    columns: np.ndarray,
    y: np.ndarray,
    operators: Mapping[str, float],
    stop: Callable[[], bool] = lambda: False,
) -> list[np.ndarray]:
    """Return y as a ratio of polynomials of one column, up to a factor; none if it is not one.

    Columns are tried one by one until it is time to `stop`.
    """
    if not {"+", "*", "/", "lt"} <= operators.keys():
        return []
    for i in np.flatnonzero(np.ptp(columns, axis=1) > 0)[:_MOST_COLUMNS]:
        if stop():
            break
        found = rational(columns[i], y)
        if found is not None:
            above, below = (_polynomial(int(i), c, operators) for c in found)
            return [join("/", above, below)]
    return []


def rational(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """Return the coefficients above and below, from the constant up; None if it does not fit."""
    errors: dict[tuple[int, int], float] = {}
    for total in range(1, _MOST_ABOVE + _MOST_BELOW + 1):
        for q in range(0, min(total, _MOST_BELOW) + 1):
            p = total - q
            if p > _MOST_ABOVE or (total + 1) * _ROWS_A_COEFFICIENT > len(y):
                continue
            above, below, errors[p, q] = _fit(x, y, np.arange(p + 1), np.arange(1, q + 1))
            if errors[p, q] > _EXACT:
                continue
            smaller = [errors.get(key, np.inf) for key in ((p - 1, q), (p, q - 1))]
            if q == 0 or min(smaller) < _NOT_YET:
                return None  # a polynomial, which is found without this, or a series
            return _sparse(x, y, above, below)
    return None


def _fit(
    x: np.ndarray, y: np.ndarray, above: np.ndarray, below: np.ndarray
) -> tuple[np.ndarray, np.ndarray, float]:
    """Fit y (1 + sum of b x^k) = sum of a x^k, for the powers given; return the error as well."""
    unit = np.abs(x).max()
    u = x / unit
    with np.errstate(all="ignore"):
        design = np.column_stack([*(u**k for k in above), *(-y * u**k for k in below)])
        solution = np.linalg.lstsq(design, y, rcond=1e-15)[0]
        a, b = np.zeros(above.max() + 1), np.zeros(max(below, default=0) + 1)
        a[above] = solution[: len(above)] / unit**above
        b[below] = solution[len(above) :] / unit ** below.astype(float)
        b[0] = 1.0
        error = np.abs(np.polyval(a[::-1], x) / np.polyval(b[::-1], x) - y).max() / np.ptp(y)
    return a, b, float(error) if np.isfinite(error) else np.inf


def _sparse(
    x: np.ndarray, y: np.ndarray, above: np.ndarray, below: np.ndarray
) -> tuple[np.ndarray, np.ndarray] | None:
    """Leave out powers that are rounding errors; scale the highest powers to 1."""
    size = np.abs(x).max() ** np.arange(max(len(above), len(below)))
    used = [
        np.flatnonzero(np.abs(c) * size[: len(c)] > _NEGLIGIBLE * np.abs(c * size[: len(c)]).max())
        for c in (above, below)
    ]
    if len(used[0]) == 0 or used[1].max() == 0:
        return None
    above, below, error = _fit(x, y, used[0], used[1][used[1] > 0])
    if error > _EXACT:
        return None
    return above / above[used[0].max()], below / below[used[1].max()]


def _polynomial(column: int, c: np.ndarray, operators: Mapping[str, float]) -> np.ndarray:
    """Return a polynomial with highest coefficient 1 as a tree, as a sum or nested."""
    if not c[1:].any():
        return transform(leaf(column), 0.0, c[0])
    return min(_sum(column, c, operators), _nested(column, c, operators), key=len)


def _nested(column: int, c: np.ndarray, operators: Mapping[str, float]) -> np.ndarray:
    """Return c_0 + x^k (c_k + x^l (...)) (Horner)."""
    powers = [0, *(k for k in range(1, len(c)) if c[k] != 0.0)]
    tree: np.ndarray | None = None
    for low, high in reversed(list(pairwise(powers))):
        raised = power(leaf(column), float(high - low), operators)
        assert raised is not None  # there is a product
        tree = raised if tree is None else join("*", raised, tree)
        if c[low] != 0.0:
            tree = transform(tree, 1.0, c[low])
    assert tree is not None
    return tree


def _sum(column: int, c: np.ndarray, operators: Mapping[str, float]) -> np.ndarray:
    """Return powers from the highest down, the constant with the last.

    Coefficients are those of a transform, and 1 needs none.
    """
    terms = []
    powers = [k for k in range(len(c) - 1, 0, -1) if c[k] != 0.0]
    for k in powers:
        last = k == powers[-1]
        tree = power(leaf(column), float(k), operators)
        assert tree is not None  # there is a product
        if c[k] != 1.0 or (last and c[0] != 0.0):
            tree = transform(tree, c[k], c[0] if last else 0.0)
        terms.append(tree)
    result = terms[-1]
    for term in reversed(terms[:-1]):
        result = join("+", term, result)
    return result
