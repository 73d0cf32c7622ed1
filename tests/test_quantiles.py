"""Quantiles of mixtures, against SciPy's root finding."""

import numpy as np
import pytest
from scipy import optimize, stats

from symbayes.quantiles import mixture_quantile

RNG = np.random.default_rng(80)


def naive(p, weights, means, scales, df):
    """One mixture, by root finding."""
    law = stats.norm if np.isinf(df) else stats.t(df)
    return optimize.brentq(
        lambda x: weights @ law.cdf((x - means) / scales) / weights.sum() - p, -1e9, 1e9, xtol=1e-12
    )


@pytest.mark.parametrize("df", [2.0, 30.0, np.inf])
@pytest.mark.parametrize("p", [0.001, 0.05, 0.5, 0.95])
def test_like_root_finding(p, df):
    weights = RNG.dirichlet(np.full(20, 0.3), size=50).T
    means = RNG.normal(size=(20, 50)) * RNG.choice([1e-3, 1.0, 100.0], size=50)
    scales = RNG.uniform(1e-3, 3, size=(20, 50))
    found = mixture_quantile(p, weights, means, scales, df)
    expected = [naive(p, w, m, s, df) for w, m, s in zip(weights.T, means.T, scales.T, strict=True)]
    spread = means.std(axis=0) + scales.max(axis=0)
    np.testing.assert_array_less(np.abs(found - expected), 1e-6 * spread)


def test_two_distant_parts_and_a_gap():
    """Between the parts the distribution function is flat: Newton alone would fly off."""
    weights, means = np.array([[0.5], [0.5]]), np.array([[0.0], [1e6]])
    scales = np.ones((2, 1))
    assert mixture_quantile(0.25, weights, means, scales, np.inf)[0] == pytest.approx(0, abs=1e-3)
    assert mixture_quantile(0.75, weights, means, scales, np.inf)[0] == pytest.approx(1e6)


@pytest.mark.parametrize("far", [1e12, 1e29, 1e300])
def test_a_part_that_takes_off_does_not_blur_the_others(far):
    weights = np.array([0.7, 0.27, 0.03])[:, None]
    means, scales = np.array([140.0, 141.0, far])[:, None], np.array([1.0, 0.5, far / 50])[:, None]
    for p in (0.05, 0.5, 0.95):
        found = mixture_quantile(p, weights, means, scales, 24.0)[0]
        near = mixture_quantile(p / 0.97, weights[:2], means[:2], scales[:2], 24.0)[0]
        assert found == pytest.approx(near, abs=1e-5)


def test_point_masses():
    weights = np.array([0.2, 0.5, 0.3])[:, None]
    means, scales = np.array([1.0, 2.0, 3.0])[:, None], np.zeros((3, 1))
    for p, expected in ((0.1, 1), (0.4, 2), (0.9, 3)):
        found = mixture_quantile(p, weights, means, scales, np.inf)
        assert found[0] == pytest.approx(expected, abs=1e-6)


def test_parts_without_weight_do_not_count():
    weights = np.array([[1.0, 0.0], [0.0, 0.0]])
    means, scales = np.array([[5.0, 1.0], [np.nan, np.inf]]), np.full((2, 2), 2.0)
    found = mixture_quantile(0.5, weights, means, scales, 7.0)
    assert found[0] == 5.0
    assert np.isnan(found[1])
