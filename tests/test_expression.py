"""Expressions: from nodes, linear combinations, printing, SymPy."""

import numpy as np
import pytest
import sympy

from symbayes import OPERATORS
from symbayes import expression as ex
from symbayes.kernels.tree import NODE
from symbayes.parser import parse

X0, X1 = ("x", 0), ("x", 1)


def test_affine_leaves_out_ones_and_zeros():
    assert ex.affine(1.0, X0, 0.0) == X0
    assert ex.affine(-1.0, X0, 0.0) == ("neg", X0)
    assert ex.affine(2.0, X0, 0.0) == ("*", ("c", 2.0), X0)
    assert ex.affine(1.0, X0, 3.0) == ("+", X0, ("c", 3.0))
    assert ex.affine(1.0, X0, -3.0) == ("-", X0, ("c", 3.0))


def test_linear_combination():
    def text(*arguments):
        return ex.to_text(ex.linear_combination(*arguments), ["x0", "x1"])

    assert text(1.5, [], []) == "1.5"
    assert text(0.0, [0.0, 0.0], [X0, X1]) == "0"
    assert text(0.0, [2.0, -3.0], [X0, X1]) == "2*x0 - 3*x1"
    assert text(-1.0, [-1.0, 1.0], [X0, X1]) == "-x0 + x1 - 1"
    assert text(4.0, [0.0, -1.0], [X0, X1]) == "-x1 + 4"


@pytest.mark.parametrize("name", OPERATORS)
def test_from_nodes_reads_the_right_columns(name):
    operator = OPERATORS[name]
    nodes = np.zeros(1 + operator.arity, NODE)
    nodes["op"][0] = operator.opcode
    nodes["feature"][1:] = np.arange(operator.arity)
    nodes["a"][0], nodes["b"][0] = 2.0, -0.5
    expression = ex.from_nodes(nodes, [2, 0])
    columns = np.array([[0.3, 0.2], [9.0, 9.0], [0.7, 0.4]])
    operands = [columns[2], columns[0]][: operator.arity]
    constants = (2.0, -0.5) if name == "lt" else ()
    np.testing.assert_array_equal(
        ex.evaluate(expression, columns), operator.numpy(*operands, *constants)
    )
    assert ex.features(expression) == ({2, 0} if operator.arity == 2 else {2})
    assert "lt" not in ex.to_text(expression, ["p", "q", "r"])


def test_n_nodes_and_features():
    expression = parse("2*sin(x0) + x0*x2", ["x0", "x1", "x2"])
    assert ex.n_nodes(expression) == 8
    assert ex.features(expression) == {0, 2}
    assert ex.features(("c", 1.0)) == set()


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("x0 + (x1 + 2)", "x0 + x1 + 2"),
        ("x0 - (x1 + 2)", "x0 - (x1 + 2)"),
        ("x0 - (-2*x1)", "x0 + 2*x1"),
        ("x0 + (-2)*x1", "x0 - 2*x1"),
        ("x0 + (-x1 + 2)", "x0 - x1 + 2"),
        ("x0 - -(-x1)", "x0 - x1"),
        ("x0/(x1*2)", "x0/(x1*2)"),
        ("x0*(x1/2)", "x0*x1/2"),
        ("(x0 + 1)**2", "(x0 + 1)**2"),
        ("(x0**2)**3", "(x0**2)**3"),
        ("1/(x0 + x1)", "1/(x0 + x1)"),
        ("-(1/x0)", "-(1/x0)"),
        ("exp(-(x0 + 1))", "exp(-(x0 + 1))"),
        ("1.000000001*x0", "x0"),
        ("123456789*x0", "1.23457e+08*x0"),
    ],
)
def test_printed_with_no_more_parentheses_than_needed(text, printed):
    assert ex.to_text(parse(text, ["x0", "x1"]), ["x0", "x1"]) == printed


@pytest.mark.parametrize(
    ("text", "latex"),
    [
        ("x0*x1", "x_{0} x_{1}"),
        ("(x0 + 1)/(x1 - 1)", r"\frac{x_{0} + 1}{x_{1} - 1}"),
        ("1/x0", r"\frac{1}{x_{0}}"),
        ("sqrt(x0 + 1)", r"\sqrt{x_{0} + 1}"),
        ("exp(-x0)", "e^{-x_{0}}"),
        ("abs(x0)", r"\left|x_{0}\right|"),
        ("(x0 + x1)**2", r"\left(x_{0} + x_{1}\right)^{2}"),
        ("x0*2", r"x_{0} \cdot 2"),
        ("1.5e-7*x0", r"1.5 \cdot 10^{-7} x_{0}"),
        ("x0 - -2*x1", "x_{0} + 2 x_{1}"),
    ],
)
def test_latex(text, latex):
    assert ex.to_latex(parse(text, ["x0", "x1"]), ["x0", "x1"]) == latex


@pytest.mark.parametrize("name", [name for name in OPERATORS if name != "lt"])
def test_latex_braces_balance(name):
    operator = OPERATORS[name]
    inner = ("+", X0, ("*", ("c", -2.5e-9), X1))
    latex = ex.to_latex((name, *[inner] * operator.arity), ["a_{", "b}"])
    bare = latex.replace(r"\{", "").replace(r"\}", "")
    assert bare.count("{") == bare.count("}")
    assert bare.count(r"\left") == bare.count(r"\right")


@pytest.mark.parametrize(
    ("name", "latex"),
    [
        ("x12", "x_{12}"),
        ("v_3", "v_{3}"),
        ("t", "t"),
        ("a b", r"\mathrm{a\ b}"),
        ("50%", r"\mathrm{50\%}"),
        ("a_b", r"\mathrm{a\_b}"),
    ],
)
def test_latex_names(name, latex):
    assert ex.latex_name(name) == latex


@pytest.mark.parametrize("name", [name for name in OPERATORS if name != "lt"])
def test_sympy_of_a_nested_expression_agrees(name):
    operator = OPERATORS[name]
    inner = ("+", ("*", ("c", 0.1), X0), ("c", 0.25))
    expression = ("-", (name, *[inner, X1][: operator.arity]), ("c", 1e-3))
    symbolic = ex.to_sympy(expression, ["x0", "x1"])
    symbols = [sympy.Symbol(n, real=True) for n in ("x0", "x1")]
    columns = np.array([[0.5, 1.5, 2.0], [0.2, 0.7, 3.0]])
    function = sympy.lambdify(symbols, symbolic, "numpy")
    np.testing.assert_allclose(function(*columns), ex.evaluate(expression, columns), rtol=1e-13)


def test_sympy_constants_are_in_full():
    value = 0.1 + 1e-16 * 3
    assert float(ex.to_sympy(("c", value), [])) == value
    assert ex.to_sympy(("c", 2.0), []) == sympy.Integer(2)
    assert float(ex.to_sympy(("c", 1e300), [])) == 1e300
