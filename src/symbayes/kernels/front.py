"""The best state of each size that the chains of a ladder have met.

Hot replicas see short formulas all the time, and whatever they see is forgotten at once. What is
kept here is for reading only: nothing that is sampled depends on it.
"""

import math
from typing import NamedTuple

import numpy as np

from .compiling import kernel
from .opcodes import FIRST_BINARY, LOG, LT, SIN
from .tree import NODE, subtree_end, tree_start

#: The largest size of which a state is kept.
LARGEST = 60
# Nodes of the intercept, and of a coefficient with the signs before and behind it.
_INTERCEPT, _COEFFICIENT = 1, 3


class Front(NamedTuple):
    """For each size the state with the smallest residual sum of squares, on the rows seen first."""

    rss: np.ndarray
    """By size; infinite where none was met."""
    n_terms: np.ndarray
    nodes: np.ndarray
    """Nodes of all terms, one after the other, with room for LARGEST of them per size."""


def new_front() -> Front:
    """Return an empty front."""
    rows = LARGEST + 1
    return Front(np.full(rows, math.inf), np.zeros(rows, np.int64), np.zeros(rows * LARGEST, NODE))


@kernel
def term_size(nodes, root):
    """Return about how many nodes a term has when it is printed, with its coefficient.

    A coefficient takes over the constants of an `lt` at the root. Other operators let one of its
    constants pass, so that `exp(a x + b)` is printed as `c*exp(a*x)`, but for sin, log and their
    kind. No state has more nodes than its size.
    """
    size = _COEFFICIENT
    before = LT
    for i in range(root, subtree_end(nodes, root)):
        op = nodes[i]["op"]
        if op != LT:
            size += 1
        elif i > root:
            size += 4 if before == LOG or SIN <= before < FIRST_BINARY else 2
        before = op
    return size


@kernel
def note(front, chain, n_terms, rss):
    """Keep the state of a chain if none of its size was better; `rss` is on the rows seen first."""
    size = _INTERCEPT
    for k in range(n_terms):
        size += term_size(chain.nodes, tree_start(chain, chain.slots[k]))
        if size > LARGEST:
            return
    if n_terms == 0 or not (rss < front.rss[size]):
        return
    front.rss[size] = rss
    front.n_terms[size] = n_terms
    at = size * LARGEST
    for k in range(n_terms):
        root = tree_start(chain, chain.slots[k])
        for i in range(root, subtree_end(chain.nodes, root)):
            front.nodes[at] = chain.nodes[i]
            at += 1
