"""From the number of a move between terms to its code, and what it does to the order of terms."""

import math

from ..choose import BIRTH, DEATH, MERGE, SPLIT
from ..compiling import entry_point, kernel
from .between import propose_exchange, propose_merge, propose_split
from .terms import propose_birth, propose_death, swap

#: Entries of the list of swaps: their number, and the places of at most three.
SWAPS = 7


@kernel
def swap_noted(slots, i, j, swaps):
    """Exchange two entries of the order, and note it."""
    n = swaps[0]
    swaps[1 + 2 * n] = i
    swaps[2 + 2 * n] = j
    swaps[0] = n + 1
    swap(slots, i, j)


@kernel
def undo_swaps(slots, swaps):
    """Bring the order of terms back to what it was."""
    for n in range(swaps[0] - 1, -1, -1):
        swap(slots, swaps[1 + 2 * n], swaps[2 + 2 * n])


@kernel
def terms_after(move, n_terms):
    """Return the number of terms that a move between terms leads to."""
    if move in (BIRTH, SPLIT):
        return n_terms + 1
    if move in (DEATH, MERGE):
        return n_terms - 1
    return n_terms


@kernel
def new_columns(move):
    """Return how many columns of the design a move between terms makes."""
    if move == DEATH:
        return 0
    return 1 if move in (BIRTH, MERGE) else 2


@entry_point
def jump(move, rng, nodes, slots, n_terms, max_nodes, prior, pending, swaps):
    """Propose by a move between terms; return the log ratio.

    New trees are written into the spare slots, the first into the last one, and the order of terms
    is changed; `swaps` notes how, unless the ratio is minus infinity.
    """
    last = slots.shape[0] - 1
    swaps[0] = 0
    if move == BIRTH:
        log_ratio, place = propose_birth(rng, nodes, slots, n_terms, max_nodes, prior, pending)
        if log_ratio > -math.inf:
            swap_noted(slots, n_terms, last, swaps)
            swap_noted(slots, place, n_terms, swaps)
        return log_ratio
    if move == DEATH:
        log_ratio, place = propose_death(rng, n_terms, prior)
        swap_noted(slots, place, n_terms - 1, swaps)
        return log_ratio
    if move == SPLIT:
        log_ratio, k, place = propose_split(rng, nodes, slots, n_terms, max_nodes, prior, pending)
        if log_ratio > -math.inf:
            swap_noted(slots, k, last, swaps)
            swap_noted(slots, n_terms, last - 1, swaps)
            swap_noted(slots, place, n_terms, swaps)
        return log_ratio
    if move == MERGE:
        log_ratio, k, place = propose_merge(rng, nodes, slots, n_terms, max_nodes, prior, pending)
        if log_ratio > -math.inf:
            swap_noted(slots, place, n_terms - 1, swaps)
            swap_noted(slots, k, last, swaps)
        return log_ratio
    log_ratio, k, j = propose_exchange(rng, nodes, slots, n_terms, max_nodes, prior, pending)
    if log_ratio > -math.inf:
        swap_noted(slots, k, last, swaps)
        swap_noted(slots, j, last - 1, swaps)
    return log_ratio
