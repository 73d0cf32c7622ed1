"""Expressions: from nodes, linear combinations, their measures, SymPy."""

import numpy as np
import pytest
import sympy

from symbayes import OPERATORS
from symbayes.formula import expression as ex
from symbayes.formula.parser import parse
from symbayes.formula.printing import to_text
from symbayes.formula.trees import to_expression
from symbayes.kernels.tree import NODE

X0, X1 = ("x", 0), ("x", 1)


def test_affine_leaves_out_ones_and_zeros():
    assert ex.affine(1.0, X0, 0.0) == X0
    assert ex.affine(-1.0, X0, 0.0) == ("neg", X0)
    assert ex.affine(2.0, X0, 0.0) == ("*", ("c", 2.0), X0)
    assert ex.affine(2.0, ("inv", X0), 0.0) == ("/", ("c", 2.0), X0)  # not 2*1/x0
    assert ex.affine(1.0, X0, 3.0) == ("+", X0, ("c", 3.0))
    assert ex.affine(1.0, X0, -3.0) == ("-", X0, ("c", 3.0))


def test_linear_combination():
    def text(*arguments):
        return to_text(ex.linear_combination(*arguments), ["x0", "x1"])

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
    expression = to_expression(nodes, [2, 0])
    columns = np.array([[0.3, 0.2], [9.0, 9.0], [0.7, 0.4]])
    operands = [columns[2], columns[0]][: operator.arity]
    constants = (2.0, -0.5) if name == "lt" else ()
    np.testing.assert_array_equal(
        ex.evaluate(expression, columns), operator.numpy(*operands, *constants)
    )
    assert ex.features(expression) == ({2, 0} if operator.arity == 2 else {2})
    assert "lt" not in to_text(expression, ["p", "q", "r"])


def test_nodes_depth_features_and_constants():
    expression = parse("2*sin(x0) + x0*x2", ["x0", "x1", "x2"])
    assert ex.n_nodes(expression) == 8
    assert ex.depth(expression) == 4
    assert ex.features(expression) == {0, 2}
    assert list(ex.constants(expression)) == [2.0]
    assert ex.n_nodes(("c", 1.0)) == ex.depth(("c", 1.0)) == ex.depth(X0) == 1
    assert ex.features(("c", 1.0)) == set()


def test_columns_can_be_renumbered():
    expression = parse("2*a - sin(b)", ["a", "b"])
    assert ex.with_columns(expression, [3, 1]) == parse("2*d - sin(b)", ["a", "b", "c", "d"])


def test_no_constant_is_minus_zero():
    assert str(ex.linear_combination(-0.0, [], [])[1]) == "0.0"
    assert str(ex.affine(-0.0, X0, 0.0)[1][1]) == "0.0"


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
