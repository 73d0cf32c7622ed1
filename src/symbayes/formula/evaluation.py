"""The value of trees on a table, for everything outside the compiled loops."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..kernels.evaluate import BLOCK, stack_slots
from ..kernels.opcodes import FEATURE
from ..kernels.units import load_evaluate


def evaluate_trees(trees: Sequence[np.ndarray], columns: np.ndarray) -> np.ndarray:
    """Return the value of each tree, given as nodes in preorder, on a table given as columns."""
    evaluate = load_evaluate()
    n_rows = columns.shape[1]
    # Compiled code is made for writable arrays; those of a model loaded from disk may not be.
    if not (columns.flags.carray and columns.dtype == np.float64):
        trees, columns = _with_own_columns(trees, columns)
    flat = columns.reshape(-1)
    values = np.empty((len(trees), n_rows))
    size = max((len(tree) for tree in trees), default=1)
    stack = np.empty(stack_slots(size) * BLOCK)
    where = np.empty(2 * size + 4, np.int64)
    target = values.reshape(-1)
    for k, tree in enumerate(trees):
        evaluate(np.array(tree), 0, flat, n_rows, 0, n_rows, target, k * n_rows, stack, where)
    return values


def _with_own_columns(
    trees: Sequence[np.ndarray], columns: np.ndarray
) -> tuple[list[np.ndarray], np.ndarray]:
    """Return the trees with a copy of those columns that they use, which may be few of many."""
    leaves = [tree["feature"][tree["op"] == FEATURE] for tree in trees]
    used = np.unique(np.concatenate([[0], *leaves]).astype(int))
    renumbered = [np.array(tree) for tree in trees]
    for tree, features in zip(renumbered, leaves, strict=True):
        tree["feature"][tree["op"] == FEATURE] = np.searchsorted(used, features)
    return renumbered, np.array(columns[used], dtype=np.float64, order="C")
