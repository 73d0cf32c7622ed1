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
from .least_squares import Residual, SomeRows, refit, slopes
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
    """How well the data know constants: standard deviations, if these rows were all there are.

    Besides, how far each moves y by its spread, which of them others can make up for, so that the
    data know them only together, and how many directions among them the data see.
    """

    deviation: np.ndarray
    natural: np.ndarray
    loose: np.ndarray
    n_seen: int


class TrainingRows(SomeRows):
    """Some training rows, and what the residuals of an expression are there.

    Parameters are those of `SomeRows`. Residuals are in units of `y_scale`, the spread of y, and
    `places` says how expressions number the columns, by default from 0 on.
    """

    def __init__(
        self, columns, y, weights, noise_prior, y_scale: float,
        places: Sequence[int] | None = None, n: float | None = None,
    ):  # fmt: skip
        super().__init__(columns, y, weights, noise_prior, n)
        self._root /= y_scale
        self.y_scale = y_scale
        if places is not None:
            # Columns that no expression reads need no values.
            some, self._columns = self._columns, np.zeros((max(places) + 1, len(self)))
            self._columns[list(places)] = some

    def residual(self, expression: ex.Expression) -> Residual:
        """Return the function from constants to residuals, in units of the spread of y.

        The constants of an expression are the best on all rows. Where these are only some, what
        other constants would gain here by chance is taken out of y.
        """
        y = self._y

        def residual(values: np.ndarray) -> np.ndarray:
            with np.errstate(all="ignore"):
                found = ex.evaluate(ex.with_constants(expression, values), self._columns)
                result = self._root * (y - found)
            return result if np.isfinite(result).all() else np.full(len(y), 1e6)

        if self.multiplicity > _ALL:
            values = _constants(expression)
            base = residual(values)
            _, _, seen, _, _ = _directions(slopes(residual, values, base, self.y_scale))
            y = y - seen @ (seen.T @ base) / self._root
        return residual

    def deviations(self, expression: ex.Expression) -> tuple[np.ndarray, float]:
        """Return the posterior standard deviation of each constant, from left to right.

        It is that of the normal law that fits the posterior at the values given, with the noise
        at its estimate; infinite for a constant that the data know nothing about. The second
        result is the degrees of freedom of that estimate.
        """
        found = self.deviations_of(self.residual(expression), _constants(expression))
        deviation = np.where(found.loose, np.inf, found.deviation / np.sqrt(self.multiplicity))
        return deviation, float(freedom(self.n, found.n_seen, self.noise_prior))

    def deviations_of(self, residual: Residual, values: np.ndarray) -> Deviations:
        """Return how well the residuals at these rows know the constants that they depend on."""
        base = residual(values)
        jacobian = slopes(residual, values, base, self.y_scale)
        jacobian, scale, _, sizes, directions = _directions(jacobian)
        loose = 1.0 - np.sum(directions**2, axis=0) > _LOOSE
        noise = self.squares(base) / float(freedom(self.n, len(sizes), self.noise_prior))
        with np.errstate(over="ignore"):  # a constant that may be anything is not rounded
            inverse = directions / sizes[:, None]
            deviation = np.sqrt(noise * np.sum(inverse**2, axis=0)) / scale
            natural = 1.0 / (scale * np.sqrt(np.maximum(np.mean(jacobian**2, axis=0), 1e-30)))
        return Deviations(deviation, natural, loose, len(sizes))

    def loss(self, expression: ex.Expression, values: Sequence[float]) -> float:
        """Return by how many nats other constants are worse."""
        residual = self.residual(expression)
        before, after = (
            self.log_likelihood_of(residual(np.array(some)))
            for some in (_constants(expression), values)
        )
        return before - after

    def digits(self, expression: ex.Expression) -> list[int]:
        """Return how many significant digits of each constant the data support.

        The last one is the second digit of its standard deviation. Constants that the data know
        only together need more: as many as it takes for rounding to cost next to nothing.
        """
        values = _constants(expression)
        deviation, _ = self.deviations(expression)
        with np.errstate(all="ignore"):
            known = np.floor(np.log10(np.abs(values))) - np.floor(np.log10(deviation)) + 2.0
        # Constants that others can make up for need about as many as those that are known best.
        least = max([1.0, *known[np.isfinite(known)]])
        known = np.maximum(1.0, np.nan_to_num(known, nan=1.0, neginf=least, posinf=_MOST_DIGITS))
        rms = np.sqrt(np.mean(self.residual(expression)(values) ** 2))
        most = _FEW_DIGITS if rms < _EXACT else _MOST_DIGITS
        for more in range(most):
            digits = np.clip(known + more, 1, most).astype(int).tolist()
            rough = list(ex.constants(ex.with_digits(expression, digits)))
            if self.loss(expression, rough) <= _NEXT_TO_NOTHING:
                return digits
        return [_FEW_DIGITS] * len(values)


def _constants(expression: ex.Expression) -> np.ndarray:
    return np.array(list(ex.constants(expression)))


def _directions(columns: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return columns in units of their largest entries, these, and what is seen of their SVD."""
    scale = np.abs(columns).max(axis=0)  # by which no square overflows or vanishes
    scale = np.where((scale > 0.0) & np.isfinite(scale), scale, 1.0)
    columns = np.nan_to_num(columns / scale, nan=0.0, posinf=0.0, neginf=0.0)
    left, sizes, right = np.linalg.svd(columns, full_matrices=False)
    seen = sizes > _SEEN * sizes.max(initial=0.0)
    return columns, scale, left[:, seen], sizes[seen], right[seen]


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

    def of_free(values: np.ndarray, free: np.ndarray) -> Residual:
        def residual_of_free(part: np.ndarray) -> np.ndarray:
            changed = values.copy()
            changed[free] = part
            return residual(changed)

        return residual_of_free

    def refitted(values: np.ndarray, free: np.ndarray) -> np.ndarray:
        result = values.copy()
        result[free] = refit(of_free(values, free), values[free], rows.y_scale)
        return result

    values = _constants(expression)
    free = np.ones(len(values), dtype=bool)
    if not len(values) or len(values) >= len(rows):
        return expression
    values = refitted(values, free)
    least = rows.log_likelihood_of(residual(values)) - _MOST_COST
    tried: set[int] = set()
    while True:
        deviation, natural, *_ = rows.deviations_of(of_free(values, free), values[free])
        reaches = np.maximum(_DEVIATIONS * deviation, _DIGITS * natural)
        options = [
            (abs(simple - values[i]) / reach, i, simple)
            for i, reach in zip(np.flatnonzero(free).tolist(), reaches, strict=True)
            if i not in tried and (simple := nearest_simple(values[i], reach)) is not None
        ]
        if not options:
            # The constants were fitted again only to judge simple ones.
            return expression if free.all() else folded(ex.with_constants(expression, values))
        _, i, simple = min(options)
        trial, rest = values.copy(), free.copy()
        trial[i], rest[i] = simple, False
        trial = refitted(trial, rest)
        if rows.log_likelihood_of(residual(trial)) >= least:
            values, free = trial, rest
        tried.add(i)


# Units of simple numbers, the largest multiple that is one, and how much more often than others
# such a number is meant when one is close; from the plainest on. A number is of the first kind that
# fits.
_KINDS = (
    (1.0, 100.0, 5.0),
    (0.5, 20.0, 2.0),
    (1.0 / 3.0, 10.0, 1.0),
    (0.25, 10.0, 1.0),
    (np.pi, 10.0 * np.pi, 1.0),
    (np.pi / 2.0, 5.0 * np.pi, 1.0),
    (0.1, 20.0, 1.0),
    (1.0 / 6.0, 5.0, 1.0),
    (np.pi / 4.0, 3.0 * np.pi, 1.0),
    (np.pi / 3.0, 3.0 * np.pi, 1.0),
)


def nearest_simple(value: float, tolerance: float) -> float | None:
    """Return the plainest simple number within a tolerance of a value, if there is one.

    At most one value in 20 may have a number of that kind so close by chance, one in four a whole
    number: among coarse measurements everything is near some fraction.
    """
    for unit, most, trust in _KINDS:
        if not abs(value) <= most + unit:
            continue  # too large, or so large that the quotient would be no number
        candidate = round(value / unit) * unit
        rare = 2.0 * tolerance <= _BY_CHANCE * trust * unit
        if rare and abs(value - candidate) <= tolerance and abs(candidate) <= most:
            return float(candidate)
    return None


def is_simple(value: float) -> bool:
    """Return whether a value is one of the simple numbers, to the last bit."""
    return any(
        abs(value) <= most and round(value / unit) * unit == value for unit, most, _ in _KINDS
    )
