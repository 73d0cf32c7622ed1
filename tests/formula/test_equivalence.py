"""Equality up to algebra."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from symbayes import OPERATORS, Formula
from symbayes.formula.equivalence import equivalent

from .formulas import MODERATE, UNARY, expressions, value

NAMES = ["x", "y", "z"]


def same(first, second, **options):
    first, second = Formula(first, NAMES), Formula(second, NAMES)
    found = first.is_equivalent(second, **options)
    assert second.is_equivalent(first, **options) is found
    return found


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("(x + 1)**2", "x**2 + 2*x + 1"),
        ("(x + 0.1)**2", "x**2 + 0.2*x + 0.01"),
        ("x*y*z", "z*(y*x)"),
        ("x/(y/z)", "x*z/y"),
        ("sin(x)**2 + cos(x)**2", "1"),
        ("sqrt(x**2)", "abs(x)"),
        ("tan(x)", "sin(x)/cos(x)"),
        ("tanh(x)", "(exp(2*x) - 1)/(exp(2*x) + 1)"),
        ("arcsin(x)", "pi/2 - arccos(x)"),
        ("log(exp(x)) - x", "0"),
        ("x/x", "1"),
        ("x + 0*y", "x"),
        ("3", "1 + 2"),
        ("exp(x)/exp(x)", "1"),  # overflows, but only in double precision
        ("(x**2 + 1e16) - 1e16", "x**2"),  # loses all digits, but only in double precision
        ("sqrt(x - 1000)*sqrt(1001 - x)", "sqrt((x - 1000)*(1001 - x))"),  # a narrow domain
        ("log(x)*log(y)*log(z)", "log(z)*log(y)*log(x)"),
        ("exp(exp(exp(x)))", "exp(exp(exp(x + 0*y)))"),
    ],
)
def test_equal_up_to_algebra(first, second):
    assert same(first, second)
    assert Formula(first, NAMES) != Formula(second, NAMES)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("x", "y"),
        ("x", "x + 1e-3*sin(x)"),
        ("x", "x + 1e-6*sin(x)"),
        ("x", "1.0000001*x"),
        ("x", "x + exp(-(x - 50)**2)"),  # only near 50
        ("x", "x + exp(-(x - 50)**2)*sin(y)"),
        ("sqrt(x**2)", "x"),
        ("log(x**2)", "2*log(x)"),  # the first has values for negative x
        ("log(x*y)", "log(x) + log(y)"),
        ("sqrt(x)**2", "x"),
        ("exp(log(x))", "x"),
        ("arcsin(sin(x))", "x"),
        ("arctan(x) + arctan(1/x)", "pi/2"),
        ("0", "exp(-x**2)"),
        ("(x + 1e16) - 1e16 + 3", "x"),
        ("log(-1 - x**2)", "sqrt(-1 - x**2)"),  # no value anywhere
    ],
)
def test_different_functions(first, second):
    assert not same(first, second)


def test_a_formula_is_equivalent_to_itself_even_without_values():
    assert same("log(-1 - x**2)", "log(-1 - x**2)")


def test_columns_are_matched_by_name():
    formula = Formula("a - 2*b", ["a", "b"])
    assert formula.is_equivalent(Formula("a - b - b", ["c", "b", "a"]))
    assert not formula.is_equivalent(Formula("b - 2*a", ["b", "a"]))
    assert not formula.is_equivalent(Formula("a - 2*c", ["a", "c"]))
    assert Formula("a", ["a"]).is_equivalent(Formula("a + c - c", ["c", "a"]))
    assert not Formula("a", ["a"]).is_equivalent(Formula("b", ["b"]))


def test_constants_count_as_equal_within_a_tolerance():
    assert not same("0.333333*x", "x/3")
    assert same("0.333333*x", "x/3", rtol=1e-5)
    assert same("2.0000001*sin(3.0000002*x)", "2*sin(3*x)", rtol=1e-6)
    assert not same("2.0000001*sin(3.0002*x)", "2*sin(3*x)", rtol=1e-6)
    assert same("x/4 + x/4", "0.5*x", rtol=0)


def test_the_answer_is_the_same_each_time():
    first, second = Formula("sin(x)*y", NAMES), Formula("y*sin(x + 1e-9)", NAMES)
    assert len({first.is_equivalent(second) for _ in range(3)}) == 1


@pytest.mark.parametrize("name", [name for name in OPERATORS if name != "lt"])
def test_every_operator_is_computed_with_many_digits(name):
    operands = [("x", 0), ("x", 1)][: OPERATORS[name].arity]
    plain, other = (name, *operands), ("+", (name, *operands), ("-", ("x", 2), ("x", 2)))
    assert equivalent(plain, other, 3, 1e-9)
    assert not equivalent(plain, ("+", plain, ("*", ("c", 1e-5), ("x", 0))), 3, 1e-9)


@given(expressions(MODERATE, max_leaves=6), st.sampled_from(["commute", "double", "shift", "fold"]))
@settings(max_examples=60, deadline=None, derandomize=True)
def test_a_formula_rewritten_is_the_same(expression, how):
    def rewritten(node):
        if node[0] not in OPERATORS:
            return node
        node = (node[0], *map(rewritten, node[1:]))
        return (node[0], node[2], node[1]) if node[0] in ("+", "*") else node

    other = {
        "commute": rewritten(expression),
        "double": ("*", ("c", 0.5), ("+", expression, expression)),
        "shift": ("-", ("+", expression, ("x", 0)), ("x", 0)),
        "fold": ("neg", ("neg", expression)),
    }[how]
    defined = np.isfinite(value(expression, np.random.default_rng(1).uniform(0.1, 2, (3, 50))))
    if defined.all():
        assert equivalent(expression, other, 3, 1e-9)


@given(expressions(MODERATE, max_leaves=6), st.sampled_from(UNARY))
@settings(max_examples=60, deadline=None, derandomize=True)
def test_different_values_are_seen(expression, name):
    table = np.random.default_rng(2).uniform(-2, 2, (3, 200))
    other = (name, expression)
    a, b = value(expression, table), value(other, table)
    with np.errstate(all="ignore"):
        far = np.abs(a - b) > 1e-3 * np.maximum(np.abs(a), np.abs(b))
    if far.mean() > 0.2:  # nan is not far
        assert not equivalent(expression, other, 3, 1e-9)


@pytest.mark.parametrize(
    ("other", "options", "error", "says"),
    [
        ("x", {}, TypeError, "other must be a Formula, not str"),
        (None, {"rtol": "a"}, TypeError, "rtol must be a number, not str"),
        (None, {"rtol": True}, TypeError, "rtol must be a number, not bool"),
        (None, {"rtol": -1.0}, ValueError, "rtol is -1.0; it must be from 0 to less than 1"),
        (None, {"rtol": float("nan")}, ValueError, "rtol is nan"),
    ],
)
def test_errors(other, options, error, says):
    formula = Formula("x", NAMES)
    with pytest.raises(error, match=says):
        formula.is_equivalent(formula if other is None else other, **options)
