"""What is constant is worked out: `x*1` is x, and `2*(x + 3)` is twice x and 6."""

from __future__ import annotations

import numpy as np

from .expression import CONSTANT, FEATURE, Expression
from .operators import OPERATORS

ZERO: Expression = (CONSTANT, 0.0)
ONE: Expression = (CONSTANT, 1.0)


def folded(expression: Expression) -> Expression:
    """Leave out factors of 1 and summands of 0, and work out what is constant.

    Examples
    --------
    >>> from symbayes.formula.folding import folded
    >>> folded(("+", ("*", ("c", 1.0), ("x", 0)), ("square", ("c", 3.0))))
    ('+', ('x', 0), ('c', 9.0))
    """
    if expression[0] in (CONSTANT, FEATURE):
        return expression
    return folded_node((expression[0], *(folded(operand) for operand in expression[1:])))


def folded_node(node: Expression) -> Expression:
    """Do the same with operands that are left as they are."""
    name, *operands = node
    if all(operand[0] == CONSTANT for operand in operands):
        with np.errstate(all="ignore"):
            value = float(OPERATORS[name].numpy(*(operand[1] for operand in operands))) + 0.0
        return (CONSTANT, value) if np.isfinite(value) else node
    if name in ("+", "-") and operands[1] == ZERO:
        return operands[0]
    if name == "+" and operands[0] == ZERO:
        return operands[1]
    if name == "*" and ZERO in operands:
        return ZERO
    if name == "*" and ONE in operands:
        return operands[1] if operands[0] == ONE else operands[0]
    if name == "/" and operands[1] == ONE:
        return operands[0]
    return node


def split(expression: Expression) -> tuple[float, Expression, float]:
    """Return a, rest and b of an expression that is a x rest + b, the rest without either.

    Examples
    --------
    >>> from symbayes.formula.folding import split
    >>> split(("*", ("c", 2.0), ("+", ("x", 0), ("c", 3.0))))
    (2.0, ('x', 0), 6.0)
    """
    name, *operands = expression
    if name == CONSTANT:
        return 0.0, expression, expression[1]
    if name == FEATURE:
        return 1.0, expression, 0.0
    if name in ("+", "-", "*", "/") and operands[1][0] == CONSTANT:
        c = operands[1][1]
        a, rest, b = split(operands[0])
        if name in ("+", "-"):
            return a, rest, b + c if name == "+" else b - c
        if name == "*" or c != 0.0:
            return (a * c, rest, b * c) if name == "*" else (a / c, rest, b / c)
    elif name in ("+", "-", "*") and operands[0][0] == CONSTANT:
        c = operands[0][1]
        a, rest, b = split(operands[1])
        if name == "*":
            return a * c, rest, b * c
        return (a, rest, c + b) if name == "+" else (-a, rest, c - b)
    elif name == "neg":
        a, rest, b = split(operands[0])
        return -a, rest, -b
    return 1.0, expression, 0.0
