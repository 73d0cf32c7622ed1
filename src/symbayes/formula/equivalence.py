"""Are two formulas the same function? Decided by their values at many points.

Both are evaluated at a few thousand points in double precision. Where they differ most, where only
one of them has a value, and at some other points, they are evaluated again with 60 digits, so that
neither rounding nor overflow is taken for a difference.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import numpy as np

from .expression import CONSTANT, FEATURE, Expression, constants, evaluate
from .operators import OPERATORS

# Points of each kind, and how many are looked at closely for each reason to do so.
_PER_KIND, _CLOSELY = 250, 32
_SCALES = (0.1, 1.0, 3.0, 10.0, 100.0, 1.0e4)
_DIGITS, _ROUNDING = 60, 1.0e-45
# Each value is computed three more times with noise, and a difference up to four times what the
# noise makes of it means nothing.
_NOISY, _SLACK = 3, 4
# Beyond these powers of two numbers get too long to compute with.
_FARTHEST = 20_000


class _Undecided(Exception):
    """A number out of reach, or at the edge of a domain."""


def equivalent(first: Expression, second: Expression, n_columns: int, rtol: float) -> bool:
    """Return whether two expressions in the same columns are the same function."""
    if first == second:
        return True
    points = _points(n_columns, [*constants(first), *constants(second)])
    close_look = _CloseLook(rtol)
    compared = False
    for i in _telling(first, second, points):
        same = close_look.same(first, second, points[:, i])
        if same is False:
            return False
        compared = compared or same is not None
    return compared


def _points(n_columns: int, numbers: list[float]) -> np.ndarray:
    """Return columns of values: of several sizes, with and without signs, near the constants."""
    rng = np.random.default_rng(0)
    shape = (n_columns, _PER_KIND)
    kinds = [rng.uniform(low * scale, scale, shape) for scale in _SCALES for low in (-1.0, 0.0)]
    sizes = 10.0 ** rng.uniform(-4.0, 6.0, shape)
    kinds += [sizes, sizes * rng.choice([-1.0, 1.0], shape)]
    if numbers:
        near = rng.choice(numbers, shape) * rng.choice([-1.0, 1.0], shape)
        kinds += [near + rng.normal(size=shape), near * rng.normal(1.0, 0.1, shape)]
    return np.concatenate(kinds, axis=1)


def _telling(first: Expression, second: Expression, points: np.ndarray) -> Iterator[int]:
    """Yield the points that would tell the two apart, the most promising ones first."""
    with np.errstate(all="ignore"):
        a, b = evaluate(first, points), evaluate(second, points)
        gap = np.abs(a - b) / np.maximum(np.maximum(np.abs(a), np.abs(b)), 1e-300)
    both = np.flatnonzero(np.isfinite(a) & np.isfinite(b))
    one = np.flatnonzero(np.isfinite(a) != np.isfinite(b))
    yield from both[np.argsort(-gap[both])][:_CLOSELY]
    for some in (one, both):
        yield from some[:: max(1, len(some) // _CLOSELY)]


class _CloseLook:
    """Values with many digits, and how far they can be trusted."""

    def __init__(self, rtol: float):
        import mpmath

        self.mp: Any = mpmath.mp.clone()
        self.mp.dps = _DIGITS
        self.rtol = rtol
        self.random = Random(0)

    def same(self, first: Expression, second: Expression, point: np.ndarray) -> bool | None:
        """Return whether both have the same value; None where that cannot be told."""
        try:
            (a, a_error), (b, b_error) = self.trusted(first, point), self.trusted(second, point)
        except _Undecided:
            return None
        if a is None or b is None:
            return None if a is b else False
        return abs(a - b) <= self.rtol * max(abs(a), abs(b)) + _SLACK * (a_error + b_error)

    def trusted(self, expression: Expression, point: np.ndarray) -> tuple[Any, Any]:
        """Return a value, or None outside the domain, and what noise makes of it at most."""
        value = self.value(expression, point, None)
        others = []
        for _ in range(_NOISY):
            # The same factor for a constant that occurs twice.
            noise = {size: self.near_one(self.rtol) for size in map(abs, constants(expression))}
            others.append(self.value(expression, point, noise))
        if any((other is None) != (value is None) for other in others):
            raise _Undecided
        return value, 0 if value is None else max(abs(other - value) for other in others)

    def near_one(self, part: float) -> Any:
        sign = self.random.choice((-1, 1))
        return 1 + sign * self.mp.mpf(part) * self.random.uniform(0.5, 1.0)

    def value(self, node: Expression, point: np.ndarray, noise: dict[float, Any] | None) -> Any:
        """Return the value at a point, None outside the domain.

        With noise, constants are multiplied by their factors, and all results lose digits.
        """
        if node[0] == FEATURE:
            return self.mp.mpf(float(point[node[1]]))
        if node[0] == CONSTANT:
            return self.mp.mpf(node[1]) * (1 if noise is None else noise[abs(node[1])])
        operands = [self.value(operand, point, noise) for operand in node[1:]]
        if None in operands:
            return None
        try:
            result = OPERATORS[node[0]].sympy(self.mp, *operands)
        except ZeroDivisionError:
            return None
        if isinstance(result, self.mp.mpc) or not self.mp.isfinite(result):
            return None
        if result and abs(self.mp.mag(result)) > _FARTHEST:
            raise _Undecided
        return result if noise is None else result * self.near_one(_ROUNDING)
