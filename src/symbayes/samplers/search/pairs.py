"""Products and ratios of two columns, where they are too many to be listed.

A thousand columns have half a million products. None of them has to be made: how well each explains
a residual is an entry of a product of matrices. For the search phase only.
"""

from __future__ import annotations

import numpy as np

from ...formula.trees import join, leaf

# Columns at most: the work for one residual grows with their square.
_MOST_COLUMNS = 2_000
# Rows of the matrix of pairs that are made at a time.
_AT_ONCE = 256
# A product whose spread is a smaller part of its size is a constant.
_CONSTANT = 1.0e-8


class Pairs:
    """All pairs of columns under one operator.

    Parameters
    ----------
    operator : "*" or "/"
    columns : list of int
        Which columns of the table; the first 2,000 of them are used.
    table : ndarray
        One row a column.
    root : ndarray
        Square roots of the row weights.
    """

    def __init__(self, operator: str, columns: list[int], table: np.ndarray, root: np.ndarray):
        self._operator, self._columns = operator, columns[:_MOST_COLUMNS]
        self._root = root
        first = table[self._columns]
        with np.errstate(all="ignore"):
            first = first / np.abs(first).max(axis=1)[:, None]
            second = first if operator == "*" else 1.0 / first
            second = second / np.abs(second).max(axis=1)[:, None]
        # A column of zeros is a pair with nobody.
        first[~np.isfinite(first).all(axis=1)] = 0.0
        second = np.where(np.isfinite(second).all(axis=1)[:, None], second, 0.0)
        self._scale = np.zeros((len(first), len(first)), np.float32)
        for start in range(0, len(first), _AT_ONCE):
            self._scale[start : start + _AT_ONCE] = self._scales(first, second, start)
        self._first, self._second = first.astype(np.float32), second.astype(np.float32)

    def _scales(self, first: np.ndarray, second: np.ndarray, start: int) -> np.ndarray:
        """Return one over the lengths of some pairs, centred and weighted; 0 for no pair."""
        rows = slice(start, start + _AT_ONCE)
        weights = self._root**2
        total = weights.sum()
        mean = (first[rows] * weights) @ second.T / total
        square = (first[rows] ** 2 * weights) @ (second**2).T / total
        variance = square - mean**2
        good = variance > np.maximum(_CONSTANT * square, np.finfo(float).tiny)
        own = np.arange(len(first))[rows, None]
        # Factors may change places, so each product is there once.
        other = np.arange(len(first))
        good &= own < other if self._operator == "*" else own != other
        return np.where(good, 1.0 / np.sqrt(np.where(good, variance * total, 1.0)), 0.0)

    def best_for(self, residual: np.ndarray) -> tuple[np.ndarray, float]:
        """Return the pair that explains most of a weighted residual, and how much it explains.

        The latter is the size of the product of the residual with the pair's column of length one.
        """
        weights = self._root**2
        wanted = residual * self._root
        # Instead of centring all pairs.
        wanted = (wanted - weights * (wanted.sum() / weights.sum())).astype(np.float32)
        best, most = (0, 0), -1.0
        for start in range(0, len(self._first), _AT_ONCE):
            rows = slice(start, start + _AT_ONCE)
            gain = (self._first[rows] * wanted) @ self._second.T
            gain *= self._scale[rows]
            np.abs(gain, out=gain)
            i, j = np.unravel_index(np.argmax(gain), gain.shape)
            if gain[i, j] > most:
                best, most = (start + int(i), int(j)), float(gain[i, j])
        one, other = (leaf(self._columns[k]) for k in best)
        return join(self._operator, one, other), most
