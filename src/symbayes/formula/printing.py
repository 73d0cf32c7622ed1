"""Formulas in writing: as text, LaTeX, MathML and NumPy code.

Which operand needs parentheses and which sign can be taken into a sum follows from the table of
operators, and is the same for all notations.
"""

from __future__ import annotations

import keyword
import math
import re
import unicodedata
from collections.abc import Callable, Sequence
from xml.sax.saxutils import escape

from .expression import CONSTANT, FEATURE, Expression, features
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
    Operator,
)

# Significant digits that tell every double from every other.
ALL_DIGITS = 17
# Stands for an empty name.
_BLANK = "\u2423"
# Joiners are not printable, but some scripts cannot be written without them.
_JOINERS = "\u200c\u200d"

# How an operator is written, how tightly that binds, and how tightly its operands have to.
_Form = tuple[str, int, tuple[int, ...]]


def _forms(form: Callable[[Operator], _Form]) -> dict[str, _Form]:
    return {name: form(row) for name, row in OPERATORS.items()}


def to_text(expression: Expression, names: Sequence[str], digits: int = 6) -> str:
    """Return the expression as text that `parse` reads.

    With 17 digits or more it is read back to the last bit. With fewer, sums of sums, products of
    products and powers of powers lose their parentheses.
    """
    notation = _FullText if digits >= ALL_DIGITS else _Text
    return notation(names, digits).write(expression)[0]


def to_latex(expression: Expression, names: Sequence[str], digits: int = 6) -> str:
    """Return the expression in LaTeX that MathJax, KaTeX and Matplotlib read as well."""
    return _Latex(names, digits, expression).write(expression)[0]


def to_mathml(expression: Expression, names: Sequence[str], digits: int = 6) -> str:
    """Return the expression as a MathML element that stands on a line of its own."""
    content = _MathML(names, digits, expression).write(expression)[0]
    return f'<math xmlns="http://www.w3.org/1998/Math/MathML" display="block">{content}</math>'


def to_numpy_code(expression: Expression, names: Sequence[str], name: str = "formula") -> str:
    """Return the source of a function that computes what `evaluate` does, to the last bit.

    Column names stand only in comments, as Python writes strings: no name can end its line.
    """
    if not isinstance(name, str):
        raise TypeError(f"name must be a str, not {type(name).__name__}")
    if not name.isidentifier() or keyword.iskeyword(name) or name == "np":
        raise ValueError(
            f"name={name!r} cannot name the function; choose a Python identifier such as 'formula'"
        )
    value, _ = _NumpyCode(names, ALL_DIGITS).write(_filled(expression))
    columns = [f"    # x[{i}] is {names[i]!r}\n" for i in sorted(features(expression))]
    return _CODE.format(
        name=name,
        n_columns=f"{len(names)} column{'s' if len(names) > 1 else ''}",
        columns="".join(columns),
        helper=_CUBE if "cube(" in value else "",
        value=value,
    )


class _Text:
    """Text, and what is the same in every notation."""

    forms = _forms(lambda row: (row.text, row.strength, row.needs))
    parentheses, minus, one = "({0})", "-", "1"
    # An integer power above the third; None where it is written as it is computed.
    power: str | None = "{0}**{1}"

    def __init__(self, names: Sequence[str], digits: int):
        self.names, self.digits = names, digits

    def column(self, i: int) -> tuple[str, int]:
        return quoted(self.names[i]), ATOM

    def constant(self, value: float) -> tuple[str, int]:
        text = number(value, self.digits)
        return text, NEGATION if text.startswith("-") else ATOM

    def product(self, left: str, right: str) -> str:
        return f"{left}*{right}"

    def write(self, node: Expression) -> tuple[str, int]:
        """Return the written form and how tightly it binds."""
        kind, *operands = node
        if kind == FEATURE:
            return self.column(node[1])
        if kind not in OPERATORS:
            return self.constant(node[1])
        template, strength, needs = self.forms[kind]
        if self.power is not None:
            base, exponent = _as_power(node)
            if 3 < exponent <= LARGEST_POWER:
                template = self.power.replace("{1}", str(exponent))
                kind, operands, strength, needs = "power", [base], POWER, (ATOM,)
        parts = [self.write(operand) for operand in operands]
        if kind == "*" and parts[0][0] == self.one:
            return parts[1]  # a factor that rounds to 1
        texts = [
            text if binds >= need else self.parentheses.format(text)
            for (text, binds), need in zip(parts, needs, strict=True)
        ]
        if kind == "*":
            if texts[1].startswith(self.minus):
                # Without a sign for times, a factor with a minus would be a difference.
                texts[1] = self.parentheses.format(texts[1])
            return self.product(*texts), strength
        if kind in ("+", "-"):
            # a + -b is a - b, and a - -b is a + b, to the last bit.
            while texts[1].startswith(self.minus):
                kind = "-" if kind == "+" else "+"
                texts[1] = texts[1].removeprefix(self.minus)
            template = self.forms[kind][0]
        return template.format(*texts), strength


class _FullText(_Text):
    """Text that is read back to the last bit: a + (b + c) keeps its parentheses."""

    forms = _Text.forms | {
        "+": (OPERATORS["+"].text, SUM, (SUM, PRODUCT)),
        "*": (OPERATORS["*"].text, PRODUCT, (PRODUCT, NEGATION)),
    }
    power = None


class _Mathematics(_Text):
    """What LaTeX and MathML have in common."""

    # Signs for times: between what would run together, between words, and between letters.
    dot, space, nothing = r" \cdot ", r" \, ", " "
    # Before these a factor needs a dot: digits would join, or make a mixed fraction.
    like_a_number = re.compile(r"\d|\\frac|\\mathrm\{\d")

    def __init__(self, names: Sequence[str], digits: int, expression: Expression):
        super().__init__(names, digits)
        used = [names[i] for i in features(expression)]
        words = any(latex_name(name).startswith(r"\mathrm") for name in used)
        plain = all(map(is_plain_word, used))
        self.times = (self.space if words else self.nothing) if plain else self.dot

    def column(self, i: int) -> tuple[str, int]:
        name = self.names[i]
        # A power of more than a word needs parentheses.
        return self.name(name), ATOM if is_plain_word(name) else POWER

    def constant(self, value: float) -> tuple[str, int]:
        mantissa, _, exponent = number(value, self.digits).partition("e")
        if exponent:
            return self.scientific(mantissa, int(exponent)), NEGATION
        return self.signed(mantissa), NEGATION if mantissa.startswith("-") else ATOM

    def product(self, left: str, right: str) -> str:
        return left + (self.dot if self.like_a_number.match(right) else self.times) + right

    def name(self, name: str) -> str:
        return latex_name(name)

    def signed(self, digits: str) -> str:
        return digits

    def scientific(self, mantissa: str, exponent: int) -> str:
        return rf"{mantissa} \cdot 10^{{{exponent}}}"


class _Latex(_Mathematics):
    forms = _forms(
        lambda row: (row.latex, row.latex_strength or row.strength, row.latex_needs or row.needs)
    )
    parentheses, power = r"\left({0}\right)", "{0}^{{{1}}}"


class _MathML(_Mathematics):
    forms = _forms(lambda row: (row.mathml, *_Latex.forms[row.name][1:]))
    parentheses = "<mrow><mo>(</mo>{0}<mo>)</mo></mrow>"
    minus, one = "<mo>&#x2212;</mo>", "<mn>1</mn>"
    power = "<msup><mrow>{0}</mrow><mn>{1}</mn></msup>"
    dot, nothing = "<mo>&#x22C5;</mo>", "<mo>&#x2062;</mo>"
    space = nothing + '<mspace width="0.17em"/>'
    like_a_number = re.compile(r"(<mrow>|<msup>)*(<mn>|<mfrac>|<mi>\d)")

    def name(self, name: str) -> str:
        if parts := letter_and_index(name):
            return "<msub><mi>{}</mi><mn>{}</mn></msub>".format(*parts)
        if name == "e":  # upright, unlike the base of exp
            return '<mi mathvariant="normal">e</mi>'
        return f"<mi>{escape(shown(name))}</mi>"

    def signed(self, digits: str) -> str:
        return self.minus * digits.startswith("-") + f"<mn>{digits.lstrip('-')}</mn>"

    def scientific(self, mantissa: str, exponent: int) -> str:
        power = f"<msup><mn>10</mn><mrow>{self.signed(str(exponent))}</mrow></msup>"
        return f"{self.signed(mantissa)}<mo>&#xD7;</mo>{power}"


class _NumpyCode(_FullText):
    forms = _forms(
        lambda row: (row.code, ATOM, (0,) * row.arity) if row.code else _FullText.forms[row.name]
    )
    one = "1.0"

    def column(self, i: int) -> tuple[str, int]:
        return f"x[{i}]", ATOM

    def constant(self, value: float | str) -> tuple[str, int]:
        text = value if isinstance(value, str) else repr(value)
        return text, NEGATION if text.startswith("-") else ATOM


_CUBE = """
    def cube(v):
        return v * v * v
"""

_CODE = '''\
import numpy as np


def {name}(X):
    """Return the value of the formula on each row of X, a table with {n_columns}."""
    x = np.array(X, dtype=np.float64, order="F").T  # column by column
{columns}{helper}
    with np.errstate(all="ignore"):  # outside its domain the formula is nan
        return {value}
'''


def _filled(node: Expression) -> Expression:
    """Write the constants that meet no column as arrays as long as one.

    Functions of arrays and of single numbers may differ in the last bit.
    """
    kind, *operands = node
    if kind == CONSTANT:
        return (CONSTANT, f"np.full(x.shape[1], {node[1]!r})")
    if kind == FEATURE:
        return node
    meets = bool(features(node))
    return (kind, *(o if meets and o[0] == CONSTANT else _filled(o) for o in operands))


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


def number(value: float, digits: int) -> str:
    """Return a number with this many significant digits."""
    text = f"{value:.{digits}g}"
    # The largest numbers would round to one that is none.
    return text if math.isfinite(float(text)) else f"{value:.{ALL_DIGITS}g}"


# Names.

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


def letter_and_index(name: str) -> tuple[str, str] | None:
    """Return the parts of a name like x0 or x_0, which mathematics writes with an index."""
    match = re.fullmatch(r"([^\W\d_])_?([0-9]+)", name)
    return (match[1], match[2]) if match and is_plain_word(name) else None


def shown(name: str) -> str:
    """Return a column name for the eye, with something to see for what cannot be seen."""
    if all(c.isspace() or c in _JOINERS for c in name):
        return _BLANK
    return "".join(
        c if c.isprintable() or c in _JOINERS else " " if c.isspace() else "\ufffd" for c in name
    )


# In braces what would get the space of an operator, or join what follows in some renderer.
_SPECIAL = {
    "\\": r"{\backslash}", "{": r"\{", "}": r"\}", "_": r"\_", "$": r"\$", "%": r"\%",
    "&": r"{\text{\&}}", "#": r"{\#}", "^": r"{\wedge}", "~": r"{\sim}", " ": r"\ ",
    "'": r"{}^{\prime}", '"': r"{}^{\prime\prime}", "`": r"{\grave{\ }}",
    "\u2423": r"\sqcup", "\ufffd": "?", **{c: f"{{{c}}}" for c in "+-*=<>:;,"},
}  # fmt: skip
# What LaTeX calls the letters of the Greek alphabet, in their order; small letters have two sigmas.
# Where a letter looks like a Latin one, LaTeX has no name for it, and that stands for it.
_SMALL = (
    r"\alpha \beta \gamma \delta \varepsilon \zeta \eta \theta \iota \kappa \lambda \mu \nu \xi o "
    r"\pi \rho \varsigma \sigma \tau \upsilon \varphi \chi \psi \omega"
)
_CAPITAL = (
    r"A B \Gamma \Delta E Z H \Theta I K \Lambda M N \Xi O \Pi P ? \Sigma T \Upsilon \Phi X "
    r"\Psi \Omega"
)
_GREEK = (
    {chr(0x3B1 + i): name for i, name in enumerate(_SMALL.split())}
    | {chr(0x391 + i): name for i, name in enumerate(_CAPITAL.split()) if name != "?"}
    | {"\u03d1": r"\vartheta", "\u03d5": r"\phi", "\u03f5": r"\epsilon", "\u03f1": r"\varrho"}
    | {"\u03d6": r"\varpi", "\N{MICRO SIGN}": r"\mu", "\N{OHM SIGN}": r"\Omega"}
)
# Matplotlib reads no character beyond this one.
_LAST = "\U0001ffff"


def latex_name(name: str) -> str:
    r"""Return a column name in LaTeX: a letter, a letter with an index, or upright text.

    ``e`` is upright as well, to tell it from the base of exp.
    """
    letter, index = letter_and_index(name) or (name, "")
    if len(letter) == 1 and letter.isalpha() and letter <= _LAST and name != "e":
        greek = _GREEK.get(letter, letter)
        # Upright where a Latin letter stands for another, which it is not.
        written = greek if greek == letter or len(greek) > 1 else rf"\mathrm{{{greek}}}"
        return f"{written}_{{{index}}}" if index else written
    visible = unicodedata.normalize("NFC", shown(name))
    return r"\mathrm{" + "".join(map(_character, visible, "\0" + visible)) + "}"


def _character(c: str, before: str) -> str:
    """Return one character of a name, given the one before it."""
    if c in _SPECIAL:
        return _SPECIAL[c]
    if c in _GREEK:
        return f"{{{_GREEK[c]}}}"  # a command would join the letters that follow
    is_mark = unicodedata.category(c).startswith("M")
    if c > _LAST or (is_mark and not (before.isalnum() or unicodedata.combining(before))):
        return "?"  # also for an accent on nothing
    if c.isalnum() or c.isascii() or is_mark or c in _JOINERS:
        return c
    return rf"{{\text{{{c}}}}}"
