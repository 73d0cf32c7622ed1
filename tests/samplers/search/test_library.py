"""The library finds the term that a residual asks for."""

from __future__ import annotations

from itertools import islice, permutations

import numpy as np
import pytest

from symbayes.formula.operators import OPERATORS
from symbayes.formula.trees import evaluate_trees, state_size
from symbayes.inputs.prior import TermsPrior
from symbayes.inputs.validation import Table
from symbayes.samplers.search.library import Library, expressions
from symbayes.samplers.search.pairs import Pairs

from ...problems import problem, tree


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


def largest(n_columns, seed=1, n_rows=100, operators=("+", "*", "/", "sin")):
    """A table with too many pairs of columns to be listed."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(1, 3, (n_rows, n_columns))
    weights = rng.uniform(0.5, 2.0, n_rows)
    rows = Table(np.asfortranarray(X), rng.normal(size=n_rows), weights, np.arange(n_columns))
    return X, problem(rows, dict.fromkeys(operators, 1.0), TermsPrior(3, 0.5))


def weighted(made, values):
    """Values as a residual: centred and weighted, on all rows of the problem."""
    root = made.data.root_weight
    residual = np.zeros(len(root))
    used = root > 0
    residual[used] = (values - np.average(values, weights=root[used] ** 2)) * root[used]
    return residual


@pytest.mark.parametrize(
    ("top", "i", "j"), [("*", 7, 650), ("*", 0, 1), ("/", 640, 3), ("/", 3, 640)]
)
def test_a_pair_of_columns_among_too_many_to_list(top, i, j):
    X, made = largest(700)
    values = X[:, i] * X[:, j] if top == "*" else X[:, i] / X[:, j]
    found = Library(made).best_for(weighted(made, 5 - 2 * values))
    np.testing.assert_array_equal(found, tree(top, i, j))


def test_pairs_are_weighed_as_the_listed_expressions_are():
    """The gains of all pairs are those of their columns, made one by one."""
    X, made = largest(30)
    used = made.data.root_weight > 0
    root = made.data.root_weight[used]
    residual = weighted(made, np.random.default_rng(2).normal(size=len(X)))[used]
    for name in "*/":
        found, gain = Pairs(name, list(range(30)), X.T, root).best_for(residual)
        gains = {}
        for i, j in permutations(range(30), 2):
            values = X[:, i] * X[:, j] if name == "*" else X[:, i] / X[:, j]
            column = (values - np.average(values, weights=root**2)) * root
            gains[i, j] = abs(column @ residual) / np.linalg.norm(column)
        assert gain == pytest.approx(max(gains.values()), rel=1e-4)
        i, j = max(gains, key=gains.get)
        np.testing.assert_array_equal(
            found, tree(name, min(i, j), max(i, j)) if name == "*" else tree(name, i, j)
        )


def test_pairs_leave_out_what_cannot_be_divided_by_and_what_does_not_vary():
    X, _ = largest(30)
    X[:, 4] = 0.0
    X[3, 5] = 0.0
    X[:, 6] = 2.0 / X[:, 7]
    for name in "*/":
        pairs = Pairs(name, list(range(30)), X.T, np.ones(100))
        assert (pairs._scale[4] == 0).all()
        assert np.isfinite(pairs._scale).all()
        assert (pairs._scale[:, 5].any()) == (name == "*")
        assert (pairs._scale[6, 7] == 0) == (name == "*")


def test_among_many_columns_a_term_is_multiplied_by_a_function_of_another():
    X, made = largest(700)
    term = tree("*", 3, 500)
    values = X[:, 3] * X[:, 500]
    # What is left of the term times a sine, once the term itself has its coefficient.
    root = made.data.root_weight[made.data.root_weight > 0]
    design = np.column_stack([np.ones(len(X)), values]) * root[:, None]
    wanted = values * np.sin(3.0 * X[:, 600])
    wanted = wanted * root
    wanted = wanted - design @ np.linalg.lstsq(design, wanted, rcond=None)[0]
    residual = np.zeros(len(made.data.y))
    residual[: len(wanted)] = wanted
    found = Library(made).best_for(residual, [tree("sin", 9), term])
    assert len(found) > 3
    assert set(found["feature"][found["op"] == 0]) == {3, 500, 600}
