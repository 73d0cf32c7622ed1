"""Formulas in writing: signs and parentheses for every notation, and plain text.

A notation says how operators, columns and constants are written. What follows from their order,
which operand needs parentheses and which sign can be taken into a sum, is the same for all.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from .expression import CONSTANT, FEATURE, Expression
from .operators import (
    ATOM,
    FUNCTION_ALIASES,
    LARGEST_POWER,
    NEGATION,
    OPERATORS,
    POWER,
    POWERS,
    PRODUCT,
    SUM,
)

# Significant digits that tell every double from every other.
ALL_DIGITS = 17
# Stands for an empty name.
_BLANK = "\u2423"
# Joiners are not printable, but some scripts cannot be written without them.
JOINERS = "\u200c\u200d"


@dataclass(frozen=True)
class Form:
    """How one operator is written."""

    write: Callable[..., str]
    """Called with the operands in writing."""
    strength: int
    """How tightly it binds."""
    needs: tuple[int, ...]
    """How tightly each operand has to bind to stand without parentheses."""


@dataclass(frozen=True)
class Notation:
    """A way to write formulas."""

    leaf: Callable[[Expression], tuple[str, int]]
    """Writes a column or a constant, and tells how tightly it binds."""
    forms: Mapping[str, Form]
    """How each operator is written."""
    parentheses: str
    """Parentheses around `{0}`."""
    minus: str
    """What everything with a sign begins with."""
    one: str
    """The constant 1."""
    power: str | None = None
    """How an integer power above the third is written, base and exponent for `{0}` and `{1}`; None
    where it is written as it is computed, by squares, cubes and products."""


def write(expression: Expression, notation: Notation) -> str:
    """Return an expression in some notation."""
    return _written(expression, notation)[0]


def _written(expression: Expression, notation: Notation) -> tuple[str, int]:
    """Return the written form and how tightly it binds."""
    kind = expression[0]
    if kind not in OPERATORS:
        return notation.leaf(expression)
    form, inner, power = notation.forms[kind], expression[1:], notation.power
    if power is not None:
        base, exponent = _as_power(expression)
        if 3 < exponent <= LARGEST_POWER:
            form = Form(lambda text: power.format(text, exponent), POWER, (ATOM,))
            inner, kind = (base,), "power"
    parts = [_written(operand, notation) for operand in inner]
    if kind == "*" and parts[0][0] == notation.one:
        return parts[1]  # a factor that rounds to 1
    operands = [
        text if strength >= need else notation.parentheses.format(text)
        for (text, strength), need in zip(parts, form.needs, strict=True)
    ]
    if kind == "*" and operands[1].startswith(notation.minus):
        # Without a sign for times, a factor with a minus would be a difference.
        operands[1] = notation.parentheses.format(operands[1])
    if kind in ("+", "-"):
        # a + -b is a - b, and a - -b is a + b, to the last bit.
        while operands[1].startswith(notation.minus):
            kind = "-" if kind == "+" else "+"
            operands[1] = operands[1].removeprefix(notation.minus)
        form = replace(form, write=notation.forms[kind].write)
    return form.write(*operands), form.strength


def _as_power(node: Expression) -> tuple[Expression, int]:
    """Return base and exponent; 1 for what is not a power, and for products that `parse` keeps."""
    kind = node[0]
    if kind in POWERS:
        base, exponent = _as_power(node[1])
        return base, POWERS[kind] * exponent
    if kind == "*" and node[2][0] != CONSTANT:
        base, exponent = _as_power(node[1])
        if exponent > 3 and base == node[2]:
            return base, exponent + 1
    return node, 1


def forms(notation: str) -> dict[str, Form]:
    """Return how all operators are written, by the column of the table for "latex" or "mathml".

    Both are mathematics on paper and need the same parentheses.
    """
    return {
        name: Form(
            getattr(row, notation).format,
            row.strength if row.latex_strength is None else row.latex_strength,
            row.needs if row.latex_needs is None else row.latex_needs,
        )
        for name, row in OPERATORS.items()
    }


_TEXT = {name: Form(row.text.format, row.strength, row.needs) for name, row in OPERATORS.items()}

# a + (b + c) is written without parentheses where digits are dropped anyway, else with.
GROUPED = {
    **_TEXT,
    "+": replace(_TEXT["+"], needs=(SUM, PRODUCT)),
    "*": replace(_TEXT["*"], needs=(PRODUCT, NEGATION)),
}


def to_text(expression: Expression, names: Sequence[str], digits: int = 6) -> str:
    """Return the expression as text that `parse` reads.

    With 17 digits or more it is read back to the last bit. With fewer, sums of sums, products of
    products and powers of powers lose their parentheses.
    """

    def leaf(node: Expression) -> tuple[str, int]:
        if node[0] == FEATURE:
            return quoted(names[node[1]]), ATOM
        text = number(node[1], digits)
        return text, NEGATION if text.startswith("-") else ATOM

    if digits >= ALL_DIGITS:
        return write(expression, Notation(leaf, GROUPED, "({0})", "-", "1"))
    return write(expression, Notation(leaf, _TEXT, "({0})", "-", "1", "{0}**{1}"))


def number(value: float, digits: int) -> str:
    """Return a number with this many significant digits."""
    text = f"{value:.{digits}g}"
    # The largest numbers would round to one that is none.
    return text if math.isfinite(float(text)) else f"{value:.{ALL_DIGITS}g}"


_IDENTIFIER = re.compile(r"[^\W\d]\w*\Z")
# Letters that look like signs (bars, an exclamation mark, carets, primes, strokes, a plus, a dot)
# or like nothing.
_LIKE_SIGNS = re.compile("[\u01c0-\u01c3\u02b0-\u02ff\u115f\u1160\u1428\u1429\ua78f]")


def quoted(name: str) -> str:
    """Return a column name as it stands in a printed formula: in backticks unless a plain word."""
    if is_plain_word(name) and name not in OPERATORS and name not in FUNCTION_ALIASES:
        return name
    return "`" + name.replace("\\", "\\\\").replace("`", "\\`") + "`"


def is_plain_word(name: str) -> bool:
    """Return whether a column name cannot be taken for more than one thing in a formula.

    `x²` and `x₁` could: they are other names by Unicode's compatibility forms (NFKC).
    """
    return (
        _IDENTIFIER.match(name) is not None
        and name.isidentifier()
        and unicodedata.is_normalized("NFKC", name)
        and _LIKE_SIGNS.search(name) is None
    )


def name_strength(name: str) -> int:
    """Return how tightly a column name binds: a power of more than a word needs parentheses."""
    return ATOM if is_plain_word(name) else POWER


def letter_and_index(name: str) -> tuple[str, str] | None:
    """Return the parts of a name like x0 or x_0, which mathematics writes with an index."""
    match = re.fullmatch(r"([^\W\d_])_?([0-9]+)", name)
    return (match[1], match[2]) if match and is_plain_word(name) else None


def shown(name: str) -> str:
    """Return a column name for the eye, with something to see for what cannot be seen."""
    if all(c.isspace() or c in JOINERS for c in name):
        return _BLANK
    return "".join(
        c if c.isprintable() or c in JOINERS else " " if c.isspace() else "\ufffd" for c in name
    )
