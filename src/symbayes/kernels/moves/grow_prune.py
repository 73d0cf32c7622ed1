"""Grow: a terminal becomes an operator with a subtree below it. Prune: the reverse."""

import math

from ..compiling import merged
from ..rng import integer
from ..tree import (
    copy_nodes,
    count_nodes,
    depth_of,
    nth_operator,
    nth_terminal,
    subtree_end,
    term_and_room,
)
from ..tree_prior import OPERATOR, draw_subtree, draw_terminal


@merged
def propose_grow(rng, trees, k, prior, scratch):
    """A uniform terminal, at depth d, becomes an operator with a subtree from the prior.

    There: 1/N_t x (subtree). Back: 1/N_nt(new) x (old feature). Prior ratio:
    p1(d) x (subtree) / ((1 - p1(d)) x (old feature)). Subtree and feature cancel.
    """
    nodes = trees.nodes
    old, new, limit = term_and_room(trees, k)
    n_operators, _, size = count_nodes(nodes, old)
    n_terminals = size - n_operators
    place = nth_terminal(nodes, old, integer(rng, n_terminals))
    depth = depth_of(nodes, old, place)

    at = copy_nodes(nodes, old, place, new)
    at = draw_subtree(rng, nodes, at, limit, depth, OPERATOR, prior, scratch.pending)
    end = subtree_end(nodes, old)
    if at < 0 or at + (end - place - 1) > limit:
        return -math.inf
    copy_nodes(nodes, place + 1, end, at)

    new_operators, _, _ = count_nodes(nodes, new)
    odds = prior.split[depth] / (1.0 - prior.split[depth])
    return math.log(odds * n_terminals / new_operators)


@merged
def propose_prune(rng, trees, k, prior, scratch):
    """A uniform operator, at depth d, becomes a terminal with a feature from the prior.

    There: 1/N_nt x (new feature). Back: 1/N_t(new) x (subtree). Prior ratio:
    (1 - p1(d)) x (new feature) / (p1(d) x (subtree)). Subtree and feature cancel.
    """
    nodes = trees.nodes
    old, new, _ = term_and_room(trees, k)
    n_operators, _, _ = count_nodes(nodes, old)
    if n_operators == 0:
        return -math.inf
    place = nth_operator(nodes, old, integer(rng, n_operators))
    depth = depth_of(nodes, old, place)

    at = copy_nodes(nodes, old, place, new)
    draw_terminal(rng, nodes, at, prior)
    copy_nodes(nodes, subtree_end(nodes, place), subtree_end(nodes, old), at + 1)

    new_operators, _, size = count_nodes(nodes, new)
    inverse_odds = (1.0 - prior.split[depth]) / prior.split[depth]
    return math.log(inverse_odds * n_operators / (size - new_operators))
