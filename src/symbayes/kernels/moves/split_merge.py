"""Split: a sum becomes two terms. Merge: two terms become a sum. Each is the other's reverse.

As with birth and death, states are ordered lists: the second part of a split goes to a uniform one
of K + 1 places, and what was there moves to the end.
"""

import math

from ..compiling import kernel
from ..opcodes import ADD, SUB
from ..rng import integer, uniform
from ..tree import copy_nodes, max_nodes, subtree_end, swap, tree_start
from ..tree_prior import ROOT_DEPTH, log_shift
from .choice import merge_probability, split_probability, sum_weight


@kernel
def propose_split(rng, trees, k, prior, scratch):
    """The two operands of a uniform term that is a sum or a difference become terms.

    There: 1/K (the term) x 1/(K+1) (the place). Back: 1/(K+1) x 1/K x w_op / (w_+ + w_-). Prior
    ratio: p(K+1)/p(K) x what both operands lose one level up / (p1(0) x w_op). The first operand
    takes the place of the term, the second a uniform one.
    """
    nodes, slots, n_terms = trees.nodes, trees.slots, trees.n_terms
    place = integer(rng, n_terms)
    root = tree_start(trees, slots[place])
    op = nodes[root]["op"]
    if op not in (ADD, SUB):
        return -math.inf
    last = slots.shape[0] - 1
    middle = subtree_end(nodes, root + 1)
    first, second = tree_start(trees, slots[last]), tree_start(trees, slots[last - 1])
    copy_nodes(nodes, root + 1, middle, first)
    copy_nodes(nodes, middle, subtree_end(nodes, root), second)
    log_ratio = prior.log_terms[n_terms + 1] - prior.log_terms[n_terms]
    log_ratio += math.log(
        merge_probability(n_terms + 1, prior)
        / (split_probability(n_terms, prior) * prior.split[0] * sum_weight(prior))
    )
    log_ratio -= log_shift(nodes, first, ROOT_DEPTH, prior, scratch.pending)
    log_ratio -= log_shift(nodes, second, ROOT_DEPTH, prior, scratch.pending)
    swap(slots, place, last, scratch.swaps)
    swap(slots, n_terms, last - 1, scratch.swaps)
    swap(slots, integer(rng, n_terms + 1), n_terms, scratch.swaps)
    return log_ratio


@kernel
def propose_merge(rng, trees, k, prior, scratch):
    """Two uniform terms become one: their sum or difference, by the weights of + and -.

    There and back are those of a split, the other way round. The last term takes the place of the
    second operand, and the sum takes the place of the first.
    """
    nodes, slots, n_terms = trees.nodes, trees.slots, trees.n_terms
    second_place = integer(rng, n_terms)
    place = integer(rng, n_terms - 1)  # counted after the last term has taken the second's place
    source = place
    if place == second_place:
        source = n_terms - 1
    first, second = tree_start(trees, slots[source]), tree_start(trees, slots[second_place])
    first_end, second_end = subtree_end(nodes, first), subtree_end(nodes, second)
    if 1 + (first_end - first) + (second_end - second) > max_nodes(trees):
        return -math.inf
    last = slots.shape[0] - 1
    root = tree_start(trees, slots[last])
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
    log_ratio += log_shift(nodes, first, ROOT_DEPTH, prior, scratch.pending)
    log_ratio += log_shift(nodes, second, ROOT_DEPTH, prior, scratch.pending)
    swap(slots, second_place, n_terms - 1, scratch.swaps)
    swap(slots, place, last, scratch.swaps)
    return log_ratio
