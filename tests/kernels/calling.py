"""Ways to call single kernels from a test, compiled or, with JIT disabled, as plain Python."""

from __future__ import annotations

import numpy as np
from numba import njit

from symbayes.kernels import rng as rng_kernels
from symbayes.kernels import tree as tree_kernels
from symbayes.kernels.gibbs import update_weights
from symbayes.kernels.ladder import count_round_trips, energy, swap_neighbours
from symbayes.kernels.moves.choice import (
    census,
    choose_jump,
    choose_move,
    probability_at,
    reverse_of,
)
from symbayes.kernels.moves.insert_delete import count_heirs
from symbayes.kernels.nesting import count_nested
from symbayes.kernels.sensible import _has_sensible_values
from symbayes.kernels.step import _log_prior_constants
from symbayes.kernels.tree_prior import draw_subtree, log_shape, log_shift


@njit
def many_uniform(state, out):
    for i in range(out.shape[0]):
        out[i] = rng_kernels.uniform(state)


@njit
def many_normal(state, out):
    for i in range(out.shape[0]):
        out[i] = rng_kernels.normal(state)


@njit
def many_inverse_gamma(state, shape, scale, out):
    for i in range(out.shape[0]):
        out[i] = rng_kernels.inverse_gamma(state, shape, scale)


@njit
def many_picks(state, cumulative, out):
    for i in range(out.shape[0]):
        out[i] = rng_kernels.pick(state, cumulative)


@njit
def many_integers(state, n, out):
    for i in range(out.shape[0]):
        out[i] = rng_kernels.integer(state, n)


@njit
def describe(nodes, root, out):
    """Fill `out` with operators, transforms, nodes, candidates, heirs of the root; end; depths."""
    _, _, size = tree_kernels.count_nodes(nodes, root)
    operators, transforms, candidates = census(nodes, root)
    out[0], out[1], out[2], out[3] = operators, transforms, size, candidates
    out[4] = count_heirs(nodes, root, root)
    out[5] = tree_kernels.subtree_end(nodes, root)
    for i in range(size):
        out[6 + i] = tree_kernels.depth_of(nodes, root, root + i)


@njit
def shift_of(nodes, root, depth, prior, pending):
    return log_shift(nodes, root, depth, prior, pending)


@njit
def shape_of(nodes, root, depth, prior, pending):
    return log_shape(nodes, root, depth, prior, pending)


@njit
def constants_of(nodes, root, prior):
    return _log_prior_constants(nodes, root, prior)


@njit
def take_back(slots, swaps):
    """Restore the order of terms; the notes of what was swapped stay."""
    tree_kernels.undo_swaps(slots, swaps)


@njit
def sensible_values(values):
    return _has_sensible_values(values)


@njit
def nested_in(nodes, room):
    return count_nested(nodes, 0, room)


@njit
def jumps(state, n_terms, prior, out):
    for i in range(out.shape[0]):
        out[i] = choose_jump(state, n_terms, prior)


@njit
def many_weights(chain, prior, counts, out_operators, out_features):
    """Draw the weights again and again; write their running sums."""
    for row in range(out_operators.shape[0]):
        update_weights(chain, prior, counts)
        for i in range(prior.operator_cdf.shape[0]):
            out_operators[row, i] = prior.operator_cdf[i]
        for i in range(prior.feature_cdf.shape[0]):
            out_features[row, i] = prior.feature_cdf[i]


@njit
def swap(ladder, numbers):
    swap_neighbours(ladder, numbers, 0.0)


@njit
def energy_of(numbers, power, ratio):
    return energy(numbers, power, ratio)


@njit
def note_ends(ladder):
    count_round_trips(ladder)


@njit
def draw(state, nodes, start, limit, depth, operator_first, prior, pending):
    return draw_subtree(state, nodes, start, limit, depth, operator_first, prior, pending)


@njit
def chosen(state, nodes, root, prior, out):
    for i in range(out.shape[0]):
        out[i] = choose_move(state, nodes, root, prior)


@njit
def choice_probability(move, nodes, root, prior):
    return probability_at(move, nodes, root, prior)


@njit
def reverse(move):
    return reverse_of(move)


@njit
def same(nodes, first, second):
    return tree_kernels.same_tree(nodes, first, second)


def generator_state(seed: int) -> np.ndarray:
    return rng_kernels.seed_state(np.random.SeedSequence(seed))


@njit
def allowed_by(nodes, root, limits, parent, pending):
    return tree_kernels.is_allowed(nodes, root, limits, parent, pending)
