"""Ratios of polynomials, found by regression."""

import numpy as np
import pytest

from symbayes import BayesianSymbolicRegressor
from symbayes.formula.trees import evaluate_trees
from symbayes.samplers.search.rational import rational, suggest

from ...problems import posed

X = np.linspace(-1, 1, 20)
WITH_POWERS = dict.fromkeys(("+", "*", "/", "lt", "square", "cube"), 1.0)
PLAIN = dict.fromkeys(("+", "-", "*", "/", "lt"), 1.0)
RATIOS = {
    "Keijzer R1": ([1, 3, 3, 1], [1, -1, 1]),
    "R2": ([1, 0, 0, -3, 0, 1], [1, 0, 1]),
    "R3": ([0, 0, 0, 0, 0, 1, 1], [1, 1, 1, 1, 1]),
    "saturation": ([0, 1], [1.7, 1]),
    "no column above": ([1], [1.3, 0, 1]),
}


def suggested(columns, y, operators):
    return list(suggest(posed(columns, y, operators)))


def values(ratio, x=X):
    above, below = (np.array(c, float)[::-1] for c in ratio)
    return np.polyval(above, x) / np.polyval(below, x)


@pytest.mark.parametrize("factor", [1.0, -250.0])
@pytest.mark.parametrize("name", RATIOS)
def test_ratios_are_recognised(name, factor):
    above, below = RATIOS[name]
    found = rational(X, factor * values(RATIOS[name]))
    assert found is not None
    for got, expected in zip(found, (above, below), strict=True):
        np.testing.assert_allclose(got, expected, atol=1e-6)
        assert got[-1] == 1.0


@pytest.mark.parametrize("operators", [WITH_POWERS, PLAIN], ids=["powers", "plain"])
@pytest.mark.parametrize("name", RATIOS)
def test_trees_have_the_values(name, operators):
    y = values(RATIOS[name])
    columns = np.vstack([np.cos(9 * X), X])  # the first is of no use
    ((tree,),) = suggested(columns, y, operators)
    assert len(tree) <= 30
    (got,) = evaluate_trees([tree], columns)
    slope, intercept = np.polyfit(got, y, 1)
    np.testing.assert_allclose(slope * got + intercept, y, atol=1e-9)


@pytest.mark.parametrize(
    "y",
    [
        np.sin(X),
        np.exp(X),
        np.exp(-3 * X**2),
        X**3 + X,  # a polynomial is found without this
        values(RATIOS["Keijzer R1"]) + 1e-4 * np.sin(100 * X),
        np.random.default_rng(0).normal(size=20),
    ],
    ids=["sin", "exp", "bell", "polynomial", "noise", "nothing"],
)
def test_what_is_no_ratio(y):
    assert rational(X, y) is None
    assert suggested(X[None, :], y, PLAIN) == []


def test_operators_and_rows_that_do_not_suffice():
    y = values(RATIOS["R2"])
    assert suggested(X[None, :], y, {"+": 1.0, "*": 1.0, "/": 1.0}) == []
    assert rational(X[:5], y[:5]) is None
    assert suggested(np.ones((1, 20)), y, PLAIN) == []


def test_a_fit_finds_the_ratio():
    model = BayesianSymbolicRegressor(
        ["+", "-", "*", "/", "lt"], draws=50, tune=500, chains=2, random_state=0
    )
    model.fit(X[:, None], values(RATIOS["R2"]))
    wide = np.linspace(-2, 2, 50)
    np.testing.assert_allclose(
        model.best_formula_.predict(wide[:, None]), values(RATIOS["R2"], wide), rtol=1e-6
    )
