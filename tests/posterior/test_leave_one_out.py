"""Densities of left-out rows against models fitted again without them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.special import logsumexp

from symbayes import NoisePrior, TreePrior
from symbayes.fitting.model import Fitter
from symbayes.formula.trees import evaluate_trees
from symbayes.inputs.problem import make_problem
from symbayes.inputs.validation import Table
from symbayes.posterior.posterior import make_posterior
from symbayes.posterior.stacking import chain_densities
from symbayes.samplers.trace import ChainTrace, Trace

from ..problems import tree

RNG = np.random.default_rng(151)
N = 12
X = RNG.uniform(0.5, 2.0, (N, 2))
Y = X[:, 0] ** 2 - X[:, 1] + RNG.normal(0, 0.3, N)
WEIGHTS = RNG.integers(1, 4, N).astype(float)
SPACE = [
    [tree(0)], [tree(1)], [tree("square", 0)], [tree("square", 0), tree(1)], [tree("sin", 1)],
    [tree("*", 0, 1), tree("exp", 1), tree(0)],
]  # fmt: skip
NU, LAM = 4.0, 0.05
NOISE = 0.2


class Model:
    """The collapsed model of the theory page, written down from scratch for any rows."""

    def __init__(self, trees, x, y, weights):
        self.n, self.k, self.trees = weights.sum(), len(trees), trees
        values = evaluate_trees(trees, np.ascontiguousarray(x.T)).T
        self.mean, self.y_mean = weights @ values / self.n, weights @ y / self.n
        centred = values - self.mean
        self.gram = (centred.T * weights) @ centred
        self.beta = np.linalg.solve(self.gram, (centred.T * weights) @ (y - self.y_mean))
        self.rss = weights @ (y - self.y_mean - centred @ self.beta) ** 2

    def log_likelihood(self, plug_in):
        if plug_in:
            return -0.5 * self.n * np.log(NOISE) - 0.5 * self.rss / NOISE
        return -0.5 * self.k * np.log1p(self.n) - 0.5 * (self.n - 1 + NU) * np.log(
            NU * LAM + self.rss
        )

    def log_density(self, x, y, plug_in, n_all=None):
        """Of a row that is predicted by these rows, of `n_all` if its noise was drawn with all."""
        at = evaluate_trees(self.trees, x[:, None])[:, 0] - self.mean
        mean = self.y_mean + at @ self.beta
        if plug_in:
            n = self.n if n_all is None else n_all
            left = max(n - 1 - self.k + NU, 1.0)
            noise = NOISE * max(n + NU - 2, 1.0) / max(left - 2, 1.0)
            return stats.norm.logpdf(y, mean, np.sqrt(noise))
        spread = self.n / (1 + self.n) * at @ np.linalg.solve(self.gram, at)
        freedom = max(self.n - 1 - self.k + NU, 1.0)
        variance = (NU * LAM + self.rss) / freedom * (1 + 1 / self.n + spread)
        return stats.t.logpdf(y, freedom, mean, np.sqrt(variance))


def mixture_of(x, y, weights, plug_in):
    """Fits of all models of the space."""
    table = Table(x, y, weights, np.arange(2))
    noise = NoisePrior(shape=NU, scale=LAM)
    problem = make_problem(table, {"+": 1.0}, np.full(2, 0.5), TreePrior(), noise, 1)
    numbers = np.zeros(10)
    numbers[2] = NOISE
    chain = ChainTrace(
        [np.concatenate(trees) for trees in SPACE],
        [len(trees) for trees in SPACE],
        [numbers] * len(SPACE),
    )
    trace = Trace([chain], [np.ones(len(SPACE))], np.zeros((1, 3, 9)), 0.0)
    mixture = make_posterior(Fitter(problem, y, weights, plug_in), trace).mixture
    order = [[len(t) for t in trees] + [t.tobytes() for t in trees] for trees in SPACE]
    place = [
        order.index([len(t) for t in m.state.trees] + [t.tobytes() for t in m.state.trees])
        for _, m in mixture.models
    ]
    return mixture, np.array(place)


def scaled(y, weights):
    centred = y - np.average(y, weights=weights)
    return centred / np.sqrt(np.average(centred**2, weights=weights))


def refitted(x, y, weights, prior, plug_in):
    """Log densities of all rows by the posterior over the space without one copy of the row."""
    found = []
    for i in range(len(y)):
        left = weights - np.eye(len(y))[i] * min(1.0, weights[i])
        models = [Model(trees, x[left > 0], y[left > 0], left[left > 0]) for trees in SPACE]
        posterior = np.log(prior) + [model.log_likelihood(plug_in) for model in models]
        posterior -= logsumexp(posterior)
        densities = [model.log_density(x[i], y[i], plug_in, weights.sum()) for model in models]
        found.append(logsumexp(posterior + densities))
    return np.array(found)


@pytest.mark.parametrize("plug_in", [False, True], ids=["collapsed", "plug-in"])
@pytest.mark.parametrize("weights", [np.ones(N), WEIGHTS, WEIGHTS / 3], ids=["1", "123", "parts"])
def test_exact_posterior_without_a_row(weights, plug_in):
    """With the exact posterior on all rows as its draws, a chain gives the exact one without."""
    y = scaled(Y, weights)
    prior = RNG.dirichlet(np.ones(len(SPACE)))
    full = np.array([Model(trees, X, y, weights).log_likelihood(plug_in) for trees in SPACE])
    posterior = np.exp(np.log(prior) + full - full.max())
    mixture, place = mixture_of(X, y, weights, plug_in)
    # So many draws that no ratio is truncated.
    found = chain_densities(mixture, posterior[None, place], [10**12], X, y, weights)
    expected = refitted(X, y, weights, prior, plug_in)
    np.testing.assert_allclose(found[:, 0], expected, rtol=1e-8)
    seen = np.log(prior) + full
    naive = [
        logsumexp(
            seen - logsumexp(seen)
            + [Model(t, X, y, weights).log_density(X[i], y[i], plug_in) for t in SPACE]
        )
        for i in range(N)
    ]  # fmt: skip
    assert np.sum(naive) > np.sum(expected) + 0.1  # rows that were seen are predicted better


def test_each_chain_has_its_own_models():
    y = scaled(Y, np.ones(N))
    mixture, place = mixture_of(X, y, np.ones(N), False)
    shares = np.eye(len(SPACE))[:, place]
    found = chain_densities(mixture, shares, [100] * len(SPACE), X, y, np.ones(N))
    for chain, trees in enumerate(SPACE):
        for i in range(N):
            model = Model(trees, np.delete(X, i, 0), np.delete(y, i), np.ones(N - 1))
            assert found[i, chain] == pytest.approx(model.log_density(X[i], y[i], False), abs=1e-8)


def test_a_row_of_weight_two_is_the_row_twice():
    weights = np.ones(N)
    weights[3] = 2.0
    twice_x, twice_y = np.vstack([X, X[3]]), np.append(Y, Y[3])
    y = scaled(Y, weights)
    mixture, place = mixture_of(X, y, weights, False)
    share = RNG.dirichlet(np.ones(len(SPACE)))
    one = chain_densities(mixture, share[None, place], [100], X, y, weights)
    twice_y = np.append(y, y[3])
    mixture, place = mixture_of(twice_x, twice_y, np.ones(N + 1), False)
    two = chain_densities(mixture, share[None, place], [100], twice_x, twice_y, np.ones(N + 1))
    np.testing.assert_allclose(two[:N], one, rtol=1e-9)
    np.testing.assert_allclose(two[N], one[3], rtol=1e-9)


def test_units_of_y_make_no_difference():
    results = []
    for y in (Y, 1e6 * Y + 1e7):
        mixture, place = mixture_of(X, y, np.ones(N), False)
        share = np.arange(1.0, 1 + len(SPACE))[None, place]
        results.append(chain_densities(mixture, share, [100], X, y, np.ones(N)))
    np.testing.assert_allclose(*results, atol=1e-6)


def test_a_chain_that_needs_the_row_has_nothing_to_say_about_it():
    """A term that is nothing but a spike at one row has no coefficient without that row."""
    x = X.copy()
    x[:, 1] = 1.0
    x[5, 1] = 2.0
    mixture, place = mixture_of(x, scaled(Y, np.ones(N)), np.ones(N), False)
    shares = np.eye(len(SPACE))[[0, 1]][:, place]
    found = chain_densities(mixture, shares, [9, 9], x, scaled(Y, np.ones(N)), np.ones(N))
    assert np.isfinite(found[:, 0]).all()
    assert found[5, 1] == -np.inf
    assert np.isfinite(np.delete(found[:, 1], 5)).all()


def test_chains_without_a_fitted_model():
    y = scaled(Y, np.ones(N))
    mixture, _ = mixture_of(X, y, np.ones(N), False)
    shares = np.array([np.ones(len(SPACE)), np.zeros(len(SPACE))])
    found = chain_densities(mixture, shares, [6, 6], X, y, np.ones(N))
    assert np.isfinite(found[:, 0]).all()
    assert (found[:, 1] == -np.inf).all()


def test_few_draws_are_not_ruled_by_one_of_them():
    """A ratio counts for no more than the root of the number of draws times the mean."""
    y = scaled(Y, np.ones(N))
    mixture, place = mixture_of(X, y, np.ones(N), False)
    share = np.full(len(SPACE), 1 / len(SPACE))[None, place]
    free, held = (chain_densities(mixture, share, [n], X, y, np.ones(N)) for n in (10**12, 1))
    for i in range(N):
        models = [Model(t, np.delete(X, i, 0), np.delete(y, i), np.ones(N - 1)) for t in SPACE]
        all_rows = [Model(t, X, y, np.ones(N)) for t in SPACE]
        ratio = np.exp(
            [m.log_likelihood(False) - a.log_likelihood(False)
             for m, a in zip(models, all_rows, strict=True)]
        )  # fmt: skip
        ratio = np.minimum(ratio, ratio.mean())
        density = np.exp([m.log_density(X[i], y[i], False) for m in models])
        assert held[i, 0] == pytest.approx(np.log(ratio @ density / ratio.sum()), abs=1e-8)
    assert np.abs(free - held).max() > 1e-6


@settings(derandomize=True, max_examples=40, deadline=None)
@given(
    st.lists(
        st.one_of(st.floats(1e-3, 1.0), st.sampled_from([0.0, 1e-300])), min_size=6, max_size=6
    ).filter(any),
    st.integers(1, 10**6),
    st.booleans(),
    st.booleans(),
    st.sampled_from([1.0, 1e-12, 1e12]),
)
def test_any_chain_against_fits_without_each_row(shares, n_draws, plug_in, spike, unit):
    """Few draws, models without weight, a row that one model cannot do without, y in any units."""
    x = X.copy()
    if spike:
        x[:, 1] = 1.0
        x[5, 1] = 2.0
    weights = np.ones(N)
    y = scaled(Y, weights)
    mixture, place = mixture_of(x, unit * y, weights, plug_in)
    # The last model has redundant terms where there is a spike, and no chain visits such.
    kept = np.array([1.0, *shares[1:5], 0.0] if spike else shares)[place]
    found = chain_densities(mixture, kept[None], [n_draws], x, unit * y, weights)[:, 0]
    for i in range(N):
        rows = np.arange(N) != i
        ratios, densities, own = [], [], []
        for j in np.flatnonzero(kept):
            trees = SPACE[place[j]]
            if spike and i == 5 and any(1 in t["feature"] for t in trees):
                continue
            left = Model(trees, x[rows], y[rows], weights[rows])
            whole = Model(trees, x, y, weights)
            ratios.append(left.log_likelihood(plug_in) - whole.log_likelihood(plug_in))
            densities.append(left.log_density(x[i], y[i], plug_in, N))
            own.append(kept[j])
        if not own:
            assert found[i] == -np.inf
            continue
        log_share = np.log(np.array(own) / kept.sum())
        most = logsumexp(ratios + log_share) + 0.5 * np.log(n_draws)
        weight = np.minimum(ratios, most) + log_share
        expected = logsumexp(weight + densities) - logsumexp(weight)
        assert found[i] == pytest.approx(expected, abs=1e-6)
