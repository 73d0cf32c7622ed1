"""Shown formulas have the best constants for their structure, and no idle ones."""

from __future__ import annotations

import numpy as np

from symbayes.fitting.constants import Terms, polish
from symbayes.formula.trees import evaluate_trees

from ..problems import tree

X = np.random.default_rng(0).uniform(0.5, 3, (2, 150))
NOISE = (1.0, 1e-20)


def polished(trees, y, weights=None):
    y = (y - y.mean()) / y.std()
    weights = np.ones(len(y)) if weights is None else weights
    return polish(Terms(trees, X, y, weights, NOISE), lambda: False)


def test_constants_reach_their_best_values():
    (result,) = polished([tree("sin", "lt", 0, a=1.9, b=0.6)], np.sin(2 * X[0] + 0.5))
    assert result["op"].tolist() == tree("sin", "lt", 0)["op"].tolist()
    np.testing.assert_allclose([result["a"][1], result["b"][1]], [2.0, 0.5], rtol=1e-9)


def test_several_terms_are_optimised_together():
    y = 3 * np.exp(-0.7 * X[0]) + np.sin(1.3 * X[1])
    trees = [tree("exp", "lt", 0, a=-0.8, b=0.1), tree("sin", "lt", 1, a=1.25, b=0.05)]
    result = polished(trees, y)
    design = np.vstack([np.ones(150), evaluate_trees(result, X)]).T
    residual = y - design @ np.linalg.lstsq(design, y, rcond=None)[0]
    assert np.abs(residual).max() < 1e-9


def test_idle_transforms_are_left_out():
    rng = np.random.default_rng(1)
    y = X[0] ** 2 + 0.1 * rng.normal(size=150)
    (result,) = polished([tree("square", "lt", 0, a=1.02, b=-0.03)], y)
    assert result["op"].tolist() == tree("square", 0)["op"].tolist()


def test_constants_that_matter_stay():
    rng = np.random.default_rng(1)
    y = (X[0] + 2.0) ** 2 + 0.01 * rng.normal(size=150)
    (result,) = polished([tree("square", "lt", 0, a=1.0, b=1.8)], y)
    assert len(result) == 3
    assert abs(result["b"][1] / result["a"][1] - 2.0) < 0.01


def test_rows_without_weight_do_not_count():
    y = np.sin(2 * X[0])
    y[:50] = 7.0
    weights = np.ones(150)
    weights[:50] = 0.0
    (result,) = polished([tree("sin", "lt", 0, a=1.9, b=0.1)], y, weights)
    assert abs(result["a"][1] - 2.0) < 1e-6


def test_a_tree_without_a_value_is_left_alone():
    given = tree("log", "lt", 0, a=-1.0, b=0.0)
    (result,) = polished([given], X[0])
    np.testing.assert_array_equal(result, given)


def test_constants_do_not_run_off():
    """(x + b)/x is 1 + b/x, and the intercept makes up for the 1: any large b is as good."""
    y = 5 / X[0] + 0.05 * np.random.default_rng(2).normal(size=150)
    for b in (1.0, 30.0):
        (result,) = polished([tree("/", "lt", 0, 0, a=1.0, b=b)], y)
        assert np.abs([result["a"], result["b"]]).max() < 1e5
    # The same with a second transform, which makes up for it as well.
    trees = polished([tree("/", "lt", 0, "lt", 0, a=1.0, b=20.0)], y)
    assert np.abs([trees[0]["a"], trees[0]["b"]]).max() < 1e6
