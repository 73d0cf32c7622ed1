"""Power laws and common factors, found by regression on a logarithmic scale."""

import numpy as np
import pytest

from symbayes.formula.operators import OPERATORS
from symbayes.formula.trees import evaluate_trees, product_of_powers
from symbayes.samplers.search.common_factor import common_factor
from symbayes.samplers.search.power_law import power_law, suggest
from symbayes.samplers.search.rational import rational

from ...problems import posed

RNG = np.random.default_rng(11)
X = RNG.uniform(1, 3, (4, 200))
ALL = dict.fromkeys(OPERATORS, 1.0)
POWERS = [
    (1, 1, 0, 0), (2, -1, 0, 0), (0.5, 0, -1.5, 0), (-2, -4, 3, 1), (0, 0, -1, 0), (-1, -1, 0, 0),
]  # fmt: skip


def law(exponents, x=X):
    return np.prod([column**e for column, e in zip(x, exponents, strict=True)], axis=0)


@pytest.mark.parametrize("noise", [0.0, 0.01])
@pytest.mark.parametrize("offset", [0.0, 7.0, -0.5])
@pytest.mark.parametrize("exponents", POWERS)
def test_a_power_law_with_a_constant(exponents, offset, noise):
    values = law(exponents)
    for factor in (1.0, -3.0):
        z = factor * values / values.std() + offset + noise * RNG.normal(size=200)
        np.testing.assert_array_equal(power_law(X, z), exponents)


def test_what_is_no_power_law():
    assert power_law(X, np.sin(5 * X[0]) + X[1]) is None
    assert power_law(X, RNG.normal(size=200)) is None
    assert power_law(X, np.ones(200)) is None
    # Too many columns for the rows, and columns that have no logarithm.
    assert power_law(X[:, :12], X[0, :12]) is None
    assert power_law(X - 2.0, X[0]) is None
    mixed = np.vstack([X[0], X[1] - 2.0])
    np.testing.assert_array_equal(power_law(mixed, X[0] ** 2), [2.0, 0.0])


def test_power_laws_below_another_operator():
    y = np.sqrt(1.0 + 2.0 * law((2, 1, -1, -4)))
    trees = [tree for (tree,) in suggest(posed(X, y, ALL))]
    errors = []
    for values in evaluate_trees(trees, X):
        design = np.column_stack([np.ones(200), values])
        errors.append(np.abs(y - design @ np.linalg.lstsq(design, y, rcond=None)[0]).max())
    assert min(errors) < 1e-8


@pytest.mark.parametrize("exponents", POWERS)
@pytest.mark.parametrize("missing", [(), ("square",), ("cube", "square"), ("inv",)])
def test_products_of_powers(exponents, missing):
    operators = {name: 1.0 for name in OPERATORS if name not in missing}
    chosen = np.flatnonzero(exponents)
    tree = product_of_powers(chosen.tolist(), [exponents[i] for i in chosen], operators)
    np.testing.assert_allclose(evaluate_trees([tree], X)[0], law(exponents), rtol=1e-12)
    used = {int(op) for op in tree["op"]} - {0}
    assert used <= {OPERATORS[name].opcode for name in operators}


@pytest.mark.parametrize(
    ("exponents", "missing"),
    [
        ((0.5, 1), ("sqrt",)), ((1, 1), ("*",)), ((1, -1), ("/",)), ((-1, -1), ("inv", "lt")),
        ((2, 1), ("*",)), ((3, -1), ("cube", "*")),
    ],
)  # fmt: skip
def test_products_that_cannot_be_written(exponents, missing):
    operators = {name: 1.0 for name in OPERATORS if name not in missing}
    assert product_of_powers([0, 1], exponents, operators) is None


@pytest.mark.parametrize("noise", [0.0, 0.01])
def test_common_factors(noise):
    x = RNG.uniform(1, 3, (5, 600))
    disturbed = 1.0 + noise * RNG.normal(size=600)
    y = x[0] ** 2 / x[1] * (x[2] ** 2 + x[3] * x[4]) * disturbed
    np.testing.assert_array_equal(common_factor(x, y), [2.0, -1.0, 0.0, 0.0, 0.0])
    np.testing.assert_array_equal(common_factor(x, -y), [2.0, -1.0, 0.0, 0.0, 0.0])
    # In another unit, and without the factor.
    np.testing.assert_array_equal(common_factor(1e6 * x, 1e-9 * y), [2.0, -1.0, 0.0, 0.0, 0.0])
    assert not common_factor(x[2:], (x[2] ** 2 + 9.0 * x[3] * x[4]) * disturbed)[0]


def test_no_common_factor_to_speak_of():
    assert not common_factor(X - 2.0, X[0]).any()  # no logarithms
    assert not common_factor(X[:, :20], X[0, :20]).any()  # too few rows
    assert not common_factor(X, np.zeros(200)).any()
    assert not common_factor(X, np.exp(3 * X[0]) + X[1] * X[2] + X[3]).any()


@pytest.mark.parametrize("start", [1e-300, 1.0, 2.0**53, 1e300])
def test_neighbouring_numbers_are_in_no_factor_and_in_no_power_law(start):
    """Their logarithms may all be the same, and have no spread."""
    for n in range(8, 80):
        column = start + np.spacing(start) * np.arange(n)
        y = np.linspace(1.0, 2.0, n) ** 2
        for columns in (column[None, :], np.vstack([y, column])):
            assert common_factor(columns, y)[-1] == 0.0
            power_law(columns, y)
            for one in columns[np.ptp(columns, axis=1) > 0]:
                rational(one, y)
