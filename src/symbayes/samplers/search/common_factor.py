"""Common factors: which columns enter y only as a power in front of everything else?

`x2^2 x3^2 h(x0, x1)` is easier to find as `h`, once `x2^2 x3^2` is known. On a logarithmic scale
such a column has a constant slope, and no bend together with any other.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...formula.trees import product_of_powers
from ...inputs.problem import Problem, some_rows
from .heuristics import State, usable_columns

# The largest number of rows that are looked at.
_MOST_ROWS = 2000
# The largest number of terms of the quadratic regression, as a part of the rows.
_TERMS_PER_ROW = 0.5
# A slope this close to a whole or half number is taken to be one, if it is not larger than the last
# of these. A bend, and what is left of a slope, may be this many standard errors plus a rounding
# error, in units of log y over the spread of a column.
_SIMPLE, _DEVIATIONS, _ROUNDING, _LARGEST = 0.1, 4.0, 3.0e-3, 6.0
# Logarithms of a column that vary less are mostly rounding errors.
_LEAST_SPREAD = 1.0e-9
# Rows times squared terms of the regression that a second is enough for, also where other work
# takes most of the machine, and the part of the time for a search that it may take.
_WORK_PER_SECOND, _MOST_OF_THE_TIME = 3.0e8, 0.5


def suggest(
    problem: Problem, state: State | None = None, seconds: float = np.inf
) -> Iterator[list[np.ndarray]]:
    """Yield the factor of y, if there is one: for the search on y divided by it.

    A regression cannot be stopped, so that it is not begun where it would take most of the
    `seconds` that there are.
    """
    if np.count_nonzero(problem.data.root_weight) > _MOST_ROWS:
        problem = problem.on_rows(some_rows(problem, _MOST_ROWS))
    y = problem.response()[problem.data.root_weight > 0]
    exponents = common_factor(usable_columns(problem), y, seconds)
    chosen = np.flatnonzero(exponents)
    if len(chosen):
        tree = product_of_powers(
            chosen.tolist(), exponents[chosen].tolist(), problem.operator_weights
        )
        # There has to be room for what y is besides.
        if tree is not None and 2 * len(tree) <= problem.max_nodes:
            yield [tree]


def common_factor(columns: np.ndarray, y: np.ndarray, seconds: float = np.inf) -> np.ndarray:
    """Return the power of each column in a factor of y; 0 for those that are in no such factor.

    `columns` has one row per column. Columns that are not positive everywhere are in no factor.

    Examples
    --------
    >>> import numpy as np
    >>> from symbayes.samplers.search.common_factor import common_factor
    >>> x = np.random.default_rng(0).uniform(1, 3, (3, 100))
    >>> common_factor(x, x[0]**2 * (x[1] + x[2])).tolist()
    [2.0, 0.0, 0.0]
    """
    result = np.zeros(len(columns))
    positive = np.flatnonzero((columns > 0).all(axis=1))
    logs = np.log(columns[positive])
    varying = logs.std(axis=1) > _LEAST_SPREAD
    usable, logs = positive[varying], logs[varying]
    spread = logs.std(axis=1)
    size = np.abs(y)
    typical = np.median(size)
    p = len(usable)
    terms = 1 + p + p * (p + 1) // 2
    if p == 0 or terms > _TERMS_PER_ROW * len(y) or not typical > 0:
        return result
    if len(y) * terms**2 > _WORK_PER_SECOND * _MOST_OF_THE_TIME * seconds:
        return result
    logs = (logs - logs.mean(axis=1, keepdims=True)) / spread[:, None]
    first, second = np.triu_indices(p)
    # Where y is small, its logarithm is mostly noise.
    weight = np.minimum(size, typical) / typical
    design = np.vstack([np.ones(len(y)), logs, logs[first] * logs[second]]) * weight
    target = np.log(np.maximum(size, 1e-12 * typical)) * weight
    inverse = np.linalg.pinv(design.T)
    coefficients = inverse @ target
    errors = target - coefficients @ design
    variance = np.sum(errors**2) / (len(y) - len(design))
    allowed = _DEVIATIONS * np.sqrt(variance * np.sum(inverse**2, axis=1)) + _ROUNDING
    is_straight = np.abs(coefficients[p + 1 :]) <= allowed[p + 1 :]
    straight = np.array([is_straight[(first == k) | (second == k)].all() for k in range(p)])
    slopes = coefficients[1 : p + 1] / spread
    simple = np.round(2.0 * slopes) / 2.0
    distance = np.abs(slopes - simple)
    good = straight & (distance <= _SIMPLE) & (distance * spread <= allowed[1 : p + 1])
    good &= np.abs(simple) <= _LARGEST
    result[usable] = np.where(good, simple, 0.0) + 0.0
    return result
