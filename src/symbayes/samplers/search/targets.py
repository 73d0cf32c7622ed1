"""Searching on another target: what is nested for y may be a plain sum for y^2, 1/y or log y.

`sqrt(a + b)` is one tree that has to be found whole; its square is a sum of two small terms. So
some ladders run on a transformed target. What they find is carried back as one tree for y: the
inverse operator on top of the sum, its coefficients in `lt` nodes. Where y has a common factor
(`common_factor.py`), the same is done for y divided by it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from ...formula.trees import join, leaf, transform
from ...inputs.problem import Problem
from ...kernels import opcodes
from . import heuristics
from .heuristics import FittedState

# Ratios of coefficients this close to a whole number or a half are taken to be one: they become
# free constants again where that is wrong, since the result is optimised afterwards.
_SIMPLE = 1.0e-5
# The same for powers in a product, which noise shifts.
_SIMPLE_POWER = 0.02
# A target whose spread is larger than that of most rows by this factor depends on a few rows only.
_LARGEST_RATIO = 1.0e3


@dataclass(frozen=True)
class Target:
    """One transformation of y."""

    name: str
    needs: tuple[str, ...]
    """Operators, one of which is needed to carry a state back."""
    forward: Callable[[np.ndarray], np.ndarray]
    low: float = -np.inf
    high: float = np.inf
    """The range of y where the transformation can be undone."""
    scale_free: bool = False
    """Whether a factor of the sum is only a factor of y."""
    divisor: np.ndarray | None = field(default=None, compare=False)
    """A tree that y is divided by first."""

    def suggest(self, problem: Problem, state: FittedState) -> Iterator[list[np.ndarray]]:
        """Yield states for y that a state found for this target stands for."""
        intercept, coefficients = state.coefficients()
        operators = problem.operator_weights
        for tree in carry_back(self, state.trees(), intercept, coefficients, operators):
            yield [tree]


TARGETS = (
    Target("square", ("sqrt",), np.square, 0.0, scale_free=True),
    Target("inverse", ("inv", "/"), np.reciprocal, scale_free=True),
    Target("log", ("exp",), np.log, 0.0),
    Target("square root", ("square",), np.sqrt, 0.0, scale_free=True),
    Target("exp", ("log",), np.exp, -20.0, 20.0),
    Target("cos", ("arccos",), np.cos, 0.0, np.pi),
    Target("sin", ("arcsin",), np.sin, -np.pi / 2, np.pi / 2),
    Target("arctanh", ("tanh",), np.arctanh, -1.0, 1.0),
)
_ITSELF = Target("itself", ("*",), np.array, scale_free=True)


def targets_of(y: np.ndarray, operators: Mapping[str, float]) -> list[Target]:
    """Return the targets that make sense for these values and operators."""
    if not heuristics.in_use.targets or "lt" not in operators or "+" not in operators:
        return []
    result = []
    for target in TARGETS:
        possible = any(name in operators for name in target.needs)
        if not possible or y.min() < target.low or y.max() > target.high:
            continue
        with np.errstate(all="ignore"):
            z = target.forward(y)
            distance = np.abs(z - np.median(z))
            spread = np.std(z)
        if 0.0 < spread < np.inf and np.median(distance) > spread / _LARGEST_RATIO:
            result.append(target)
    return result


def divided_targets(
    y: np.ndarray, divisor: np.ndarray, values: np.ndarray, operators: Mapping[str, float]
) -> list[Target]:
    """Return the targets for y over a tree with these values, that ratio itself first."""
    needed = {"*", "+", "lt"}  # to write a sum with its coefficients as one tree, times the divisor
    if not needed <= operators.keys() or not (np.isfinite(values).all() and values.all()):
        return []

    def after_division(target: Target) -> Target:
        return replace(target, divisor=divisor, forward=lambda y: target.forward(y / values))

    return [after_division(target) for target in (_ITSELF, *targets_of(y / values, operators))]


def carry_back(
    target: Target,
    trees: list[np.ndarray],
    intercept: float,
    coefficients: np.ndarray,
    operators: Mapping[str, float],
) -> list[np.ndarray]:
    """Return trees for y that a sum of trees found for a target stands for; there may be two."""
    if not trees or not np.isfinite([intercept, *coefficients]).all() or not coefficients.any():
        return []
    if target.divisor is not None:
        inner = replace(target, divisor=None)
        found = carry_back(inner, trees, intercept, coefficients, operators)
        return [join("*", target.divisor, tree) for tree in found]
    used = coefficients != 0.0
    trees = [tree for tree, is_used in zip(trees, used, strict=True) if is_used]
    coefficients = coefficients[used]
    total, factor = _sum(trees, intercept, coefficients, operators)
    if target.name == _ITSELF.name:
        return [total]
    product = _product(trees, coefficients, operators) if target.name == "log" else None
    results = [] if product is None else [product]
    if not target.scale_free:
        total = _linear(total, factor, 0.0)
    top = next(name for name in target.needs if name in operators)
    results.append(join(top, _one(), total) if top == "/" else join(top, total))
    return results


def _one() -> np.ndarray:
    """Return the constant 1: a column times 0."""
    return _linear(leaf(0), 0.0, 1.0)


def _linear(tree: np.ndarray, a: float, b: float) -> np.ndarray:
    """Return a x + b as a tree; an `lt` node on top takes a and b over, and x needs none."""
    if tree[0]["op"] == opcodes.LT:
        a, b = a * tree[0]["a"], a * tree[0]["b"] + b
        tree = tree[1:]
    return tree if a == 1.0 and b == 0.0 else transform(tree, a, b)


def _simple(value: float, tolerance: float) -> float:
    """Return the whole or half number that a value is close to, or else the value."""
    nearest = round(2.0 * value) / 2.0
    close = abs(value - nearest) <= tolerance * max(1.0, abs(nearest))
    return nearest if close and nearest != 0.0 else value


def _sum(
    trees: list[np.ndarray],
    intercept: float,
    coefficients: np.ndarray,
    operators: Mapping[str, float],
) -> tuple[np.ndarray, float]:
    """Return the sum as one tree, and the factor that was taken out of it."""
    order = np.argsort(-coefficients)  # a positive one first: its factor is taken out
    factor = float(abs(coefficients[order[0]]))
    negligible = abs(intercept) < 1e-9 * np.abs(coefficients).max()
    offset = 0.0 if negligible else intercept / factor
    total: np.ndarray | None = None
    for k in order:
        ratio = _simple(float(coefficients[k]) / factor, _SIMPLE)
        # The offset joins a constant that is there anyway, if there is one.
        here = offset if k == order[-1] or (ratio not in (1.0, -1.0) and offset) else 0.0
        offset -= here
        if total is None:
            total = _linear(trees[k], ratio, here)
        elif ratio == -1.0 and here == 0.0 and "-" in operators:
            total = join("-", total, trees[k])
        else:
            total = join("+", total, _linear(trees[k], ratio, here))
    assert total is not None
    return total, factor


def _product(
    trees: list[np.ndarray], coefficients: np.ndarray, operators: Mapping[str, float]
) -> np.ndarray | None:
    """Return exp(sum of c log u) as a product of powers, where the powers are simple."""
    above: list[np.ndarray] = []
    below: list[np.ndarray] = []
    for tree, coefficient in zip(trees, coefficients, strict=True):
        power = _simple(float(coefficient), _SIMPLE_POWER)
        if tree[0]["op"] == opcodes.LOG and power == round(2.0 * power) / 2.0 and abs(power) <= 6:
            side = above if power > 0 else below
            whole, half = divmod(abs(power), 1.0)
            side.extend([tree[1:]] * int(whole))
            if half:
                if "sqrt" not in operators:
                    return None
                side.append(join("sqrt", tree[1:]))
        else:
            above.append(join("exp", _linear(tree, float(coefficient), 0.0)))
    if "*" not in operators or (below and "/" not in operators):
        return None
    result, *factors = above or [_one()]
    for factor in factors:
        result = join("*", result, factor)
    for factor in below:
        result = join("/", result, factor)
    return result
