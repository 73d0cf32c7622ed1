"""From text to an expression: a small parser of our own. Nothing is ever evaluated."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from .expression import CONSTANT, FEATURE, Expression, depth, integer_power, n_nodes
from .operators import FUNCTION_ALIASES, LARGEST_POWER, OPERATORS, did_you_mean, operator_hint

_TOKEN = re.compile(
    r"(?P<space>\s+)|"
    r"(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)"
    r"|`(?P<quoted>(?:[^`\\]|\\.)*)`"
    r"|(?P<name>[^\W\d]\w*)"
    r"|(?P<symbol>\*\*|[-+*/^(),])"
)
# Expressions are walked by recursion, which Python limits.
_DEEPEST = 100
# A short text may hold powers of powers that grow beyond all bounds.
_MOST_NODES = 10_000
# A column of one of these names comes first. No "e", which is too likely a column.
_NAMED_NUMBERS = {"pi": math.pi}
_RAISED = tuple("⁰¹²³⁴⁵⁶⁷⁸⁹")
_FUNCTIONS = [name for name, row in OPERATORS.items() if row.arity == 1 and name != "lt"]
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
        self.text = text
        self.names = names
        self.tokens: list[tuple[str, str, int]] = []
        at = 0
        while at < len(text):
            match = _TOKEN.match(text, at)
            if match is None:
                raise self.error(f"{text[at]!r} is not part of a formula", at)
            kind = match.lastgroup or ""
            if kind != "space":
                self.tokens.append((kind, match[kind], at))
            at = match.end()
        self.tokens.append(("end", "", len(text)))
        self.next = 0
        self.nodes = 0

    def error(self, message: str, at: int | None = None) -> FormulaSyntaxError:
        if at is None:
            at = self.tokens[self.next][2]
        # A name of several words needs backticks; say so, whatever went wrong.
        meant = [n for n in self.names if not n.isidentifier() and self.text.startswith(n, at)]
        hint = f"; write the column as `{max(meant, key=len)}`, in backticks" if any(meant) else ""
        return FormulaSyntaxError(f"{message}, at position {at} of {self.text!r}{hint}")

    def accept(self, *symbols: str) -> str | None:
        kind, value, _ = self.tokens[self.next]
        if kind == "symbol" and value in symbols:
            self.next += 1
            return value
        return None

    def expect(self, symbol: str) -> None:
        if self.accept(symbol) is None:
            raise self.error(f"expected {symbol!r}, {self.what_comes()}")

    def what_comes(self) -> str:
        kind, value, _ = self.tokens[self.next]
        return "but the formula ends" if kind == "end" else f"found {value!r}"

    def whole(self) -> Expression:
        try:
            result = self.sum()
            too_deep = depth(result) > _DEEPEST
        except RecursionError:
            too_deep = True
        if too_deep:
            raise FormulaSyntaxError(
                f"the formula is nested too deeply, more than {_DEEPEST} levels; split it"
            ) from None
        if self.tokens[self.next][0] != "end":
            raise self.error(f"expected an operator, {self.what_comes()}")
        return result

    def count(self, nodes: int) -> None:
        self.nodes += nodes
        if self.nodes > _MOST_NODES:
            raise FormulaSyntaxError(
                f"the formula is too long, more than {_MOST_NODES} columns and constants when its "
                "powers are written out; split it"
            )

    def sum(self) -> Expression:
        left = self.product()
        while symbol := self.accept("+", "-"):
            left = (symbol, left, self.product())
        return left

    def product(self) -> Expression:
        left = self.signed()
        while symbol := self.accept("*", "/"):
            right = self.signed()
            if symbol == "/" and left == (CONSTANT, 1.0):
                left = ("inv", right)
            else:
                left = (symbol, left, right)
        return left

    def signed(self) -> Expression:
        if self.accept("-"):
            operand = self.signed()
            if operand[0] == CONSTANT:
                return (CONSTANT, -operand[1])
            return ("neg", operand)
        if self.accept("+"):
            return self.signed()
        return self.power()

    def power(self) -> Expression:
        base = self.atom()
        while self.accept("**", "^"):
            at = self.tokens[self.next][2]
            exponent = self.signed()
            value = exponent[1] if exponent[0] == CONSTANT else None
            if value is None or value != int(value) or not 1 <= abs(value) <= LARGEST_POWER:
                raise self.error(
                    f"a power must be an integer from 1 to {LARGEST_POWER} or its negative", at
                )
            base = integer_power(base, int(value))
            self.count(n_nodes(base))
        return base

    def atom(self) -> Expression:
        kind, value, at = self.tokens[self.next]
        self.next += 1
        self.count(1)
        if kind == "number":
            if float(value) == float("inf"):
                raise self.error(f"{value} is too large for a number", at)
            return (CONSTANT, float(value))
        if kind == "quoted":
            return self.feature(re.sub(r"\\(.)", r"\1", value), at)
        if kind == "name":
            if self.accept("("):
                return self.call(value, at)
            if value in _NAMED_NUMBERS and value not in self.names:
                return (CONSTANT, _NAMED_NUMBERS[value])
            return self.feature(value, at)
        if kind == "symbol" and value == "(":
            inner = self.sum()
            self.expect(")")
            return inner
        self.next -= 1
        raise self.error(f"expected a value, {self.what_comes()}")

    def call(self, name: str, at: int) -> Expression:
        function = FUNCTION_ALIASES.get(name, name)
        if function not in _FUNCTIONS:
            hint = operator_hint(name) if name != "lt" else ""
            if name in self.names:
                hint = " but a column, and a product needs a *"
            raise self.error(
                f"{name!r} is not a function{hint}; known are {', '.join(_FUNCTIONS)}", at
            )
        operand = self.sum()
        self.expect(")")
        return (function, operand)

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
