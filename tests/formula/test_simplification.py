"""SymPy's simplifications are taken where they are shorter, the same, and can be written."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from symbayes import Formula
from symbayes.formula.expression import n_nodes
from symbayes.formula.printing import to_text
from symbayes.formula.simplification import simplified

from .formulas import expressions

NAMES, COLUMN_NAMES = ["x", "y"], ["x", "y", "z"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x + x", "2*x"),
        ("sqrt(exp(x))", "exp(0.5*x)"),
        ("3*x*x*x", "3*x**3"),
        ("sin(x)**2 + cos(x)**2", "1"),
        ("x - y - x + 2", "-y + 2"),
        ("x*y/x", "y"),
        ("exp(x)*exp(y)", "exp(x + y)"),
        ("sqrt(x**2)", "abs(x)"),
        ("1/(1/x)", "x"),
        ("2.5*sin(x) + 1", "2.5*sin(x) + 1"),
        ("x*y - x", "x*y - x"),
    ],
)
def test_known_ones(text, expected):
    found = Formula(text, NAMES).simplify()
    wanted = Formula(expected, NAMES)
    assert found.is_equivalent(wanted)
    assert found.n_nodes <= wanted.n_nodes


def test_what_is_short_stays_as_it_is():
    formula = Formula("2*sin(x) + y", NAMES)
    assert formula.simplify() is formula


def test_domains_stay():
    """log(x**2) is not 2 log(x), and x/x keeps its value everywhere but at a point."""
    assert "**2" in str(Formula("log(x**2)", NAMES).simplify())
    assert str(Formula("x/x", NAMES).simplify()) == "1"


def test_long_formulas_stay():
    long = Formula(" + ".join(["x"] * 40), NAMES)
    assert long.simplify() is long


# SymPy cannot do anything sensible with the extreme ones.
NUMBERS = st.integers(-20, 20).map(lambda n: n / 4)


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(expressions(NUMBERS, max_leaves=5))
def test_never_longer_and_it_can_be_written(expression):
    found = simplified(expression)
    assert n_nodes(found) <= n_nodes(expression)
    table = np.random.default_rng(0).uniform(-2, 2, (20, len(COLUMN_NAMES)))
    formula = Formula(to_text(found, COLUMN_NAMES, 17), COLUMN_NAMES)
    assert len(formula.predict(table)) == 20
