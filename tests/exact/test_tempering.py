"""Temperatures: swaps alone, and whole ladders, against the exact posterior at every power."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numba import config, typeof, void

from symbayes.inputs.sampler_settings import TemperedSampler
from symbayes.kernels.chain import NUMBERS
from symbayes.kernels.ladder import Ladder
from symbayes.kernels.rng import seed_state
from symbayes.samplers import tempered
from symbayes.samplers.ladder import Replicas
from symbayes.samplers.run.clock import Watch
from symbayes.samplers.run.context import RunContext
from symbayes.samplers.run.workers import Workers

from .. import naive
from ..problems import table
from . import loops
from .cases import FALSE_ALARM, Case, space_of
from .spaces import count_states, p_of_counts, p_value

POWERS = (1.0, 0.5, 0.2, 0.05)
FREE = Case("collapsed", (2, 0.5), max_nodes=4)
SUMS = Case("collapsed", (2, 2.0), "sums", max_nodes=3)
LEARNED = replace(SUMS, learn=True)
LT = Case("collapsed", (2, 0.5), "lt", max_nodes=3, n_features=1, learn=True)
# All rows decide at the two colder temperatures, a part of them at the others.
PART = replace(FREE, part=3)
LEARNED_PART = replace(LEARNED, part=4)


def new_ladder(powers, seed):
    n = len(powers)
    return Ladder(
        seed_state(np.random.SeedSequence(seed)), np.array(powers), np.arange(n), np.zeros(n - 1),
        np.zeros(n - 1, np.int64), np.zeros(2, np.int64), np.zeros(n, np.int64),
        np.zeros((n, 3), np.int64),
    )  # fmt: skip


def swapped(log_likelihood, powers, seed):
    """Swap once from each row of log-likelihoods; return which replica is then where."""
    ladder, numbers = new_ladder(powers, seed), np.zeros((len(powers), NUMBERS))
    out = np.zeros(log_likelihood.shape, np.int64)
    arguments = (ladder, numbers, log_likelihood, out)
    if not config.DISABLE_JIT and not loops.swap_batch.signatures:
        loops.swap_batch.compile(void(*map(typeof, arguments)))
    loops.swap_batch(*arguments)
    return out, ladder


def log_likelihoods(space, weights):
    rows = table(n_features=len(space.problem.feature_weights), weights=weights)
    nu, lam = space.problem.data.noise_prior
    return np.array(
        [
            naive.collapsed_log_likelihood(s, rows.X, rows.y, rows.weights, nu, lam)
            for s in space.states
        ]
    )


def p_values_of_swaps(case, n, seed=0):
    """Start from exact draws at all temperatures, swap once: states at each, and pairs of them."""
    spaces = [space_of(replace(case, temperature=power)) for power in POWERS]
    log_likelihood = log_likelihoods(spaces[0], None)
    rng = np.random.default_rng([7, seed])
    picks = np.column_stack(
        [rng.choice(len(space.states), size=n, p=space.probability) for space in spaces]
    )
    replica, ladder = swapped(log_likelihood[picks], POWERS, seed)
    moved = np.mean(replica != np.arange(len(POWERS)), axis=0)
    assert np.all((moved > 0.02) & (moved < 0.98)), moved  # otherwise nothing was tested
    assert ladder.tried.tolist() == [n - n // 2, n // 2, n - n // 2]
    after = np.take_along_axis(picks, replica, axis=1)
    # Fifths of the log-likelihood, to look at two neighbours together.
    fifth = np.searchsorted(np.quantile(log_likelihood, [0.2, 0.4, 0.6, 0.8]), log_likelihood)
    shares = [np.bincount(fifth, space.probability, minlength=5) for space in spaces]
    results = {}
    for t, space in enumerate(spaces):
        seen = np.bincount(after[:, t], minlength=len(space.states))
        results[f"states at {POWERS[t]}"] = p_of_counts(seen, n * space.probability)
        if t + 1 < len(spaces):
            seen = np.bincount(5 * fifth[after[:, t]] + fifth[after[:, t + 1]], minlength=25)
            results[f"neighbours from {POWERS[t]}"] = p_of_counts(
                seen, n * np.outer(shares[t], shares[t + 1]).ravel()
            )
    return results


def test_swaps_alone_keep_the_posterior_at_every_temperature():
    results = p_values_of_swaps(FREE, n=10_000)
    assert min(results.values()) > FALSE_ALARM / len(results), results


@pytest.mark.slow
@pytest.mark.parametrize("case", [FREE, SUMS], ids=lambda case: case.name)
def test_swaps_alone_keep_the_posterior_to_fine_resolution(case):
    results = p_values_of_swaps(case, n=200_000, seed=1)
    assert min(results.values()) > FALSE_ALARM / len(results), results


def worst_state(space):
    """The least probable state; its constants far from where they belong."""
    trees = [tree.copy() for tree in space.states[int(np.argmin(space.probability))]]
    for tree in trees:
        for node in tree.transforms():
            node.a, node.b = 2.5, -1.5
    return [naive.to_nodes(tree) for tree in trees]


def pack(rows, trees, i):
    """Write the trees of a state to a row; return their number."""
    nodes = np.concatenate([rows[i, :0], *trees])
    rows[i, : len(nodes)] = nodes
    return len(trees)


def p_values_of_ladders(case, powers, n, rounds, steps=8, seed=0, lists=None):
    """Run ladders from the worst state, independent of each other; compare every temperature.

    `lists` makes of a space a problem whose ladders teleport.
    """
    spaces = [space_of(replace(case, temperature=power)) for power in powers]
    worst = worst_state(spaces[0])
    problem = spaces[0].problem if lists is None else lists(spaces[0])
    replicas = Replicas(problem, np.random.SeedSequence(seed), np.array(powers))
    first = [values.copy() for values in replicas.priors]
    nodes = [np.zeros((n, space.width), worst[0].dtype) for space in spaces]
    terms = np.zeros((len(spaces), n), np.int64)
    for i in range(n):
        for r in range(len(powers)):
            replicas.put(worst, r)
        for values, start in zip(replicas.priors, first, strict=True):
            values[:] = start
        replicas.run(steps, rounds, 1, every=True)
        for t in range(len(powers)):
            trees = replicas.trees(int(replicas.ladder.replica[t]))
            terms[t, i] = pack(nodes[t], trees, i)
        # What is kept as a draw is the state at the coldest temperature.
        assert replicas.output[1][0] == terms[0, i]
        assert replicas.visited(1).n_terms.tolist() == terms[:, i].tolist()
    ladder = replicas.ladder
    assert (ladder.teleports[:, 2] > 0).all() == (lists is not None)
    assert np.all(ladder.rejected > 0)  # pairs swap, and not always
    assert np.all(ladder.rejected < 0.95 * ladder.tried)
    return {
        f"states at {power}": p_value(space, *state)
        for power, space, *state in zip(powers, spaces, nodes, terms, strict=True)
    }


@pytest.mark.parametrize("case", [FREE, LEARNED, PART], ids=lambda case: case.name)
def test_ladders_reach_the_exact_posterior_at_every_temperature(case):
    results = p_values_of_ladders(case, (1.0, 0.5, 0.1), n=700, rounds=40)
    assert min(results.values()) > FALSE_ALARM / len(results), results


@pytest.mark.slow
@pytest.mark.parametrize(
    "case", [FREE, SUMS, LEARNED, LT, PART, LEARNED_PART], ids=lambda case: case.name
)
def test_ladders_reach_the_exact_posterior_to_fine_resolution(case):
    results = p_values_of_ladders(case, POWERS, n=10_000, rounds=60, seed=1)
    assert min(results.values()) > FALSE_ALARM / len(results), results


SETTINGS = TemperedSampler(temperatures=3, hottest=0.2, steps_per_draw=20, search=False)


def p_value_of_sampler(case, n, draws, settings, tune=300, seed=0):
    """Run one ladder a seed through the sampler itself; compare the last draw of each."""
    space = space_of(case)
    with Workers(1) as workers:
        trace = tempered.sample(
            settings, space.problem, tune=tune, draws=draws, guesses=[],
            seeds=np.random.SeedSequence(seed).spawn(n), run=RunContext(workers, Watch(None)),
        )  # fmt: skip
    nodes, terms = np.zeros((n, space.width), space.pack([]).dtype), np.zeros(n, np.int64)
    for i, chain in enumerate(trace.chains):
        assert len(chain) == draws
        nodes[i, : len(chain.nodes[-1])] = chain.nodes[-1]
        terms[i] = chain.n_terms[-1]
    return p_value(space, nodes, terms)


def test_the_sampler_draws_from_the_exact_posterior():
    assert p_value_of_sampler(LEARNED, 300, 8, SETTINGS) > FALSE_ALARM


def kept_states(space, trace):
    """All draws that were kept, of all chains."""
    kept = [pair for chain in trace.chains for pair in zip(chain.nodes, chain.n_terms, strict=True)]
    nodes = np.zeros((len(kept), space.width), space.pack([]).dtype)
    for i, (state, _) in enumerate(kept):
        nodes[i, : len(state)] = state
    return nodes, np.array([terms for _, terms in kept])


def test_a_long_run_that_was_thinned_has_the_exact_probabilities(monkeypatch):
    """Draws that are kept lie 32 apart, far enough to be independent.

    The same run without a limit has them all: the shares of states are the same but for chance.
    """
    monkeypatch.setattr(tempered, "settled", lambda *_: False)
    space, traces = space_of(LEARNED), {}
    for most in (64, 10_000):
        monkeypatch.setattr(tempered, "_most_kept", lambda n, most=most: most)
        with Workers(1) as workers:
            traces[most] = tempered.sample(
                SETTINGS, space.problem, tune=300, draws=2_000, guesses=[],
                seeds=np.random.SeedSequence(8).spawn(16), run=RunContext(workers, Watch(None)),
            )  # fmt: skip
    thinned, full = traces[64], traces[10_000]
    assert all(len(chain) == 62 and chain.stride == 32 for chain in thinned.chains)
    assert all(len(chain) == 2_000 and chain.stride == 1 for chain in full.chains)
    for some, every in zip(thinned.chains, full.chains, strict=True):
        assert some.log_likelihood.tolist() == every.log_likelihood[31::32].tolist()
    assert p_value(space, *kept_states(space, thinned)) > FALSE_ALARM
    shares = [
        count_states(space, *kept_states(space, trace)) / sum(map(len, trace.chains))
        for trace in (thinned, full)
    ]
    n = sum(map(len, thinned.chains))
    error = np.sqrt(space.probability * (1 - space.probability) / n)
    common = space.probability * n > 20
    assert common.sum() >= 5
    assert np.all(np.abs(shares[0] - shares[1])[common] < 5.5 * error[common])


@pytest.mark.slow
@pytest.mark.parametrize("case", [FREE, SUMS, LEARNED, LT], ids=lambda case: case.name)
def test_the_sampler_draws_from_the_exact_posterior_to_fine_resolution(case, monkeypatch):
    monkeypatch.setattr(tempered, "LARGEST_ROUND", 4)
    p = [p_value_of_sampler(case, 2_000, 12, SETTINGS, seed=seed) for seed in range(4)]
    assert min(p) > FALSE_ALARM / len(p), p
