"""From the number of a move to its proposal; all moves but Newton."""

import math

from ..compiling import entry_point, merged
from ..tree import swap, term_and_room
from .birth_death import propose_birth, propose_death
from .choice import (
    BIRTH,
    DEATH,
    DELETE,
    GROW,
    INSERT,
    MERGE,
    PRUNE,
    REASSIGN_FEATURE,
    REASSIGN_OPERATOR,
    SPLIT,
    log_choice_ratio,
)
from .exchange import propose_exchange
from .grow_prune import propose_grow, propose_prune
from .insert_delete import propose_delete, propose_insert
from .reassign import propose_reassign_feature, propose_reassign_operator
from .split_merge import propose_merge, propose_split
from .stay import propose_stay


@merged
def _propose_on_tree(move, rng, trees, k, prior, scratch):
    if move == GROW:
        return propose_grow(rng, trees, k, prior, scratch)
    if move == PRUNE:
        return propose_prune(rng, trees, k, prior, scratch)
    if move == INSERT:
        return propose_insert(rng, trees, k, prior, scratch)
    if move == DELETE:
        return propose_delete(rng, trees, k, prior, scratch)
    if move == REASSIGN_OPERATOR:
        return propose_reassign_operator(rng, trees, k, prior, scratch)
    if move == REASSIGN_FEATURE:
        return propose_reassign_feature(rng, trees, k, prior, scratch)
    return propose_stay(rng, trees, k, prior, scratch)


@merged
def _propose_between_terms(move, rng, trees, k, prior, scratch):
    if move == BIRTH:
        return propose_birth(rng, trees, k, prior, scratch)
    if move == DEATH:
        return propose_death(rng, trees, k, prior, scratch)
    if move == SPLIT:
        return propose_split(rng, trees, k, prior, scratch)
    if move == MERGE:
        return propose_merge(rng, trees, k, prior, scratch)
    return propose_exchange(rng, trees, k, prior, scratch)


@entry_point
def propose(move, rng, trees, k, prior, scratch):
    """Propose by the given move; see the contract in this package's docstring."""
    scratch.swaps[0] = 0
    if move >= BIRTH:
        return _propose_between_terms(move, rng, trees, k, prior, scratch)
    log_ratio = _propose_on_tree(move, rng, trees, k, prior, scratch)
    if log_ratio == -math.inf:
        return log_ratio
    old, new, _ = term_and_room(trees, k)
    swap(trees.slots, k, trees.slots.shape[0] - 1, scratch.swaps)
    return log_ratio + log_choice_ratio(move, trees.nodes, old, new, prior)
