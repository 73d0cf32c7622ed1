"""Simple constants where the data do not object: 0.4998 becomes 0.5, 3.1414 pi."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..deadline import until
from ..formula import expression as ex
from ..formula.expression import with_constants
from ..formula.rewriting import folded
from .constants import Sight, with_free
from .refit import refit
from .simple_numbers import nearest_simple

# How far a constant may move, in standard deviations, and what all may cost together, in nats.
_DEVIATIONS, _MOST_COST = 2.5, 3.0
# Share of numbers that may have a simple one as close by chance.
_BY_CHANCE = 0.05
# What moves y by less than this part of its spread is a rounding error.
_DIGITS = 1.0e-9


def rounded(
    expression: ex.Expression, sight: Sight, stop: Callable[[], bool] = lambda: False
) -> ex.Expression:
    """Return a formula with simple constants instead of those that data cannot tell from them.

    Constants are rounded one by one, the surest first, and the others fitted again each time; one
    that would bring the loss of log-likelihood over 3 nats in all is left as it is. If it is time
    to `stop` meanwhile, it raises OutOfTime.

    Examples
    --------
    >>> import numpy as np
    >>> from symbayes.fitting.constants import Sight
    >>> from symbayes.fitting.rounding import rounded
    >>> x = np.linspace(1, 5, 50)
    >>> rough = ("*", ("c", 0.4999999), ("x", 0))
    >>> rounded(rough, Sight(x[None, :], x / 2, np.ones(50), (1.0, 1e-12), 1.0))
    ('*', ('c', 0.5), ('x', 0))
    """
    residual = until(stop, sight.residual(expression))

    def cost(values: np.ndarray) -> float:
        rss = sight.share * float(np.sum(residual(values) ** 2))
        return 0.5 * (sight.n - 1.0 + sight.nu) * np.log(sight.nu * sight.lam + rss)

    values = np.array(list(ex.constants(expression)))
    free = np.ones(len(values), dtype=bool)
    if not len(values) or len(values) >= len(sight):
        return expression
    values = _refit(residual, values, free, sight.y_scale)
    allowed = cost(values) + _MOST_COST
    tried: set[int] = set()
    while True:
        deviation, natural, *_ = sight.deviations_of(residual, values, free)
        options = []
        for i in np.flatnonzero(free).tolist():
            if i in tried:
                continue
            reach = max(_DEVIATIONS * deviation[i], _DIGITS * natural[i])
            simple = nearest_simple(values[i], reach, _BY_CHANCE)
            if simple is not None:
                options.append((abs(simple - values[i]) / reach, i, simple))
        if not options:
            # The constants were fitted again only to judge simple ones.
            return expression if free.all() else folded(with_constants(expression, values))
        _, i, simple = min(options)
        trial, rest = values.copy(), free.copy()
        trial[i], rest[i] = simple, False
        trial = _refit(residual, trial, rest, sight.y_scale)
        if cost(trial) <= allowed:
            values, free = trial, rest
        tried.add(i)


def _refit(residual, values: np.ndarray, free: np.ndarray, unit: float) -> np.ndarray:
    """Return the values with those that are free at their best."""
    best = refit(lambda part: residual(with_free(values, free, part)), values[free], unit)
    return with_free(values, free, best)
