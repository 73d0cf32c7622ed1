"""Whether a term is a sensible function, also on rows that are not in the table.

A term that no reader would believe may well fit: `cos(exp(age))` can be made to go through a lot of
rows. What gives it away are other rows, near by or elsewhere in the same box. Probe rows are of
three kinds, `PROBE_ROWS` each, one kind after the other: rows of the table; rows of its box, each
value from a row of its own; and those again, every value moved a little (`inputs/probe.py`).

Nor does a reader believe `x - sqrt(x**2 - 1)`, of which next to nothing is left where x is large:
a sum inside a term must not cancel further than terms may cancel each other (`Data.most_size`). And
`exp(-x)` must not span hundreds of orders of magnitude.

The answer is a function of the tree alone, since probe rows stay the same: it is a part of the
prior, like the limits on trees.
"""

import math

from .compiling import kernel
from .opcodes import ADD, EXP, SUB
from .tree import subtree_end

#: Rows of each of the three kinds.
PROBE_ROWS = 64
# A term may go beyond its values on the table by this many times their range.
_FAR = 10.0
# It may do so on this many rows of the box: laws with a pole do. Where it has no value it is taken
# as it is: columns may depend on each other, and `sqrt(high - low)` has one on all rows there are.
_MOST_FAR = 6
# A small move of every column is to change it by less than this many standard deviations, on all
# but some rows of the box.
_CHANGE = 0.5
_MOST_CHANGED = 4
#: A sum may be this many times smaller than what it is made of, and the response so much smaller
#: than its terms: a parabola in kelvins may be a polynomial, but no law is to be the difference of
#: two terms that are nearly the same.
MOST_CANCELLED = 300.0
#: The range of what stands in an exponential: more, and a few rows are all that it tells.
MOST_IN_EXP = 200.0


@kernel
def is_sensible(evaluate, nodes, root, probe, scratch):
    """Return whether the tree at `root` is finite, moderate and smooth on the probe rows.

    Where there are none, every tree is.
    """
    if probe.shape[0] == 0 or nodes[root]["op"] == 0:
        return True
    values, n_rows = scratch.probe, 3 * PROBE_ROWS
    evaluate(nodes, root, probe, n_rows, 0, n_rows, values, 0, scratch.stack, scratch.where)
    if not _has_sensible_values(values):
        return False
    for i in range(root, subtree_end(nodes, root)):
        if nodes[i]["op"] == EXP:
            if not (_extent(evaluate, nodes, i + 1, probe, scratch) <= MOST_IN_EXP):
                return False
        elif nodes[i]["op"] == ADD or nodes[i]["op"] == SUB:
            total = _extent(evaluate, nodes, i, probe, scratch)
            first = _extent(evaluate, nodes, i + 1, probe, scratch)
            second = _extent(evaluate, nodes, subtree_end(nodes, i + 1), probe, scratch)
            if not _keeps_digits(total, first, second):
                return False
    return True


@kernel
def _extent(evaluate, nodes, root, probe, scratch):
    """Return the range of a part of a tree on the rows of the table that are probe rows."""
    values, n_rows = scratch.probe, 3 * PROBE_ROWS
    evaluate(nodes, root, probe, n_rows, 0, PROBE_ROWS, values, 0, scratch.stack, scratch.where)
    low, high = math.inf, -math.inf
    for i in range(PROBE_ROWS):
        low, high = min(low, values[i]), max(high, values[i])
    return high - low


@kernel
def _keeps_digits(total, first, second):
    """Return whether a sum of this range does not cancel too far, given the ranges of its parts."""
    return MOST_CANCELLED * total >= max(first, second)


def has_sensible_values(values):
    """Return whether a term with these values on the probe rows is sensible."""
    low, high = math.inf, -math.inf
    for i in range(PROBE_ROWS):
        if not (abs(values[i]) < math.inf):
            return False
        low, high = min(low, values[i]), max(high, values[i])
    extent = high - low
    if extent == 0.0:
        return True  # it differs only on rows that are not among these, which say nothing then
    if not (extent < math.inf):
        return False
    lowest, highest = low - _FAR * extent, high + _FAR * extent
    far = 0
    for i in range(PROBE_ROWS, 2 * PROBE_ROWS):
        far += values[i] < lowest or values[i] > highest
    if far > _MOST_FAR:
        return False
    mean = 0.0
    for i in range(PROBE_ROWS):
        mean += (values[i] - low) / PROBE_ROWS
    squares = 0.0
    for i in range(PROBE_ROWS):
        # In units of the extent, so that nothing overflows.
        distance = (values[i] - low - mean) / extent
        squares += distance * distance
    most = _CHANGE * extent * math.sqrt(squares / PROBE_ROWS)
    changed = 0
    for i in range(PROBE_ROWS, 2 * PROBE_ROWS):
        changed += abs(values[i + PROBE_ROWS] - values[i]) > most
    return changed <= _MOST_CHANGED


_has_sensible_values = kernel(has_sensible_values)
