"""Prune: an operator and all below it become a terminal. Reverse: grow."""

import math

from ..compiling import merged
from ..rng import integer
from ..tree import copy_nodes, count_nodes, depth_of, nth_operator, subtree_end
from ..tree_prior import draw_terminal


@merged
def propose_prune(rng, nodes, old, new, limit, prior, pending):
    """A uniform operator, at depth d, becomes a terminal with a feature from the prior.

    There: 1/N_nt x (new feature). Back: 1/N_t(new) x (subtree). Prior ratio:
    (1 - p1(d)) x (new feature) / (p1(d) x (subtree)). Subtree and feature cancel.
    """
    n_operators, _, _ = count_nodes(nodes, old)
    if n_operators == 0:
        return -math.inf
    place = nth_operator(nodes, old, integer(rng, n_operators))
    depth = depth_of(nodes, old, place)

    at = copy_nodes(nodes, old, place, new)
    draw_terminal(rng, nodes, at, prior)
    copy_nodes(nodes, subtree_end(nodes, place), subtree_end(nodes, old), at + 1)

    new_operators, _, size = count_nodes(nodes, new)
    odds = (1.0 - prior.split[depth]) / prior.split[depth]
    return math.log(odds * n_operators / (size - new_operators))
