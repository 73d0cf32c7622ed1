"""A formula as a tree: build it, evaluate it, take its measure, hand it to SymPy.

An expression is a nested tuple: ``("x", i)`` is column i, ``("c", value)`` a constant, and
``(name, operand, ...)`` an operator of the table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from .operators import OPERATORS

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
        else:
            sign = "-" if coefficient < 0.0 else "+"
            total = (sign, total, affine(abs(coefficient), term, 0.0))
    return _constant(intercept) if total is None else affine(1.0, total, intercept)


def integer_power(base: Expression, exponent: int) -> Expression:
    """Return a power written with square, cube and products."""
    if exponent < 0:
        return ("inv", integer_power(base, -exponent))
    if exponent == 1:
        return base
    if exponent % 2 == 0:
        return ("square", integer_power(base, exponent // 2))
    if exponent % 3 == 0:
        return ("cube", integer_power(base, exponent // 3))
    return ("*", integer_power(base, exponent - 1), base)


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
    return 1 + sum(map(n_nodes, expression[1:]))


def depth(expression: Expression) -> int:
    """Return the number of levels; without recursion, for trees that are too deep for it."""
    level, deepest = [expression], 0
    while level:
        deepest += 1
        level = [
            operand for node in level if node[0] not in (FEATURE, CONSTANT) for operand in node[1:]
        ]
    return deepest


def _leaves(expression: Expression) -> Iterator[Expression]:
    """Yield columns and constants from left to right."""
    if expression[0] in (FEATURE, CONSTANT):
        yield expression
    else:
        for operand in expression[1:]:
            yield from _leaves(operand)


def _with_leaves(expression: Expression, change: Callable[[Expression], Expression]) -> Expression:
    """Return the expression with its columns and constants changed, from left to right."""
    if expression[0] in (FEATURE, CONSTANT):
        return change(expression)
    return (expression[0], *(_with_leaves(operand, change) for operand in expression[1:]))


def constants(expression: Expression) -> Iterator[float]:
    """Yield the constants from left to right."""
    return (value for kind, value in _leaves(expression) if kind == CONSTANT)


def features(expression: Expression) -> set[int]:
    """Return the columns that an expression reads."""
    return {column for kind, column in _leaves(expression) if kind == FEATURE}


def with_columns(expression: Expression, columns: Sequence[int]) -> Expression:
    """Return the expression with column i renumbered to `columns[i]`."""
    return _with_leaves(
        expression, lambda leaf: (FEATURE, columns[leaf[1]]) if leaf[0] == FEATURE else leaf
    )


def with_constants(expression: Expression, values: Iterable[float]) -> Expression:
    """Return the expression with other constants, given from left to right."""
    remaining = iter(values)
    return _with_leaves(
        expression,
        lambda leaf: (CONSTANT, float(next(remaining))) if leaf[0] == CONSTANT else leaf,
    )


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


def with_digits(expression: Expression, digits: Sequence[int]) -> Expression:
    """Return the expression with each constant rounded to its number of significant digits."""
    pairs = zip(constants(expression), digits, strict=True)
    return with_constants(expression, (float(f"{value:.{n}g}") for value, n in pairs))


def signs(expression: Expression, sign: int = 1) -> Iterator[int]:
    """Yield for each constant, from left to right, the sign that is written before it.

    It is -1 for what is subtracted or negated, be it the constant itself or the front factor of a
    product: there the constant times the sign is the one that a reader sees. `sign` is what stands
    before the whole.

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
            first = 1  # a product that is negated stands in parentheses as well
        for operand, before in zip(operands, (first, -1 if kind == "-" else 1), strict=False):
            yield from signs(operand, before)
