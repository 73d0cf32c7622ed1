"""Text to expression and back."""

import contextlib
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from symbayes import OPERATORS
from symbayes.expression import evaluate, n_nodes, to_text
from symbayes.parser import FormulaSyntaxError, integer_power, parse

NAMES = ["x0", "x1", "x2"]
UNARY = [name for name, row in OPERATORS.items() if row.arity == 1 and name != "lt"]
BINARY = [name for name, row in OPERATORS.items() if row.arity == 2]
RNG = np.random.default_rng(30)
TABLE = np.concatenate([RNG.normal(0, 2, (3, 20)), np.zeros((3, 1)), np.ones((3, 1))], axis=1)

SPECIAL = [1.0, -1.0, 0.0, 2.0, 0.1, 1e-9, -2.5e16, 1e300, 5e-324]
NUMBERS = st.one_of(
    st.sampled_from(SPECIAL), st.floats(-1e3, 1e3).map(lambda value: value + 0.0)
).map(lambda value: ("c", value))
COLUMNS = st.integers(0, 2).map(lambda i: ("x", i))


def grouped_from_the_left(name, left, right):
    """Hide sums in sums and products in products, which a printed form regroups."""
    if name in ("+", "*"):
        right = ("sin", right)
    return (name, left, right)


def extended(unary, binary, build):
    return lambda inner: st.one_of(
        st.tuples(st.sampled_from(unary), inner),
        st.builds(build, st.sampled_from(binary), inner, inner),
    )


ALL = st.recursive(
    st.one_of(COLUMNS, NUMBERS), extended(UNARY, BINARY, grouped_from_the_left), max_leaves=12
)
# Whole numbers small enough for exact arithmetic, however it is grouped.
WHOLE = st.recursive(
    st.one_of(COLUMNS, st.integers(-3, 3).map(lambda value: ("c", float(value)))),
    extended(["neg"], ["+", "-", "*"], lambda name, left, right: (name, left, right)),
    max_leaves=16,
)


def value(expression, table=TABLE):
    with np.errstate(all="ignore"):
        return evaluate(expression, table)


@given(ALL)
@settings(max_examples=400, deadline=None, derandomize=True)
def test_printed_formula_is_the_computed_one_to_the_last_bit(expression):
    text = to_text(expression, NAMES, digits=17)
    np.testing.assert_array_equal(value(parse(text, NAMES)), value(expression), err_msg=text)


@given(WHOLE)
@settings(max_examples=400, deadline=None, derandomize=True)
def test_regrouping_never_changes_the_meaning(expression):
    table = np.array([[1.0, 2.0, -3.0, 5.0], [7.0, -2.0, 0.0, 1.0], [-1.0, 3.0, 4.0, -6.0]])
    text = to_text(expression, NAMES, digits=17)
    np.testing.assert_array_equal(
        value(parse(text, NAMES), table), value(expression, table), err_msg=text
    )


@given(WHOLE)
@settings(max_examples=200, deadline=None, derandomize=True)
def test_python_reads_the_same(expression):
    columns = {"x0": 3.0, "x1": -2.0, "x2": 5.0}
    text = to_text(expression, NAMES, digits=17)
    assert eval(text, {}, columns) == value(expression, np.array([[3.0], [-2.0], [5.0]]))[0]


@given(ALL)
@settings(max_examples=200, deadline=None, derandomize=True)
def test_text_is_stable_once_read(expression):
    once = parse(to_text(expression, NAMES, digits=17), NAMES)
    text = to_text(once, NAMES, digits=17)
    assert to_text(parse(text, NAMES), NAMES, digits=17) == text


@given(st.text(alphabet="x01 +-*/^().,`\\e2sin$\n", max_size=25))
@settings(max_examples=500, deadline=None, derandomize=True)
def test_any_text_is_read_or_refused(text):
    with contextlib.suppress(FormulaSyntaxError):  # the only error there is
        assert n_nodes(parse(text, NAMES)) >= 1


@pytest.mark.parametrize("name", UNARY)
def test_every_function_by_name(name):
    assert parse(f"{name}(x0)", NAMES) == (name, ("x", 0))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x0 + x1*x2", ("+", ("x", 0), ("*", ("x", 1), ("x", 2)))),
        ("(x0 + x1)*x2", ("*", ("+", ("x", 0), ("x", 1)), ("x", 2))),
        ("x0 - x1 - x2", ("-", ("-", ("x", 0), ("x", 1)), ("x", 2))),
        ("x0/x1/x2", ("/", ("/", ("x", 0), ("x", 1)), ("x", 2))),
        ("x0/x1*x2", ("*", ("/", ("x", 0), ("x", 1)), ("x", 2))),
        ("-x0**2", ("neg", ("square", ("x", 0)))),
        ("(-x0)**2", ("square", ("neg", ("x", 0)))),
        ("-x0*x1", ("*", ("neg", ("x", 0)), ("x", 1))),
        ("x0*-x1", ("*", ("x", 0), ("neg", ("x", 1)))),
        ("x0 - -x1", ("-", ("x", 0), ("neg", ("x", 1)))),
        ("+x0", ("x", 0)),
        ("-3", ("c", -3.0)),
        ("--3", ("c", 3.0)),
        ("-3**2", ("neg", ("square", ("c", 3.0)))),
        ("1/x0", ("inv", ("x", 0))),
        ("2/x0", ("/", ("c", 2.0), ("x", 0))),
        ("x0^3", ("cube", ("x", 0))),
        ("x0**1", ("x", 0)),
        ("x0**-2", ("inv", ("square", ("x", 0)))),
        ("sin(x0)**2", ("square", ("sin", ("x", 0)))),
        ("\t x0\n+ 1 ", ("+", ("x", 0), ("c", 1.0))),
    ],
)
def test_precedence_signs_and_powers(text, expected):
    assert parse(text, NAMES) == expected


@pytest.mark.parametrize("text", ["1", "1.", ".5", "1.5e3", "2E-3", "1e+16"])
def test_numbers(text):
    assert parse(text, NAMES) == ("c", float(text))


@pytest.mark.parametrize("exponent", range(1, 13))
def test_integer_powers(exponent):
    x = np.array([[-2.0, 0.5, 3.0]])
    np.testing.assert_allclose(
        value(integer_power(("x", 0), exponent), x), x[0] ** exponent, rtol=1e-14
    )
    np.testing.assert_allclose(
        value(parse(f"x0**-{exponent}", NAMES), x), x[0] ** -float(exponent), rtol=1e-14
    )


WEIRD = ["a b", "x^2", "sin", "λ", "a`b", "a\\b", "\\", "`", "1st", "", "lt", "a\nb", "x²", "+"]


@pytest.mark.parametrize("name", WEIRD)
def test_names_of_any_kind(name):
    expression = ("+", ("sin", ("x", 1)), ("square", ("x", 0)))
    text = to_text(expression, ["plain", name])
    assert parse(text, ["plain", name]) == expression


@given(st.lists(st.text(max_size=6), min_size=2, max_size=3, unique=True))
@settings(max_examples=200, deadline=None, derandomize=True)
def test_any_names(names):
    expression = ("*", ("x", 0), ("exp", ("x", 1)))
    assert parse(to_text(expression, names), names) == expression


def test_plain_words_stand_without_quotes():
    assert to_text(("+", ("x", 0), ("x", 1)), ["age", "λ_1"]) == "age + λ_1"
    assert to_text(("sin", ("x", 0)), ["sin"]) == "sin(`sin`)"
    assert parse("sin(sin)", ["sin"]) == ("sin", ("x", 0))


@pytest.mark.parametrize(
    ("text", "position", "says"),
    [
        ("", 0, "expected a value, but the formula ends"),
        ("x0 +", 4, "expected a value, but the formula ends"),
        ("x0 + *", 5, r"expected a value, found '\*'"),
        ("(x0", 3, r"expected '\)', but the formula ends"),
        ("x0)", 2, r"expected an operator, found '\)'"),
        ("x0 x1", 3, "expected an operator, found 'x1'"),
        ("2x0", 1, "expected an operator, found 'x0'"),
        ("x0 $ x1", 3, r"'\$' is not part of a formula"),
        ("`x0", 0, "'`' is not part of a formula"),
        ("x0 + age", 5, "'age' is not a column; known are x0, x1, x2"),
        ("sinus(x0)", 0, "'sinus' is not a function; known are .*sin"),
        ("lt(x0)", 0, "'lt' is not a function"),
        ("sin()", 4, r"expected a value, found '\)'"),
        ("sin(x0, x1)", 6, r"expected '\)', found ','"),
        ("x0**x1", 4, "a power must be an integer"),
        ("x0**0.5", 4, "a power must be an integer"),
        ("x0**0", 4, "a power must be an integer"),
        ("x0**13", 4, "from 1 to 12"),
        ("x0**2**2", 4, "a power must be an integer"),
        ("1e400*x0", 0, "1e400 is too large for a number"),
    ],
)
def test_errors_say_what_and_where(text, position, says):
    with pytest.raises(FormulaSyntaxError, match=f"{says}.*at position {position} of"):
        parse(text, NAMES)
    assert issubclass(FormulaSyntaxError, ValueError)


@pytest.mark.parametrize(
    "text",
    [
        "(" * 5000 + "x0" + ")" * 5000,
        "sin(" * 5000 + "x0" + ")" * 5000,
        "-" * 5000 + "x0",
        "x0" + " + x0" * 5000,
        "x0" + "/x0" * 5000,
    ],
)
def test_deep_nesting_is_refused(text):
    with pytest.raises(FormulaSyntaxError, match="nested too deeply, more than 100 levels"):
        parse(text, NAMES)


def test_what_is_accepted_can_be_printed_and_evaluated():
    assert sys.getrecursionlimit() >= 1000
    for text in ("(" * 60 + "x0" + ")" * 60, "x0" + " + x0" * 90, "sin(" * 60 + "x0" + ")" * 60):
        expression = parse(text, NAMES)
        assert parse(to_text(expression, NAMES), NAMES) == expression
        assert np.isfinite(value(expression)).all()
