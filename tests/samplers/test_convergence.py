"""R-hat and effective draws where they are known, and when draws are enough."""

import numpy as np
import pytest

from symbayes.kernels.chain import LOG_LIKELIHOOD, NUMBERS, RSS
from symbayes.samplers.convergence import (
    FEWEST_EFFECTIVE,
    LARGEST_R_HAT,
    agreements,
    effective_draws,
    r_hat,
    settled,
)
from symbayes.samplers.trace import ChainTrace

from ..problems import problem, table, tree

RNG = np.random.default_rng(80)


def autoregressive(phi, n, chains=4, seed=0):
    """Chains with autocorrelation phi^t: n of their draws are worth n (1 - phi) / (1 + phi)."""
    rng = np.random.default_rng(seed)
    values = np.zeros((chains, n))
    values[:, 0] = rng.normal(size=chains) / np.sqrt(1 - phi**2)
    for t in range(1, n):
        values[:, t] = phi * values[:, t - 1] + rng.normal(size=chains)
    return values


def test_independent_draws():
    values = RNG.normal(size=(4, 5_000))
    assert r_hat(values) == pytest.approx(1.0, abs=2e-3)
    assert effective_draws(values) == pytest.approx(20_000, rel=0.1)


@pytest.mark.parametrize("phi", [0.5, 0.9, -0.4])
def test_autoregressive_draws(phi):
    values = autoregressive(phi, 20_000)
    expected = values.size * (1 - phi) / (1 + phi)
    # The estimate has an error of a few per cent at this length.
    assert effective_draws(values) == pytest.approx(expected, rel=0.2)
    assert r_hat(values) < 1.01


def test_one_chain():
    values = autoregressive(0.8, 20_000, chains=1)
    assert effective_draws(values) == pytest.approx(20_000 / 9, rel=0.25)
    assert r_hat(values) < 1.02


def test_chains_that_do_not_meet():
    apart = RNG.normal(size=(4, 1_000)) + 5.0 * np.arange(4)[:, None]
    # Variance of all draws over that within a chain, 1.25 * 25 + 1 with two halves each.
    spread = 25.0 * np.var(np.repeat(np.arange(4), 2), ddof=1)
    assert r_hat(apart) == pytest.approx(np.sqrt(1 + spread), rel=0.05)
    assert effective_draws(apart) < 30


def test_a_trend_is_seen_within_one_chain():
    drift = RNG.normal(size=(1, 1_000)) + np.linspace(0, 4, 1_000)
    assert r_hat(drift) > 1.3


def test_draws_that_never_change():
    assert r_hat(np.full((4, 100), 3.0)) == 1.0
    assert effective_draws(np.full((4, 100), 3.0)) == 400
    stuck = np.repeat(np.arange(4.0)[:, None], 100, axis=1)
    assert r_hat(stuck) == np.inf
    assert effective_draws(stuck) == 4  # one draw per chain
    # As computed, the variance of a constant need not be 0.
    assert np.full(300, 1.1).var() > 0
    assert r_hat(np.full((4, 600), 1.1)) == 1.0
    assert effective_draws(np.full((4, 300), 1.1)) == 1200
    # One chain stuck among others that move.
    values = RNG.normal(size=(4, 500))
    values[0] = 0.0
    assert np.isfinite(r_hat(values))
    assert effective_draws(values) > 0


def test_the_scale_does_not_matter():
    values = autoregressive(0.7, 2_000)
    for transformed in (1e-3 * values + 7.0, -values):
        assert r_hat(transformed) == pytest.approx(r_hat(values), rel=1e-9)
        assert effective_draws(transformed) == pytest.approx(effective_draws(values), rel=1e-6)


def chains_of(log_likelihood, rss=1.0, formulas=None):
    """Chains whose draws have these log-likelihoods, one row per chain, and these trees."""
    chains = []
    for i, row in enumerate(log_likelihood):
        numbers = np.zeros((len(row), NUMBERS))
        numbers[:, LOG_LIKELIHOOD], numbers[:, RSS] = row, rss
        nodes = [tree(0)] * len(row) if formulas is None else formulas[i]
        chains.append(ChainTrace(list(nodes), [1] * len(row), list(numbers)))
    return chains


PROBLEM = problem(table(20), {"*": 1.0, "square": 1.0, "lt": 1.0, "+": 1.0})
GOOD = RNG.normal(size=(4, 300))


def enough(chains, exact=-1.0, trips=10, look=100):
    return settled(chains, PROBLEM, exact, trips, look)


def mixed(*shares, first=(0,), second=(1,), seed=0):
    """For each chain draws of two formulas, independent of each other, with these shares."""
    rng = np.random.default_rng(seed)
    return [[tree(*(second if u < share else first)) for u in rng.uniform(size=300)]
            for share in shares]  # fmt: skip


def test_enough_is_when_everything_agrees():
    apart = GOOD + np.arange(4)[:, None]
    assert r_hat(GOOD) <= LARGEST_R_HAT
    assert effective_draws(GOOD) >= FEWEST_EFFECTIVE
    assert enough(chains_of(GOOD))
    assert not enough(chains_of(GOOD[:, :60]), look=30)
    assert not enough(chains_of(apart))
    assert not enough(chains_of(autoregressive(0.95, 300)))
    assert enough(chains_of(GOOD, formulas=mixed(*[0.5] * 4)))


@pytest.mark.parametrize("shares", [(0, 1, 0, 1), (0, 0.85, 0, 0.87), (0.1, 0.3, 0.1, 0.3)])
@pytest.mark.parametrize("second", [(1,), ("square", 0)], ids=["column", "formula"])
def test_chains_that_differ_in_their_formulas_only(shares, second):
    """Log-likelihood and size are the same for both."""
    first = (0,)
    if second != (1,):
        first, second = ("*", 0, 0), ("+", 0, 0)
    assert not enough(chains_of(GOOD, formulas=mixed(*shares, first=first, second=second)))
    assert enough(chains_of(GOOD, formulas=mixed(*[0.3] * 4, first=first, second=second)))


def test_one_look_is_not_enough():
    assert enough(chains_of(GOOD), look=150)
    # At the last look there were 120 draws, too few.
    assert not enough(chains_of(GOOD), look=270)
    # The first look has none before it.
    assert not enough(chains_of(GOOD), look=300)


@pytest.mark.parametrize("n", [300, 3_000])
def test_states_have_to_travel_through_the_temperatures(n):
    chains = chains_of(RNG.normal(size=(4, n)))
    assert not enough(chains, trips=0)
    assert not enough(chains, trips=9)
    assert enough(chains, trips=10)
    assert enough(chains, trips=None)


def test_a_formula_is_the_same_however_it_is_written():
    """As long as it has no constants: x0 times x0 is the square of x0."""
    draws = mixed(0, 1, 0, 1, first=("*", 0, 0), second=("square", 0))
    names = [one.name for one in agreements(chains_of(GOOD, formulas=draws), WHOLE, PROBLEM)]
    assert "formula 0" not in names  # all draws are the same one
    draws = mixed(0, 1, 0, 1, first=("*", 0, 1), second=("square", 0))
    found = {one.name: one for one in agreements(chains_of(GOOD, formulas=draws), WHOLE, PROBLEM)}
    assert found["formula 0"].r_hat == np.inf
    assert found["formula 0"].effective == 4
    assert (found["formula 0"].low, found["formula 0"].high) == (0.0, 1.0)


WHOLE = [np.ones(300)] * 4


def test_predictions_are_those_of_least_squares():
    draws = mixed(*[0.5] * 4, first=("*", 0, 1), second=("square", 0))
    chains = chains_of(GOOD, formulas=draws)
    found = [one for one in agreements(chains, WHOLE, PROBLEM) if one.kind == "prediction"]
    rows = table(20)
    order = np.argsort(rows.y)
    expected = []
    for values in (rows.X[:, 0] * rows.X[:, 1], rows.X[:, 0] ** 2):
        design = np.column_stack([np.ones(20), values])
        fit = design @ np.linalg.lstsq(design, rows.y, rcond=None)[0]
        expected.append((fit - rows.y.mean()) / rows.y.std())
    expected = np.array(expected)[:, order[[3, 6, 9, 12, 15]]]
    share = np.mean([[nodes["op"][0] == tree("square", 0)["op"][0] for nodes in chain]
                     for chain in draws], axis=1)  # fmt: skip
    means = (1 - share[:, None]) * expected[0] + share[:, None] * expected[1]
    assert len(found) == 5
    assert [one.low for one in found] == pytest.approx(means.min(axis=0), abs=1e-6)
    assert [one.high for one in found] == pytest.approx(means.max(axis=0), abs=1e-6)


def test_standard_errors_of_probabilities():
    draws = mixed(*[0.3] * 4)
    found = {one.name: one for one in agreements(chains_of(GOOD, formulas=draws), WHOLE, PROBLEM)}
    assert found["uses x1"].error == pytest.approx(np.sqrt(0.3 * 0.7 / 1200), rel=0.25)
    names = {one.name for one in agreements(chains_of(GOOD), WHOLE, PROBLEM, ["a", "b"])}
    assert not any(name.startswith("uses") for name in names)  # all draws use the same
    named = agreements(chains_of(GOOD, formulas=draws), WHOLE, PROBLEM, ["a", "b"])
    assert {"uses a", "uses b"} <= {one.name for one in named}


def test_exact_fits_are_enough_sooner():
    apart = RNG.normal(size=(2, 256)) + 10 * np.arange(2)[:, None]
    assert enough(chains_of(apart, rss=1e-16), 1e-15, trips=0)
    assert not enough(chains_of(apart, rss=1e-14), 1e-15)
    assert not enough(chains_of(apart[:, :20], rss=1e-16), 1e-15)
    late = chains_of(apart, rss=1e-16)
    for numbers in late[0].numbers[:100]:  # the second half counts
        numbers[RSS] = 1.0
    assert enough(late, 1e-15)
    late[0].numbers[-1][RSS] = 1.0
    assert not enough(late, 1e-15)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_a_few_draws_are_never_enough(n):
    assert not enough(chains_of(RNG.normal(size=(4, n))), look=0)


def test_terms_that_cannot_be_fitted_are_no_obstacle():
    """A square of 1e300 is infinite; such a state is no draw, and nothing fails if it is one."""
    rows = table(20)
    rows.X[:, 0] *= 1e300
    huge = problem(rows, {"square": 1.0})
    chains = chains_of(GOOD, formulas=mixed(*[0.5] * 4, first=("square", 0), second=(1,)))
    assert all(np.isfinite(one.error) for one in agreements(chains, WHOLE, huge))
