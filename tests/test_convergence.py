"""R-hat and effective draws where they are known, and when draws are enough."""

from types import SimpleNamespace

import numpy as np
import pytest

from symbayes.convergence import FEWEST_EFFECTIVE, LARGEST_R_HAT, effective_draws, r_hat, settled

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


class Draws(SimpleNamespace):
    def __len__(self):
        return len(self.rss)


def traces(log_likelihood, sizes=None, rss=1.0):
    sizes = np.ones_like(log_likelihood) if sizes is None else sizes
    return [
        Draws(log_likelihood=ll, n_nodes=size, rss=np.full(len(ll), rss))
        for ll, size in zip(log_likelihood, sizes, strict=True)
    ]


def test_enough_is_when_both_numbers_agree():
    good, short = RNG.normal(size=(4, 300)), RNG.normal(size=(4, 60))
    apart = good + np.arange(4)[:, None]
    assert r_hat(good) <= LARGEST_R_HAT
    assert effective_draws(good) >= FEWEST_EFFECTIVE
    assert settled(traces(good), 0.0)
    assert settled(traces(good, good[::-1]), 0.0)
    assert not settled(traces(short), 0.0)
    assert not settled(traces(apart), 0.0)
    assert not settled(traces(good, apart), 0.0)
    assert not settled(traces(autoregressive(0.95, 300)), 0.0)


def test_exact_fits_are_enough_sooner():
    apart = RNG.normal(size=(2, 256)) + 10 * np.arange(2)[:, None]
    assert settled(traces(apart, rss=1e-16), 1e-15)
    assert not settled(traces(apart, rss=1e-14), 1e-15)
    assert not settled(traces(apart[:, :20], rss=1e-16), 1e-15)
    late = traces(apart, rss=1e-16)
    late[0].rss[:100] = 1.0  # the second half counts
    assert settled(late, 1e-15)
    late[0].rss[-1] = 1.0
    assert not settled(late, 1e-15)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_a_few_draws_are_never_enough(n):
    assert not settled(traces(RNG.normal(size=(4, n))), 0.0)
