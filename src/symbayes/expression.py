"""A formula as an object: print it, evaluate it, hand it to SymPy.

An expression is a nested tuple: ``("x", i)`` is column i, ``("c", value)`` a constant, and
``(name, operand, ...)`` an operator of the table.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from .kernels import opcodes
from .operators import ATOM, BY_OPCODE, NEGATION, OPERATORS

Expression = tuple

FEATURE, CONSTANT = "x", "c"


def _constant(value: float) -> Expression:
    return (CONSTANT, float(value))


def affine(a: float, x: Expression, b: float) -> Expression:
    """Return a x + b, without factors of 1 and offsets of 0."""
    product = x
    if a == -1.0:
        product = ("neg", x)
    elif a != 1.0:
        product = ("*", _constant(a), x)
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


def features(expression: Expression) -> set[int]:
    """Return the columns that an expression reads."""
    if expression[0] == FEATURE:
        return {expression[1]}
    if expression[0] == CONSTANT:
        return set()
    return set().union(*(features(operand) for operand in expression[1:]))


def _number(value: float, digits: int) -> str:
    text = f"{value:.{digits}g}"
    return text[1:] if text == "-0" else text


def _latex_number(value: float, digits: int) -> str:
    mantissa, _, exponent = _number(value, digits).partition("e")
    return f"{mantissa} \\cdot 10^{{{int(exponent)}}}" if exponent else mantissa


_IDENTIFIER = re.compile(r"[^\W\d]\w*\Z")


def quoted(name: str) -> str:
    """Return a column name as it stands in a printed formula: in backticks unless a plain word."""
    if _IDENTIFIER.match(name) and name not in OPERATORS:
        return name
    return "`" + name.replace("\\", "\\\\").replace("`", "\\`") + "`"


_LATEX_SPECIAL = {
    "\\": r"\backslash ", "{": r"\{", "}": r"\}", "_": r"\_", "$": r"\$", "%": r"\%",
    "&": r"\&", "#": r"\#", "^": r"\hat{}", "~": r"\sim ", " ": r"\ ",
}  # fmt: skip


def latex_name(name: str) -> str:
    """Return a column name in LaTeX: a letter with an index, or upright text."""
    match = re.fullmatch(r"([A-Za-z])_?(\d+)", name)
    if match:
        return f"{match[1]}_{{{match[2]}}}"
    if len(name) == 1 and name.isalpha():
        return name
    return r"\mathrm{" + "".join(_LATEX_SPECIAL.get(c, c) for c in name) + "}"


def to_text(expression: Expression, names: Sequence[str], digits: int = 6) -> str:
    """Return the expression as text that `parse` reads."""
    return _print(expression, [quoted(name) for name in names], digits, latex=False)[0]


def to_latex(expression: Expression, names: Sequence[str], digits: int = 6) -> str:
    """Return the expression in LaTeX."""
    return _print(expression, [latex_name(name) for name in names], digits, latex=True)[0]


def _print(expression, names, digits, latex) -> tuple[str, int]:
    """Return the printed form and how tightly it binds."""
    kind = expression[0]
    if kind == FEATURE:
        return names[expression[1]], ATOM
    if kind == CONSTANT:
        value = expression[1]
        text = _latex_number(value, digits) if latex else _number(value, digits)
        return text, NEGATION if text.startswith("-") or "cdot" in text else ATOM
    operator = OPERATORS[kind]
    template = operator.latex if latex else operator.text
    needs = operator.needs
    if latex and operator.latex_needs is not None:
        needs = operator.latex_needs
    left, right = (r"\left(", r"\right)") if latex else ("(", ")")
    operands = []
    for operand, need in zip(expression[1:], needs, strict=True):
        text, strength = _print(operand, names, digits, latex)
        operands.append(text if strength >= need else f"{left}{text}{right}")
    if kind == "*" and operands[0] == "1":
        return operands[1], operator.strength  # a factor that rounds to 1
    if kind in ("+", "-") and operands[1].startswith("-"):
        # a + -b is a - b, and a - -b is a + b, to the last bit.
        return _print_sum(kind, *operands), operator.strength
    if latex and kind == "*" and operands[1][:1].isdigit():
        template = r"{0} \cdot {1}"
    return template.format(*operands), operator.strength


def _print_sum(kind: str, left: str, right: str) -> str:
    while right.startswith("-"):
        kind, right = "-" if kind == "+" else "+", right[1:]
    return f"{left} {kind} {right}"


def to_sympy(expression: Expression, names: Sequence[str]) -> Any:
    """Return the expression as a SymPy object, constants as they are."""
    import sympy

    def convert(node):
        if node[0] == FEATURE:
            return sympy.Symbol(names[node[1]])
        if node[0] == CONSTANT:
            value = node[1]
            whole = value.is_integer() and abs(value) < 1e15
            return sympy.Integer(int(value)) if whole else sympy.Float(value)
        return OPERATORS[node[0]].sympy(sympy, *(convert(operand) for operand in node[1:]))

    return convert(expression)
