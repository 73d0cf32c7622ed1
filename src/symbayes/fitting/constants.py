"""The constants of an expression: read them, replace them, and how well the data know them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..formula import expression as ex
from .fitted import freedom
from .refit import MOST_ROWS, Residual, slopes

# Directions that change the residuals by a smaller part of the largest change are not seen at all;
# a constant with more than this part (squared) in such directions is known only along with others.
_SEEN, _LOOSE = 1.0e-9, 1.0e-6
# Digits that are shown at most, and where residuals are rounding errors (below this part of the
# spread of y) or not to be had: there all digits mean something, or none, and few are what a reader
# wants.
_MOST_DIGITS, _FEW_DIGITS, _EXACT = 12, 6, 1.0e-9
# Nats that leaving out digits may cost.
_NEXT_TO_NOTHING = 0.1
# Rows that stand for more than so many times their number are only some of them.
_ALL = 1.0 + 1.0e-9


class Deviations(NamedTuple):
    """How well the data know constants; those that are fixed have zeros."""

    deviation: np.ndarray
    """Standard deviation of each, had these rows to do for all."""
    natural: np.ndarray
    """How far each moves y by its spread."""
    loose: np.ndarray
    """Which of them others can make up for, so that the data know them only together."""
    n_seen: int
    """Directions among them that the data see."""


class Sight:
    """Some training rows, and what the residuals of an expression are there.

    Constants do not need all rows of a large table: every so many is taken.

    Parameters
    ----------
    columns : ndarray of shape (n_columns, n_rows)
    y, weights : ndarray of shape (n_rows,)
    noise_prior : tuple
        Shape and scale of the prior of the noise variance, for y in units of `y_scale`.
    y_scale : float
        Spread of y.
    places : sequence of int, optional
        How expressions number these columns; by default from 0 on.
    n : float, optional
        The number of rows that these stand for; by default the sum of their weights.
    """

    def __init__(
        self,
        columns: np.ndarray,
        y: np.ndarray,
        weights: np.ndarray,
        noise_prior: tuple[float, float],
        y_scale: float,
        places: Sequence[int] | None = None,
        n: float | None = None,
    ):
        step = -(-len(y) // MOST_ROWS)
        self._root = np.sqrt(weights[::step]) / y_scale
        self._table = columns[:, ::step]
        if places is not None:
            # Columns that no expression reads need no values.
            self._table = np.zeros((max(places) + 1, len(self._root)))
            self._table[list(places)] = columns[:, ::step]
        self._y, self.n = y[::step], float(weights.sum()) if n is None else n
        self.share = self.n / max(float(weights[::step].sum()), 1e-300)
        self.noise_prior = noise_prior
        self.nu, self.lam = noise_prior
        self.y_scale = y_scale

    def __len__(self) -> int:
        return len(self._y)

    def residual(self, expression: ex.Expression) -> Residual:
        """Return the function from constants to residuals, in units of the spread of y.

        The constants of an expression are the best on all rows. Where these are only some, what
        other constants would gain here by chance is taken out of y.
        """
        y = self._y

        def residual(values: np.ndarray) -> np.ndarray:
            with np.errstate(all="ignore"):
                found = ex.evaluate(ex.with_constants(expression, values), self._table)
                result = self._root * (y - found)
            return result if np.isfinite(result).all() else np.full(len(y), 1e6)

        values = np.array(list(ex.constants(expression)))
        if self.share > _ALL and len(values):
            base = residual(values)
            columns = slopes(residual, values, base, self.y_scale)
            columns = np.nan_to_num(columns / _largest(columns), nan=0.0, posinf=0.0, neginf=0.0)
            directions, sizes, _ = np.linalg.svd(columns, full_matrices=False)
            seen = directions[:, sizes > _SEEN * sizes[0]]
            y = y - seen @ (seen.T @ base) / self._root
        return residual

    def deviations(self, expression: ex.Expression) -> tuple[np.ndarray, float]:
        """Return the posterior standard deviation of each constant, from left to right.

        It is that of the normal law that fits the posterior at the values given, with the noise
        at its estimate; infinite for a constant that the data know nothing about. The second
        result is the degrees of freedom of that estimate.
        """
        values = np.array(list(ex.constants(expression)))
        found = self.deviations_of(self.residual(expression), values, np.ones(len(values), bool))
        deviation = np.where(found.loose, np.inf, found.deviation / np.sqrt(self.share))
        return deviation, float(freedom(self.n, found.n_seen, self.noise_prior))

    def deviations_of(self, residual: Residual, values: np.ndarray, free: np.ndarray) -> Deviations:
        """Return how far the residuals at these rows know those of the constants that are free."""
        base = residual(values)
        deviation, natural = np.zeros((2, len(values)))
        loose = np.zeros(len(values), dtype=bool)
        if not free.any():
            return Deviations(deviation, natural, loose, 0)
        jacobian = slopes(
            lambda part: residual(with_free(values, free, part)), values[free], base, self.y_scale
        )
        scale = _largest(jacobian)
        jacobian = np.nan_to_num(jacobian / scale, nan=0.0, posinf=0.0, neginf=0.0)
        _, sizes, directions = np.linalg.svd(jacobian, full_matrices=False)
        seen = sizes > _SEEN * sizes[0]
        n_seen = int(seen.sum())
        inverse = directions[seen] / sizes[seen, None]
        loose[free] = 1.0 - np.sum(directions[seen] ** 2, axis=0) > _LOOSE
        squares = self.nu * self.lam + self.share * float(np.sum(base**2))
        noise = squares / float(freedom(self.n, n_seen, self.noise_prior))
        with np.errstate(over="ignore"):  # a constant that may be anything is not rounded
            deviation[free] = np.sqrt(noise * np.sum(inverse**2, axis=0)) / scale
            natural[free] = 1.0 / (scale * np.sqrt(np.maximum(np.mean(jacobian**2, axis=0), 1e-30)))
        return Deviations(deviation, natural, loose, n_seen)

    def loss(self, expression: ex.Expression, values: Sequence[float]) -> float:
        """Return by how many nats other constants are worse."""
        residual = self.residual(expression)
        before, after = (
            self.nu * self.lam + self.share * float(np.sum(residual(np.array(some)) ** 2))
            for some in (list(ex.constants(expression)), values)
        )
        return 0.5 * (self.n - 1.0 + self.nu) * float(np.log(after / before))

    def digits(self, expression: ex.Expression) -> list[int]:
        """Return how many significant digits of each constant the data support.

        The last one is the second digit of its standard deviation. Constants that the data know
        only together need more: as many as it takes that rounding costs next to nothing.
        """
        values = np.array(list(ex.constants(expression)))
        deviation, _ = self.deviations(expression)
        with np.errstate(all="ignore"):
            known = np.floor(np.log10(np.abs(values))) - np.floor(np.log10(deviation)) + 2.0
        # Constants that others can make up for need about as many as those that are known best.
        least = max([1.0, *known[np.isfinite(known)]])
        known = np.maximum(1.0, np.nan_to_num(known, nan=1.0, neginf=least, posinf=_MOST_DIGITS))
        rms = np.sqrt(np.mean(self.residual(expression)(values) ** 2))
        most = _FEW_DIGITS if rms < _EXACT else _MOST_DIGITS
        for more in range(most):
            digits = np.clip(known + more, 1, most).astype(int)
            rough = list(ex.constants(ex.with_digits(expression, digits.tolist())))
            if self.loss(expression, rough) <= _NEXT_TO_NOTHING:
                return digits.tolist()
        return [_FEW_DIGITS] * len(values)


def _largest(columns: np.ndarray) -> np.ndarray:
    """Return the size of columns by their largest entries: squares may overflow or vanish."""
    scale = np.abs(columns).max(axis=0)
    return np.where((scale > 0.0) & np.isfinite(scale), scale, 1.0)


def with_free(values: np.ndarray, free: np.ndarray, part: np.ndarray) -> np.ndarray:
    """Return the values with other ones in the free places."""
    result = values.copy()
    result[free] = part
    return result
