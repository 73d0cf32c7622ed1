"""Proposals judged on some rows first: when, and what is kept of the draws."""

from dataclasses import replace

import numpy as np
import pytest

from symbayes import TemperedSampler
from symbayes.formula.trees import split_terms
from symbayes.kernels.chain import LOG_LIKELIHOOD, RSS
from symbayes.kernels.run import KEPT
from symbayes.samplers.ladder import Replicas

from ..kernels.calling import energy_of
from ..problems import tree
from .test_tempered import SMALL, sample, target


@pytest.mark.parametrize(
    ("first_rows", "n_rows", "part"),
    [
        ("auto", 5_000, None),
        ("auto", 5_001, 1024),
        (None, 6_000, None),
        (40, 60, 40),
        (60, 60, None),
    ],
)
def test_rows_that_proposals_are_judged_on_first(first_rows, n_rows, part):
    staged = TemperedSampler(first_rows=first_rows).in_stages(target(n_rows))
    assert (staged.part.n if staged.part else 0) == (part or 0)
    assert staged.data.n == n_rows


@pytest.mark.parametrize("first_rows", [0, -5, 2.5, "some", True])
def test_wrong_numbers_of_first_rows(first_rows):
    with pytest.raises((TypeError, ValueError), match="first_rows"):
        TemperedSampler(first_rows=first_rows)


def test_draws_tell_of_all_rows():
    """What is kept of a draw is its likelihood on all rows, not on those it was judged on first."""
    trace = sample(replace(SMALL, first_rows=30), draws=20)
    made = target()
    ladder = Replicas(made, np.random.SeedSequence(0), np.ones(1))
    seen = set()
    for chain in trace.chains:
        for nodes, terms, numbers in zip(chain.nodes, chain.n_terms, chain.numbers, strict=True):
            ladder.put(split_terms(nodes, terms))
            ladder.fit()
            assert numbers[LOG_LIKELIHOOD] == pytest.approx(ladder.log_likelihood, rel=1e-9)
            assert numbers[RSS] == pytest.approx(ladder.rss, rel=1e-9)
            assert numbers[KEPT] == numbers[LOG_LIKELIHOOD]  # at the coldest temperature
            seen.add(numbers[RSS])
    assert len(seen) > 1


def test_a_state_that_is_impossible_on_all_rows_is_not_kept():
    """Finite on the first rows, not on all."""
    made = target()
    made.data.x.reshape(2, -1)[0, :59] = np.abs(made.data.x.reshape(2, -1)[0, :59])
    made.data.x.reshape(2, -1)[0, 59] = -1.0
    staged = made.in_two_stages(np.arange(30))
    ladder = Replicas(staged, np.random.SeedSequence(0), np.array([1.0, 0.3]))
    root = [tree("sqrt", 0)]
    for replica in range(2):
        ladder.put(root, replica)
    ladder.fit()
    cold, hot = ladder.ladder.replica
    assert ladder.trees(cold) == []  # all rows decide there
    np.testing.assert_array_equal(ladder.trees(hot), root)
    ladder.run(5, 40, 1)
    assert np.isfinite(ladder.log_likelihood)


@pytest.mark.parametrize("part", [0, 15])
def test_python_and_kernels_mean_the_same_by_the_worth_of_a_state(part):
    made = target().in_two_stages(np.arange(part)) if part else target()
    powers = np.array([1.0, 0.5, 0.2, 0.01])
    ladder = Replicas(made, np.random.SeedSequence(0), powers)
    numbers = np.array([-3.0, 1.0, 1.0, -11.0, 4.0])
    ratio = 60 / part if part else 0.0
    for power in powers:
        assert ladder._energy(numbers, power) == energy_of(numbers, power, ratio)
