"""From the number of a move to its code."""

from ..choose import DELETE, GROW, INSERT, PRUNE, REASSIGN_FEATURE, REASSIGN_OPERATOR
from ..compiling import entry_point
from .delete import propose_delete
from .grow import propose_grow
from .insert import propose_insert
from .prune import propose_prune
from .reassign_feature import propose_reassign_feature
from .reassign_operator import propose_reassign_operator
from .stay import propose_stay


@entry_point
def propose(move, rng, nodes, old, new, limit, prior, pending):
    """Propose by the given move; see the contract in this package's docstring."""
    if move == GROW:
        return propose_grow(rng, nodes, old, new, limit, prior, pending)
    if move == PRUNE:
        return propose_prune(rng, nodes, old, new, limit, prior, pending)
    if move == INSERT:
        return propose_insert(rng, nodes, old, new, limit, prior, pending)
    if move == DELETE:
        return propose_delete(rng, nodes, old, new, limit, prior, pending)
    if move == REASSIGN_OPERATOR:
        return propose_reassign_operator(rng, nodes, old, new, limit, prior, pending)
    if move == REASSIGN_FEATURE:
        return propose_reassign_feature(rng, nodes, old, new, limit, prior, pending)
    return propose_stay(rng, nodes, old, new, limit, prior, pending)
