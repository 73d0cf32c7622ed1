"""Quantiles of mixtures, against SciPy's root finding."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, stats

from symbayes.posterior.prediction import mixture_quantile, surely_inside, weighted_quantiles

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


def test_a_part_without_weight_may_have_a_scale_that_is_none():
    """What has no value at a row has no scale there either; 0 times nan is not 0."""
    weights = np.array([0.6, 0.4, 0.0])[:, None]
    means, scales = np.array([1.0, 2.0, np.nan])[:, None], np.array([0.5, 0.5, np.nan])[:, None]
    for p in (0.05, 0.5, 0.95):
        found = mixture_quantile(p, weights, means, scales, 20.0)
        without = mixture_quantile(p, weights[:2], means[:2], scales[:2], 20.0)
        assert found[0] == without[0]
        assert found[0] == pytest.approx(
            naive(p, *(a[:2, 0] for a in (weights, means, scales)), 20)
        )


def test_each_part_has_its_own_degrees_of_freedom():
    weights, means = np.array([[0.3], [0.7]]), np.array([[0.0], [1.0]])
    scales, df = np.array([[1.0], [0.5]]), np.array([2.0, 30.0])
    for p in (0.01, 0.5, 0.9):
        x = mixture_quantile(p, weights, means, scales, df)[0]
        below = 0.3 * stats.t.cdf(x, 2.0) + 0.7 * stats.t.cdf((x - 1.0) / 0.5, 30.0)
        assert below == pytest.approx(p, abs=1e-9)


ANY = st.one_of(
    st.floats(-10, 10),
    st.sampled_from([math.nan, math.inf, -math.inf, 1e29, -1e29, 1e80, -1e300, 1.7e308, -1.7e308]),
)
SPREAD = st.one_of(
    st.floats(1e-3, 10),
    st.sampled_from([0.0, 5e-324, 1e-300, 1e-12, 1e12, 1e300, 1.7e308, math.nan, math.inf]),
)
SHARE = st.one_of(st.floats(0.01, 1), st.sampled_from([0.0, 0.0, 1e-12, 1e-300]))
MIXTURE = st.lists(st.tuples(SHARE, ANY, SPREAD, st.floats(1.0, 1e4)), min_size=1, max_size=8)


def below(x, parts):
    """The distribution function of a mixture, part by part; those that are no numbers left out."""
    total = math.fsum(w for w, *_ in parts)
    terms = []
    for w, m, s, df in parts:
        half = 0.5 * x - 0.5 * m
        if s == 0.0:
            share = float(x >= m)
        elif math.isinf(df):
            share = stats.norm.cdf(2.0 * float(np.float64(half) / s))
        else:
            share = stats.t.cdf(2.0 * float(np.float64(half) / s), df)
        terms.append(w * share)
    return math.fsum(terms) / total


@settings(derandomize=True, max_examples=150, deadline=None)
@given(st.lists(MIXTURE, min_size=1, max_size=4), st.booleans(), st.floats(0.001, 0.999))
def test_any_mixture_at_all(mixtures, normal, p):
    """At a quantile the distribution function passes p, whatever stands in the other columns."""
    size = max(map(len, mixtures))
    table = np.full((size, len(mixtures), 4), math.nan)
    table[:, :, 0] = 0.0
    for i, mixture in enumerate(mixtures):
        table[: len(mixture), i] = mixture
    weights, means, scales, df = np.moveaxis(table, 2, 0)
    df = np.full(size, math.inf) if normal else np.nan_to_num(df[:, 0], nan=1.0)
    found = mixture_quantile(p, weights, means, scales, df)
    for i, x in enumerate(found.tolist()):
        columns = (column[:, i].tolist() for column in (weights, means, scales))
        parts = [part for part in zip(*columns, df.tolist(), strict=True)
                 if part[0] > 0 and math.isfinite(part[1]) and math.isfinite(part[2])]  # fmt: skip
        if not parts:
            assert math.isnan(x)
            continue
        with np.errstate(all="ignore"):
            assert below(math.nextafter(x, -math.inf), parts) <= p + 1e-8
            assert below(math.nextafter(x, math.inf), parts) >= p - 1e-8


@settings(derandomize=True, max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.sampled_from([0, 1, 2, 5]), st.floats(-1e300, 1e300)), min_size=1))
def test_a_weighted_median_is_that_of_repeated_values(pairs):
    repeated = [value for times, value in pairs for _ in range(times)]
    if repeated:
        weights, values = np.array(pairs, dtype=float).T[:, :, None] / [[[7.0]], [[1.0]]]
        halves = [0.5 * value for value in repeated]  # a sum of two may be too large
        assert weighted_quantiles((0.5,), values, weights)[0][0] == 2.0 * np.median(halves)


@settings(derandomize=True, max_examples=100, deadline=None)
@given(MIXTURE, st.floats(-10, 10), st.booleans())
def test_what_is_surely_inside_is_inside(mixture, x, normal):
    parts = [(w, m, s, math.inf if normal else df) for w, m, s, df in mixture
             if w > 0 and math.isfinite(m) and math.isfinite(s)]  # fmt: skip
    if parts:
        weights, means, scales, _ = np.array(parts).T[:, :, None]
        share = weights / weights.sum()
        if surely_inside(0.25, np.array([x]), share, means, scales)[0]:
            with np.errstate(all="ignore"):
                assert below(x, parts) >= 0.25 - 1e-9
                assert below(math.nextafter(x, -math.inf), parts) <= 0.75 + 1e-9


def test_the_middle_is_surely_inside():
    share, means, scales = np.ones((1, 1)), np.full((1, 1), 2.0), np.ones((1, 1))
    for x, inside in ((2.0, True), (2.5, True), (9.0, False)):
        assert surely_inside(0.25, np.array([x]), share, means, scales)[0] == inside
