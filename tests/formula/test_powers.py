"""Powers of the same thing are collected, and the values stay."""

import numpy as np
import pytest
from hypothesis import given

from symbayes.formula import expression as ex
from symbayes.formula.parser import parse
from symbayes.formula.printing import to_text
from symbayes.formula.rewriting import collected

from ..fits import small
from .formulas import MODERATE, TABLE, expressions, value

NAMES = ["x", "y", "z"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x/x**2", "1/x"),
        ("x/x/x", "1/x"),
        ("y/y/x", "1/x"),
        ("y/(x*y)", "1/x"),
        ("x*x", "x**2"),
        ("x*x*x*x*x", "x**5"),
        ("x*y*x", "x**2*y"),
        ("x**2*y**3/x", "x*y**3"),
        ("(1/y)**2", "1/y**2"),
        ("1/(1/x)", "x"),
        ("1/(x/y)", "y/x"),
        ("(1/x)*y", "y/x"),
        ("x*(2*x)", "2*x**2"),
        ("2*x*2", "2*x*2"),
        ("sin(x)*sin(x)*x", "sin(x)**2*x"),
        ("(x + 1)*(x + 1)", "(x + 1)**2"),
        ("sin(x*x/y)", "sin(x**2/y)"),
        ("(x*y)**2/x", "(x*y)**2/x"),
        ("x*y/z", "x*y/z"),
        # What becomes constant is worked out.
        ("x/x", "1"),
        ("y + x/x", "y + 1"),
        ("y*exp(x/x)", "2.71828*y"),
        ("y*x/x*exp(z - z)", "y"),
        ("sin(2*x/x)*y", "0.909297*y"),
        ("y*cos(x - x) + z", "y + z"),
        ("y/(x - x)", "y/0"),
    ],
)
def test_collected(text, expected):
    assert to_text(collected(parse(text, NAMES)), NAMES) == expected


def test_powers_beyond_what_can_be_read_stay():
    text = "x**12*x"
    assert collected(parse(text, NAMES)) == parse(text, NAMES)


def parts(expression):
    yield expression
    if expression[0] not in (ex.FEATURE, ex.CONSTANT):
        for operand in expression[1:]:
            yield from parts(operand)


@given(expressions(MODERATE))
def test_values_stay_where_all_parts_have_some(expression):
    found = collected(expression)
    assert collected(found) == found
    sizes = np.array([np.abs(value(part)) for part in parts(expression)])
    sure = ((sizes > 1e-50) & (sizes < 1e50)).all(axis=0)
    expected = value(expression)
    # Where rounding errors grow, they prove nothing.
    nearby = value(expression, TABLE * (1 + 1e-12))
    with np.errstate(all="ignore"):
        sure &= np.abs(nearby - expected) < 1e-7 * np.abs(expected)
    np.testing.assert_allclose(value(found)[sure], expected[sure], rtol=1e-6)


def test_a_formula_is_read_with_its_powers_collected():
    x = np.random.default_rng(3).uniform(0.5, 3, (60, 1))
    y = 3 / x[:, 0]
    model = small(operators=["/", "square"], tune=300).fit(x, y)
    assert str(model.best_formula_) == "3/x0"
    assert model.best_formula_.n_nodes == 3
    np.testing.assert_allclose(model.best_formula_.predict(x), y)
    np.testing.assert_allclose(model.predict(x), y)
