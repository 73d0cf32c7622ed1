"""Reassign operator: an operator is redrawn. Reassign feature: a terminal reads another column.

Each is its own reverse.
"""

import math

from ..compiling import merged
from ..opcodes import LT
from ..rng import integer
from ..tree import (
    arity,
    copy_nodes,
    count_nodes,
    depth_of,
    nth_operator,
    nth_terminal,
    subtree_end,
    term_and_room,
)
from ..tree_prior import ANY_NODE, draw_operator, draw_subtree, draw_terminal


@merged
def propose_reassign_operator(rng, trees, k, prior, scratch):
    """A uniform operator is redrawn from w_op.

    From unary to binary a right child from the prior is added; from binary to unary the right
    child is dropped. There: 1/N_nt x w_op(new) x (added child). Back: 1/N_nt(new) x w_op(old) x
    (dropped child). All but the first factors cancel against the prior.
    """
    nodes = trees.nodes
    old, new, limit = term_and_room(trees, k)
    n_operators, _, _ = count_nodes(nodes, old)
    if n_operators == 0:
        return -math.inf
    place = nth_operator(nodes, old, integer(rng, n_operators))
    old_op = nodes[place]["op"]
    old_arity = arity(old_op)
    left_end = subtree_end(nodes, place + 1)

    top = copy_nodes(nodes, old, place, new)
    draw_operator(rng, nodes, top, prior)
    if old_op == LT and nodes[top]["op"] == LT:
        nodes[top] = nodes[place]  # nothing changes, so the constants stay
    new_arity = arity(nodes[top]["op"])
    at = copy_nodes(nodes, place + 1, left_end, top + 1)
    rest = subtree_end(nodes, place)
    if old_arity == 1 and new_arity == 2:
        depth = depth_of(nodes, old, place) + 1
        at = draw_subtree(rng, nodes, at, limit, depth, ANY_NODE, prior, scratch.pending)
    elif old_arity == 2 and new_arity == 2:
        at = copy_nodes(nodes, left_end, rest, at)
    end = subtree_end(nodes, old)
    if at < 0 or at + (end - rest) > limit:
        return -math.inf
    copy_nodes(nodes, rest, end, at)

    new_operators, _, _ = count_nodes(nodes, new)
    return math.log(n_operators / new_operators)


@merged
def propose_reassign_feature(rng, trees, k, prior, scratch):
    """A uniform terminal gets a feature from w_ft.

    There: 1/N_t x w_ft(new). Back: 1/N_t x w_ft(old). Everything cancels against the prior.
    """
    nodes = trees.nodes
    old, new, _ = term_and_room(trees, k)
    n_operators, _, size = count_nodes(nodes, old)
    place = nth_terminal(nodes, old, integer(rng, size - n_operators))
    copy_nodes(nodes, old, subtree_end(nodes, old), new)
    draw_terminal(rng, nodes, new + (place - old), prior)
    return 0.0
