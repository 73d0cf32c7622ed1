"""A formula as a tree: build it, evaluate it, take its measure, hand it to SymPy.

An expression is a nested tuple: ``("x", i)`` is column i, ``("c", value)`` a constant, and
``(name, operand, ...)`` an operator of the table.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from ..kernels import opcodes
from .operators import BY_OPCODE, OPERATORS

Expression = tuple

FEATURE, CONSTANT = "x", "c"


def _constant(value: float) -> Expression:
    return (CONSTANT, float(value) + 0.0)  # no -0.0, which would be printed as -0


def affine(a: float, x: Expression, b: float) -> Expression:
    """Return a x + b, without factors of 1 and offsets of 0."""
    product = x
    if a == -1.0:
        product = ("neg", x)
    elif a != 1.0:
        product = ("/", _constant(a), x[1]) if x[0] == "inv" else ("*", _constant(a), x)
    if b == 0.0:
        return product
    return ("-", product, _constant(-b)) if b < 0 else ("+", product, _constant(b))


def from_nodes(nodes: np.ndarray, columns: Sequence[int]) -> Expression:
    """Return the expression of a tree given as nodes in preorder.

    `columns` translates the feature numbers of the nodes.
    """
    operands: list[Expression] = []
    for node in nodes[::-1]:
        op = int(node["op"])
        if op == opcodes.FEATURE:
            operands.append((FEATURE, int(columns[node["feature"]])))
        elif op == opcodes.LT:
            operands.append(affine(float(node["a"]), operands.pop(), float(node["b"])))
        elif BY_OPCODE[op].arity == 1:
            operands.append((BY_OPCODE[op].name, operands.pop()))
        else:
            left, right = operands.pop(), operands.pop()
            operands.append((BY_OPCODE[op].name, left, right))
    return operands.pop()


def linear_combination(
    intercept: float, coefficients: Sequence[float], terms: Sequence[Expression]
) -> Expression:
    """Return intercept + the sum of coefficient x term."""
    total: Expression | None = None
    for coefficient, term in zip(coefficients, terms, strict=True):
        if coefficient == 0.0:
            continue
        if total is None:
            total = affine(coefficient, term, 0.0)
        elif coefficient < 0.0:
            total = ("-", total, affine(-coefficient, term, 0.0))
        else:
            total = ("+", total, affine(coefficient, term, 0.0))
    if total is None:
        return _constant(intercept)
    return affine(1.0, total, intercept)


def evaluate(expression: Expression, columns: np.ndarray) -> np.ndarray:
    """Return the value on a table given as an array of columns."""
    kind = expression[0]
    if kind == FEATURE:
        return columns[expression[1]]
    if kind == CONSTANT:
        return np.full(columns.shape[1], expression[1])
    return OPERATORS[kind].numpy(*(evaluate(operand, columns) for operand in expression[1:]))


def n_nodes(expression: Expression) -> int:
    """Return the number of nodes: operators, columns and constants."""
    if expression[0] in (FEATURE, CONSTANT):
        return 1
    return 1 + sum(n_nodes(operand) for operand in expression[1:])


def depth(expression: Expression) -> int:
    """Return the number of levels; without recursion, for trees that are too deep for it."""
    level, deepest = [expression], 0
    while level:
        deepest += 1
        level = [
            operand for node in level if node[0] not in (FEATURE, CONSTANT) for operand in node[1:]
        ]
    return deepest


def constants(expression: Expression) -> Iterator[float]:
    """Yield the constants from left to right."""
    if expression[0] == CONSTANT:
        yield expression[1]
    elif expression[0] != FEATURE:
        for operand in expression[1:]:
            yield from constants(operand)


def features(expression: Expression) -> set[int]:
    """Return the columns that an expression reads."""
    if expression[0] == FEATURE:
        return {expression[1]}
    if expression[0] == CONSTANT:
        return set()
    return set().union(*(features(operand) for operand in expression[1:]))


def with_columns(expression: Expression, columns: Sequence[int]) -> Expression:
    """Return the expression with column i renumbered to `columns[i]`."""
    if expression[0] == FEATURE:
        return (FEATURE, columns[expression[1]])
    if expression[0] == CONSTANT:
        return expression
    return (expression[0], *(with_columns(operand, columns) for operand in expression[1:]))


def to_sympy(expression: Expression, columns: Sequence[Any]) -> Any:
    """Return the expression as a SymPy object, constants as they are.

    `columns` are names, or symbols with what is known about them.
    """
    import sympy

    def convert(node):
        if node[0] == FEATURE:
            column = columns[node[1]]
            return sympy.Symbol(column) if isinstance(column, str) else column
        if node[0] == CONSTANT:
            value = node[1]
            whole = value.is_integer() and abs(value) < 1e15
            return sympy.Integer(int(value)) if whole else sympy.Float(value)
        return OPERATORS[node[0]].sympy(sympy, *(convert(operand) for operand in node[1:]))

    return convert(expression)


def with_constants(expression: Expression, values: Iterable[float]) -> Expression:
    """Return the expression with other constants, given from left to right."""
    remaining = iter(values)

    def rebuild(node: Expression) -> Expression:
        if node[0] == CONSTANT:
            return (CONSTANT, float(next(remaining)))
        if node[0] == FEATURE:
            return node
        return (node[0], *(rebuild(operand) for operand in node[1:]))

    return rebuild(expression)


def with_digits(expression: Expression, digits: Sequence[int]) -> Expression:
    """Return the expression with constants of so many significant digits each."""
    values = [
        float(f"{value:.{n}g}") for value, n in zip(constants(expression), digits, strict=True)
    ]
    return with_constants(expression, values)


def signs(expression: Expression, sign: int = 1) -> Iterator[int]:
    """Yield for each constant, from left to right, the sign that is written before it.

    It is -1 for what is subtracted or negated, be it the constant itself or the front factor of a
    product: there the constant times the sign is the one that a reader sees.

    Parameters
    ----------
    expression : tuple
    sign : int
        What is written before the whole of it.

    Examples
    --------
    >>> from symbayes.formula.expression import signs
    >>> from symbayes.formula.parser import parse
    >>> list(signs(parse("2*x0 - 0.5*x1*exp(3*x1) - 7", ["x0", "x1"])))
    [1, -1, 1, -1]
    """
    kind, *operands = expression
    if kind == CONSTANT:
        yield sign
    elif kind != FEATURE:
        # Whatever is not in front stands behind a sign of its own, or in parentheses.
        first = {"neg": -sign, "*": sign, "/": sign}.get(kind, 1)
        if kind == "neg" and operands[0][0] in ("*", "/"):
            first = 1  # a product that is negated stands in parentheses, too
        for operand, before in zip(operands, (first, -1 if kind == "-" else 1), strict=False):
            yield from signs(operand, before)
