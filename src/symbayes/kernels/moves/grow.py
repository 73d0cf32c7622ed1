"""Grow: a terminal becomes an operator with a subtree below it. Reverse: prune."""

import math

from ..compiling import merged
from ..rng import integer
from ..tree import copy_nodes, count_nodes, depth_of, nth_terminal, subtree_end
from ..tree_prior import OPERATOR, draw_subtree


@merged
def propose_grow(rng, nodes, old, new, limit, prior, pending):
    """A uniform terminal, at depth d, becomes an operator with a subtree from the prior.

    There: 1/N_t x (subtree). Back: 1/N_nt(new) x (old feature). Prior ratio:
    p1(d) x (subtree) / ((1 - p1(d)) x (old feature)). Subtree and feature cancel.
    """
    n_operators, _, size = count_nodes(nodes, old)
    n_terminals = size - n_operators
    place = nth_terminal(nodes, old, integer(rng, n_terminals))
    depth = depth_of(nodes, old, place)

    at = copy_nodes(nodes, old, place, new)
    at = draw_subtree(rng, nodes, at, limit, depth, OPERATOR, prior, pending)
    end = subtree_end(nodes, old)
    if at < 0 or at + (end - place - 1) > limit:
        return -math.inf
    copy_nodes(nodes, place + 1, end, at)

    new_operators, _, _ = count_nodes(nodes, new)
    odds = prior.split[depth] / (1.0 - prior.split[depth])
    return math.log(odds * n_terminals / new_operators)
