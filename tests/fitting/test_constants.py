"""How well data know the constants of a formula, against linear regression and SciPy."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize

from symbayes.fitting.rounding import TrainingRows
from symbayes.formula.expression import constants, signs, with_digits
from symbayes.formula.parser import parse
from symbayes.formula.printing import to_text

from ..fits import NOISY, X, small
from ..formula.formulas import expressions

RNG = np.random.default_rng(95)
NAMES = ["x0", "x1"]


def training(y, x=X, weights=None, **options):
    weights = np.ones(len(y)) if weights is None else weights
    return TrainingRows(x.T, y, weights, (1.0, 1e-20), float(np.std(y)), **options)


def digits(text, y, **options):
    expression = parse(text, NAMES)
    return to_text(with_digits(expression, training(y, **options).digits(expression)), NAMES, 15)


def test_standard_errors_of_linear_regression():
    y = 3 * X[:, 0] - 2 * X[:, 1] + 5 + RNG.normal(0, 0.4, 60)
    design = np.column_stack([X, np.ones(60)])
    beta, rss, *_ = np.linalg.lstsq(design, y, rcond=None)
    expected = np.sqrt(rss[0] / 57 * np.diag(np.linalg.inv(design.T @ design)))
    text = f"{beta[0]}*x0 + {beta[1]}*x1 + {beta[2]}"
    found, freedom = training(y).deviations(parse(text, NAMES))
    np.testing.assert_allclose(found, expected, rtol=1e-4)
    assert freedom == 57


def test_standard_errors_of_a_curve():
    y = 2 * np.exp(0.7 * X[:, 0]) + RNG.normal(0, 0.2, 60)
    best, covariance = optimize.curve_fit(
        lambda x, a, b: a * np.exp(b * x), X[:, 0], y, (2, 0.7), xtol=1e-12, ftol=1e-12
    )
    found, _ = training(y).deviations(parse(f"{best[0]}*exp({best[1]}*x0)", NAMES))
    np.testing.assert_allclose(found, np.sqrt(np.diag(covariance)), rtol=1e-3)


def test_rows_that_stand_for_more():
    y = 3 * X[:, 0] + RNG.normal(0, 0.4, 60)
    expression = parse(f"{X[:, 0] @ y / (X[:, 0] @ X[:, 0])}*x0", NAMES)
    (one, _), (many, _) = (training(y, n=n).deviations(expression) for n in (60.0, 6000.0))
    # One constant was fitted, to 60 rows or to 6,000.
    np.testing.assert_allclose(many, one / 10 * np.sqrt(59 / 60 * 6000 / 5999), rtol=1e-6)


def test_a_constant_that_another_makes_up_for():
    expression = parse("2*exp(x0 + 1) + 3", NAMES)
    y = 2 * np.exp(X[:, 0] + 1) + 3 + RNG.normal(0, 0.1, 60)
    found, freedom = training(y).deviations(expression)
    assert np.isinf(found[:2]).all()
    assert np.isfinite(found[2])
    assert freedom == 60 - 2  # the first two are one


def test_digits_are_those_that_mean_something():
    noise = RNG.normal(0, 0.3, 60)
    assert digits("3.1415926*x0", 3.1415926 * X[:, 0] + noise) == "3.142*x0"
    assert digits("3.1415926*x0", 3.1415926 * X[:, 0] + 100 * noise) in ("3.1*x0", "3*x0")
    # Exact data know all digits; few are shown.
    assert digits("3.14159265358979*x0", 3.14159265358979 * X[:, 0]) == "3.14159*x0"


def test_constants_that_are_known_only_together_keep_their_digits():
    """Far from 0 slope and intercept make up for each other: rounding one alone would show."""
    x = X + 1000.0
    y = 2.3456789 * x[:, 0] - 1234.56789 + RNG.normal(0, 0.01, 60)
    slope, intercept = np.polyfit(x[:, 0], y, 1)
    text = digits(f"{slope}*x0 - {-intercept}", y, x=x)
    shown = parse(text, NAMES)
    exact = parse(f"{slope}*x0 - {-intercept}", NAMES)
    loss = training(y, x=x).loss(exact, [shown[1][1][1], shown[2][1]])
    assert loss <= 0.1
    assert len(text) < 30


def test_constants_that_make_up_for_each_other_get_as_few_digits_as_it_takes():
    y = 5 * np.exp(-0.7 * X[:, 0]) + RNG.normal(0, 0.1, 60)
    text = digits("2.41098683847*exp(-0.700144584602*x0 + 0.722518186056)", y)
    assert max(len(number) for number in re.findall(r"[\d.]+", text)) <= 7
    shown, exact = parse(text, NAMES), parse("2.41098683847*exp(-0.7001446*x0 + 0.7225182)", NAMES)
    assert training(y).loss(exact, list(constants(shown))) <= 0.2


def test_digits_are_few_where_more_would_not_help():
    offset = 98765432101234.56
    y = 1.5 * X[:, 0] + RNG.normal(0, 0.1, 60)
    assert digits(f"1.5*(x0 + {offset}) - {1.5 * offset}", y).count("(x0 + 98765400000000)") == 1


def test_constants_of_a_model():
    model = small(operators=["square"], draws=100, tune=200).fit(X, NOISY)
    table = model.constants(0, level=0.95)
    assert list(table.columns) == ["value", "std", "lower", "upper"]
    design = np.column_stack([X[:, 0] ** 2, np.ones(60)])
    beta, rss, *_ = np.linalg.lstsq(design, NOISY, rcond=None)
    error = np.sqrt(rss[0] / 58 * np.diag(np.linalg.inv(design.T @ design)))
    np.testing.assert_allclose(table["value"], beta, rtol=1e-9)
    np.testing.assert_allclose(table["std"], error, rtol=1e-3)
    np.testing.assert_allclose(table["upper"] - table["value"], 2.0025 * error, rtol=2e-3)
    text = str(model.best_formula_)
    for value in table["value"]:
        assert f"{value:.3g}" in text or f"{value:.4g}" in text
    assert text != model.best_formula_.text(digits=6)


def test_a_constant_that_is_subtracted_is_negative():
    noise = np.random.default_rng(7).normal(0, 0.05, 60)
    model = small(operators=["*", "square"], draws=100, tune=200)
    table = model.fit(X, 3 * X[:, 0] ** 2 - 5 + noise).constants()
    assert " - 5" in str(model.best_formula_)
    np.testing.assert_allclose(table["value"], [3, -5], atol=0.1)
    assert (table["lower"] < table["value"]).all()
    assert (table["value"] < table["upper"]).all()
    np.testing.assert_allclose(
        table["upper"] - table["value"], table["value"] - table["lower"], rtol=1e-9
    )
    model.fit(X, -2 * X[:, 0] ** 2 - 0.4 * X[:, 1] ** 2 + noise)
    np.testing.assert_allclose(model.constants()["value"][:2], [-2, -0.4], atol=0.1)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("3*x0 - 5", [3, -5]),
        ("-2*x0 - 0.5*x1*x0 - 7/x0", [-2, -0.5, -7]),
        ("x0 - exp(-2*x0 - 3)*5", [-2, -3, 5]),
        ("x0 - (2*x1 + 3)", [2, 3]),
        ("x0 - (2*x1 - 3)*4", [2, -3, 4]),
        ("-(2 - x1)/(3 - 4*x0)", [2, 3, -4]),
        ("x0 - 2*x1**2 - sin(3)", [-2, 3]),
    ],
)
def test_signs_are_those_in_the_text(text, expected):
    expression = parse(text, NAMES)
    found = [s * v for s, v in zip(signs(expression), constants(expression), strict=True)]
    assert found == expected


@pytest.mark.parametrize("kind", ["*", "/"])
def test_a_product_that_is_negated_stands_in_parentheses(kind):
    expression = ("neg", (kind, ("c", 20.0), ("x", 0)))
    assert to_text(expression, ["a"]) == f"-(20{kind}a)"
    assert list(signs(expression)) == [1]


@given(expressions(st.integers(20, 99).map(float)))
def test_signs_of_any_expression(expression):
    """Read off the text: two digits are a constant, one is an exponent or the 1 of an inverse."""
    text = to_text(expression, ["a", "b", "c"], 17)
    expected = [
        (-1) ** minus.count("-") * int(number)
        for minus, number in re.findall(r"((?:- ?)*)(\d\d)", text)
    ]
    found = [s * v for s, v in zip(signs(expression), constants(expression), strict=True)]
    if not re.search(r"\d\d\*\*", text):  # the sign before a power is not that of its base
        assert found == expected


@pytest.mark.parametrize(
    ("arguments", "error", "says"),
    [
        ((99999,), IndexError, "formula is 99999 and formulas_ has"),
        (("x0",), TypeError, "formula must be a place in formulas_, not 'x0'"),
        ((0, 1.0), ValueError, "level is 1.0; it is a probability"),
    ],
)
def test_bad_questions(arguments, error, says):
    model = small().fit(X, NOISY)
    with pytest.raises(error, match=says):
        model.constants(*arguments)
