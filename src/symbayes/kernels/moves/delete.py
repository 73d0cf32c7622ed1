"""Delete: an operator is replaced by one of its children. Reverse: insert."""

import math

from ..candidates import count_candidates, count_heirs
from ..compiling import merged
from ..rng import integer, uniform
from ..tree import arity, copy_nodes, depth_of, nth_operator, subtree_end
from ..tree_prior import ROOT_DEPTH, log_prior


@merged
def propose_delete(rng, nodes, old, new, limit, prior, pending):
    """A uniform candidate is replaced by a uniform one of the children that may take its place.

    There: 1/N_c x 1/heirs. Back: 1/m(new) x w_op x (1/2 x the dropped child, if binary). Prior
    ratio: in full, since the kept subtree moves one level up.
    """
    candidates = count_candidates(nodes, old)
    if candidates == 0:
        return -math.inf
    nth = integer(rng, candidates)
    # A root that is no candidate is the first operator in preorder: skip it.
    if nodes[old]["op"] > 0 and count_heirs(nodes, old, old) == 0:
        nth += 1
    place = nth_operator(nodes, old, nth)
    depth = depth_of(nodes, old, place)
    binary = arity(nodes[place]["op"]) == 2
    heirs = count_heirs(nodes, old, place)
    log_there = -math.log(candidates) - math.log(heirs)

    kept = place + 1
    dropped = -1
    if binary:
        second = subtree_end(nodes, kept)
        take_second = heirs == 2 and uniform(rng) < 0.5
        if heirs == 1:  # at the root, the only child that is an operator
            take_second = nodes[kept]["op"] == 0
        dropped = kept if take_second else second
        kept = second if take_second else kept
    at = copy_nodes(nodes, old, place, new)
    at = copy_nodes(nodes, kept, subtree_end(nodes, kept), at)
    copy_nodes(nodes, subtree_end(nodes, place), subtree_end(nodes, old), at)

    size = subtree_end(nodes, new) - new
    log_back = prior.operator_log_weight[nodes[place]["op"]] - math.log(size)
    if binary:
        log_back += math.log(0.5) + log_prior(nodes, dropped, depth + 1, prior, pending)
    return (
        log_prior(nodes, new, ROOT_DEPTH, prior, pending)
        - log_prior(nodes, old, ROOT_DEPTH, prior, pending)
        + log_back
        - log_there
    )
