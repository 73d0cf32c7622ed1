"""Searching on another target: what is nested for y may be a plain sum for y^2, 1/y or log y.

`sqrt(a + b)` is one tree that has to be found whole; its square is a sum of two small terms. So
some searches run on a transformed target. What they find is carried back as one tree of the
original problem: the inverse operator on top of the sum, its coefficients in `lt` nodes. Where y
has a common factor (`factors.py`), the same is done for y without it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from ...formula.trees import join, leaf, transform
from ...kernels import opcodes

# Ratios of coefficients this close to a whole number or a half are taken to be one: they become
# free constants again where that is wrong, since the result is optimised afterwards.
_SIMPLE = 1.0e-5
# The same for powers in a product, which noise shifts.
_SIMPLE_POWER = 0.02
# A target whose spread is so much larger than that of most rows is ruled by a few of them.
_LARGEST_RATIO = 1.0e3


@dataclass(frozen=True)
class Target:
    """One transformation of y."""

    name: str
    needs: tuple[str, ...]
    """Operators of which one has to be there to carry a find back."""
    forward: Callable[[np.ndarray], np.ndarray]
    scale_free: bool = False
    """Whether a factor on the sum is only a factor on y."""
    divisor: np.ndarray | None = field(default=None, compare=False)
    """A tree that y is divided by first."""


TARGETS = (
    Target("square", ("sqrt",), np.square, scale_free=True),
    Target("inverse", ("inv", "/"), np.reciprocal, scale_free=True),
    Target("log", ("exp",), np.log),
    Target("square root", ("square",), np.sqrt, scale_free=True),
    Target("exp", ("log",), np.exp),
    Target("cos", ("arccos",), np.cos),
    Target("sin", ("arcsin",), np.sin),
    Target("arctanh", ("tanh",), np.arctanh),
)
_ITSELF = Target("itself", ("*",), np.array, scale_free=True)
# Where a transformation can be undone.
_RANGES = {
    "square": (0.0, np.inf), "log": (0.0, np.inf), "square root": (0.0, np.inf),
    "exp": (-20.0, 20.0), "cos": (0.0, np.pi), "sin": (-np.pi / 2, np.pi / 2),
    "arctanh": (-1.0, 1.0),
}  # fmt: skip


def usable(y: np.ndarray, operators: Mapping[str, float]) -> list[Target]:
    """Return the targets that make sense for these values and operators."""
    result = []
    for target in TARGETS:
        low, high = _RANGES.get(target.name, (-np.inf, np.inf))
        if not any(name in operators for name in target.needs):
            continue
        if "lt" not in operators or "+" not in operators or y.min() < low or y.max() > high:
            continue
        with np.errstate(all="ignore"):
            z = target.forward(y)
            distance = np.abs(z - np.median(z))
            spread = np.std(z)
        if 0.0 < spread < np.inf and np.median(distance) > spread / _LARGEST_RATIO:
            result.append(target)
    return result


def divided(
    y: np.ndarray, divisor: np.ndarray, values: np.ndarray, operators: Mapping[str, float]
) -> list[Target]:
    """Return the targets for y over a tree with these values, that ratio itself first."""
    needed = {"*", "+", "lt"}  # to write a sum with its coefficients as one tree, times the divisor
    if not needed <= set(operators) or not (np.isfinite(values).all() and values.all()):
        return []

    def after_division(target: Target) -> Target:
        return replace(target, divisor=divisor, forward=lambda y: target.forward(y / values))

    ratio = y / values
    return [after_division(target) for target in (_ITSELF, *usable(ratio, operators))]


def carry_back(
    target: Target,
    trees: list[np.ndarray],
    intercept: float,
    coefficients: np.ndarray,
    operators: Mapping[str, float],
) -> list[np.ndarray]:
    """Return the states of the original problem that a find stands for; there may be several."""
    if not trees or not np.isfinite(coefficients).all() or not coefficients.any():
        return []
    if target.divisor is not None:
        inner = replace(target, divisor=None)
        found = carry_back(inner, trees, intercept, coefficients, operators)
        return [join("*", target.divisor, tree) for tree in found]
    total, factor = _sum(trees, intercept, coefficients, operators)
    if target.name == _ITSELF.name:
        return [total]
    results = []
    if target.name == "log":
        product = _product(trees, coefficients, operators)
        if product is not None:
            results.append(product)
    if not target.scale_free:
        total = _lt(total, factor, 0.0)
    top = next(name for name in target.needs if name in operators)
    if top == "/":
        # A constant above the line: a column times zero.
        one = _lt(leaf(0), 0.0, 1.0)
        results.append(join("/", one, total))
    else:
        results.append(join(top, total))
    return results


def _lt(tree: np.ndarray, a: float, b: float) -> np.ndarray:
    """Return a x + b as a tree, melted into a transform on top and left out where it is none."""
    if tree[0]["op"] == opcodes.LT:
        tree = tree.copy()
        tree[0]["a"], tree[0]["b"] = a * tree[0]["a"], a * tree[0]["b"] + b
        if tree[0]["a"] == 1.0 and tree[0]["b"] == 0.0:
            return tree[1:]
        return tree
    if a == 1.0 and b == 0.0:
        return tree
    return transform(tree, a, b)


def _simple(value: float, tolerance: float) -> float:
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
    trees = [tree for tree, c in zip(trees, coefficients, strict=True) if c != 0.0]
    coefficients = coefficients[coefficients != 0.0]
    order = np.argsort(-coefficients)  # a positive one first: its factor is taken out
    factor = float(abs(coefficients[order[0]]))
    offset = intercept / factor
    if abs(intercept) < 1e-9 * np.abs(coefficients).max():
        offset = 0.0
    total: np.ndarray | None = None
    for position, k in enumerate(order):
        ratio = _simple(float(coefficients[k]) / factor, _SIMPLE)
        # The offset joins a constant that is there anyway, if there is one.
        last = position == len(order) - 1
        here = offset if last or (ratio not in (1.0, -1.0) and offset) else 0.0
        offset -= here
        term = _lt(trees[k], ratio, here)
        if total is None:
            total = term
        elif ratio == -1.0 and here == 0.0 and "-" in operators:
            total = join("-", total, trees[k])
        else:
            total = join("+", total, term)
    assert total is not None
    return total, factor


def _product(
    trees: list[np.ndarray], coefficients: np.ndarray, operators: Mapping[str, float]
) -> np.ndarray | None:
    """Return exp(sum of c log u) as a product of powers, where the powers are simple."""
    if "*" not in operators:
        return None
    above: list[np.ndarray] = []
    below: list[np.ndarray] = []
    for tree, coefficient in zip(trees, coefficients, strict=True):
        if coefficient == 0.0:
            continue
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
            above.append(join("exp", _lt(tree, float(coefficient), 0.0)))
    if below and "/" not in operators:
        return None
    if not above:
        above.append(_lt(leaf(0), 0.0, 1.0))
    result = above[0]
    for factor in above[1:]:
        result = join("*", result, factor)
    for factor in below:
        result = join("/", result, factor)
    return result
