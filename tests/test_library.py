"""The library finds the term that a residual asks for."""

from __future__ import annotations

import numpy as np

from symbayes.prior import TermsPrior
from symbayes.samplers.library import Library
from symbayes.validation import Table

from .problems import problem, tree


def wide(n_columns=40, n_rows=100, operators=("+", "*", "/", "sin")):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, n_columns))
    y = rng.normal(size=n_rows)
    rows = Table(np.asfortranarray(X), y, np.ones(n_rows), np.arange(n_columns))
    return X, problem(rows, dict.fromkeys(operators, 1.0), TermsPrior(3, 0.5))


def best(made, values):
    residual = np.zeros(len(made.data.y))
    residual[: len(values)] = values - values.mean()
    return Library(made).best_for(residual)


def test_a_product_of_two_among_many_columns():
    X, made = wide()
    np.testing.assert_array_equal(best(made, 2 * X[:, 7] * X[:, 31] - 1), tree("*", 7, 31))


def test_functions_and_ratios_either_way_round():
    X, made = wide()
    np.testing.assert_array_equal(best(made, -np.sin(X[:, 3])), tree("sin", 3))
    np.testing.assert_array_equal(best(made, X[:, 5] / X[:, 2]), tree("/", 5, 2))


def test_only_operators_in_use():
    X, made = wide(operators=("+", "sin"))
    found = best(made, X[:, 0] * X[:, 1])
    assert found["op"][0] == tree("sin", 0)["op"][0] or len(found) == 1
