"""Small expressions matched against a residual: which further term would explain most of it?

A product of two columns among hundreds is hopeless to find by chance, and neither column alone
shows that it matters. Comparing the residual with all products at once takes milliseconds.
For the search phase only, since it looks at the data.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np

from ..evaluation import evaluate_trees
from ..operators import OPERATORS
from ..problem import Problem
from .building import join, leaf

# Expressions in the library at most: pairs of some 200 columns.
_MOST_EXPRESSIONS = 25_000
# A column whose spread is a smaller part of its size is a constant.
_CONSTANT = 1.0e-8


class Library:
    """Columns, functions of one column, products and ratios of two, with their values."""

    def __init__(self, problem: Problem):
        data = problem.data
        self._used = data.root_weight > 0
        self._root = data.root_weight[self._used]
        trees = _enumerate(problem)
        columns = data.x.reshape(-1, len(data.y))[:, self._used]
        with np.errstate(all="ignore"):
            values = evaluate_trees(trees, columns)
            largest = np.abs(values).max(axis=1)
            scaled = values / largest[:, None]
            centred = scaled - np.average(scaled, axis=1, weights=self._root**2)[:, None]
            centred *= self._root
            length = np.sqrt(np.sum(centred**2, axis=1))
            good = np.isfinite(length) & (length > _CONSTANT * np.sqrt(len(self._root)))
        self._trees = [tree for tree, kept in zip(trees, good, strict=True) if kept]
        # Single precision is enough to rank them, and twice as fast.
        self._shapes = (centred[good] / length[good, None]).astype(np.float32)

    def best_for(self, residual: np.ndarray) -> np.ndarray | None:
        """Return the tree that explains most of a residual, given on all rows of the problem."""
        if not self._trees:
            return None
        gain = np.abs(self._shapes @ residual[self._used].astype(np.float32))
        return self._trees[int(np.argmax(gain))].copy()


def _enumerate(problem: Problem) -> list[np.ndarray]:
    """Return small trees, the smallest first."""
    names = problem.operator_weights
    unary = [name for name in names if OPERATORS[name].arity == 1 and name not in ("lt", "neg")]
    leaves = [leaf(int(i)) for i in np.flatnonzero(problem.feature_weights > 0)]
    trees = [*leaves, *(join(name, leaf) for name in unary for leaf in leaves)]
    for name in ("*", "/"):
        if name in names:
            for p, q in combinations(leaves, 2):
                trees.append(join(name, p, q))
                if name == "/":
                    trees.append(join(name, q, p))
    return trees[:_MOST_EXPRESSIONS]
