"""Constants of large tables: the best on all rows, with intervals that hold."""

from __future__ import annotations

import numpy as np
import pytest

from symbayes import BayesianSymbolicRegressor
from symbayes.fitting.constants import free_constants, newton_step
from symbayes.fitting.least_squares import MOST_ROWS
from symbayes.fitting.model import Fitter
from symbayes.fitting.rounding import TrainingRows, rounded
from symbayes.formula import expression as ex
from symbayes.inputs.validation import Table

from ..problems import problem, tree

N = 5 * MOST_ROWS


def rows(seed=0, n=N):
    """Y = 3.2 (x0 - 2.7) / x1 - 4 with noise."""
    rng = np.random.default_rng(seed)
    X = np.asfortranarray(rng.uniform(1.0, 9.0, (n, 2)))
    y = 3.2 * (X[:, 0] - 2.7) / X[:, 1] - 4 + rng.normal(0, 0.3, n)
    return Table(X, y, np.ones(n), np.arange(2))


def least_squares(table):
    """Intercept, coefficient and inner constant on all rows: a linear problem in disguise."""
    x, z = table.X.T
    design = np.column_stack([np.ones(len(x)), x / z, 1 / z])
    c, a, b = np.linalg.lstsq(design, table.y, rcond=None)[0]
    return c, a, b / a


def polished(table):
    made = problem(table, {"/": 1.0, "lt": 1.0}, terms=1)
    fitter = Fitter(made, table.y, table.weights, plug_in=False)
    shape = tree("/", "lt", 0, 1, a=1.0, b=-2.0)
    return fitter.polished(fitter.fit_trees([shape]))


def test_polished_constants_are_the_best_on_all_rows():
    table = rows()
    model = polished(table)
    (nodes,) = model.state.trees
    found = (model.intercept, model.coefficients[0], nodes["b"][nodes["op"] > 0].sum())
    assert found == pytest.approx(least_squares(table), rel=1e-7)


def test_which_constants_move():
    trees = [tree("lt", 0, a=2.0, b=0.0), tree("lt", "sin", "lt", 1, a=1.0, b=5.0)]
    assert free_constants(trees, 0) == [(0, 0, "a"), (1, 0, "b"), (1, 2, "b")]
    assert free_constants(trees, 1) == [(1, 0, "b"), (1, 2, "b")]


@pytest.mark.parametrize("shape", [tree("log", "lt", 0, a=1.0, b=-5.0), tree("-", 0, 0)])
def test_no_step_without_numbers(shape):
    table = rows(n=100)
    places = free_constants([shape], 0) or [(0, 0, "a")]
    assert newton_step([shape], places, table.X.T, table.y, table.weights) is None


def test_some_rows_know_what_all_rows_say():
    """Intervals and simple constants do not follow the noise of the rows that are looked at."""
    inside, cost = 0, []
    for seed in range(40):
        table = rows(seed)
        c, a, b = least_squares(table)
        formula = ("+", ("*", ("c", a), ("/", ("+", ("x", 0), ("c", b)), ("x", 1))), ("c", c))
        spread = table.y.std()
        training = TrainingRows(table.X.T, table.y, table.weights, (1.0, 1e-12), spread)
        assert training.multiplicity == pytest.approx(5.0)
        deviation, _ = training.deviations(formula)
        inside += int(abs(b + 2.7) < 1.645 * deviation[1])
        simple = rounded(formula, training)
        whole = [
            np.log(np.mean((table.y - ex.evaluate(one, table.X.T)) ** 2))
            for one in (formula, simple)
        ]
        cost.append(0.5 * N * (whole[1] - whole[0]))
    assert 29 <= inside <= 40  # nine in ten; fewer than 29 of 40 by chance once in 1,000
    assert max(cost) < 4.0  # three nats are allowed on the rows that are looked at


@pytest.mark.slow
def test_the_same_function_is_one_row():
    table = rows(n=6_000)
    model = BayesianSymbolicRegressor(
        ["+", "-", "*", "/", "lt"], draws=200, tune=1500, random_state=0, n_jobs=2
    ).fit(table.X, table.y)
    best = model.formulas_.iloc[0]
    same = np.isclose(model.formulas_["rmse"], best["rmse"], rtol=1e-9)
    assert same.sum() == 1
    value = least_squares(table)
    found = model.constants()
    assert any(np.isclose(found["value"], value[0], rtol=1e-4))
