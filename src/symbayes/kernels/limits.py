"""Which trees are allowed: limits on depth and on operators inside operators."""

from .compiling import kernel
from .opcodes import N_OPCODES
from .tree import arity, subtree_end

#: A limit that nothing reaches.
UNLIMITED = 1_000_000


@kernel
def is_allowed(nodes, root, limits, parent, pending):
    """Return whether the tree at `root` keeps to the limits; it does where there are none.

    `limits[0]` is the number of levels a tree may have, and `limits[1 + outer * N_OPCODES + inner]`
    how many operators `inner` may lie inside one another, and inside an `outer`. `parent` and
    `pending` are room to work in.
    """
    if limits.shape[0] == 0:
        return True
    top = -1  # the operator whose operands come next, counted from the root
    for i in range(subtree_end(nodes, root) - root):
        op = nodes[root + i]["op"]
        parent[i] = top
        levels = 1
        inside = 1  # of these operators on the way up
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
