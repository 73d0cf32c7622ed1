"""Insert: a node gets a new operator above it. Reverse: delete."""

import math

from ..candidates import count_candidates, count_heirs
from ..compiling import merged
from ..rng import integer, uniform
from ..tree import arity, copy_nodes, depth_of, subtree_end
from ..tree_prior import ANY_NODE, ROOT_DEPTH, draw_operator, draw_subtree, log_prior


@merged
def propose_insert(rng, nodes, old, new, limit, prior, pending):
    """A uniform node gets an operator from w_op above it.

    If that is binary, the old subtree goes left or right with probability 1/2 and the other child
    comes from the prior. There: 1/m x w_op x (1/2 x other child, if binary). Back:
    1/N_c(new) x 1/heirs, the number of children that Delete chooses from. Prior ratio: in full,
    since the old subtree moves one level down.
    """
    old_end = subtree_end(nodes, old)
    size = old_end - old
    place = old + integer(rng, size)
    place_end = subtree_end(nodes, place)
    depth = depth_of(nodes, old, place)

    top = copy_nodes(nodes, old, place, new)
    if top >= limit:
        return -math.inf
    draw_operator(rng, nodes, top, prior)
    binary = arity(nodes[top]["op"]) == 2
    at = top + 1
    child = -1
    log_there = prior.operator_log_weight[nodes[top]["op"]] - math.log(size)
    if binary and uniform(rng) < 0.5:
        child = at
        at = draw_subtree(rng, nodes, at, limit, depth + 1, ANY_NODE, prior, pending)
        if at < 0:
            return -math.inf
    if at + (place_end - place) > limit:
        return -math.inf
    kept = at
    at = copy_nodes(nodes, place, place_end, at)
    if binary and child < 0:
        child = at
        at = draw_subtree(rng, nodes, at, limit, depth + 1, ANY_NODE, prior, pending)
        if at < 0:
            return -math.inf
    if at + (old_end - place_end) > limit:
        return -math.inf
    copy_nodes(nodes, place_end, old_end, at)
    if binary:
        log_there += math.log(0.5) + log_prior(nodes, child, depth + 1, prior, pending)

    if top == new and nodes[kept]["op"] == 0:
        return -math.inf  # Delete would not leave a lone terminal
    log_back = -math.log(count_candidates(nodes, new)) - math.log(count_heirs(nodes, new, top))
    return (
        log_prior(nodes, new, ROOT_DEPTH, prior, pending)
        - log_prior(nodes, old, ROOT_DEPTH, prior, pending)
        + log_back
        - log_there
    )
