"""Learned weights, given trees: Dirichlet with the counts added, also for tiny concentrations."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from symbayes.inputs.prior import TermsPrior
from symbayes.kernels import opcodes
from symbayes.kernels.tree import NODE

from ..exact.spaces import p_of_counts
from ..problems import problem, table, tree
from .calling import many_weights

FALSE_ALARM = 1e-6
OPERATORS = {"+": 1.0, "sin": 2.0, "*": 1.0}
N = 4_000


def weights_of(trees, features, operators=None, seed=0):
    """Draw weights given trees, with these concentrations; return weights and counts."""
    made = problem(
        table(n_rows=8, n_features=len(features)), OPERATORS, TermsPrior(3, 0.5), learn=True
    )
    chain, scratch = made.new_chain(np.random.SeedSequence(seed)), made.new_scratch()
    prior = made.new_prior((0.25, 3.0))
    prior.feature_concentration[:] = features
    if operators is not None:
        prior.operator_concentration[:] = 0.0
        for name, value in operators.items():
            prior.operator_concentration[tree(name)[0]["op"]] = value
    # Terms stand in any slots; what lies in the others must not count.
    chain.nodes[:] = np.zeros(1, NODE)
    chain.nodes["op"] = tree("sin")[0]["op"]
    chain.slots[:] = np.roll(np.arange(len(chain.slots)), 2)
    for slot, term in zip(chain.slots, trees, strict=False):
        chain.nodes[slot * made.max_nodes : slot * made.max_nodes + len(term)] = term
    chain.n_terms[0] = len(trees)
    out = np.zeros((N, opcodes.N_OPCODES)), np.zeros((N, len(features)))
    many_weights(chain, prior, scratch.counts, *out)
    together = np.concatenate([np.zeros(0, NODE), *trees])
    columns = together["feature"][together["op"] == 0]
    counts = (
        np.bincount(together["op"][together["op"] > 0], minlength=opcodes.N_OPCODES),
        np.bincount(columns, minlength=len(features)),
    )
    shapes = (prior.operator_concentration + counts[0], prior.feature_concentration + counts[1])
    return out, shapes


EDGES = np.array([0.0, 1e-250, 1e-100, 1e-30, 1e-9, 1e-3, 0.03, 0.1, 0.2, 0.4, 0.6, 0.9, 1.0])


def check(sums, shape):
    """The marginals of a Dirichlet law, their tails included, and a covariance."""
    used = shape > 0
    assert np.all(sums[:, np.flatnonzero(used)[-1] :] == 1.0)
    weights = np.diff(sums, prepend=0.0)
    assert np.all(weights >= 0)
    assert np.all(weights[:, ~used] == 0)
    weights, shape = weights[:, used], shape[used]
    total = shape.sum()
    p = []
    for i in range(len(shape)):
        law = stats.beta(shape[i], total - shape[i])
        # Running sums have a resolution of 1e-16: what is smaller is seen in the first one only.
        edges = EDGES if i == 0 else EDGES[(EDGES == 0) | (EDGES >= 1e-9)]
        expected = N * np.diff(law.cdf(edges))
        p.append(p_of_counts(np.histogram(weights[:, i], edges)[0], expected))
    assert min(p) > FALSE_ALARM / len(p), p
    # The covariance of the two largest, to six standard errors.
    first, second = np.argsort(shape)[-2:]
    products = np.prod(weights[:, [first, second]] - shape[[first, second]] / total, axis=1)
    expected = -shape[first] * shape[second] / (total**2 * (total + 1))
    assert abs(products.mean() - expected) < 6 * products.std() / np.sqrt(N)


TREES = [tree("+", "sin", 0, "*", 1, 1), tree("sin", "sin", 2)]


@pytest.mark.parametrize("trees", [TREES, TREES[:1], []], ids=["two terms", "one", "none"])
def test_weights_given_trees_are_dirichlet(trees):
    (operators, features), shapes = weights_of(trees, [0.5, 1.5, 2.0])
    check(operators, shapes[0])
    check(features, shapes[1])


@pytest.mark.parametrize("trees", [TREES, []], ids=["two terms", "none"])
def test_tiny_concentrations(trees):
    many = np.full(60, 0.004)
    (operators, features), shapes = weights_of(
        trees, many, {"+": 0.002, "sin": 0.01, "*": 1.0, "exp": 1e-5}
    )
    check(operators, shapes[0])
    check(features, shapes[1])


def test_a_thousand_columns():
    (_, features), shapes = weights_of(TREES, np.full(1000, 0.004))
    check(features, shapes[1])
    # Most columns have no weight at all, and so can be left undrawn.
    assert np.mean(np.diff(features) == 0) > 0.5


def test_weights_that_all_vanish_leave_the_old_ones():
    made = problem(table(n_rows=8, n_features=2), OPERATORS, TermsPrior(3, 0.5), learn=True)
    prior = made.new_prior((0.25, 3.0))
    before = prior.feature_cdf.copy()
    (operators, features), _ = weights_of([], [1e-9, 1e-9])
    assert np.all(features == before)
    assert len(np.unique(operators, axis=0)) == N


def test_nothing_is_learned_without_a_prior():
    made = problem(table(n_rows=8), OPERATORS, TermsPrior(3, 0.5))
    prior = made.new_prior((0.25, 3.0))
    chain = made.new_chain(np.random.SeedSequence(0))
    chain.n_terms[0] = 0
    state = chain.rng.copy()
    assert len(prior.operator_concentration) == len(prior.feature_concentration) == 0
    out = np.zeros((3, opcodes.N_OPCODES)), np.zeros((3, 2))
    before = prior.operator_cdf.copy(), prior.feature_cdf.copy()
    many_weights(chain, prior, made.new_scratch().counts, *out)
    for got, expected in zip(out, before, strict=True):
        assert np.all(got == expected)
    np.testing.assert_array_equal(chain.rng, state)


def test_concentration_of_a_problem():
    """Operators count once each; of many columns about four are expected to matter."""
    for n_features, total in ((2, 2.0), (30, 4.0)):
        made = problem(table(n_rows=8, n_features=n_features), OPERATORS, learn=True)
        prior = made.new_prior((0.25, 3.0))
        assert prior.operator_concentration.sum() == pytest.approx(3.0)
        sin = tree("sin")[0]["op"]
        assert prior.operator_concentration[sin] == pytest.approx(1.5)
        assert prior.feature_concentration.sum() == pytest.approx(total)
        np.testing.assert_allclose(np.diff(prior.feature_concentration), 0.0, atol=1e-15)
