"""Operators inside operators where nobody would write them: each makes a tree less probable.

That is a wave inside a wave, an exponential inside an exponential or inside a wave, and a power
that brings the powers it lies in beyond the sixth. It is a price and no limit: where such a formula
fits far better than all others, it is found nevertheless.
"""

from .compiling import kernel
from .opcodes import COS, CUBE, EXP, SIN, SQUARE, TAN
from .tree import arity, subtree_end, tree_start

#: What lies above a root, see `below`.
NOTHING_ABOVE = 1
# The largest power that powers of powers may have for nothing.
_LARGEST_POWER = 6
# What lies above a node is a number: the product of its powers, and two marks.
_POWERS, _WAVE, _EXPONENTIAL = 1023, 1024, 2048
# Beyond this no product of powers is followed.
_MOST_FOLLOWED = 100


def below(op, above):
    """Return 1 for an operator with a price, else 0, and what lies above its operands.

    `above` is what lies above the operator itself.
    """
    if op in (SIN, COS, TAN):
        return int((above & _WAVE) != 0), above | _WAVE
    if op == EXP:
        return int((above & (_WAVE | _EXPONENTIAL)) != 0), above | _EXPONENTIAL
    if op in (SQUARE, CUBE):
        powers = (above & _POWERS) * (2 if op == SQUARE else 3)
        return int(powers > _LARGEST_POWER), (above & ~_POWERS) | min(powers, _MOST_FOLLOWED)
    return 0, above


_below = kernel(below)


@kernel
def count_nested(nodes, root, room):
    """Return how many operators of a tree have a price.

    `room` is for what lies above the nodes that are still due.
    """
    nested = 0
    due = 0
    room[0] = NOTHING_ABOVE
    for i in range(root, subtree_end(nodes, root)):
        op = nodes[i]["op"]
        one, above = _below(op, room[due])
        nested += one
        due -= 1
        for _ in range(arity(op)):
            due += 1
            room[due] = above
    return nested


@kernel
def count_all_nested(chain, n_terms, room):
    """Return that of the first `n_terms` terms of a chain together."""
    nested = 0
    for k in range(n_terms):
        nested += count_nested(chain.nodes, tree_start(chain, chain.slots[k]), room)
    return nested
