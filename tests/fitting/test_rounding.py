"""Simple constants are offered where the data do not object, and only there."""

from __future__ import annotations

import re

import numpy as np
import pytest

from symbayes.fitting.rounding import TrainingRows, is_simple, nearest_simple, rounded
from symbayes.formula.expression import constants, with_constants
from symbayes.formula.parser import parse
from symbayes.formula.rewriting import folded

from ..fits import small

NAMES = ["x0", "x1"]


def offered(text, truth, noise=0.0, n=200, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(1, 5, (2, n))
    y = truth(*X) + noise * rng.normal(size=n)
    rows = TrainingRows(X, y, np.ones(n), (1.0, 1e-20), float(np.std(y)))
    return rounded(parse(text, NAMES), rows)


@pytest.mark.parametrize(
    ("value", "tolerance", "simple"),
    [
        (2.0004, 0.001, 2.0),
        (-0.4997, 0.001, -0.5),
        (0.6667, 0.0005, 2 / 3),
        (3.14159, 1e-4, np.pi),
        (0.123, 1e-4, None),
        (250.0, 1e-6, None),  # too large to be striking
        (0.31, 0.2, None),  # so coarse that everything is near something
        (0.0, 0.0, 0.0),
        (1.7e308, 1e300, None),
        (-1.7e308, 0.0, None),
        (np.inf, 0.0, None),
        (np.nan, 0.0, None),
        (2.0, np.inf, None),
    ],
)
def test_nearest_simple(value, tolerance, simple):
    assert nearest_simple(value, tolerance) == (simple if simple is None else pytest.approx(simple))


def test_exact_data_give_simple_constants():
    found = offered("0.49999999*x0*x1 + 1.0000000002*x1 + 1e-12", lambda x, z: x * z / 2 + z)
    assert found == folded(parse("0.5*x0*x1 + x1", NAMES))


def test_multiples_of_pi_are_found():
    found = offered("6.2831853*x0 + 0.00000001", lambda x, z: 2 * np.pi * x)
    assert list(constants(found)) == [2 * np.pi]


def test_noise_is_allowed_for():
    found = offered("2.003*x0 - 0.02", lambda x, z: 2 * x, noise=0.05)
    assert found == parse("2*x0", NAMES)


def test_the_data_may_object():
    """Then the formula stays as it is, to the last digit."""
    found = offered("2.1371*x0 + 0.2907", lambda x, z: 2.137 * x + 0.291, noise=1e-3)
    assert list(constants(found)) == [2.1371, 0.2907]
    # Where another constant is rounded, those that are not are fitted again.
    found = offered("2.1*x0 + 0.9999*x1", lambda x, z: 2.137 * x + z, noise=1e-3)
    assert list(constants(found)) == pytest.approx([2.137], abs=2e-3)


def test_nothing_is_rounded_with_as_many_constants_as_rows():
    expression = parse("1.01*x0 + 2.01", NAMES)
    X, y = np.ones((2, 2)), np.ones(2)
    assert rounded(expression, TrainingRows(X, y, np.ones(2), (1.0, 1e-20), 1.0)) == expression


def test_constants_can_be_exchanged():
    expression = parse("2*sin(3*x0) + 4", NAMES)
    assert list(constants(expression)) == [2.0, 3.0, 4.0]
    assert with_constants(expression, np.array([5.0, 6.0, 7.0])) == parse("5*sin(6*x0) + 7", NAMES)


def test_what_is_not_simple_has_the_digits_that_the_data_support():
    rng = np.random.default_rng(8)
    x = rng.uniform(-2, 2, (60, 2))
    y = 2 * x[:, 0] ** 2 + 0.7361 * x[:, 1] + rng.normal(0, 0.02, 60)
    model = small(operators=["square"], tune=300).fit(x, y)
    text = model.formulas_["rounded"][0]
    assert text.startswith("2*x0**2 + 0.7")
    assert len(re.search(r"0\.\d+", text)[0]) <= 6


@pytest.mark.parametrize("value", [2.0, -0.5, 1 / 3, np.pi / 2, 7 * 0.1])
def test_numbers_that_are_simple(value):
    assert is_simple(value)
    assert not is_simple(value + 1e-9)
