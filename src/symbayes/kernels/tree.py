"""Trees as flat arrays: nodes in preorder, a subtree is a slice, an edit is a splice.

All trees of a chain live in one array of nodes, each in a slot of `max_nodes` nodes; a tree is
named by the index of its root. Where it ends follows from the arities.
"""

from typing import NamedTuple

import numpy as np

from .compiling import kernel
from .opcodes import FIRST_BINARY, LT, N_OPCODES

#: One node: what it does, the column it reads (terminals), the constants of `lt(x) = a x + b`.
NODE = np.dtype(
    [("op", np.int32), ("feature", np.int32), ("a", np.float64), ("b", np.float64)], align=True
)
#: A limit that nothing reaches.
UNLIMITED = 1_000_000
#: Entries of `MoveScratch.swaps`: the number of swaps, and the places of at most three.
SWAPS = 7


class Trees(NamedTuple):
    """The terms of a chain, as a move sees them: without any data."""

    nodes: np.ndarray
    """Trees, `max_nodes` nodes per slot."""
    slots: np.ndarray
    """Slots of the terms in their order; the last two entries are slots for proposals."""
    n_terms: int


class MoveScratch(NamedTuple):
    """Room for a move."""

    pending: np.ndarray
    """By depth, how many nodes are still due in a walk through a tree."""
    swaps: np.ndarray
    """Which entries of `slots` the move has swapped, so that they can be swapped back."""


@kernel
def max_nodes(trees):
    """Return how many nodes a tree may have: the size of a slot. Takes `Trees` or a `Chain`."""
    return trees.nodes.shape[0] // trees.slots.shape[0]


@kernel
def tree_start(trees, slot):
    """Return where the tree in a slot begins."""
    return slot * max_nodes(trees)


@kernel
def term_and_room(trees, k):
    """Return the root of the k-th term, and begin and end of the slot for what replaces it."""
    size = max_nodes(trees)
    new = trees.slots[trees.slots.shape[0] - 1] * size
    return trees.slots[k] * size, new, new + size


@kernel
def swap(slots, i, j, swaps):
    """Swap two entries of the order of terms, and note it."""
    n = swaps[0]
    swaps[1 + 2 * n] = i
    swaps[2 + 2 * n] = j
    swaps[0] = n + 1
    slots[i], slots[j] = slots[j], slots[i]


@kernel
def undo_swaps(slots, swaps):
    """Restore the order of terms from before the proposal."""
    for n in range(swaps[0] - 1, -1, -1):
        i, j = swaps[1 + 2 * n], swaps[2 + 2 * n]
        slots[i], slots[j] = slots[j], slots[i]


@kernel
def arity(op):
    """Return how many children a node with this opcode has."""
    return np.int64(op > 0) + np.int64(op >= FIRST_BINARY)


@kernel
def subtree_end(nodes, root):
    """Return the index behind the last node of the subtree at `root`."""
    missing = 1
    i = root
    while missing > 0:
        missing += arity(nodes[i]["op"]) - 1
        i += 1
    return i


@kernel
def depth_of(nodes, root, node):
    """Return how many ancestors `node` has in the tree at `root`."""
    depth = 0
    complete = 0  # whole subtrees seen since the last ancestor, walking backwards
    for i in range(node - 1, root - 1, -1):
        children = arity(nodes[i]["op"])
        if children > complete:
            depth += 1
            complete = 0
        else:
            complete += 1 - children
    return depth


@kernel
def copy_nodes(nodes, source, end, target):
    """Copy the nodes from `source` up to `end` to `target`; return the index behind the copy."""
    for i in range(source, end):
        nodes[target] = nodes[i]
        target += 1
    return target


@kernel
def count_nodes(nodes, root):
    """Return the number of operators, of `lt` operators and of all nodes."""
    end = subtree_end(nodes, root)
    operators = 0
    transforms = 0
    for i in range(root, end):
        op = nodes[i]["op"]
        operators += op > 0
        transforms += op == LT
    return operators, transforms, end - root


@kernel
def nth_operator(nodes, root, n):
    """Return the index of the n-th operator, counted from 0 in preorder."""
    i = root
    while True:
        if nodes[i]["op"] > 0:
            if n == 0:
                return i
            n -= 1
        i += 1


@kernel
def nth_terminal(nodes, root, n):
    """Return the index of the n-th terminal, counted from 0 in preorder."""
    i = root
    while True:
        if nodes[i]["op"] == 0:
            if n == 0:
                return i
            n -= 1
        i += 1


@kernel
def nth_transform(nodes, root, n):
    """Return the index of the n-th `lt` node, counted from 0 in preorder."""
    i = root
    while True:
        if nodes[i]["op"] == LT:
            if n == 0:
                return i
            n -= 1
        i += 1


@kernel
def same_tree(nodes, first, second):
    """Return whether two trees are equal, node by node and constant by constant."""
    end = subtree_end(nodes, first)
    for i in range(end - first):
        p = nodes[first + i]
        q = nodes[second + i]
        if p["op"] != q["op"] or p["feature"] != q["feature"]:
            return False
        if p["a"] != q["a"] or p["b"] != q["b"]:
            return False
    return True


@kernel
def is_allowed(nodes, root, limits, parent, pending):
    """Return whether the tree at `root` keeps to the limits on depth and on nested operators.

    `limits` is empty where there are none. `limits[0]` is the number of levels a tree may have, and
    `limits[1 + outer * N_OPCODES + inner]` how many operators `inner` may lie inside one another,
    and inside an `outer`. `parent` and `pending` are room to work in.
    """
    if limits.shape[0] == 0:
        return True
    top = -1  # the operator whose operands come next, counted from the root
    for i in range(subtree_end(nodes, root) - root):
        op = nodes[root + i]["op"]
        parent[i] = top
        levels = 1
        inside = 1  # operators of this kind on the way up
        above = top
        while above >= 0:
            levels += 1
            outer = nodes[root + above]["op"]
            if inside > limits[1 + outer * N_OPCODES + op]:
                return False
            inside += outer == op
            above = parent[above]
        if levels > limits[0]:
            return False
        if op > 0:
            pending[i] = arity(op)
            top = i
            continue
        while top >= 0:
            pending[top] -= 1
            if pending[top] > 0:
                break
            top = parent[top]
    return True
