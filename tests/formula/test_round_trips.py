"""Every way to write a formula, for random formulas over every operator and any column names."""

import ast
import re
from xml.etree import ElementTree

import numpy as np
import pytest
import sympy
from hypothesis import example, given, settings
from hypothesis import strategies as st
from matplotlib.mathtext import MathTextParser

from symbayes import OPERATORS, Formula
from symbayes.formula import expression as ex
from symbayes.formula.parser import parse
from symbayes.formula.printing import to_text

from .formulas import (
    ANY_NAMES,
    HOSTILE,
    MODERATE,
    TABLE,
    UNARY,
    assert_same_bits,
    expressions,
    tree_of,
    value,
)

NAMES = ["x0", "x1", "x2"]
MATHTEXT = MathTextParser("path")


def often(n):
    return settings(max_examples=n, deadline=None, derandomize=True)


def formula_of(expression, names=NAMES):
    return Formula._from_expression(expression, names)


def check_text(formula):
    text = formula.text(digits=17)
    again = Formula(text, formula.feature_names)
    assert_same_bits(again.predict(TABLE.T), formula.predict(TABLE.T), text)
    assert Formula(again.text(digits=17), formula.feature_names) == again
    for digits in (1, 6):  # fewer digits, but still a formula
        Formula(formula.text(digits), formula.feature_names)


def check_numpy(formula):
    code = formula.numpy_code()
    statements = ast.parse(code).body
    assert [type(node) for node in statements] == [ast.Import, ast.FunctionDef], code
    namespace = {}
    exec(code, namespace)
    assert_same_bits(namespace["formula"](TABLE.T), formula.predict(TABLE.T), code)


def check_latex(formula):
    latex = formula.latex()
    depth = 0
    for brace in re.findall(r"[{}]", re.sub(r"\\[^a-zA-Z]", "", latex)):
        depth += 1 if brace == "{" else -1
        assert depth >= 0, latex
    assert depth == 0, latex
    assert latex.count(r"\left") == latex.count(r"\right")
    assert not re.search(r"[\x00-\x1f]|(?<!\\)[$%]", latex), latex
    MATHTEXT.parse(formula._repr_latex_())


def check_mathml(formula):
    root = ElementTree.fromstring(formula.mathml())
    assert root.tag == "{http://www.w3.org/1998/Math/MathML}math"
    tags = {element.tag.rpartition("}")[2] for element in root.iter()}
    assert tags <= {"math", "mrow", "mi", "mn", "mo", "mfrac", "msup", "msub", "msqrt", "mspace"}
    for element in root.iter():
        if element.tag.endswith(("mfrac", "msup", "msub")):
            assert len(element) == 2
    text = "".join(root.itertext())
    for name in formula.features:
        if name.isprintable() and name.strip():
            assert re.sub(r"^(\w)_(\d+)$", r"\1\2", name) in text, name
        else:
            assert text.strip("\u2061\u2062"), name


def check_sympy(formula):
    """Where the formula is finite inside and not all noise, SymPy has the same values."""
    expression, table = formula._expression, TABLE[:, :20]
    expected = value(expression, table)
    sure = np.isfinite(expected)
    for node in nodes_of(expression):
        sure &= np.abs(value(node, table)) < 1e100
    rng = np.random.default_rng(7)
    with np.errstate(all="ignore"):
        for _ in range(3):
            moved = noisy_value(expression, table, rng)
            sure &= np.abs(moved - expected) <= 1e-5 * np.abs(expected)
        if sure.any():
            symbols = [sympy.Symbol(name) for name in formula.feature_names]
            function = sympy.lambdify(symbols, formula.sympy(), "numpy")
            found = np.broadcast_to(function(*table[:, sure]), sure.sum())
            np.testing.assert_allclose(found, expected[sure], rtol=1e-8, err_msg=str(formula))


def noisy_value(node, table, rng):
    """The value when every step loses digits."""
    if node[0] in OPERATORS:
        operands = [noisy_value(operand, table, rng) for operand in node[1:]]
        result = OPERATORS[node[0]].numpy(*operands)
    else:
        result = ex.evaluate(node, table)
    return result * rng.normal(1, 1e-10, table.shape[1])


def nodes_of(expression):
    yield expression
    if expression[0] in OPERATORS:
        for operand in expression[1:]:
            yield from nodes_of(operand)


CHECKS = [check_text, check_numpy, check_latex, check_mathml, check_sympy]


@pytest.mark.parametrize("name", OPERATORS)
def test_every_operator(name):
    tree = tree_of(name)
    inner = ("-", ("*", ("c", -1.5), ("x", 1)), ("c", 0.25))
    for check in CHECKS:
        check(formula_of(tree))
        for around in OPERATORS:
            if around != "lt":
                check(formula_of((around, tree, inner)[: 1 + OPERATORS[around].arity]))
        check(formula_of(("/", ("c", 3.0), tree), ["a b", "$", "<x>"]))


@given(expressions())
@often(500)
def test_text_gives_every_formula_back_to_the_last_bit(expression):
    check_text(formula_of(expression))


@given(expressions())
@often(300)
def test_numpy_code_computes_the_same_to_the_last_bit(expression):
    check_numpy(formula_of(expression))


@given(expressions(MODERATE, max_leaves=8))
@often(60)
def test_sympy_has_the_same_values(expression):
    check_sympy(formula_of(expression))


@given(expressions())
@often(100)
def test_latex_can_be_read(expression):
    check_latex(formula_of(expression))


@given(expressions())
@often(200)
def test_mathml_is_well_formed(expression):
    check_mathml(formula_of(expression))


ALL_COLUMNS = (
    "+",
    ("*", ("c", 2.0), ("x", 0)),
    ("/", ("square", ("x", 1)), ("*", *[("x", 2)] * 2)),
)


def with_hostile_names(test):
    """Have Hypothesis try every hostile name, each beside two plain ones, before any others."""
    for name in HOSTILE:
        test = example([name, "plain", "y"])(test)
    return test


@with_hostile_names
@given(ANY_NAMES)
@often(100)
def test_any_names_in_every_notation(names):
    formula = formula_of(ALL_COLUMNS, names)
    for check in CHECKS:
        check(formula)
    assert Formula(str(formula), names) == formula
    # No name ends the comment that it stands in.
    comments = formula.numpy_code().splitlines()[6:9]
    assert comments == [f"    # x[{i}] is {name!r}" for i, name in enumerate(names)]
    assert [ast.literal_eval(line.partition(" is ")[2]) for line in comments] == names


# Whole numbers small enough for exact arithmetic, however it is grouped.
WHOLE = st.recursive(
    st.one_of(
        st.integers(0, 2).map(lambda i: ("x", i)), st.integers(-3, 3).map(lambda i: ("c", float(i)))
    ),
    lambda inner: st.one_of(
        st.tuples(st.just("neg"), inner), st.tuples(st.sampled_from(["+", "-", "*"]), inner, inner)
    ),
    max_leaves=16,
)


@given(WHOLE)
@often(300)
def test_text_without_needless_parentheses_means_the_same(expression):
    table = np.array([[1.0, 2.0, -3.0, 5.0], [7.0, -2.0, 0.0, 1.0], [-1.0, 3.0, 4.0, -6.0]])
    text = to_text(expression, NAMES, digits=6)
    np.testing.assert_array_equal(
        value(parse(text, NAMES), table), value(expression, table), err_msg=text
    )


@given(WHOLE)
@often(200)
def test_python_reads_the_same(expression):
    columns = {"x0": 3.0, "x1": -2.0, "x2": 5.0}
    text = to_text(expression, NAMES, digits=6)
    assert eval(text, {}, columns) == value(expression, np.array([[3.0], [-2.0], [5.0]]))[0]


def test_every_operator_is_drawn():
    assert {*UNARY, "+", "-", "*", "/", "lt"} == set(OPERATORS)
