"""Exchange: a subtree of one term and one of another change places. Its own reverse."""

import math

from ..compiling import kernel
from ..rng import integer
from ..tree import copy_nodes, depth_of, max_nodes, subtree_end, swap, tree_start
from ..tree_prior import log_shape


@kernel
def propose_exchange(rng, trees, k, prior, scratch):
    """Uniform subtrees of two uniform terms, of sizes m(S_1) and m(S_2), change places.

    There: 1/m(S_1) x 1/m(S_2). Back: the same with the new sizes. Operators, columns and constants
    stay, so what changes in the prior is the depth at which the two subtrees stand.
    """
    nodes, slots, n_terms, pending = trees.nodes, trees.slots, trees.n_terms, scratch.pending
    first_place = integer(rng, n_terms)
    second_place = integer(rng, n_terms - 1)
    if second_place >= first_place:
        second_place += 1
    p, q = tree_start(trees, slots[first_place]), tree_start(trees, slots[second_place])
    p_end, q_end = subtree_end(nodes, p), subtree_end(nodes, q)
    i, j = p + integer(rng, p_end - p), q + integer(rng, q_end - q)
    i_end, j_end = subtree_end(nodes, i), subtree_end(nodes, j)
    p_size = (p_end - p) - (i_end - i) + (j_end - j)
    q_size = (q_end - q) - (j_end - j) + (i_end - i)
    if max(p_size, q_size) > max_nodes(trees):
        return -math.inf
    last = slots.shape[0] - 1
    at = copy_nodes(nodes, p, i, tree_start(trees, slots[last]))
    at = copy_nodes(nodes, j, j_end, at)
    copy_nodes(nodes, i_end, p_end, at)
    at = copy_nodes(nodes, q, j, tree_start(trees, slots[last - 1]))
    at = copy_nodes(nodes, i, i_end, at)
    copy_nodes(nodes, j_end, q_end, at)
    i_depth, j_depth = depth_of(nodes, p, i), depth_of(nodes, q, j)
    log_ratio = math.log((p_end - p) * (q_end - q) / (p_size * q_size))
    if i_depth != j_depth:
        log_ratio += log_shape(nodes, i, j_depth, prior, pending)
        log_ratio -= log_shape(nodes, i, i_depth, prior, pending)
        log_ratio += log_shape(nodes, j, i_depth, prior, pending)
        log_ratio -= log_shape(nodes, j, j_depth, prior, pending)
    swap(slots, first_place, last, scratch.swaps)
    swap(slots, second_place, last - 1, scratch.swaps)
    return log_ratio
