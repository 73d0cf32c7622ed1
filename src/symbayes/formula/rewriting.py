"""Expressions written more simply, by rules: no search, and no SymPy.

`folded` works out what is constant, `split` takes an expression apart as a x rest + b, and
`collected` brings powers of the same thing together: `x*x` is `x**2`, `x/x**2` is `1/x`.
"""

from __future__ import annotations

from functools import reduce

import numpy as np

from .expression import CONSTANT, FEATURE, Expression, integer_power
from .operators import LARGEST_POWER, OPERATORS, POWERS

ZERO: Expression = (CONSTANT, 0.0)
ONE: Expression = (CONSTANT, 1.0)


def folded(expression: Expression) -> Expression:
    """Leave out factors of 1 and summands of 0, and work out what is constant.

    Examples
    --------
    >>> from symbayes.formula.rewriting import folded
    >>> folded(("+", ("*", ("c", 1.0), ("x", 0)), ("square", ("c", 3.0))))
    ('+', ('x', 0), ('c', 9.0))
    """
    if expression[0] in (CONSTANT, FEATURE):
        return expression
    return _folded_node((expression[0], *(folded(operand) for operand in expression[1:])))


def _folded_node(node: Expression) -> Expression:
    """Do the same with operands that are left as they are."""
    name, *operands = node
    if all(operand[0] == CONSTANT for operand in operands):
        with np.errstate(all="ignore"):
            value = float(OPERATORS[name].numpy(*(operand[1] for operand in operands))) + 0.0
        return (CONSTANT, value) if np.isfinite(value) else node
    if name == "*" and ZERO in operands:
        return ZERO
    neutral = (CONSTANT, OPERATORS[name].neutral)
    if operands[-1] == neutral:
        return operands[0]
    return operands[1] if OPERATORS[name].commutative and operands[0] == neutral else node


def split(expression: Expression) -> tuple[float, Expression, float]:
    """Return a, rest and b of an expression that is a x rest + b, the rest without either.

    Examples
    --------
    >>> from symbayes.formula.rewriting import split
    >>> split(("*", ("c", 2.0), ("+", ("x", 0), ("c", 3.0))))
    (2.0, ('x', 0), 6.0)
    """
    name, *operands = expression
    if name == CONSTANT:
        return 0.0, expression, expression[1]
    if name == "neg":
        a, rest, b = split(operands[0])
        return -a, rest, -b
    if name not in ("+", "-", "*", "/"):
        return 1.0, expression, 0.0
    left, right = operands
    if right[0] == CONSTANT and (name != "/" or right[1] != 0.0):
        (a, rest, b), c = split(left), right[1]
        if name in ("*", "/"):
            return (a * c, rest, b * c) if name == "*" else (a / c, rest, b / c)
        return a, rest, b + c if name == "+" else b - c
    if left[0] == CONSTANT and name != "/":
        c, (a, rest, b) = left[1], split(right)
        if name == "*":
            return a * c, rest, b * c
        return (a, rest, c + b) if name == "+" else (-a, rest, c - b)
    return 1.0, expression, 0.0


def collected(expression: Expression) -> Expression:
    """Return the expression with the powers in each product and ratio collected.

    It has the same value wherever all parts of the given one are finite and not 0, but for
    rounding. What cancels leaves no trace, so that `x*x/x` gets a value at 0, and what becomes
    constant by that is worked out: `y*exp(x/x)` is `2.71828*y`.

    Examples
    --------
    >>> from symbayes.formula.rewriting import collected
    >>> collected(("/", ("x", 0), ("square", ("x", 0))))
    ('inv', ('x', 0))
    >>> collected(("square", ("inv", ("x", 0))))
    ('inv', ('square', ('x', 0)))
    """
    kind, *operands = expression
    if kind in (CONSTANT, FEATURE):
        return expression
    node = (kind, *(collected(operand) for operand in operands))
    if any(new[0] == CONSTANT != old[0] for old, new in zip(operands, node[1:], strict=True)):
        node = _folded_node(node)
        if node[0] in (CONSTANT, FEATURE):
            return node
        if node[0] == "*" and node[2][0] == CONSTANT:
            node = ("*", node[2], node[1])  # where we write factors
    if node[0] == "-" and node[1] == node[2]:
        return ZERO
    factors = _factors(node, 1)
    total: dict[Expression, int] = {}
    for i, (base, power) in enumerate(factors):
        # Two constants that are equal are two all the same.
        key = (base, i) if base[0] == CONSTANT else (base,)
        total[key] = total.get(key, 0) + power
    powers = [(key[0], power) for key, power in total.items() if power]
    gathers = len(total) < len(factors) or _is_roundabout(node)
    if not gathers or max((abs(power) for _, power in powers), default=0) > LARGEST_POWER:
        return node
    return _product(powers) if powers else ONE


def _factors(node: Expression, power: int) -> list[tuple[Expression, int]]:
    """Return what is multiplied, each with its power; a product that is squared is one factor."""
    kind = node[0]
    if kind in ("*", "/"):
        return _factors(node[1], power) + _factors(node[2], power if kind == "*" else -power)
    if kind == "inv":
        return _factors(node[1], -power)
    if kind in POWERS:
        inner = _factors(node[1], 1)
        base, exponent = inner[0] if len(inner) == 1 else (node[1], 1)
        return [(base, exponent * POWERS[kind] * power)]
    return [(node, power)]


def _is_roundabout(node: Expression) -> bool:
    """Return whether it has an inverse or a power right below where it could be written at once."""
    kind, *operands = node
    below = {operand[0] for operand in operands}
    if kind in POWERS:
        return bool(below & {"inv", *POWERS})
    return kind in ("*", "/", "inv") and ("inv" in below or (kind == "inv" and "/" in below))


def _product(powers: list[tuple[Expression, int]]) -> Expression:
    """Return the product: constants first, what has a negative power below a line."""
    ordered = sorted(powers, key=lambda factor: factor[0][0] != CONSTANT)
    above = [integer_power(base, power) for base, power in ordered if power > 0]
    below = [integer_power(base, -power) for base, power in ordered if power < 0]
    upper, lower = (
        reduce(lambda left, right: ("*", left, right), factors) if factors else None
        for factors in (above, below)
    )
    if upper is None or lower is None:
        return upper or ("inv", lower)
    return ("/", upper, lower)
