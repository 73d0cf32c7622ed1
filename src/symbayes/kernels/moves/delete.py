"""Delete: an operator is replaced by one of its children. Reverse: insert."""

import math

from ..candidates import count_candidates, count_heirs
from ..compiling import merged
from ..rng import integer, uniform
from ..tree import arity, copy_nodes, count_nodes, depth_of, nth_operator, subtree_end
from ..tree_prior import log_shift


@merged
def propose_delete(rng, nodes, old, new, limit, prior, pending):
    """A uniform candidate, at depth d, is replaced by a uniform one of its heirs.

    There: 1/N_c x 1/heirs. Back: 1/m(new) x w_op x (1/2 x the dropped child, if binary). Prior
    ratio: what the kept subtree loses one level up / (p1(d) x w_op x (dropped child, if binary)).
    Operator and dropped child cancel.
    """
    n_operators, _, _ = count_nodes(nodes, old)
    candidates = count_candidates(nodes, old, n_operators)
    if candidates == 0:
        return -math.inf
    nth = integer(rng, candidates)
    # A root that is no candidate is the first operator in preorder: skip it.
    if candidates < n_operators:
        nth += 1
    place = nth_operator(nodes, old, nth)
    depth = depth_of(nodes, old, place)
    binary = arity(nodes[place]["op"]) == 2
    heirs = count_heirs(nodes, old, place)

    kept = place + 1
    if binary:
        second = subtree_end(nodes, kept)
        take_second = heirs == 2 and uniform(rng) < 0.5
        if heirs == 1:  # at the root, the only child that is an operator
            take_second = nodes[kept]["op"] == 0
        kept = second if take_second else kept
    top = copy_nodes(nodes, old, place, new)
    at = copy_nodes(nodes, kept, subtree_end(nodes, kept), top)
    copy_nodes(nodes, subtree_end(nodes, place), subtree_end(nodes, old), at)

    size = subtree_end(nodes, new) - new
    sides = 2.0 if binary else 1.0
    loss = prior.split[depth] * size * sides / (candidates * heirs)
    return -math.log(loss) - log_shift(nodes, top, depth, prior, pending)
