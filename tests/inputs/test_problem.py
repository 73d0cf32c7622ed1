"""The bundle a sampler gets: its prior, and the same problem on fewer rows or for another y."""

import numpy as np
import pytest
from scipy import stats

from symbayes.inputs.prior import NoisePrior, TermsPrior, TreePrior
from symbayes.inputs.problem import make_problem

from .. import naive
from ..kernels.calling import generator_state
from ..problems import beliefs, problem, table, tree

OPERATORS = {"+": 1.0, "*": 2.0, "sin": 1.0, "lt": 1.5}
THREE = TermsPrior(3, 0.4)


def made(terms=THREE, n_rows=30, weights=None, **options):
    return problem(
        table(n_rows, n_features=3, weights=weights), OPERATORS, terms,
        TreePrior(alpha=0.7, beta=0.8, max_nodes=9, slope_shape=2.5, slope_scale=0.5,
                  offset_shape=3.0, offset_scale=1.5),
        feature_weights=[1.0, 2.0, 3.0], **options,
    )  # fmt: skip


@pytest.mark.parametrize("terms", [2, TermsPrior(3, 0.4)])
def test_log_prior_equals_the_twin(terms):
    target = made(terms)
    believed = beliefs(target)
    rng = naive.Random(generator_state(1))
    done = 0
    while done < 50:
        try:
            trees = [naive.draw_tree(rng, believed, 0, [9]) for _ in range(2)]
        except naive.TooLarge:
            continue
        done += 1
        expected = sum(naive.log_prior(t, believed) for t in trees)
        expected += 0.0 if terms == 2 else 2 * np.log(0.4)
        for node in (node for t in trees for node in t.transforms()):
            expected += stats.t.logpdf(node.a, 2.5, 1.0, np.sqrt(0.5))
            expected += stats.t.logpdf(node.b, 3.0, 0.0, np.sqrt(1.5))
        assert target.log_prior([naive.to_nodes(t) for t in trees]) == pytest.approx(expected)


def test_response_is_y_in_its_own_units():
    rows = table(30, n_features=3)
    response = made().response()
    np.testing.assert_allclose(response[:30], rows.y, rtol=1e-12)
    assert np.isnan(response[30:]).all()


@pytest.mark.parametrize("learn", [False, True])
def test_some_of_the_rows(learn):
    weights = np.random.default_rng(0).uniform(0.5, 2, 30)
    whole, rows = made(weights=weights, learn=learn), np.array([1, 4, 7, 20, 29])
    part = whole.on_rows(rows)
    y = table(30, n_features=3).y
    np.testing.assert_allclose(part.response()[:5], y[rows], rtol=1e-12)
    np.testing.assert_allclose(part.data.root_weight[:5] ** 2, weights[rows])
    assert part.data.n == pytest.approx(weights[rows].sum())
    x = whole.data.x.reshape(3, -1)[:, rows]
    np.testing.assert_array_equal(part.data.x.reshape(3, -1)[:, :5], x)
    for name in ("operator_weights", "tree_prior", "terms", "learn", "max_nodes"):
        assert getattr(part, name) == getattr(whole, name)
    np.testing.assert_array_equal(part.data.noise_prior, whole.data.noise_prior)
    other = whole.on_rows(rows, np.exp(y[rows]))
    np.testing.assert_allclose(other.response()[:5], np.exp(y[rows]), rtol=1e-12)


@pytest.mark.parametrize(
    ("n_rows", "terms", "most"),
    [(30, TermsPrior(), 12.0), (6, TermsPrior(), 2.4), (3, TermsPrior(), 2.0), (6, 4, 5.0)],
)
def test_two_constants_for_every_five_rows(n_rows, terms, most):
    rows = table(n_rows)
    made = make_problem(rows, {"+": 1.0}, np.ones(2) / 2, TreePrior(), NoisePrior(), terms)
    assert made.data.most_constants == pytest.approx(most)


def test_learned_weights_of_columns_are_integrated_out_of_the_log_prior():
    """One leaf after the other, each column as probable as its prior and the leaves before say."""
    target, fixed = made(2, learn=True), made(2)
    trees = [tree("*", 0, 2), tree("*", 2, 2)]
    concentration, total = np.array([0.5, 1.0, 1.5]), 3.0
    expected = 0.0
    for i, column in enumerate([0, 2, 2, 2]):
        expected += np.log(concentration[column] / (total + i))
        concentration[column] += 1.0
    expected -= np.log(1 / 6) + 3 * np.log(3 / 6)
    assert target.log_prior(trees) - fixed.log_prior(trees) == pytest.approx(expected)
