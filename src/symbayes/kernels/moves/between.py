"""Moves between terms: a sum is split into two terms, two terms are merged, subtrees change places.

Split and merge are each other's reverse. As with birth and death, states are ordered lists: the
second part of a split goes to a uniform one of K + 1 places, and what was there moves to the end.
Every function writes proposed trees into the spare slots, the last two entries of `slots`; what
they do to the order of `slots` is undone by the caller if the proposal is rejected.
"""

import math

from ..choose import merge_probability, split_probability, sum_weight
from ..compiling import kernel
from ..opcodes import ADD, SUB
from ..rng import integer, uniform
from ..tree import copy_nodes, depth_of, subtree_end
from ..tree_prior import ROOT_DEPTH, log_shape, log_shift


@kernel
def propose_split(rng, nodes, slots, n_terms, max_nodes, prior, pending):
    """Write the two operands of a sum into the spare slots; return the log ratio and two places.

    There: 1/K (the term) x 1/(K+1) (the place). Back: 1/(K+1) x 1/K x w_op / (w_+ + w_-). Prior
    ratio: p(K+1)/p(K) x what both operands lose one level up / (p1(0) x w_op). The first place is
    the term that is split, the second where its second operand goes.
    """
    place = integer(rng, n_terms)
    root = slots[place] * max_nodes
    op = nodes[root]["op"]
    if op not in (ADD, SUB):
        return -math.inf, 0, 0
    last = slots.shape[0] - 1
    middle = subtree_end(nodes, root + 1)
    first, second = slots[last] * max_nodes, slots[last - 1] * max_nodes
    copy_nodes(nodes, root + 1, middle, first)
    copy_nodes(nodes, middle, subtree_end(nodes, root), second)
    log_ratio = prior.log_terms[n_terms + 1] - prior.log_terms[n_terms]
    log_ratio += math.log(
        merge_probability(n_terms + 1, prior)
        / (split_probability(n_terms, prior) * prior.split[0] * sum_weight(prior))
    )
    log_ratio -= log_shift(nodes, first, ROOT_DEPTH, prior, pending)
    log_ratio -= log_shift(nodes, second, ROOT_DEPTH, prior, pending)
    return log_ratio, place, integer(rng, n_terms + 1)


@kernel
def propose_merge(rng, nodes, slots, n_terms, max_nodes, prior, pending):
    """Write the sum or difference of two terms into a spare slot; return the ratio and two places.

    The reverse of a split. The first place is the term that becomes the sum, the second the term
    that goes into it, counted before the last term takes its place.
    """
    second_place = integer(rng, n_terms)
    place = integer(rng, n_terms - 1)
    # The last term takes the second one's place.
    source = place
    if place == second_place:
        source = n_terms - 1
    first, second = slots[source] * max_nodes, slots[second_place] * max_nodes
    first_end, second_end = subtree_end(nodes, first), subtree_end(nodes, second)
    if 1 + (first_end - first) + (second_end - second) > max_nodes:
        return -math.inf, 0, 0
    last = slots.shape[0] - 1
    root = slots[last] * max_nodes
    plus = prior.operator_cdf[ADD] - prior.operator_cdf[ADD - 1]
    op = ADD if uniform(rng) * sum_weight(prior) < plus else SUB
    nodes[root]["op"] = op
    nodes[root]["feature"] = 0
    nodes[root]["a"] = 0.0
    nodes[root]["b"] = 0.0
    at = copy_nodes(nodes, first, first_end, root + 1)
    copy_nodes(nodes, second, second_end, at)
    log_ratio = prior.log_terms[n_terms - 1] - prior.log_terms[n_terms]
    log_ratio += math.log(
        split_probability(n_terms - 1, prior)
        * prior.split[0]
        * sum_weight(prior)
        / merge_probability(n_terms, prior)
    )
    log_ratio += log_shift(nodes, first, ROOT_DEPTH, prior, pending)
    log_ratio += log_shift(nodes, second, ROOT_DEPTH, prior, pending)
    return log_ratio, place, second_place


@kernel
def propose_exchange(rng, nodes, slots, n_terms, max_nodes, prior, pending):
    """Let a subtree of one term and one of another change places; return the ratio and two places.

    There: 1/m(S_1) x 1/m(S_2). Back the same with the new sizes. Operators, columns and constants
    stay, so what changes in the prior is the depth at which the two subtrees stand.
    """
    first_place = integer(rng, n_terms)
    second_place = integer(rng, n_terms - 1)
    if second_place >= first_place:
        second_place += 1
    p, q = slots[first_place] * max_nodes, slots[second_place] * max_nodes
    p_end, q_end = subtree_end(nodes, p), subtree_end(nodes, q)
    i, j = p + integer(rng, p_end - p), q + integer(rng, q_end - q)
    i_end, j_end = subtree_end(nodes, i), subtree_end(nodes, j)
    p_size = (p_end - p) - (i_end - i) + (j_end - j)
    q_size = (q_end - q) - (j_end - j) + (i_end - i)
    if p_size > max_nodes or q_size > max_nodes:
        return -math.inf, 0, 0
    last = slots.shape[0] - 1
    at = copy_nodes(nodes, p, i, slots[last] * max_nodes)
    at = copy_nodes(nodes, j, j_end, at)
    copy_nodes(nodes, i_end, p_end, at)
    at = copy_nodes(nodes, q, j, slots[last - 1] * max_nodes)
    at = copy_nodes(nodes, i, i_end, at)
    copy_nodes(nodes, j_end, q_end, at)
    i_depth, j_depth = depth_of(nodes, p, i), depth_of(nodes, q, j)
    log_ratio = math.log((p_end - p) * (q_end - q) / (p_size * q_size))
    if i_depth != j_depth:
        log_ratio += log_shape(nodes, i, j_depth, prior, pending)
        log_ratio -= log_shape(nodes, i, i_depth, prior, pending)
        log_ratio += log_shape(nodes, j, i_depth, prior, pending)
        log_ratio -= log_shape(nodes, j, j_depth, prior, pending)
    return log_ratio, first_place, second_place
