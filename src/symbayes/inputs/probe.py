"""Rows that tell a sensible term from one that only goes through the rows of the table.

`kernels/sensible.py` says what is asked of a term there.
"""

from __future__ import annotations

import numpy as np

from ..formula.trees import evaluate_trees, state_size
from ..kernels import opcodes
from ..kernels.sensible import MOST_CANCELLED, MOST_IN_EXP, PROBE_ROWS, has_sensible_values
from .validation import some_of

# Rows that values are taken from; they stand for all others.
_MOST_ROWS = 2000
# A move is this part of the way to the next value that the column has, whatever the units and the
# tails of a column are. A wave that a move changes a lot has fewer than five values per period.
_MOVE = 0.3
# With fewer different values the move is as much smaller.
_FEW_VALUES = 100


def probe_rows(columns: np.ndarray) -> np.ndarray:
    """Return the probe rows of a table given as columns, one column after the other.

    They depend on the table alone: its values, and for what is drawn at random its size. Rows that
    are there twice count once, as a row with a weight of two does, and in any order.
    """
    columns = np.unique(columns[:, some_of(columns.shape[1], _MOST_ROWS)], axis=1)
    n_columns, n = columns.shape
    rng = np.random.default_rng([n, n_columns])
    own = np.resize(rng.permutation(n), PROBE_ROWS)
    probe = np.empty((n_columns, 3, PROBE_ROWS))
    for values, (known, box, moved) in zip(columns, probe, strict=True):
        known[:] = values[own]
        box[:] = values[rng.integers(n, size=PROBE_ROWS)]
        different = np.unique(values)
        m = len(different)
        at = np.searchsorted(different, box)
        move = _MOVE * min(1.0, m / _FEW_VALUES) * rng.choice([-1.0, 1.0], size=PROBE_ROWS)
        # Not out of the box: there may be no root, and no logarithm.
        outside = (at + move < 0) | (at + move > m - 1)
        moved[:] = np.interp(at + np.where(outside, -move, move), np.arange(m), different)
    return probe.reshape(-1)


def is_sensible(tree: np.ndarray, probe: np.ndarray) -> bool:
    """Return whether the kernels would take a term for a sensible function."""
    if len(tree) == 1 or len(probe) == 0:
        return True
    rows = probe.reshape(-1, 3 * PROBE_ROWS)
    if not has_sensible_values(evaluate_trees([tree], rows)[0].tolist()):
        return False
    known = np.ascontiguousarray(rows[:, :PROBE_ROWS])
    for i in np.flatnonzero(np.isin(tree["op"], (opcodes.ADD, opcodes.SUB, opcodes.EXP))):
        parts = [tree[i + 1 :]]
        if tree[i]["op"] != opcodes.EXP:
            parts += [tree[i + 1 + state_size(tree[i + 1 :], 1) :], tree[i:]]
        with np.errstate(all="ignore"):
            first, *others = np.ptp(evaluate_trees(parts, known), axis=1)
        if not others:
            if not first <= MOST_IN_EXP:
                return False
        elif not MOST_CANCELLED * others[1] >= max(first, others[0]):
            return False
    return True
