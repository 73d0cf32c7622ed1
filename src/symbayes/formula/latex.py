"""Formulas in LaTeX, of the kind that MathJax, KaTeX and Matplotlib read as well."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import replace

from .expression import FEATURE, Expression, features
from .operators import ATOM, NEGATION
from .printing import (
    JOINERS,
    Notation,
    forms,
    is_plain_word,
    letter_and_index,
    name_strength,
    number,
    shown,
    write,
)

_FORMS = forms("latex")

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

# Before these a factor needs a sign for times: digits would join, or make a mixed fraction.
_LIKE_A_NUMBER = re.compile(r"\d|\\frac|\\mathrm\{\d")


def to_latex(expression: Expression, names: Sequence[str], digits: int = 6) -> str:
    """Return the expression in LaTeX."""
    written = {i: latex_name(names[i]) for i in features(expression)}
    # Letters need nothing between them, words a space, and names of more than a word a sign.
    space = r" \, " if any(name.startswith(r"\mathrm") for name in written.values()) else " "
    if not all(is_plain_word(names[i]) for i in written):
        space = r" \cdot "

    def leaf(node: Expression) -> tuple[str, int]:
        if node[0] == FEATURE:
            return written[node[1]], name_strength(names[node[1]])
        mantissa, _, exponent = number(node[1], digits).partition("e")
        if exponent:
            return rf"{mantissa} \cdot 10^{{{int(exponent)}}}", NEGATION
        return mantissa, NEGATION if mantissa.startswith("-") else ATOM

    def product(left: str, right: str) -> str:
        return left + (r" \cdot " if _LIKE_A_NUMBER.match(right) else space) + right

    with_product = {**_FORMS, "*": replace(_FORMS["*"], write=product)}
    notation = Notation(leaf, with_product, r"\left({0}\right)", "-", "1", "{0}^{{{1}}}")
    return write(expression, notation)


def latex_name(name: str) -> str:
    r"""Return a column name in LaTeX: a letter, a letter with an index, or upright text.

    ``e`` is upright as well, to tell it from the base of exp.
    """
    parts = letter_and_index(name)
    if parts and parts[0] <= _LAST:
        return f"{_letter(parts[0])}_{{{parts[1]}}}"
    if len(name) == 1 and name.isalpha() and name <= _LAST and name != "e":
        return _letter(name)
    visible = unicodedata.normalize("NFC", shown(name))
    written = map(_character, visible, "\0" + visible)
    return r"\mathrm{" + "".join(written) + "}"


def _letter(c: str) -> str:
    """Return a letter; upright where a Latin one stands for another, which it is not."""
    greek = _GREEK.get(c, c)
    return greek if greek == c or len(greek) > 1 else rf"\mathrm{{{greek}}}"


def _character(c: str, before: str) -> str:
    """Return one character of a name, given the one before it."""
    if c in _SPECIAL:
        return _SPECIAL[c]
    if c in _GREEK:
        return f"{{{_GREEK[c]}}}"  # a command would join the letters that follow
    is_mark = unicodedata.category(c).startswith("M")
    if c > _LAST or (is_mark and not (before.isalnum() or unicodedata.combining(before))):
        return "?"  # also for an accent on nothing
    if c.isalnum() or c.isascii() or is_mark or c in JOINERS:
        return c
    return rf"{{\text{{{c}}}}}"
