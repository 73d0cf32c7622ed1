"""The table of operators: complete, and the same in NumPy, SymPy and compiled code."""

import numpy as np
import pytest
import sympy

from symbayes import OPERATOR_SETS, OPERATORS
from symbayes.formula.operators import BY_OPCODE, operator_weights
from symbayes.kernels import opcodes
from symbayes.kernels.evaluate import BLOCK, stack_slots
from symbayes.kernels.tree import NODE, arity
from symbayes.kernels.units import load_evaluate

SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, 1e-300, -1e300, 1e300, 710.0, -746.0, np.inf, -np.inf, np.nan]


def points(n_columns):
    """Ordinary and special values, in all pairs where there are two columns."""
    rng = np.random.default_rng(20)
    some = np.concatenate([SPECIAL, rng.normal(0, 1, 20), rng.normal(0, 30, 20)])
    if n_columns == 1:
        return some[None, :]
    return np.array([np.repeat(some, len(some)), np.tile(some, len(some))])


def compiled(operator, columns, a=0.0, b=0.0):
    """The value of the tree of one operator, by the kernel that the samplers use."""
    nodes = np.zeros(1 + operator.arity, NODE)
    nodes["op"][0] = operator.opcode
    nodes["a"][0], nodes["b"][0] = a, b
    nodes["feature"][1:] = np.arange(operator.arity)
    n_rows = columns.shape[1]
    target = np.empty(n_rows)
    stack = np.empty(stack_slots(len(nodes)) * BLOCK)
    where = np.empty(2 * len(nodes) + 4, np.int64)
    load_evaluate()(
        nodes, 0, columns.reshape(-1).copy(), n_rows, 0, n_rows, target, 0, stack, where
    )
    return target


def test_each_opcode_has_one_row():
    numbers = {
        value
        for name, value in vars(opcodes).items()
        if name.isupper() and name not in ("FEATURE", "FIRST_BINARY", "N_OPCODES")
    }
    assert numbers == set(range(1, opcodes.N_OPCODES))
    assert set(BY_OPCODE) == numbers
    assert len(OPERATORS) == len(BY_OPCODE) == len(numbers)
    assert {name: row.name for name, row in OPERATORS.items()} == {n: n for n in OPERATORS}


@pytest.mark.parametrize("name", OPERATORS)
def test_arity_is_the_kernels_arity(name):
    operator = OPERATORS[name]
    assert operator.arity == getattr(arity, "py_func", arity)(operator.opcode)
    assert len(operator.needs) == operator.arity
    assert (operator.symbol is not None) == (operator.arity == 2)


@pytest.mark.parametrize("name", OPERATORS)
def test_compiled_agrees_with_numpy_everywhere(name):
    operator = OPERATORS[name]
    columns = points(operator.arity)
    constants = (1.5, -0.25) if name == "lt" else ()
    with np.errstate(all="ignore"):
        expected = operator.numpy(*columns, *constants)
    np.testing.assert_allclose(compiled(operator, columns, *constants), expected, rtol=2e-15)


@pytest.mark.parametrize("name", OPERATORS)
def test_sympy_agrees_with_numpy(name):
    operator = OPERATORS[name]
    symbols = sympy.symbols("u v", real=True)[: operator.arity]
    function = sympy.lambdify(symbols, operator.sympy(sympy, *symbols), "numpy")
    columns = np.array([[-7.5, -1.0, -0.75, -0.1, 0.3, 1.0, 2.0, 30.0]] * operator.arity)
    if operator.arity == 2:
        columns[1] = columns[1][::-1]
    with np.errstate(all="ignore"):
        expected = operator.numpy(*columns)
        np.testing.assert_allclose(function(*columns), expected, rtol=1e-13)
    if operator.domain == "all reals":
        assert np.isfinite(expected).all()
    elif operator.arity == 1:
        with np.errstate(all="ignore"):
            outside = operator.numpy(np.array([0.0, -2.0, 2.0]))
        assert not np.isfinite(outside).all()


def test_sets_of_the_paper_are_exactly_these():
    assert set(OPERATOR_SETS["paper"]) == {"exp", "lt", "inv", "neg", "+", "*"}
    assert set(OPERATOR_SETS["paper-simulation"]) == {
        "+", "-", "*", "/", "sin", "cos", "exp", "square", "cube", "lt",
    }  # fmt: skip
    assert set(OPERATOR_SETS["all"]) == set(OPERATORS)


@pytest.mark.parametrize("name", OPERATOR_SETS)
def test_named_sets_have_equal_weights(name):
    weights = operator_weights(name)
    assert set(weights) == set(OPERATOR_SETS[name])
    assert len(OPERATOR_SETS[name]) == len(weights)
    assert list(weights.values()) == pytest.approx([1 / len(weights)] * len(weights))


def test_lists_tuples_sets_and_dicts():
    assert operator_weights(["+", "sin"]) == {"+": 0.5, "sin": 0.5}
    assert operator_weights(("+",)) == {"+": 1.0}
    assert operator_weights({"+", "sin"}) == {"+": 0.5, "sin": 0.5}
    assert operator_weights({"+": 3, "sin": np.float32(1)}) == {"+": 0.75, "sin": 0.25}
    assert operator_weights({"+": 1, "sin": 0}) == {"+": 1.0}


@pytest.mark.parametrize(
    ("operators", "error", "says"),
    [
        ("nonsense", ValueError, "'nonsense' is not the name of a set.*'paper'"),
        ("+", ValueError, "is not the name of a set.*pass a list"),
        (["+", "sinus"], ValueError, "'sinus' is not an operator.*; known are .*sin"),
        (["+", 3], ValueError, "3 is not an operator"),
        ({"pow": 1}, ValueError, "'pow' is not an operator"),
        ([], ValueError, "operators is empty"),
        ({}, ValueError, "operators is empty"),
        (["+", "*", "+"], ValueError, r"lists '\+' more than once"),
        ({"+": -1}, ValueError, r"weight of '\+' is -1"),
        ({"+": np.nan}, ValueError, r"weight of '\+' is nan"),
        ({"+": np.inf}, ValueError, r"weight of '\+' is inf"),
        ({"+": 0, "*": 0}, ValueError, "positive, finite sum"),
        ({"+": 1.5e308, "*": 1.5e308}, ValueError, "positive, finite sum"),
        ({"+": "1"}, TypeError, r"weight of '\+' must be a number, not str"),
        ({"+": True}, TypeError, "must be a number, not bool"),
        (5, TypeError, "not int"),
        (None, TypeError, "not NoneType"),
    ],
)
def test_errors(operators, error, says):
    with pytest.raises(error, match=says):
        operator_weights(operators)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("ln", "log"), ("sine", "sin"), ("^", "square"), ("add", "+"), ("Exp", "exp")],
)
def test_a_typo_gets_a_hint(typed, meant):
    with pytest.raises(ValueError, match=r"did you mean") as error:
        operator_weights([typed])
    assert f"'{meant}'" in str(error.value)
