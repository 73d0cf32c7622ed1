"""Constants that were fitted to some of the rows, brought to their best on all of them.

Each step is one least-squares problem, solved block by block: y on the terms and on their
derivatives by the constants. A constant moves by the coefficient of its derivative over that of its
term (Gauss and Newton), which near the best constants doubles the digits that are right.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..formula.trees import evaluate_trees
from ..inputs.problem import ROWS_AT_ONCE
from ..kernels import opcodes

# Increment of a constant for a derivative, as a part of it.
_INCREMENT = 1.0e-6
# Directions with smaller singular values, as a part of the largest, say nothing.
_SEEN = 1.0e-9

Place = tuple[int, int, str]


def free_constants(trees: Sequence[np.ndarray], first: int) -> list[Place]:
    """Return the constants of the trees from `first` on that are not 1 or 0 for good."""
    return [
        (k, int(i), name)
        for k, tree in enumerate(trees)
        for i in np.flatnonzero(tree["op"] == opcodes.LT)
        for name, simple in (("a", 1.0), ("b", 0.0))
        if k >= first and tree[i][name] != simple
    ]


def newton_step(
    trees: Sequence[np.ndarray],
    places: Sequence[Place],
    columns: np.ndarray,
    y: np.ndarray,
    weights: np.ndarray,
) -> tuple[np.ndarray, ...] | None:
    """Return the trees with constants one step nearer to their best; None if there is no step.

    Parameters
    ----------
    trees : sequence of ndarray
        All terms, the known ones too.
    places : sequence of tuple
        The constants that move: tree, node and name.
    columns : ndarray of shape (n_columns, n_rows)
    y, weights : ndarray of shape (n_rows,)
    """
    moved, increments = [], []
    for k, i, name in places:
        tree = trees[k].copy()
        value = float(tree[i][name])
        tree[i][name] = value + _INCREMENT * max(1.0, abs(value))
        increments.append(float(tree[i][name]) - value)
        moved.append(tree)
    width = 2 + len(trees) + len(places)
    factor = np.zeros((0, width))
    owners = [k for k, _, _ in places]
    for start in range(0, len(y), ROWS_AT_ONCE):
        rows = slice(start, min(start + ROWS_AT_ONCE, len(y)))
        with np.errstate(all="ignore"):
            values = evaluate_trees([*trees, *moved], columns[:, rows])
            slopes = (values[len(trees) :] - values[owners]) / np.array(increments)[:, None]
            root = np.sqrt(weights[rows])
            design = np.vstack([np.ones(len(root)), values[: len(trees)], slopes, y[rows]]) * root
        if not np.isfinite(design).all():
            return None
        factor = np.asarray(np.linalg.qr(np.vstack([factor, design.T]), mode="r"))
    size = np.linalg.norm(factor[:, :-1], axis=0)
    if not (size > 0.0).all():
        return None
    solution = np.linalg.lstsq(factor[:, :-1] / size, factor[:, -1], rcond=_SEEN)[0] / size
    result = [tree.copy() for tree in trees]
    for (k, i, name), slope in zip(places, solution[1 + len(trees) :], strict=True):
        with np.errstate(all="ignore"):
            result[k][i][name] += slope / solution[1 + k]
        if not np.isfinite(result[k][i][name]):
            return None
    return tuple(result)
