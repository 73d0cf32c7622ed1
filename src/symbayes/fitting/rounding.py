"""How well data know the constants of a formula: deviations, digits, and simple numbers.

0.4998 becomes 0.5, and 3.1414 pi, where the data do not object.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from ..deadline import until
from ..formula import expression as ex
from ..formula.rewriting import folded
from .least_squares import MOST_ROWS, Residual, refit, slopes
from .model import freedom

# Directions that change the residuals by a smaller part of the largest change are not seen at all;
# a constant with more than this part (squared) in such directions is known only along with others.
_SEEN, _LOOSE = 1.0e-9, 1.0e-6
# Digits that are shown at most; few where residuals are rounding errors (below this part of the
# spread of y) or cannot be computed: there all digits mean something, or none.
_MOST_DIGITS, _FEW_DIGITS, _EXACT = 12, 6, 1.0e-9
# Nats that leaving out digits may cost.
_NEXT_TO_NOTHING = 0.1
# Rows that stand for more than this many times their number are only some of them.
_ALL = 1.0 + 1.0e-9
# How far a constant may move, in standard deviations, and what all may cost together, in nats.
_DEVIATIONS, _MOST_COST = 2.5, 3.0
# Share of numbers that may have a simple one as close by chance.
_BY_CHANCE = 0.05
# What moves y by less than this part of its spread is a rounding error.
_DIGITS = 1.0e-9


class Deviations(NamedTuple):
    """How well the data know constants; those that are fixed have zeros."""

    deviation: np.ndarray
    """Standard deviation of each, if these rows were all there are."""
    natural: np.ndarray
    """How far each moves y by its spread."""
    loose: np.ndarray
    """Which of them others can make up for, so that the data know them only together."""
    n_seen: int
    """Directions among them that the data see."""


class TrainingRows:
    """Some training rows, and what the residuals of an expression are there.

    Constants do not need all rows of a large table: at most 2,000, evenly spaced, are taken.

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
        self.multiplicity = self.n / max(float(weights[::step].sum()), 1e-300)
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
        if self.multiplicity > _ALL and len(values):
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
        deviation = np.where(found.loose, np.inf, found.deviation / np.sqrt(self.multiplicity))
        return deviation, float(freedom(self.n, found.n_seen, self.noise_prior))

    def deviations_of(self, residual: Residual, values: np.ndarray, free: np.ndarray) -> Deviations:
        """Return how far the residuals at these rows know those of the constants that are free."""
        base = residual(values)
        deviation, natural = np.zeros((2, len(values)))
        loose = np.zeros(len(values), dtype=bool)
        if not free.any():
            return Deviations(deviation, natural, loose, 0)
        jacobian = slopes(
            lambda part: residual(_with_free(values, free, part)), values[free], base, self.y_scale
        )
        scale = _largest(jacobian)
        jacobian = np.nan_to_num(jacobian / scale, nan=0.0, posinf=0.0, neginf=0.0)
        _, sizes, directions = np.linalg.svd(jacobian, full_matrices=False)
        seen = sizes > _SEEN * sizes[0]
        n_seen = int(seen.sum())
        inverse = directions[seen] / sizes[seen, None]
        loose[free] = 1.0 - np.sum(directions[seen] ** 2, axis=0) > _LOOSE
        noise = self.squares(base) / float(freedom(self.n, n_seen, self.noise_prior))
        with np.errstate(over="ignore"):  # a constant that may be anything is not rounded
            deviation[free] = np.sqrt(noise * np.sum(inverse**2, axis=0)) / scale
            natural[free] = 1.0 / (scale * np.sqrt(np.maximum(np.mean(jacobian**2, axis=0), 1e-30)))
        return Deviations(deviation, natural, loose, n_seen)

    def squares(self, residual: np.ndarray) -> float:
        """Return the sum of squares on all rows, and of what the prior of the noise adds."""
        return self.nu * self.lam + self.multiplicity * float(np.sum(residual**2))

    def loss(self, expression: ex.Expression, values: Sequence[float]) -> float:
        """Return by how many nats other constants are worse."""
        residual = self.residual(expression)
        before, after = (
            self.squares(residual(np.array(some)))
            for some in (list(ex.constants(expression)), values)
        )
        return 0.5 * (self.n - 1.0 + self.nu) * float(np.log(after / before))

    def digits(self, expression: ex.Expression) -> list[int]:
        """Return how many significant digits of each constant the data support.

        The last one is the second digit of its standard deviation. Constants that the data know
        only together need more: as many as it takes for rounding to cost next to nothing.
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


def _with_free(values: np.ndarray, free: np.ndarray, part: np.ndarray) -> np.ndarray:
    """Return the values with other ones in the free places."""
    result = values.copy()
    result[free] = part
    return result


def rounded(
    expression: ex.Expression, rows: TrainingRows, stop: Callable[[], bool] = lambda: False
) -> ex.Expression:
    """Return a formula with simple constants instead of those that data cannot tell from them.

    Constants are rounded one by one, the surest first, and the others fitted again each time; one
    that would bring the loss of log-likelihood over 3 nats in all is left as it is. If it is time
    to `stop` meanwhile, it raises OutOfTime.

    Examples
    --------
    >>> import numpy as np
    >>> from symbayes.fitting.rounding import TrainingRows, rounded
    >>> x = np.linspace(1, 5, 50)
    >>> rough = ("*", ("c", 0.4999999), ("x", 0))
    >>> rounded(rough, TrainingRows(x[None, :], x / 2, np.ones(50), (1.0, 1e-12), 1.0))
    ('*', ('c', 0.5), ('x', 0))
    """
    residual = until(stop, rows.residual(expression))

    def cost(values: np.ndarray) -> float:
        return 0.5 * (rows.n - 1.0 + rows.nu) * np.log(rows.squares(residual(values)))

    values = np.array(list(ex.constants(expression)))
    free = np.ones(len(values), dtype=bool)
    if not len(values) or len(values) >= len(rows):
        return expression
    values = _refit(residual, values, free, rows.y_scale)
    allowed = cost(values) + _MOST_COST
    tried: set[int] = set()
    while True:
        deviation, natural, *_ = rows.deviations_of(residual, values, free)
        options = []
        for i in np.flatnonzero(free).tolist():
            if i in tried:
                continue
            reach = max(_DEVIATIONS * deviation[i], _DIGITS * natural[i])
            simple = nearest_simple(values[i], reach)
            if simple is not None:
                options.append((abs(simple - values[i]) / reach, i, simple))
        if not options:
            # The constants were fitted again only to judge simple ones.
            return expression if free.all() else folded(ex.with_constants(expression, values))
        _, i, simple = min(options)
        trial, rest = values.copy(), free.copy()
        trial[i], rest[i] = simple, False
        trial = _refit(residual, trial, rest, rows.y_scale)
        if cost(trial) <= allowed:
            values, free = trial, rest
        tried.add(i)


def _refit(residual, values: np.ndarray, free: np.ndarray, unit: float) -> np.ndarray:
    """Return the values with those that are free at their best."""
    best = refit(lambda part: residual(_with_free(values, free, part)), values[free], unit)
    return _with_free(values, free, best)


class _Kind(NamedTuple):
    """Multiples of a unit, up to a size."""

    unit: float
    most: float
    trust: float = 1.0
    """How much more often than others such a number is meant when one is close."""


# From the plainest on. A number is of the first kind that fits.
_KINDS = (
    _Kind(1.0, 100.0, 5.0),
    _Kind(0.5, 20.0, 2.0),
    _Kind(1.0 / 3.0, 10.0),
    _Kind(0.25, 10.0),
    _Kind(np.pi, 10.0 * np.pi),
    _Kind(np.pi / 2.0, 5.0 * np.pi),
    _Kind(0.1, 20.0),
    _Kind(1.0 / 6.0, 5.0),
    _Kind(np.pi / 4.0, 3.0 * np.pi),
    _Kind(np.pi / 3.0, 3.0 * np.pi),
)


def nearest_simple(value: float, tolerance: float) -> float | None:
    """Return the plainest simple number within a tolerance of a value, if there is one.

    At most one value in 20 may have a number of that kind so close by chance, one in four a whole
    number: among coarse measurements everything is near some fraction.
    """
    for kind in _KINDS:
        if not abs(value) <= kind.most + kind.unit:
            continue  # too large, or so large that the quotient would be no number
        candidate = round(value / kind.unit) * kind.unit
        close = abs(value - candidate) <= tolerance
        rare = 2.0 * tolerance <= _BY_CHANCE * kind.trust * kind.unit
        if close and rare and abs(candidate) <= kind.most:
            return float(candidate)
    return None


def is_simple(value: float) -> bool:
    """Return whether a value is one of the simple numbers, to the last bit."""
    return any(
        abs(value) <= kind.most and round(value / kind.unit) * kind.unit == value for kind in _KINDS
    )
