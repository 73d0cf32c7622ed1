"""What is constant is worked out, and values stay."""

import numpy as np
import pytest
from hypothesis import given

from symbayes.fitting.model import Model, State, expression_of
from symbayes.formula import expression as ex
from symbayes.formula.parser import parse
from symbayes.formula.printing import to_text
from symbayes.formula.rewriting import folded, split

from ..problems import tree
from .formulas import MODERATE, expressions, value

NAMES = ["x", "y"]


@pytest.mark.parametrize(
    ("text", "short"),
    [
        ("1*x + 0", "x"),
        ("0 + x*1", "x"),
        ("x/1 - 0", "x"),
        ("x + 0*y", "x"),
        ("x*(0 - 0.5)", "x*-0.5"),
        ("exp(0)*x", "x"),
        ("x + log(0 - 1)", "x + log(-1)"),  # has no value
    ],
)
def test_folded(text, short):
    assert folded(parse(text, NAMES)) == parse(short, NAMES)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x", (1.0, "x", 0.0)),
        ("2*x + 3", (2.0, "x", 3.0)),
        ("4 - 2*(x + 3)", (-2.0, "x", -2.0)),
        ("(x*y + 1)/4", (0.25, "x*y", 0.25)),
        ("-(x - 1)", (-1.0, "x", 1.0)),
        ("sin(2*x)", (1.0, "sin(2*x)", 0.0)),
        ("2/x", (1.0, "2/x", 0.0)),
        ("x/0", (1.0, "x/0", 0.0)),
        ("7", (0.0, "7", 7.0)),
    ],
)
def test_split(text, expected):
    factor, rest, offset = split(parse(text, NAMES))
    assert (factor, to_text(rest, NAMES), offset) == expected


@given(expressions(MODERATE))
def test_split_and_put_together_again(expression):
    factor, rest, offset = split(expression)
    assert split(rest)[0::2] in ((1.0, 0.0), (0.0, rest[1]))
    together = value(("+", ("*", (ex.CONSTANT, factor), rest), (ex.CONSTANT, offset)))
    expected = value(expression)
    sure = np.isfinite(expected) & np.isfinite(together)
    with np.errstate(invalid="ignore"):  # no times infinity
        scale = abs(offset) + np.abs(factor * value(rest)) + np.abs(expected)
    assert np.all(np.abs(together[sure] - expected[sure]) <= 1e-9 * scale[sure])


def test_what_cancelled_goes_to_coefficient_and_intercept():
    # 3*(y + x/x) and 2*x*exp(y/y)
    trees = (tree("+", 1, "/", 0, 0), tree("*", 0, "exp", "/", 1, 1))
    unused = np.zeros(2)
    model = Model(
        State(trees, 1.0, 0.0, 0.0), 4.0, np.array([3.0, 2.0]), unused, unused,
        np.array([5.0, 1.0]), np.eye(2), unused, 0.0, 0.0, 1.0,
    )  # fmt: skip
    assert to_text(expression_of(model, np.arange(2)), NAMES) == "3*y + 5.43656*x + 7"
