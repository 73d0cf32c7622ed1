"""Parallel tempering: replicas of a chain at several powers of the likelihood.

Replicas keep their states and swap their temperatures, so nothing is copied. Swaps are
deterministic: even pairs of neighbours in one round, odd pairs in the next (Syed, Bouchard-Cote,
Deligiannidis and Doucet, 2022), which carries states from end to end faster than random pairs.
"""

import math
from typing import NamedTuple

import numpy as np

from .all_rows import first_power, sees_all
from .chain import ALL_LOG_LIKELIHOOD, ALL_RSS, LOG_LIKELIHOOD, RSS, Chain, Code, Mode
from .compiling import entry_point, kernel, merged
from .front import note
from .gibbs import update_scales, update_weights
from .likelihood import collapsed_log_likelihood
from .nesting import count_all_nested
from .opcodes import LT
from .run import KEPT, fit_given, keep_state, start
from .step import accepted, step
from .teleport import teleport
from .tree_prior import Prior

# States tried until one is possible on all rows.
_MOST_STARTS = 1_000
# Steps between two updates of the scales of the constants, and at least between two of the weights.
_STEPS_PER_UPDATE = 16
# The update of weights takes longer with more columns: one step more between two for each of these.
_COLUMNS_PER_STEP = 64

# Directions of a replica: the end of the ladder it was at last.
_NOWHERE, _FROM_COLD, _FROM_HOT = 0, 1, 2


class Ladder(NamedTuple):
    """The temperatures of the replicas, and how they moved."""

    rng: np.ndarray
    """Random numbers for swaps."""
    power: np.ndarray
    """Powers of the likelihood, from 1 down to the hottest."""
    replica: np.ndarray
    """Which replica is at each temperature."""
    rejected: np.ndarray
    """For each pair of neighbours, the sum of the probabilities of rejecting a swap."""
    tried: np.ndarray
    """For each pair of neighbours, how many swaps were tried."""
    clock: np.ndarray
    """Rounds made, and round trips between the two ends."""
    direction: np.ndarray
    """For each replica, the end it was at last."""
    teleports: np.ndarray
    """For each temperature: teleports tried, those from a state that is listed, accepted ones."""


@kernel
def chain_at(chains, i):
    """Return the i-th replica of chains that are stored in one set of arrays."""
    return Chain(
        chains.rng[i],
        chains.nodes[i],
        chains.columns[i],
        chains.gram[i],
        chains.dots[i],
        chains.slots[i],
        chains.n_terms[i],
        chains.nested[i],
        chains.numbers[i],
        chains.counts[i],
    )


@kernel
def prior_at(priors, i):
    """Return the prior of the i-th replica."""
    return Prior(
        priors.operator_cdf[i],
        priors.feature_cdf[i],
        priors.split[i],
        priors.operator_shift[i],
        priors.terminal_shift[i],
        priors.scales[i],
        priors.scale_prior[i],
        priors.operator_concentration[i],
        priors.feature_concentration[i],
        priors.log_terms[i],
        priors.move_shape[i],
        priors.nesting[i],
    )


@kernel
def energy(numbers, power, ratio):
    """Return the log-likelihood of a state to the power of a temperature."""
    if sees_all(power, ratio):
        return power * numbers[ALL_LOG_LIKELIHOOD]
    return first_power(power, ratio) * numbers[LOG_LIKELIHOOD]


@merged
def swap_neighbours(ladder, numbers, ratio):
    """Try to swap every other pair of neighbouring temperatures.

    For `ratio` see `chain.Mode`.
    """
    n = ladder.power.shape[0]
    t = ladder.clock[0] % 2
    while t + 1 < n:
        cold, hot = ladder.replica[t], ladder.replica[t + 1]
        colder, hotter = ladder.power[t], ladder.power[t + 1]
        there = energy(numbers[hot], colder, ratio) - energy(numbers[cold], colder, ratio)
        back = energy(numbers[cold], hotter, ratio) - energy(numbers[hot], hotter, ratio)
        log_ratio = there + back
        ladder.tried[t] += 1
        ladder.rejected[t] += 1.0 - np.exp(min(0.0, log_ratio))
        if accepted(ladder.rng, log_ratio):
            ladder.replica[t], ladder.replica[t + 1] = hot, cold
        t += 2
    ladder.clock[0] += 1


@merged
def look_across(code, chains, whole, ratio, scratch, ladder):
    """Fit on all rows the one state that does not see them and may swap with one that does.

    Where it is not possible there, its log-likelihood is minus infinity.
    """
    for t in range(ladder.power.shape[0] - 1):
        if sees_all(ladder.power[t], ratio) and not sees_all(ladder.power[t + 1], ratio):
            if t % 2 != ladder.clock[0] % 2:
                return  # this pair does not swap in this round
            chain = chain_at(chains, ladder.replica[t + 1])
            fit_on_all_rows(code, chain, whole, scratch)


@kernel
def fit_on_all_rows(code, chain, whole, scratch):
    """Note the likelihood of a state on all rows; return whether it is possible there."""
    rss = code.fit_all(code.evaluate, chain, chain.n_terms[0], whole, scratch)
    chain.numbers[ALL_RSS] = rss
    if rss < 0.0:
        chain.numbers[ALL_LOG_LIKELIHOOD] = -math.inf
        return False
    chain.numbers[ALL_LOG_LIKELIHOOD] = collapsed_log_likelihood(rss, chain.n_terms[0], whole)
    return True


@merged
def count_round_trips(ladder):
    """Note which replica is at which end; from cold to hot and back is a round trip."""
    n = ladder.power.shape[0]
    cold, hot = ladder.replica[0], ladder.replica[n - 1]
    if ladder.direction[cold] == _FROM_HOT:
        ladder.clock[1] += 1
    ladder.direction[cold] = _FROM_COLD
    if n > 1 and ladder.direction[hot] == _FROM_COLD:
        ladder.direction[hot] = _FROM_HOT


@kernel
def advance(code, chain, prior, tables, mode, scratch, front, n_steps):
    """Make steps with one replica."""
    learns_scales = prior.operator_cdf[LT] > prior.operator_cdf[LT - 1]
    n_features = prior.feature_concentration.shape[0]
    rare = max(_STEPS_PER_UPDATE, n_features // _COLUMNS_PER_STEP)
    for i in range(n_steps):
        step(code, chain, prior, tables, mode, scratch, front)
        if learns_scales and i % _STEPS_PER_UPDATE == 0:
            update_scales(chain, prior)
        if n_features > 0 and i % rare == 0:
            update_weights(chain, prior, scratch.counts)


@merged
def _ready(code, chain, prior, tables, mode, scratch):
    """Start a chain that has not, and fit one that was given a state; return whether it could.

    A given state, whose log-likelihood is nan, that cannot be fitted is replaced by a start.
    """
    for _ in range(_MOST_STARTS):
        if not _ready_on_part(code, chain, prior, tables.seen, scratch):
            return False
        if not sees_all(mode.power, mode.ratio) or chain.numbers[ALL_LOG_LIKELIHOOD] > -math.inf:
            return True
        if fit_on_all_rows(code, chain, tables.whole, scratch):
            return True
        _ask_for_start(chain, prior)
    return False


@kernel
def _ask_for_start(chain, prior):
    """Ask for a start in the place of a state, with no terms if that is allowed."""
    n_terms = chain.n_terms[0]
    if prior.log_terms[0] > -math.inf:
        n_terms = 0
    chain.n_terms[0] = -1 - n_terms


@merged
def _ready_on_part(code, chain, prior, data, scratch):
    """Do that on the rows that the chain sees first."""
    if chain.n_terms[0] >= 0:
        if not math.isnan(chain.numbers[LOG_LIKELIHOOD]):
            return True
        if not fit_given(code, chain, data, scratch, False):
            _ask_for_start(chain, prior)
    n_terms = chain.n_terms[0]
    if n_terms < 0 and not start(code, chain, -1 - n_terms, prior, data, scratch, False):
        return False
    chain.numbers[LOG_LIKELIHOOD] = collapsed_log_likelihood(
        chain.numbers[RSS], chain.n_terms[0], data
    )
    chain.numbers[ALL_LOG_LIKELIHOOD] = math.nan
    return True


@entry_point
def run_tempered(
    evaluate, fit, propose, optimise, newton, fit_all,
    chains, priors, tables, optimised, scratch, ladder, front, catalogue, odds, spare, room,
    steps_per_round, rounds_per_draw, first, n_draws, good_enough, every,
    out_nodes, out_terms, out_numbers,
):  # fmt: skip
    """Make draws at the coldest temperature; return their number, -1 when there is no start.

    They go into the rows of the output from `first` on, and the best of each size that any replica
    has met into `front`. `optimised` is the share of proposals whose constants are optimised: draws
    are of the posterior only if it is 0.

    Behind the numbers of a draw stand the log-likelihoods at all temperatures. At one that sees
    only a part of the rows, it is multiplied by how many times more rows there are.

    It ends early when the residual sum of squares of a draw is at most `good_enough`.
    """
    code = Code(evaluate, fit, propose, optimise, newton, fit_all)
    n_replicas = ladder.power.shape[0]
    n_rows = out_terms.shape[0] // n_replicas
    ratio = tables.whole.n / tables.seen.n
    for t in range(n_replicas):
        r = ladder.replica[t]
        mode = Mode(ladder.power[t], ratio, optimised)
        chain = chain_at(chains, r)
        if not _ready(code, chain, prior_at(priors, r), tables, mode, scratch):
            return -1
        note(front, chain, chain.n_terms[0], chain.numbers[RSS])  # it may have been given
        chain.nested[0] = count_all_nested(chain, chain.n_terms[0], scratch.where)
    for row in range(first, first + n_draws):
        for _ in range(rounds_per_draw):
            # Steps of every replica at its temperature, then swaps between neighbours.
            for t in range(n_replicas):
                r = ladder.replica[t]
                mode = Mode(ladder.power[t], ratio, optimised)
                if not sees_all(mode.power, ratio):
                    chains.numbers[r, ALL_LOG_LIKELIHOOD] = math.nan  # until it is needed
                advance(
                    code, chain_at(chains, r), prior_at(priors, r), tables, mode, scratch, front,
                    steps_per_round,
                )  # fmt: skip
                if catalogue.key.shape[0] > 0:
                    teleport(
                        code, chain_at(chains, r), spare, prior_at(priors, r), tables, mode,
                        scratch, room, catalogue, odds, ladder.teleports, t,
                    )  # fmt: skip
            look_across(code, chains, tables.whole, ratio, scratch, ladder)
            swap_neighbours(ladder, chains.numbers, ratio)
            count_round_trips(ladder)
        for t in range(n_replicas if every else 1):
            r = ladder.replica[t]
            keep_state(
                chain_at(chains, r), prior_at(priors, r), row + t * n_rows,
                ratio > 0.0 and sees_all(ladder.power[t], ratio), out_nodes, out_terms, out_numbers,
            )  # fmt: skip
        for t in range(n_replicas):
            numbers = chains.numbers[ladder.replica[t]]
            if sees_all(ladder.power[t], ratio):
                out_numbers[row, KEPT + t] = numbers[ALL_LOG_LIKELIHOOD]
            else:
                out_numbers[row, KEPT + t] = numbers[LOG_LIKELIHOOD] * max(1.0, ratio)
        if out_numbers[row, RSS] <= good_enough:
            return row + 1 - first
    return n_draws


@entry_point
def make_columns(evaluate, fit, chains, data, scratch, missing):
    """Make the columns, and their inner products, of states that came without them.

    Such states come from another process, or from a file. The numbers of a chain stay: they may
    have come about in another order of the terms, which rounds otherwise. A state that was given
    and is not fitted yet (`run.py`) is left to the loop.
    """
    for r in range(missing.shape[0]):
        chain = chain_at(chains, r)
        if missing[r] and not math.isnan(chain.numbers[LOG_LIKELIHOOD]):
            for k in range(chain.n_terms[0]):
                fit(evaluate, chain, chain.slots[k], k + 1, data, scratch, True)
        missing[r] = False
