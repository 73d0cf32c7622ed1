"""Simple constants where the data do not object: 0.4998 becomes 0.5, 3.1414 pi."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from . import expression as ex
from .operators import OPERATORS
from .refit import MOST_ROWS, refit, slopes
from .simple_numbers import nearest_simple

# How far a constant may move, in standard deviations, and what all may cost together, in nats.
_DEVIATIONS, _MOST_COST = 2.5, 3.0
# Share of numbers that may have a simple one as close by chance.
_BY_CHANCE = 0.05
# What moves y by less than this part of its spread is a rounding error.
_DIGITS = 1.0e-9


def rounded(
    expression: ex.Expression,
    columns: np.ndarray,
    y: np.ndarray,
    weights: np.ndarray,
    noise_prior: tuple[float, float],
    y_scale: float,
) -> ex.Expression:
    """Return a formula with simple constants instead of those that data cannot tell from them.

    Constants are rounded one by one, the surest first, and the others fitted again each time; one
    that would bring the loss of log-likelihood over 3 nats in all is left as it is. `noise_prior`
    is for y in units of `y_scale`.

    Examples
    --------
    >>> import numpy as np
    >>> from symbayes.rounding import rounded
    >>> x = np.linspace(1, 5, 50)
    >>> rough = ("*", ("c", 0.4999999), ("x", 0))
    >>> rounded(rough, x[None, :], x / 2, np.ones(50), (1.0, 1e-12), 1.0)
    ('*', ('c', 0.5), ('x', 0))
    """
    step = -(-len(y) // MOST_ROWS)
    table, root = columns[:, ::step], np.sqrt(weights[::step]) / y_scale
    target, n = y[::step], float(weights.sum())
    share = n / max(float(weights[::step].sum()), 1e-300)
    nu, lam = noise_prior

    def residual(values: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            found = ex.evaluate(with_constants(expression, values), table)
            result = root * (target - found)
        return result if np.isfinite(result).all() else np.full(len(target), 1e6)

    def cost(values: np.ndarray) -> float:
        rss = share * float(np.sum(residual(values) ** 2))
        return 0.5 * (n - 1.0 + nu) * np.log(nu * lam + rss)

    values = np.array(list(constants(expression)))
    free = np.ones(len(values), dtype=bool)
    if not len(values) or len(values) >= len(target):
        return expression
    values = _refit(residual, values, free, y_scale)
    allowed = cost(values) + _MOST_COST
    tried: set[int] = set()
    while True:
        deviation, natural = _deviations(residual, values, free, nu * lam / share, y_scale)
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
            return expression if free.all() else tidy(with_constants(expression, values))
        _, i, simple = min(options)
        trial, rest = values.copy(), free.copy()
        trial[i], rest[i] = simple, False
        trial = _refit(residual, trial, rest, y_scale)
        if cost(trial) <= allowed:
            values, free = trial, rest
        tried.add(i)


def constants(expression: ex.Expression) -> Iterator[float]:
    """Yield the constants of an expression from left to right."""
    if expression[0] == ex.CONSTANT:
        yield expression[1]
    elif expression[0] != ex.FEATURE:
        for operand in expression[1:]:
            yield from constants(operand)


def with_constants(expression: ex.Expression, values: np.ndarray) -> ex.Expression:
    """Return the expression with other constants, given from left to right."""
    remaining = iter(values)

    def rebuild(node: ex.Expression) -> ex.Expression:
        if node[0] == ex.CONSTANT:
            return (ex.CONSTANT, float(next(remaining)))
        if node[0] == ex.FEATURE:
            return node
        return (node[0], *(rebuild(operand) for operand in node[1:]))

    return rebuild(expression)


def tidy(expression: ex.Expression) -> ex.Expression:
    """Leave out factors of 1 and summands of 0, and work out what is constant."""
    if expression[0] in (ex.CONSTANT, ex.FEATURE):
        return expression
    name, *operands = (expression[0], *(tidy(operand) for operand in expression[1:]))
    zero, one = (ex.CONSTANT, 0.0), (ex.CONSTANT, 1.0)
    if all(operand[0] == ex.CONSTANT for operand in operands):
        with np.errstate(all="ignore"):
            value = float(OPERATORS[name].numpy(*(operand[1] for operand in operands)))
        return (ex.CONSTANT, value) if np.isfinite(value) else (name, *operands)
    if name in ("+", "-") and operands[1] == zero:
        return operands[0]
    if name == "+" and operands[0] == zero:
        return operands[1]
    if name == "*" and zero in operands:
        return zero
    if name == "*" and one in operands:
        return operands[1] if operands[0] == one else operands[0]
    if name == "/" and operands[1] == one:
        return operands[0]
    return (name, *operands)


def _with(values: np.ndarray, free: np.ndarray, part: np.ndarray) -> np.ndarray:
    """Return the values with other ones in the free places."""
    result = values.copy()
    result[free] = part
    return result


def _refit(residual, values: np.ndarray, free: np.ndarray, unit: float) -> np.ndarray:
    """Return the values with those that are free at their best."""
    best = refit(lambda part: residual(_with(values, free, part)), values[free], unit)
    return _with(values, free, best)


def _deviations(
    residual, values: np.ndarray, free: np.ndarray, least: float, unit: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return the standard deviation of each constant, and how far it moves y by its spread.

    Both are 0 for constants that are fixed.
    """
    base = residual(values)
    deviation, natural = np.zeros((2, len(values)))
    if free.any():
        jacobian = slopes(
            lambda part: residual(_with(values, free, part)), values[free], base, unit
        )
        # By their largest entries first: squares of extreme numbers overflow or vanish.
        scale = np.abs(jacobian).max(axis=0)
        scale = np.where((scale > 0.0) & np.isfinite(scale), scale, 1.0)
        jacobian = np.nan_to_num(jacobian / scale, nan=0.0, posinf=0.0, neginf=0.0)
        inverse = np.linalg.pinv(jacobian, rcond=1e-9)
        noise = (float(np.sum(base**2)) + least) / max(len(base) - jacobian.shape[1], 1)
        with np.errstate(over="ignore"):  # a constant that may be anything is not rounded
            deviation[free] = np.sqrt(noise * np.sum(inverse**2, axis=1)) / scale
            natural[free] = 1.0 / (scale * np.sqrt(np.maximum(np.mean(jacobian**2, axis=0), 1e-30)))
    return deviation, natural
