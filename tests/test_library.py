"""The library finds the term that a residual asks for."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest

from symbayes.evaluation import evaluate_trees
from symbayes.operators import OPERATORS
from symbayes.prior import TermsPrior
from symbayes.samplers.library import Library, expressions
from symbayes.trace import state_size
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


def values_of(text, X):
    return eval(text, {f"x{i}": X[:, i] for i in range(X.shape[1])} | {"sqrt": np.sqrt})


@pytest.mark.parametrize(
    "text",
    [
        "x0 * (x1 / x2) ** 2",
        "x3 / (x0 * x1)",
        "sqrt(x0) / (x1 * x2 * x2)",
        "x0 * x1 / (x2 ** 2 * x3)",
        "x2 / (x0 + x3)",
        "(x1 - x2) / x3",
        "x3 * (x1 - x0)",
        "(x0 - x1) / (x2 + x3)",
    ],
)
def test_products_of_powers_and_ratios_of_sums(text):
    rng = np.random.default_rng(4)
    X = rng.uniform(1, 3, (80, 4))
    rows = Table(np.asfortranarray(X), rng.normal(size=80), np.ones(80), np.arange(4))
    names = ("+", "-", "*", "/", "sqrt", "square", "sin")
    made = problem(rows, dict.fromkeys(names, 1.0), TermsPrior(3, 0.5))
    found = best(made, 3 * values_of(text, X) + rng.normal(0, 1e-9, 80))
    (shown,) = evaluate_trees([found], made.data.x.reshape(-1, len(made.data.y)))
    assert abs(np.corrcoef(shown[:80], values_of(text, X))[0, 1]) == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("n_columns", [1, 2, 5, 300])
def test_all_expressions_are_trees_of_the_operators_in_use(n_columns):
    names = ["+", "*", "/", "square", "cos"]
    allowed = {OPERATORS[name].opcode for name in names} | {0}
    made = list(islice(expressions(range(n_columns), dict.fromkeys(names, 1.0)), 60_000))
    for found in made:
        assert set(found["op"].tolist()) <= allowed
        assert state_size(found, 1) == len(found)
    # Products of two columns come first, however many columns there are.
    products = [t for t in made if len(t) == 3 and t["op"][0] == OPERATORS["*"].opcode]
    assert len(products) >= n_columns * (n_columns - 1) // 2


def test_only_operators_in_use():
    X, made = wide(operators=("+", "sin"))
    found = best(made, X[:, 0] * X[:, 1])
    assert found["op"][0] == tree("sin", 0)["op"][0] or len(found) == 1
