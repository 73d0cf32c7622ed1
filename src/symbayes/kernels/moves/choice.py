"""The moves by number and name, and the probability of choosing each.

Moves on one tree have the paper's probabilities, with Grow's share repaired. As printed, Prune has
probability zero while a tree has at most six operators, so that Grow could not be undone there;
Grow's share of its third is capped at one half.
"""

import math

import numpy as np

from ..compiling import kernel
from ..opcodes import ADD, SUB
from ..rng import uniform
from ..tree import count_nodes
from .insert_delete import count_candidates

# NumPy integers: for Python's own, Numba would compile a function once for every value passed.
# Those before BIRTH concern one tree; Newton does too, but only it looks at data.
STAY, GROW, PRUNE, INSERT, DELETE, REASSIGN_OPERATOR, REASSIGN_FEATURE = map(np.int64, range(7))
BIRTH, DEATH, SPLIT, MERGE, EXCHANGE, NEWTON = map(np.int64, range(7, 13))

#: What the moves are called in reports.
MOVE_NAMES = (
    "stay", "grow", "prune", "insert", "delete", "reassign operator", "reassign feature",
    "birth", "death", "split", "merge", "exchange", "newton",
)  # fmt: skip
N_MOVES = len(MOVE_NAMES)

#: The share of births and deaths together, where the number of terms is free.
JUMP_SHARE = 0.2
#: The share of splits and merges together, and of exchanges between two terms.
SUM_SHARE = 0.04
EXCHANGE_SHARE = 0.04
#: How often Newton takes the place of Stay.
NEWTON_SHARE = 0.5


@kernel
def terms_after(move, n_terms):
    """Return the number of terms after a move."""
    if move in (BIRTH, SPLIT):
        return n_terms + 1
    if move in (DEATH, MERGE):
        return n_terms - 1
    return n_terms


@kernel
def new_trees(move):
    """Return how many new trees a move proposes."""
    if move == DEATH:
        return 0
    return 2 if move in (SPLIT, EXCHANGE) else 1


@kernel
def census(nodes, root):
    """Return the numbers of operators, of `lt` operators and of candidates for Delete."""
    n_operators, n_transforms, _ = count_nodes(nodes, root)
    return n_operators, n_transforms, count_candidates(nodes, root, n_operators)


@kernel
def stay_share(n_transforms, move_shape):
    """Return the probability of Stay at a tree with this number of `lt` nodes."""
    return move_shape[0] * n_transforms / (n_transforms + move_shape[1])


@kernel
def grow_share(n_operators):
    """Return the part of its third that Grow has; Prune has the rest."""
    return min(0.5, 8.0 / (n_operators + 2.0))


@kernel
def delete_share(n_candidates):
    """Return the part of its third that Delete has; Insert has the rest."""
    return n_candidates / (n_candidates + 3.0)


@kernel
def probability_at(move, nodes, root, prior):
    """Return the probability of choosing a move at the tree at `root`."""
    n_operators, n_transforms, n_candidates = census(nodes, root)
    stay = stay_share(n_transforms, prior.move_shape)
    if move == STAY:
        return stay
    share = 0.5  # of Reassign operator and Reassign feature
    if move == GROW:
        share = grow_share(n_operators)
    elif move == PRUNE:
        share = 1.0 - grow_share(n_operators)
    elif move == DELETE:
        share = delete_share(n_candidates)
    elif move == INSERT:
        share = 1.0 - delete_share(n_candidates)
    return (1.0 - stay) / 3.0 * share


@kernel
def choose_move(rng, nodes, root, prior):
    """Return a move, with its probability at the tree at `root`."""
    n_operators, n_transforms, n_candidates = census(nodes, root)
    stay = stay_share(n_transforms, prior.move_shape)
    u = uniform(rng)
    if u < stay:
        return STAY
    third = 3.0 * (u - stay) / (1.0 - stay)
    if third < 1.0:
        return GROW if third < grow_share(n_operators) else PRUNE
    if third < 2.0:
        return DELETE if third - 1.0 < delete_share(n_candidates) else INSERT
    return REASSIGN_OPERATOR if third < 2.5 else REASSIGN_FEATURE


@kernel
def reverse_of(move):
    """Return the move that undoes a move."""
    if move == GROW:
        return PRUNE
    if move == PRUNE:
        return GROW
    if move == INSERT:
        return DELETE
    if move == DELETE:
        return INSERT
    return move


@kernel
def log_choice_ratio(move, nodes, old, new, prior):
    """Return log P(reverse of the move; new) - log P(move; old)."""
    if move in (STAY, REASSIGN_FEATURE):
        return 0.0  # what the probabilities depend on has not changed
    back = probability_at(reverse_of(move), nodes, new, prior)
    there = probability_at(move, nodes, old, prior)
    return math.log(back / there)


@kernel
def birth_probability(n_terms, log_terms):
    """Return the probability of trying a birth, given the number of terms."""
    if n_terms + 1 >= log_terms.shape[0] or log_terms[n_terms + 1] == -math.inf:
        return 0.0
    return 1.0 if n_terms == 0 else 0.5 * JUMP_SHARE


@kernel
def death_probability(n_terms, log_terms):
    """Return the probability of trying a death, given the number of terms."""
    if n_terms == 0 or log_terms[n_terms - 1] == -math.inf:
        return 0.0
    return 0.5 * JUMP_SHARE


@kernel
def sum_weight(prior):
    """Return the weight of + and - together."""
    return prior.operator_cdf[SUB] - prior.operator_cdf[ADD - 1]


@kernel
def split_probability(n_terms, prior):
    """Return the probability of trying to split a term, given the number of terms."""
    if n_terms == 0 or birth_probability(n_terms, prior.log_terms) == 0.0:
        return 0.0
    return 0.5 * SUM_SHARE if sum_weight(prior) > 0.0 else 0.0


@kernel
def merge_probability(n_terms, prior):
    """Return the probability of trying to merge two terms, given the number of terms."""
    if n_terms < 2 or death_probability(n_terms, prior.log_terms) == 0.0:
        return 0.0
    return 0.5 * SUM_SHARE if sum_weight(prior) > 0.0 else 0.0


@kernel
def choose_jump(rng, n_terms, prior):
    """Return a move between terms, or -1 for a move on a single one."""
    u = uniform(rng)
    u -= birth_probability(n_terms, prior.log_terms)
    if u < 0.0:
        return BIRTH
    u -= death_probability(n_terms, prior.log_terms)
    if u < 0.0:
        return DEATH
    u -= split_probability(n_terms, prior)
    if u < 0.0:
        return SPLIT
    u -= merge_probability(n_terms, prior)
    if u < 0.0:
        return MERGE
    if n_terms > 1 and u < EXCHANGE_SHARE:
        return EXCHANGE
    return np.int64(-1)


@kernel
def choose_for_constants(rng, move):
    """Return the move, or Newton in the place of some Stays."""
    return NEWTON if move == STAY and uniform(rng) < NEWTON_SHARE else move
