"""Formulas in presentation MathML, which browsers show without further help."""

from __future__ import annotations

import re
from collections.abc import Sequence
from xml.sax.saxutils import escape

from .expression import FEATURE, Expression, features
from .latex import FORMS as LATEX_FORMS
from .latex import name_strength
from .operators import ATOM, NEGATION, POWER
from .printing import Form, Notation, is_plain_word, letter_and_index, number, shown, write

_MINUS = "<mo>&#x2212;</mo>"
_FENCED = "<mrow><mo>{left}</mo>{{0}}<mo>{right}</mo></mrow>"
_PARENTHESES = _FENCED.format(left="(", right=")")
_INVISIBLE_TIMES, _DOT = "<mo>&#x2062;</mo>", "<mo>&#x22C5;</mo>"
_SPACE = '<mspace width="0.17em"/>'
# Before these a factor needs a dot, see the same in LaTeX.
_LIKE_A_NUMBER = re.compile(r"(<mrow>|<msup>)*(<mn>|<mfrac>|<mi>\d)")


def _function(name: str) -> str:
    return f"<mi>{name}</mi><mo>&#x2061;</mo>{_PARENTHESES}"


def _power(exponent: int) -> str:
    return f"<msup><mrow>{{0}}</mrow><mn>{exponent}</mn></msup>"


def _power_form(exponent: int) -> Form:
    return Form(_power(exponent).format, POWER, (ATOM,))


#: The operators, with `{0}` and `{1}` for the operands. Parentheses are those of LaTeX.
TEMPLATES = {
    "+": "{0}<mo>+</mo>{1}",
    "-": "{0}" + _MINUS + "{1}",
    "*": "{0}" + _INVISIBLE_TIMES + "{1}",
    "/": "<mfrac><mrow>{0}</mrow><mrow>{1}</mrow></mfrac>",
    "neg": _MINUS + "{0}",
    "inv": "<mfrac><mn>1</mn><mrow>{0}</mrow></mfrac>",
    "exp": "<msup><mi>e</mi><mrow>{0}</mrow></msup>",
    "sqrt": "<msqrt>{0}</msqrt>",
    "abs": _FENCED.format(left="|", right="|"),
    "square": _power(2),
    "cube": _power(3),
    **{
        name: _function(name)
        for name in ("lt", "log", "sin", "cos", "tan", "tanh", "arcsin", "arccos", "arctan")
    },
}


def to_mathml(expression: Expression, names: Sequence[str], digits: int = 6) -> str:
    """Return the expression as a MathML element that stands on a line of its own.

    Examples
    --------
    >>> from symbayes.formula.mathml import to_mathml
    >>> print(to_mathml(("sqrt", ("x", 0)), ["<b>"]))
    <math xmlns="http://www.w3.org/1998/Math/MathML" display="block"><msqrt><mi>&lt;b&gt;</mi>...
    """
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

    forms = {
        name: Form(template.format, LATEX_FORMS[name].strength, LATEX_FORMS[name].needs)
        for name, template in TEMPLATES.items()
    }
    forms["*"] = Form(product, forms["*"].strength, forms["*"].needs)
    notation = Notation(leaf, forms, _PARENTHESES, _MINUS, "<mn>1</mn>", _power_form)
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
