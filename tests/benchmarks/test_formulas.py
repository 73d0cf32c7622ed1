"""Formulas of all methods are read alike, and nothing but formulas is read."""

import numpy as np
import pytest
import sympy
from benchmarks.quality.formulas import Unreadable, evaluate, rename, symbols, to_sympy
from benchmarks.quality.nodes import count, least

COLUMNS = symbols(3)
ROWS = np.random.default_rng(0).uniform(0.5, 0.9, (20, 3))

SPELLINGS = [
    ("x0^2", "x0**2"),
    ("square(x0)", "x0*x0"),
    ("cube(x0)", "x0**3.0"),
    ("ln(x0)", "log(x0)"),
    ("asin(x0)", "arcsin(x0)"),
    ("acos(x0) + atan(x1)", "arccos(x0) + arctan(x1)"),
    ("inv(x0)", "1/x0"),
    ("neg(x0)", "-x0"),
    ("Abs(x0)", "abs(x0)"),
    ("add(x0, mul(x1, x2))", "x0 + x1*x2"),
    ("sub(x0, div(x1, x2))", "x0 - x1/x2"),
    ("sqrt(x0)", "x0**0.5"),
    ("pow(x0, 2)", "x0^2"),
    ("1e-1*x0", "0.1*x0"),
    ("2*pi*x0", "6.283185307179586*x0"),
]


@pytest.mark.parametrize(("text", "same"), SPELLINGS)
def test_spellings(text, same):
    assert sympy.simplify(to_sympy(text, COLUMNS) - to_sympy(same, COLUMNS)) == 0
    np.testing.assert_allclose(evaluate(text, ROWS), evaluate(same, ROWS), rtol=1e-14)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x0 +",
        "x3",
        "y",
        "__import__('os').system('true')",
        "(lambda: 1)()",
        "x0.real",
        "[x0]",
        "open('f')",
        "sin(x0, x1)",
        "exp(exp(exp(9)))",
        "log(-1)*x0",
        "1/0",
        "x0 if x1 else x2",
        "(" * 500 + "x0" + ")" * 500,
    ],
)
def test_what_is_no_formula_is_refused(text):
    with pytest.raises(Unreadable):
        to_sympy(text, COLUMNS)


def test_renaming_is_done_at_once():
    assert rename("x1*exp(x2) + x12", {"x1": "x0", "x2": "x1", "x12": "x2"}) == "x0*exp(x1) + x2"


@pytest.mark.parametrize(
    ("text", "nodes"),
    [
        ("x0", 1),
        ("x0*x1", 3),
        ("x0/x1", 3),
        ("x0 - x1", 3),
        ("-x0 - x1", 4),
        ("-2*x0 - 3", 5),
        ("-x0", 2),
        ("1/x0", 2),
        ("2.5/x0", 3),
        ("1/(x0*x1)", 4),
        ("x0**2", 2),
        ("x0*x0", 2),
        ("x0**6", 2),
        ("1/x0**2", 3),
        ("x1/x0**2", 4),
        ("sqrt(x0)", 2),
        ("x0/sqrt(x1)", 4),
        ("exp(0.5*log(abs(x0)))", 3),
        ("x0**0.426", 3),
        ("2*pi*x0", 3),
        ("3/(8*pi)*x0", 3),
        ("x0 - 2.5*x1**2", 6),
        ("0.5*(x0 + x1)", 5),
        ("1.0000000000000002*x0", 1),
        ("sin(2*x0 + 1)", 6),
        ("x0 + x0", 3),
        ("exp(-x0)", 3),
    ],
)
def test_nodes(text, nodes):
    assert count(to_sympy(text, COLUMNS)) == nodes


def test_powers_are_counted_as_powers():
    x, y = symbols(2, [True, True])
    assert count(to_sympy("exp(x1*log(x0))", (x, y))) == count(to_sympy("x0**x1", (x, y))) == 3


def test_common_factors_stand_in_front_where_size_is_limited():
    expanded = to_sympy("0.5*x0*x1**2 + 0.5*x0*x2**2 + 3", COLUMNS)
    assert count(expanded) == 15
    assert least(expanded) == count(to_sympy("0.5*x0*(x1**2 + x2**2) + 3", COLUMNS)) == 11


# As symbayes found it on a Feynman problem.
LONG = """
-24.090880218239288*((3.0162714988838026e-06*x1 + 0.0032056145896065258)*x2
- cos(1.0196688423891911*x2 - 0.81179378138255021))
- 20.429323297126501*cos(-0.1105491694944005*arcsin(x1/x0/x2) + 0.44553907383002456 - x2)
- 8.8461992848917674*sin(x2)
+ 0.1194017555069396*(tanh(0.17144653198424359*exp(x1) + 1.6973023134970835) + x2)
- 0.30156488408691889*x1/(x0 + sin((3.1215284147083939*tanh(x1/(x0*x2)) - 0.80439545446072647)**2))
- 3.9154013256308784*cos(tanh(cos(x2 + x2)/(-0.31218539063540224*x2 - 0.37480368383896723)
/(x0 - (1.0645649173953555*x1 - 1.4093168354179537)))/(x1 - (2.7645953744750535*x2
+ 2.5488539458310586))) + 5.9917316760587482
""".replace("\n", " ")


@pytest.mark.parametrize("function", ["sin", "cos", "tan", "tanh", "arcsin", "arctan", "abs"])
@pytest.mark.parametrize(
    "argument",
    ["-0.3*x0 - 0.1", "-x0 - (-x1 - x2)", "-(-x0*(-x1 - 0.4) - 0.1)", "-2*(x0 - x1)"],
)
def test_a_sum_of_negative_terms_is_read_inside_a_function(function, argument):
    for text in (f"{function}({argument})", f"{function}(-0.5*({argument}) - 0.1)"):
        expression = to_sympy(text, COLUMNS)
        with np.errstate(invalid="ignore"):
            values = sympy.lambdify(COLUMNS, expression, "numpy")(*ROWS.T)
        np.testing.assert_allclose(values, evaluate(text, ROWS), rtol=1e-12)


def test_a_long_formula_is_read():
    expression = to_sympy(LONG, COLUMNS)
    assert count(expression) == 101
    assert count(expression) == count(to_sympy(str(expression), COLUMNS))


def test_sympy_is_left_as_it_was():
    x, y = sympy.symbols("x y")
    before = -(x + y), 2 * (x + y)
    to_sympy("-(x0 + x1)*2", COLUMNS)
    with pytest.raises(Unreadable):
        to_sympy("-(x0 + x1)*y", COLUMNS)
    assert (-(x + y), 2 * (x + y)) == before
