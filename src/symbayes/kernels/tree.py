"""Trees as flat arrays: nodes in preorder, a subtree is a slice, an edit is a splice.

All trees of a chain live in one array of nodes, each in a slot of `max_nodes` nodes; a tree is
named by the index of its root. Where it ends follows from the arities.
"""

import numpy as np

from .compiling import kernel
from .opcodes import FIRST_BINARY, LT

#: One node: what it does, the column it reads (terminals), the constants of `lt(x) = a x + b`.
NODE = np.dtype(
    [("op", np.int32), ("feature", np.int32), ("a", np.float64), ("b", np.float64)], align=True
)


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
