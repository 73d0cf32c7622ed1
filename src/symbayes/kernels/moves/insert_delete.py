"""Insert: a node gets a new operator above it. Delete: an operator is replaced by one of its
children. Each is the reverse of the other.

As in the paper, candidates for Delete are all operators but a root whose children are all
terminals. A binary operator is replaced by one of its children, at the root by one of those that
are operators: its heirs.
"""

import math

from ..compiling import kernel, merged
from ..rng import integer, uniform
from ..tree import (
    arity,
    copy_nodes,
    count_nodes,
    depth_of,
    nth_operator,
    subtree_end,
    term_and_room,
)
from ..tree_prior import ANY_NODE, draw_operator, draw_subtree, log_shift


@kernel
def count_candidates(nodes, root, n_operators):
    """Return how many of the operators of the tree Delete may remove."""
    if n_operators == 0 or count_heirs(nodes, root, root) > 0:
        return n_operators
    return n_operators - 1


@kernel
def count_heirs(nodes, root, place):
    """Return how many children of the operator at `place` may take its place."""
    children = arity(nodes[place]["op"])
    if place != root:
        return children
    heirs = 0
    child = place + 1
    for _ in range(children):
        heirs += nodes[child]["op"] > 0
        child = subtree_end(nodes, child)
    return heirs


@merged
def propose_insert(rng, trees, k, prior, scratch):
    """A uniform node, at depth d, gets an operator from w_op above it.

    If that is binary, the old subtree goes left or right with probability 1/2 and the other child
    comes from the prior. There: 1/m x w_op x (1/2 x other child, if binary). Back:
    1/N_c(new) x 1/heirs, the number of children that Delete chooses from. Prior ratio:
    p1(d) x w_op x (other child, if binary) x what the old subtree gains one level down. Operator
    and other child cancel.
    """
    nodes, pending = trees.nodes, scratch.pending
    old, new, limit = term_and_room(trees, k)
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
    other_first = binary and uniform(rng) < 0.5
    if other_first:
        at = draw_subtree(rng, nodes, at, limit, depth + 1, ANY_NODE, prior, pending)
    if at < 0 or at + (place_end - place) > limit:
        return -math.inf
    kept = at
    at = copy_nodes(nodes, place, place_end, at)
    if binary and not other_first:
        at = draw_subtree(rng, nodes, at, limit, depth + 1, ANY_NODE, prior, pending)
    if at < 0 or at + (old_end - place_end) > limit:
        return -math.inf
    copy_nodes(nodes, place_end, old_end, at)
    if top == new and nodes[kept]["op"] == 0:
        return -math.inf  # Delete would not leave a lone terminal

    new_operators, _, _ = count_nodes(nodes, new)
    candidates = count_candidates(nodes, new, new_operators)
    sides = 2.0 if binary else 1.0
    heirs = count_heirs(nodes, new, top)
    gain = prior.split[depth] * size * sides / (candidates * heirs)
    return math.log(gain) + log_shift(nodes, place, depth, prior, pending)


@merged
def propose_delete(rng, trees, k, prior, scratch):
    """A uniform candidate, at depth d, is replaced by a uniform one of its heirs.

    There: 1/N_c x 1/heirs. Back: 1/m(new) x w_op x (1/2 x the dropped child, if binary). Prior
    ratio: what the kept subtree loses one level up / (p1(d) x w_op x (dropped child, if binary)).
    Operator and dropped child cancel.
    """
    nodes = trees.nodes
    old, new, _ = term_and_room(trees, k)
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
    return -math.log(loss) - log_shift(nodes, top, depth, prior, scratch.pending)
