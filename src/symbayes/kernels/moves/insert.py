"""Insert: a node gets a new operator above it. Reverse: delete."""

import math

from ..candidates import count_candidates, count_heirs
from ..compiling import merged
from ..rng import integer, uniform
from ..tree import arity, copy_nodes, count_nodes, depth_of, subtree_end
from ..tree_prior import ANY_NODE, draw_operator, draw_subtree, log_shift


@merged
def propose_insert(rng, nodes, old, new, limit, prior, pending):
    """A uniform node, at depth d, gets an operator from w_op above it.

    If that is binary, the old subtree goes left or right with probability 1/2 and the other child
    comes from the prior. There: 1/m x w_op x (1/2 x other child, if binary). Back:
    1/N_c(new) x 1/heirs, the number of children that Delete chooses from. Prior ratio:
    p1(d) x w_op x (other child, if binary) x what the old subtree gains one level down. Operator
    and other child cancel.
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
