"""Formulas in presentation MathML, which browsers show without further help."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from xml.sax.saxutils import escape

from .expression import FEATURE, Expression, features
from .operators import ATOM, NEGATION
from .printing import (
    Notation,
    forms,
    is_plain_word,
    letter_and_index,
    name_strength,
    number,
    shown,
    write,
)

_MINUS = "<mo>&#x2212;</mo>"
_PARENTHESES = "<mrow><mo>(</mo>{0}<mo>)</mo></mrow>"
_POWER = "<msup><mrow>{0}</mrow><mn>{1}</mn></msup>"
_FORMS = forms("mathml")
_INVISIBLE_TIMES, _DOT = "<mo>&#x2062;</mo>", "<mo>&#x22C5;</mo>"
_SPACE = '<mspace width="0.17em"/>'
# Before these a factor needs a dot, see the same in LaTeX.
_LIKE_A_NUMBER = re.compile(r"(<mrow>|<msup>)*(<mn>|<mfrac>|<mi>\d)")


def to_mathml(expression: Expression, names: Sequence[str], digits: int = 6) -> str:
    """Return the expression as a MathML element that stands on a line of its own."""
    used = features(expression)
    words = any(len(names[i]) != 1 and letter_and_index(names[i]) is None for i in used)
    plain = all(is_plain_word(names[i]) for i in used)

    def leaf(node: Expression) -> tuple[str, int]:
        if node[0] == FEATURE:
            return _name(names[node[1]]), name_strength(names[node[1]])
        return _number(node[1], digits)

    def product(left: str, right: str) -> str:
        if not plain or _LIKE_A_NUMBER.match(right):
            return left + _DOT + right
        return left + _INVISIBLE_TIMES + (_SPACE if words else "") + right

    with_product = {**_FORMS, "*": replace(_FORMS["*"], write=product)}
    notation = Notation(leaf, with_product, _PARENTHESES, _MINUS, "<mn>1</mn>", _POWER)
    content = write(expression, notation)
    return f'<math xmlns="http://www.w3.org/1998/Math/MathML" display="block">{content}</math>'


def _name(name: str) -> str:
    parts = letter_and_index(name)
    if parts:
        return f"<msub><mi>{parts[0]}</mi><mn>{parts[1]}</mn></msub>"
    if name == "e":  # upright, unlike the base of exp
        return '<mi mathvariant="normal">e</mi>'
    return f"<mi>{escape(shown(name))}</mi>"


def _number(value: float, digits: int) -> tuple[str, int]:
    mantissa, _, exponent = number(value, digits).partition("e")
    text = _signed(mantissa)
    if exponent:
        power = f"<msup><mn>10</mn><mrow>{_signed(str(int(exponent)))}</mrow></msup>"
        return f"{text}<mo>&#xD7;</mo>{power}", NEGATION
    return text, NEGATION if mantissa.startswith("-") else ATOM


def _signed(text: str) -> str:
    digits = f"<mn>{text.lstrip('-')}</mn>"
    return _MINUS + digits if text.startswith("-") else digits
