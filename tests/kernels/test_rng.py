"""Random numbers: the published generator, and the distributions made from it."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from symbayes.kernels.rng import seed_state

from .. import naive
from .calling import (
    generator_state,
    many_integers,
    many_inverse_gamma,
    many_normal,
    many_picks,
    many_uniform,
)

FALSE_ALARM = 1e-6


def test_twin_is_the_published_generator():
    # First outputs of the authors' C code for the state 1, 2, 3, 4.
    twin = naive.Random([1, 2, 3, 4])
    assert [twin.bits() for _ in range(4)] == [11520, 0, 1509978240, 1215971899390074240]


def test_uniform_equals_the_twin():
    state = generator_state(3)
    twin = naive.Random(state)
    out = np.empty(1000)
    many_uniform(state, out)
    assert out.tolist() == [twin.uniform() for _ in range(1000)]
    assert list(map(int, state)) == twin.s


def test_uniform_normal_and_inverse_gamma_have_their_laws():
    out = np.empty(20_000)
    many_uniform(generator_state(1), out)
    assert 0 <= out.min()
    assert out.max() < 1
    assert stats.kstest(out, "uniform").pvalue > FALSE_ALARM
    many_normal(generator_state(2), out)
    assert stats.kstest(out, "norm").pvalue > FALSE_ALARM
    for shape in (0.3, 1.0, 4.5):
        many_inverse_gamma(generator_state(3), shape, 2.0, out)
        assert stats.kstest(out, stats.invgamma(shape, scale=2.0).cdf).pvalue > FALSE_ALARM


@pytest.mark.parametrize("weights", [[1.0], [0.2, 0.0, 0.5, 0.3], [0.0, 1.0, 0.0], np.ones(37)])
def test_pick_follows_the_weights(weights):
    weights = np.asarray(weights, dtype=float) / np.sum(weights)
    cdf = np.cumsum(weights)
    cdf[np.flatnonzero(weights)[-1] :] = 1.0
    out = np.zeros(20_000, np.int64)
    many_picks(generator_state(5), cdf, out)
    seen = np.bincount(out, minlength=len(weights))
    assert seen[weights == 0].sum() == 0
    if (weights > 0).sum() > 1:
        positive = weights > 0
        assert stats.chisquare(seen[positive], 20_000 * weights[positive]).pvalue > FALSE_ALARM


def test_integers_are_uniform():
    out = np.zeros(20_000, np.int64)
    many_integers(generator_state(6), 7, out)
    assert stats.chisquare(np.bincount(out, minlength=7)).pvalue > FALSE_ALARM


def test_seeding_never_gives_the_dead_state():
    class Zeros:
        def generate_state(self, n, dtype):
            return np.zeros(n, dtype)

    assert seed_state(Zeros()).any()
