"""Replicas at several temperatures: swaps, round trips, starts, and when a run ends early."""

from __future__ import annotations

import math

import numpy as np
import pytest

from symbayes.inputs.prior import NoisePrior, TermsPrior, TreePrior
from symbayes.inputs.validation import Table
from symbayes.kernels.chain import ACCEPTED, LOG_LIKELIHOOD, NUMBERS, RSS
from symbayes.kernels.moves.choice import BIRTH, DEATH, EXCHANGE
from symbayes.kernels.run import KEPT
from symbayes.samplers.run.scheduler import NoStart

from .. import naive
from ..problems import problem, table, tree
from .calling import note_ends, swap
from .test_run import assert_numbers_belong, made, replicas

POWERS = (1.0, 0.5, 0.2, 0.1)


def ladder_of(powers=POWERS):
    return replicas(made(1), powers).ladder


def numbers_of(*log_likelihoods):
    numbers = np.zeros((len(log_likelihoods), NUMBERS))
    numbers[:, LOG_LIKELIHOOD] = log_likelihoods
    return numbers


def test_even_and_odd_pairs_take_turns():
    ladder, numbers = ladder_of(), numbers_of(0.0, 1e9, 2e9, 3e9)
    swap(ladder, numbers)  # 0-1 and 2-3: the better state goes to the colder side
    assert ladder.replica.tolist() == [1, 0, 3, 2]
    swap(ladder, numbers)  # 1-2
    assert ladder.replica.tolist() == [1, 3, 0, 2]
    swap(ladder, numbers)
    assert ladder.replica.tolist() == [3, 1, 2, 0]
    assert ladder.tried.tolist() == [2, 1, 2]
    assert ladder.rejected.tolist() == [0, 0, 0]
    assert ladder.clock[0] == 3


def test_a_much_better_state_stays_cold():
    ladder, numbers = ladder_of(), numbers_of(1e9, 0.0, 1e9, 0.0)
    swap(ladder, numbers)
    assert ladder.replica.tolist() == [0, 1, 2, 3]
    assert ladder.rejected.tolist() == [1, 0, 1]


def test_swaps_are_rejected_as_often_as_they_say():
    """What is counted is the probability of a rejection, whether there was one or not."""
    ladder = ladder_of((1.0, 0.4))
    gain, n, swapped = -1.3, 2_000, 0
    for _ in range(n):
        ladder.replica[:] = [0, 1]
        ladder.clock[0] = 0
        swap(ladder, numbers_of(0.0, gain))
        swapped += ladder.replica[0] == 1
    probability = math.exp(0.6 * gain)
    assert ladder.rejected[0] == pytest.approx(n * (1 - probability), rel=1e-9)
    # Six standard errors.
    assert abs(swapped - n * probability) < 6 * math.sqrt(n * probability * (1 - probability))


def test_one_temperature_has_nothing_to_swap():
    ladder = ladder_of((1.0,))
    state = ladder.rng.copy()
    swap(ladder, numbers_of(1.0))
    note_ends(ladder)
    assert ladder.clock.tolist() == [1, 0]
    np.testing.assert_array_equal(ladder.rng, state)


def test_round_trips():
    ladder = ladder_of((1.0, 0.5, 0.1))
    trips = []
    for order in (
        [0, 1, 2], [1, 0, 2], [1, 2, 0],  # 0 has gone from cold to hot
        [2, 1, 0],  # 2 comes from hot, but has not been cold before
        [1, 2, 0], [1, 0, 2], [0, 1, 2],  # 0 is back, and 2 is hot after it was cold
        [0, 2, 1], [2, 0, 1],  # 2 is back
        [1, 2, 0],
    ):  # fmt: skip
        ladder.replica[:] = order
        note_ends(ladder)
        trips.append(int(ladder.clock[1]))
    assert trips == [0, 0, 0, 0, 0, 0, 1, 1, 2, 3]


def test_temperatures_move_and_replicas_keep_their_states():
    ladder = replicas(made(TermsPrior(3, 0.5)), (1.0, 0.6, 0.4))
    ladder.run(1, 0, 1)  # a draw of no rounds: only a start
    for r in range(3):
        ladder.put([tree("sin", 0), tree(1)], r)
    ladder.run(10, 20, 1)
    assert sorted(ladder.ladder.replica) == [0, 1, 2]
    assert ladder.ladder.clock[0] == 20
    assert ladder.ladder.tried.tolist() == [10, 10]
    # The draw that was kept is the state at power one.
    kept = [naive.from_nodes(t) for t in ladder.trees(ladder.cold)]
    assert ladder.output[1][0] == len(kept)
    assert ladder.output[2][0, LOG_LIKELIHOOD] == ladder.log_likelihood
    # Behind it, the log-likelihoods at all temperatures, from the coldest on.
    np.testing.assert_array_equal(
        ladder.output[2][0, KEPT:], ladder.chains.numbers[ladder.ladder.replica, LOG_LIKELIHOOD]
    )
    assert_numbers_belong(kept, ladder.log_likelihood)


def test_a_given_state_is_fitted_before_the_first_step():
    ladder = replicas(made(TermsPrior(3, 0.5)), (1.0, 0.5))
    given = [tree("sin", 0), tree("*", 0, 1)]
    ladder.put(given)
    assert math.isnan(ladder.log_likelihood)
    assert ladder.run(5, 5, 0) == 0
    assert_numbers_belong([naive.from_nodes(t) for t in given], ladder.log_likelihood)
    assert [t.tolist() for t in ladder.trees()] == [t.tolist() for t in given]
    ladder.put([], 0)
    ladder.run(5, 5, 0)
    assert ladder.rss == pytest.approx(20)
    assert ladder.trees() == []


@pytest.mark.parametrize("terms", [2, TermsPrior(3, 0.5)], ids=["K=2", "K free"])
@pytest.mark.parametrize(
    "given",
    [[tree("log", 0), tree(1)], [tree(0), tree("+", 0, 0)], [tree(1), tree("-", 1, 1)]],
    ids=["not finite", "redundant", "constant"],
)
def test_a_state_without_a_fit_is_replaced_by_a_start(terms, given):
    ladder = replicas(made(terms))
    ladder.put(given)
    ladder.run(5, 5, 0)
    assert len(ladder.trees()) == (2 if terms == 2 else 0)
    assert_numbers_belong([naive.from_nodes(t) for t in ladder.trees()], ladder.log_likelihood)


def test_a_state_without_a_fit_and_no_start_is_reported():
    rows = table(20, n_features=1)
    target = problem(rows, {"+": 1.0}, terms=2, tree_prior=TreePrior(max_nodes=1))
    ladder = replicas(target)
    ladder.put([tree(0), tree(0)])
    with pytest.raises(NoStart):
        ladder.run(1, 1, 1)


def exact_data():
    X = np.random.default_rng(2).uniform(0.5, 2, (30, 2))
    y = 3 * X[:, 0] ** 2 + 1
    return problem(
        Table(np.asfortranarray(X), y, np.ones(30), np.arange(2)), {"square": 1.0, "*": 1.0},
        terms=1, tree_prior=TreePrior(max_nodes=3), noise_prior=NoisePrior(1.0, 1e-12),
    )  # fmt: skip


def test_a_run_ends_when_a_draw_is_good_enough():
    target = exact_data()
    ladder = replicas(target, (1.0, 0.5))
    done = ladder.run(20, 2, 60, 1e-15 * 30)
    assert 0 < done < 60
    assert ladder.output[2][done - 1, RSS] <= 1e-15 * 30
    assert np.all(ladder.output[2][: done - 1, RSS] > 1e-15 * 30)
    assert ladder.run(20, 2, 60, -1.0) == 60  # the default never ends early


def spoil_spare_slots(ladder):
    """Fill what belongs to no term: a proposal that was rejected leaves anything there."""
    chains, size = ladder.chains, ladder.problem.max_nodes
    n_slots = chains.slots.shape[1]
    for r in range(len(chains.slots)):
        spare = chains.slots[r, int(chains.n_terms[r, 0]) :]
        chains.columns[r].reshape(n_slots, -1)[spare] = np.nan
        gram = chains.gram[r].reshape(n_slots, n_slots)
        gram[spare], gram[:, spare] = np.nan, np.nan
        chains.dots[r, spare] = np.nan
        chains.nodes[r].reshape(n_slots, size)[spare] = np.zeros(1, chains.nodes.dtype)


@pytest.mark.parametrize("terms", [3, TermsPrior(3, 2.0)], ids=["K=3", "K free"])
def test_what_lies_in_spare_slots_does_not_matter(terms):
    """A column without numbers there must not keep a move between terms from its fit."""
    target = made(terms)
    usual, spoiled = replicas(target, (1.0, 0.2)), replicas(target, (1.0, 0.2))
    for ladder in (usual, spoiled):
        ladder.run(1, 1, 0)
    for _ in range(150):
        spoil_spare_slots(spoiled)
        usual.run(5, 1, 1)
        spoiled.run(5, 1, 1)
        for one, other in zip(usual.output, spoiled.output, strict=True):
            np.testing.assert_array_equal(one[0], other[0])
    np.testing.assert_array_equal(usual.chains.counts, spoiled.chains.counts)
    accepted = usual.chains.counts[:, ACCEPTED].sum(axis=0)
    assert accepted[EXCHANGE] > 3
    if not isinstance(terms, int):
        assert min(accepted[[BIRTH, DEATH]]) > 3


def spoil(ladder):
    """Fill rows and room for the optimisation of constants with what must not be looked at."""
    for values in (*ladder.tables.few, *ladder.scratch.optimise):
        values[:] = -(10**6) if values.dtype == np.int64 else np.nan


@pytest.mark.parametrize("learn", [False, True])
def test_drawing_does_not_depend_on_what_optimises_constants(learn):
    """With share 0 no random number is drawn for it and none of its memory is read."""
    target = made(TermsPrior(3, 0.5), learn=learn)
    usual, spoiled = replicas(target, (1.0, 0.3)), replicas(target, (1.0, 0.3))
    spoil(spoiled)
    for ladder in (usual, spoiled):
        assert ladder.optimised == 0.0  # unless it is asked for
        ladder.run(20, 3, 10)
    for one, other in zip(usual.output, spoiled.output, strict=True):
        np.testing.assert_array_equal(one[:10], other[:10])
    np.testing.assert_array_equal(usual.chains.rng, spoiled.chains.rng)
    np.testing.assert_array_equal(usual.ladder.rng, spoiled.ladder.rng)


def test_constants_are_optimised_where_that_is_asked_for():
    """A formula whose constants no random walk finds in so few steps."""
    X = np.random.default_rng(3).uniform(-2, 2, (60, 1))
    y = np.sin(1.37 * X[:, 0] + 0.61)
    target = problem(
        Table(np.asfortranarray(X), y, np.ones(60), np.arange(1)), {"lt": 1.0, "sin": 1.0},
        terms=1, tree_prior=TreePrior(max_nodes=3), noise_prior=NoisePrior(1.0, 1e-12),
    )  # fmt: skip
    results = {}
    for share in (0.0, 1.0):
        ladder = replicas(target, seed=1)
        ladder.put([tree("sin", "lt", 0, a=1.2, b=0.4)])
        ladder.optimise(share)
        ladder.run(20, 1, 5)
        results[share] = ladder.rss
    assert results[1.0] < 1e-18 < 1e-8 < results[0.0]


def test_same_seed_same_draws_and_replicas_differ():
    target = made(TermsPrior(3, 0.5))
    first, second, other = (replicas(target, (1.0, 1.0), seed) for seed in (0, 0, 1))
    for ladder in (first, second, other):
        ladder.run(20, 2, 10)
    for one, two in zip(first.output, second.output, strict=True):
        np.testing.assert_array_equal(one, two)
    assert not np.array_equal(first.output[2], other.output[2])
    assert len({tuple(state) for state in first.chains.rng}) == 2
