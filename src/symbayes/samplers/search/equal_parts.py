"""Shorter ways to write a state: parts that take the same values as something smaller.

Every part of a tree is compared, on the rows, with all parts of the state, with functions of one of
them and with sums, products and ratios of two. Where it equals a x + b of something smaller, that
takes its place: `exp(log(z^3)/3)` becomes `z`, `x/x/x` becomes `1/x`. The fit stays as it is, so
that data with noise do not matter.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ...formula.operators import OPERATORS
from ...formula.trees import evaluate_trees, join, leaf, state_size, transform
from ...kernels import opcodes

# Parts that others are built from, at most, the smallest first.
_MOST_PARTS = 40
# Replacements offered for one part.
_MOST_OFFERS = 3
# Two functions are the same if their values differ by less than this part of their spread.
_SAME = 1.0e-9
# A function whose spread is a smaller part of its size is a constant.
_CONSTANT = 1.0e-9


@dataclass(frozen=True)
class _Pool:
    """Small functions, with their values centred and scaled to length one."""

    values: np.ndarray
    shapes: np.ndarray
    recipes: list[tuple]
    """An operator and its operands."""
    sizes: np.ndarray


def shorter_states(
    trees: Sequence[np.ndarray], table: np.ndarray, operators: Mapping[str, float]
) -> Iterator[list[np.ndarray]]:
    """Yield states with one part replaced by something shorter, those that save most first.

    `table` has the columns of the rows to compare on.
    """
    if not trees:
        return
    pool = _pool(_parts(trees), table, operators)
    offers = []
    for k, tree in enumerate(trees):
        for start, end in _spans(tree):
            for new in _replacements(tree, start, end, pool, table, "lt" in operators):
                if len(new) < len(tree):
                    offers.append((len(tree) - len(new), k, new))
    offers.sort(key=lambda offer: -offer[0])
    for _, k, new in offers:
        yield [new if i == k else other.copy() for i, other in enumerate(trees)]


def _spans(tree: np.ndarray) -> list[tuple[int, int]]:
    """Return begin and end of every part of a tree that is more than a column."""
    spans = ((i, i + state_size(tree[i:], 1)) for i in range(len(tree)))
    return [(start, end) for start, end in spans if end > start + 1]


def _parts(trees: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Return the columns that are used and the parts of all trees, each once, smallest first."""
    used = {int(f) for tree in trees for f in tree["feature"][tree["op"] == opcodes.FEATURE]}
    parts = {leaf(f).tobytes(): leaf(f) for f in sorted(used)}
    for tree in trees:
        for start, end in _spans(tree):
            parts.setdefault(tree[start:end].tobytes(), tree[start:end].copy())
    return sorted(parts.values(), key=len)[:_MOST_PARTS]


def _pool(parts: list[np.ndarray], table: np.ndarray, operators: Mapping[str, float]) -> _Pool:
    values = list(evaluate_trees(parts, table))
    recipes: list[tuple] = [(None, part) for part in parts]
    sizes = [len(part) for part in parts]
    with np.errstate(all="ignore"):
        for name in operators:
            operator = OPERATORS[name]
            if name == "lt":
                continue
            for i, first in enumerate(parts):
                if operator.arity == 1:
                    values.append(operator.numpy(values[i]))
                    recipes.append((name, first))
                    sizes.append(1 + len(first))
                    continue
                for j, second in enumerate(parts):
                    values.append(operator.numpy(values[i], values[j]))
                    recipes.append((name, first, second))
                    sizes.append(1 + len(first) + len(second))
        stacked = np.array(values)
        shapes, good = _shapes(stacked)
    kept = np.flatnonzero(good)
    return _Pool(stacked[kept], shapes[kept], [recipes[i] for i in kept], np.array(sizes)[kept])


def _shapes(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return values centred and scaled to length one, and which of them vary."""
    with np.errstate(all="ignore"):
        size = np.abs(values).max(axis=1)
        centred = values / size[:, None]
        centred -= centred.mean(axis=1)[:, None]
        length = np.sqrt(np.einsum("ij,ij->i", centred, centred))
        good = np.isfinite(length) & (length > _CONSTANT * np.sqrt(values.shape[1]))
        return centred / length[:, None], good


def _replacements(
    tree: np.ndarray, start: int, end: int, pool: _Pool, table: np.ndarray, transforms: bool
) -> Iterator[np.ndarray]:
    """Yield the tree with the part from `start` to `end` replaced by equals, shortest first."""
    values = evaluate_trees([tree[start:end]], table)
    (shape,), (varies,) = _shapes(values)
    if not varies:
        return
    smaller = np.flatnonzero(pool.sizes < end - start)
    # In two steps: cosines close to one have lost the digits that decide.
    close = smaller[np.abs(pool.shapes[smaller] @ shape) > 1.0 - 1e-10]
    found = 0
    for i in close[np.argsort(pool.sizes[close], kind="stable")]:
        sign = np.sign(pool.shapes[i] @ shape)
        if np.abs(shape - sign * pool.shapes[i]).max() > _SAME:
            continue
        name, *operands = pool.recipes[i]
        small = operands[0] if name is None else join(name, *operands)
        x, y = pool.values[i], values[0]
        with np.errstate(all="ignore"):
            a = float(np.ptp(y) / np.ptp(x) * sign)
            b = float(np.mean(y) - a * np.mean(x))
        if not (math.isfinite(a) and math.isfinite(b)):
            continue  # values at the end of what a number can hold
        before = tree[:start].copy()
        if start > 0 and (abs(a - 1.0) > _SAME or abs(b) > _SAME * np.abs(y).max()):
            if before["op"][-1] == opcodes.LT:  # what is above takes a and b over
                before["b"][-1] += before["a"][-1] * b
                before["a"][-1] *= a
            elif transforms:
                small = transform(small, a, b)
            else:
                continue
        yield np.concatenate([before, small, tree[end:]])
        found += 1
        if found == _MOST_OFFERS:
            return
