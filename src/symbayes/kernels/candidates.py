"""What the moves count in a tree, and which operators Delete may remove.

As in the paper, candidates are all operators but a root whose children are all terminals. A binary
operator is replaced by one of its children, at the root by one of those that are operators: its
heirs.
"""

from .compiling import kernel
from .tree import arity, count_nodes, subtree_end


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


@kernel
def census(nodes, root):
    """Return the numbers of operators, of `lt` operators and of candidates."""
    n_operators, n_transforms, _ = count_nodes(nodes, root)
    return n_operators, n_transforms, count_candidates(nodes, root, n_operators)
