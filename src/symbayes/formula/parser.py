"""From text to an expression: a small parser of our own. Nothing is ever evaluated."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from .expression import CONSTANT, FEATURE, Expression, depth, integer_power, n_nodes
from .operators import (
    FUNCTION_ALIASES,
    LARGEST_POWER,
    OPERATORS,
    PRODUCT,
    SUM,
    did_you_mean,
    operator_hint,
)

_TOKEN = re.compile(
    r"(?P<space>\s+)|"
    r"(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)"
    r"|`(?P<quoted>(?:[^`\\]|\\.)*)`"
    r"|(?P<name>[^\W\d]\w*)"
    r"|(?P<symbol>\*\*|[-+*/^(),])"
    r"|(?P<other>(?s:.))"
)
# Expressions are walked by recursion, which Python limits.
_DEEPEST = 100
# A short text may hold powers of powers that grow beyond all bounds.
_MOST_NODES = 10_000
# A column of one of these names comes first. No "e", which is too likely a column.
_NAMED_NUMBERS = {"pi": math.pi}
_RAISED = tuple("⁰¹²³⁴⁵⁶⁷⁸⁹")
_FUNCTIONS = [name for name, row in OPERATORS.items() if row.arity == 1 and name != "lt"]
_INFIX = {
    strength: [
        name for name, row in OPERATORS.items() if row.arity == 2 and row.strength == strength
    ]
    for strength in (SUM, PRODUCT)
}
# Columns that a message lists, at most.
_LISTED = 20


class FormulaSyntaxError(ValueError):
    """A formula that cannot be read; the message shows where."""


def parse(text: str, names: Sequence[str]) -> Expression:
    """Read a formula in the columns `names`.

    It may use the operators of the table, in infix form or as functions, the names ``ln``,
    ``asin``, ``acos`` and ``atan`` for some of them, numbers, ``pi``, integer powers (``^`` or
    ``**``), and column names, in backticks where they are not plain words.

    Examples
    --------
    >>> from symbayes.formula.parser import parse
    >>> parse("2*sin(x0) - x1^2", ["x0", "x1"])
    ('-', ('*', ('c', 2.0), ('sin', ('x', 0))), ('square', ('x', 1)))
    """
    return _Parser(text, list(names)).whole()


class _Parser:
    """Recursive descent: sum, product, sign, power, atom."""

    def __init__(self, text: str, names: list[str]):
        self.text, self.names = text, names
        found = [(m.lastgroup, m[m.lastgroup or 0], m.start()) for m in _TOKEN.finditer(text)]
        self.tokens = [token for token in found if token[0] != "space"] + [("end", "", len(text))]
        self.next = self.nodes = 0
        for kind, value, at in found:
            if kind == "other":
                raise self.error(f"{value!r} is not part of a formula", at)

    def error(self, message: str, at: int | None = None) -> FormulaSyntaxError:
        if at is None:
            at = self.tokens[self.next][2]
        # A name of several words needs backticks; say so, whatever went wrong.
        meant = [n for n in self.names if not n.isidentifier() and self.text.startswith(n, at)]
        hint = f"; write the column as `{max(meant, key=len)}`, in backticks" if any(meant) else ""
        return FormulaSyntaxError(f"{message}, at position {at} of {self.text!r}{hint}")

    def error_expected(self, what: str) -> FormulaSyntaxError:
        kind, value, _ = self.tokens[self.next]
        found = "but the formula ends" if kind == "end" else f"found {value!r}"
        return self.error(f"expected {what}, {found}")

    def accept(self, *symbols: str) -> str | None:
        kind, value, _ = self.tokens[self.next]
        if kind == "symbol" and value in symbols:
            self.next += 1
            return value
        return None

    def whole(self) -> Expression:
        try:
            result = self.infix(SUM)
            too_deep = depth(result) > _DEEPEST
        except RecursionError:
            too_deep = True
        if too_deep:
            raise FormulaSyntaxError(
                f"the formula is nested too deeply, more than {_DEEPEST} levels; split it"
            ) from None
        if self.tokens[self.next][0] != "end":
            raise self.error_expected("an operator")
        return result

    def count(self, nodes: int) -> None:
        self.nodes += nodes
        if self.nodes > _MOST_NODES:
            raise FormulaSyntaxError(
                f"the formula is too long, more than {_MOST_NODES} columns and constants when its "
                "powers are written out; split it"
            )

    def infix(self, strength: int) -> Expression:
        left = self.infix(PRODUCT) if strength == SUM else self.signed()
        while symbol := self.accept(*_INFIX[strength]):
            right = self.infix(PRODUCT) if strength == SUM else self.signed()
            is_inverse = symbol == "/" and left == (CONSTANT, 1.0)
            left = ("inv", right) if is_inverse else (symbol, left, right)
        return left

    def signed(self) -> Expression:
        if self.accept("-"):
            operand = self.signed()
            return (CONSTANT, -operand[1]) if operand[0] == CONSTANT else ("neg", operand)
        return self.signed() if self.accept("+") else self.power()

    def power(self) -> Expression:
        base = self.atom()
        while self.accept("**", "^"):
            at = self.tokens[self.next][2]
            exponent = self.signed()
            value = exponent[1] if exponent[0] == CONSTANT else 0.0
            if value != int(value) or not 1 <= abs(value) <= LARGEST_POWER:
                raise self.error(
                    f"a power must be an integer from 1 to {LARGEST_POWER} or its negative", at
                )
            base = integer_power(base, int(value))
            self.count(n_nodes(base))
        return base

    def inside(self) -> Expression:
        """Return what stands in parentheses."""
        inner = self.infix(SUM)
        if not self.accept(")"):
            raise self.error_expected("')'")
        return inner

    def atom(self) -> Expression:
        self.count(1)
        if self.accept("("):
            return self.inside()
        kind, value, at = self.tokens[self.next]
        if kind in ("symbol", "end"):
            raise self.error_expected("a value")
        self.next += 1
        if kind == "number":
            if float(value) == math.inf:
                raise self.error(f"{value} is too large for a number", at)
            return (CONSTANT, float(value))
        if kind == "name" and self.accept("("):
            return self.call(value, at)
        if kind == "name" and value in _NAMED_NUMBERS and value not in self.names:
            return (CONSTANT, _NAMED_NUMBERS[value])
        return self.feature(re.sub(r"\\(.)", r"\1", value), at)

    def call(self, name: str, at: int) -> Expression:
        function = FUNCTION_ALIASES.get(name, name)
        if function not in _FUNCTIONS:
            hint = operator_hint(name) if name != "lt" else ""
            if name in self.names:
                hint = " but a column, and a product needs a *"
            raise self.error(
                f"{name!r} is not a function{hint}; known are {', '.join(_FUNCTIONS)}", at
            )
        return (function, self.inside())

    def feature(self, name: str, at: int) -> Expression:
        if name in self.names:
            return (FEATURE, self.names.index(name))
        if FUNCTION_ALIASES.get(name, name) in _FUNCTIONS:
            hint = f" but a function, as in {name}(...)"
        elif name == "e":
            hint = " (Euler's number is exp(1))"
        elif name[-1:] in _RAISED:
            hint = " (a power is written as in x^2)"
        else:
            hint = did_you_mean(name, self.names)
        known = ", ".join(self.names[:_LISTED]) or "none"
        if len(self.names) > _LISTED:
            known += f" and {len(self.names) - _LISTED} more"
        raise self.error(f"{name!r} is not a column{hint}; known are {known}", at)
