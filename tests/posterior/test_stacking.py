"""Stacking weights against the conditions of an optimum, and cases that can be worked out."""

import numpy as np
import pytest

from symbayes.posterior.stacking import PRIOR, stacking_weights

RNG = np.random.default_rng(150)


def gradient(log_density, counts, weights):
    density = np.exp(log_density - log_density.max(axis=1, keepdims=True))
    return density.T @ (counts / (density @ weights)) + PRIOR / weights


@pytest.mark.parametrize("n_chains", [2, 4, 16])
@pytest.mark.parametrize("spread", [0.01, 0.3, 3.0, 100.0])
def test_weights_are_optimal(n_chains, spread):
    """Concave: where all partial derivatives are the same, there is no better place."""
    level, each = RNG.normal(size=n_chains), RNG.normal(size=(200, n_chains))
    counts = RNG.uniform(0.2, 3.0, 200)
    log_density = spread * (0.1 * level + each) - 1000.0
    weights = stacking_weights(log_density, counts)
    assert (weights > 0).all()
    assert weights.sum() == pytest.approx(1.0, abs=1e-12)
    multiplier = counts.sum() + n_chains * PRIOR
    slack = weights * (gradient(log_density, counts, weights) - multiplier)
    np.testing.assert_allclose(slack / counts.sum(), 0.0, atol=1e-8)


def test_two_distributions_in_closed_form():
    """Each of two rows is possible under one distribution only: weights as the counts, nearly."""
    log_density = np.array([[0.0, -np.inf], [-np.inf, 0.0]])
    weights = stacking_weights(log_density, np.array([3.0, 1.0]))
    total = 4.0 + 2 * PRIOR
    np.testing.assert_allclose(weights, [(3 + PRIOR) / total, (1 + PRIOR) / total], rtol=1e-8)


def test_the_best_of_several_takes_it_all():
    log_density = np.tile([-1.0, -2.0, -3.0], (50, 1))
    weights = stacking_weights(log_density, np.ones(50))
    assert weights[0] > 0.99


def test_equal_distributions_get_equal_weights():
    same = RNG.normal(size=50)
    weights = stacking_weights(np.column_stack([same, same, same - 5.0]), np.ones(50))
    assert weights[0] == pytest.approx(weights[1], rel=1e-6)
    assert weights[2] < 1e-2


def test_a_row_that_counts_twice_is_two_rows():
    log_density = RNG.normal(size=(10, 3))
    twice = stacking_weights(np.repeat(log_density, 2, axis=0), np.ones(20))
    np.testing.assert_allclose(stacking_weights(log_density, np.full(10, 2.0)), twice, rtol=1e-7)


def test_rows_that_nobody_explains_have_no_say():
    log_density = RNG.normal(size=(10, 3))
    more = np.vstack([log_density, np.full(3, -np.inf)])
    np.testing.assert_allclose(
        stacking_weights(more, np.ones(11)), stacking_weights(log_density, np.ones(10)), rtol=1e-9
    )
