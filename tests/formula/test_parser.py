"""Text to expression and back."""

import contextlib
import math
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from symbayes.formula.expression import integer_power, n_nodes
from symbayes.formula.parser import FormulaSyntaxError, parse
from symbayes.formula.printing import to_text

from .formulas import UNARY, value

NAMES = ["x0", "x1", "x2"]


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


def test_other_names_of_functions():
    for alias, name in (("ln", "log"), ("asin", "arcsin"), ("acos", "arccos"), ("atan", "arctan")):
        assert parse(f"{alias}(x0)", NAMES) == (name, ("x", 0))
        assert parse(f"{alias}({alias})", [alias]) == (name, ("x", 0))
        assert to_text(("x", 0), [alias]) == f"`{alias}`"


def test_pi_is_a_number_unless_it_is_a_column():
    assert parse("2*pi", NAMES) == ("*", ("c", 2.0), ("c", math.pi))
    assert parse("2*pi", ["pi"]) == ("*", ("c", 2.0), ("x", 0))
    with pytest.raises(FormulaSyntaxError, match="'pi' is not a column"):
        parse("`pi`", NAMES)


def test_a_message_lists_few_of_many_columns():
    names = [f"col{i}" for i in range(1000)]
    with pytest.raises(FormulaSyntaxError, match=r"known are col0, .*, col19 and 980 more, at"):
        parse("y", names)


@pytest.mark.parametrize("exponent", range(1, 13))
def test_integer_powers(exponent):
    x = np.array([[-2.0, 0.5, 3.0]])
    np.testing.assert_allclose(
        value(integer_power(("x", 0), exponent), x), x[0] ** exponent, rtol=1e-14
    )
    np.testing.assert_allclose(
        value(parse(f"x0**-{exponent}", NAMES), x), x[0] ** -float(exponent), rtol=1e-14
    )


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
        ("x0²", 0, r"'x0²' is not a column \(a power is written as in x\^2\); known are"),
        ("(x0", 3, r"expected '\)', but the formula ends"),
        ("x0)", 2, r"expected an operator, found '\)'"),
        ("x0 x1", 3, "expected an operator, found 'x1'"),
        ("2x0", 1, "expected an operator, found 'x0'"),
        ("x0 $ x1", 3, r"'\$' is not part of a formula"),
        ("`x0", 0, "'`' is not part of a formula"),
        ("x0 + age", 5, "'age' is not a column; known are x0, x1, x2"),
        ("x0 + `X1 `", 5, r"'X1 ' is not a column \(did you mean 'x1'\?\); known are x0, x1, x2"),
        ("2*e", 2, r"'e' is not a column \(Euler's number is exp\(1\)\)"),
        ("sin x0", 0, r"'sin' is not a column but a function, as in sin\(...\)"),
        ("ln x0", 0, r"'ln' is not a column but a function, as in ln\(...\)"),
        ("sinus(x0)", 0, r"'sinus' is not a function \(did you mean 'sin'\?\); known are .*sin"),
        ("pow(x0, 2)", 0, r"'pow' is not a function \(did you mean 'square' or 'cube'\?\)"),
        ("x0(x1)", 0, r"'x0' is not a function but a column, and a product needs a \*"),
        ("lt(x0)", 0, "'lt' is not a function"),
        ("sin()", 4, r"expected a value, found '\)'"),
        ("sin(x0, x1)", 6, r"expected '\)', found ','"),
        ("(x0 ``", 4, r"expected '\)', found ''"),
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


def test_powers_of_powers_do_not_grow_without_end():
    text = "x0"
    for _ in range(20):
        text = f"({text})^11"
    with pytest.raises(FormulaSyntaxError, match="too long, more than 10000 columns and constants"):
        parse(text, NAMES)
    row = "+".join(["x0"] * 90)
    with pytest.raises(FormulaSyntaxError, match="too long"):
        parse("+".join([f"({'+'.join([f'({row})'] * 50)})"] * 50), NAMES)


def test_much_space_is_no_matter():
    text = " " * 200_000 + "x0" + "\t" * 200_000
    assert parse(text, NAMES) == ("x", 0)


def test_what_is_accepted_can_be_printed_and_evaluated():
    assert sys.getrecursionlimit() >= 1000
    for text in ("(" * 60 + "x0" + ")" * 60, "x0" + " + x0" * 90, "sin(" * 60 + "x0" + ")" * 60):
        expression = parse(text, NAMES)
        assert parse(to_text(expression, NAMES), NAMES) == expression
        assert np.isfinite(value(expression)).all()


@pytest.mark.parametrize("text", ["mass (kg)*speed", "2*mass (kg)", "speed + mass (kg)"])
def test_a_name_of_several_words_needs_backticks_and_is_told_so(text):
    with pytest.raises(
        FormulaSyntaxError, match=r"write the column as `mass \(kg\)`, in backticks"
    ):
        parse(text, ["speed", "mass (kg)"])
    with pytest.raises(FormulaSyntaxError) as other:
        parse(text.replace("mass (kg)", "height"), ["speed", "mass (kg)", ""])
    assert "backticks" not in str(other.value)
