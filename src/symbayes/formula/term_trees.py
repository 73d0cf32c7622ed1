"""From an expression to the trees of its terms, as the chains have them.

A tree has constants only in `lt(x) = a x + b`. So every part of an expression is kept as ``a N +
b`` with N a tree without constants in front, until it has to stand under an operator. Coefficients
of terms and the intercept are dropped: the model has its own.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..kernels import opcodes
from ..kernels.tree import NODE
from .expression import CONSTANT, FEATURE, Expression
from .operators import OPERATORS


@dataclass(frozen=True)
class _Part:
    """The value ``a N + b``; without a tree N it is the constant b."""

    tree: np.ndarray | None
    a: float = 1.0
    b: float = 0.0

    def nodes(self) -> np.ndarray:
        """Return it as a tree."""
        assert self.tree is not None
        if self.a == 1.0 and self.b == 0.0:
            return self.tree
        return _join(opcodes.LT, self.tree, a=self.a, b=self.b)


def term_tree(expression: Expression) -> np.ndarray | None:
    """Return an expression as one tree, up to a factor and a summand; None if it is constant."""
    return _part(expression).tree


def term_trees(expression: Expression) -> list[np.ndarray]:
    """Return the trees of the terms of a sum, its coefficients and its constants left out.

    Examples
    --------
    >>> from symbayes.formula.parser import parse
    >>> [len(tree) for tree in term_trees(parse("2*sin(3*x0) - x1/4 + 5", ["x0", "x1"]))]
    [3, 1]
    """
    if expression[0] in ("+", "-"):
        return [*term_trees(expression[1]), *term_trees(expression[2])]
    if expression[0] == "neg":
        return term_trees(expression[1])
    if expression[0] == "*" and CONSTANT in (expression[1][0], expression[2][0]):
        factor, rest = expression[1:]
        return term_trees(rest if factor[0] == CONSTANT else factor)
    if expression[0] == "/" and expression[2][0] == CONSTANT:
        return term_trees(expression[1])
    tree = term_tree(expression)
    return [] if tree is None else [tree]


def _join(opcode: int, *operands: np.ndarray, a: float = 0.0, b: float = 0.0) -> np.ndarray:
    node = np.zeros(1, NODE)
    node["op"], node["a"], node["b"] = opcode, a, b
    return np.concatenate([node, *operands])


def _part(expression: Expression) -> _Part:
    kind = expression[0]
    if kind == CONSTANT:
        return _Part(None, b=float(expression[1]))
    if kind == FEATURE:
        node = np.zeros(1, NODE)
        node["op"], node["feature"] = opcodes.FEATURE, expression[1]
        return _Part(node)
    operands = [_part(operand) for operand in expression[1:]]
    if all(operand.tree is None for operand in operands):
        with np.errstate(all="ignore"):
            return _Part(None, b=float(OPERATORS[kind].numpy(*(part.b for part in operands))))
    if kind == "neg":
        return _Part(operands[0].tree, -operands[0].a, -operands[0].b)
    if len(operands) == 1:
        return _Part(_join(OPERATORS[kind].opcode, operands[0].nodes()))
    return _pair(kind, *operands)


def _pair(kind: str, left: _Part, right: _Part) -> _Part:
    """Return the value of a binary operator, at most one operand of which is a constant."""
    if kind in ("+", "-"):
        return _sum(left, right, 1.0 if kind == "+" else -1.0)
    if kind == "*" and left.tree is None:
        left, right = right, left
    if right.tree is None:
        factor = right.b if kind == "*" else 1.0 / right.b if right.b else np.inf
        if factor == 0.0:
            return _Part(None)
        return _Part(left.tree, left.a * factor, left.b * factor)
    if left.tree is None:  # a constant over something
        return _Part(_join(opcodes.INV, right.nodes()), left.b)
    if left.b == 0.0 and right.b == 0.0:  # factors go in front
        factor = left.a * right.a if kind == "*" else left.a / right.a
        return _Part(_join(OPERATORS[kind].opcode, left.tree, right.tree), factor)
    return _Part(_join(OPERATORS[kind].opcode, left.nodes(), right.nodes()))


def _sum(left: _Part, right: _Part, sign: float) -> _Part:
    b = left.b + sign * right.b
    if left.tree is None:
        return _Part(right.tree, sign * right.a, b)
    if right.tree is None:
        return _Part(left.tree, left.a, b)
    ratio = sign * right.a / left.a
    if ratio in (1.0, -1.0):
        opcode = opcodes.ADD if ratio == 1.0 else opcodes.SUB
        return _Part(_join(opcode, left.tree, right.tree), left.a, b)
    scaled = _Part(right.tree, ratio)
    return _Part(_join(opcodes.ADD, left.tree, scaled.nodes()), left.a, b)
