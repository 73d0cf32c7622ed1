"""Formulas as text: parentheses, signs, digits, names."""

import unicodedata

import pytest

from symbayes.formula.parser import parse
from symbayes.formula.printing import letter_and_index, number, quoted, shown, to_text

NAMES = ["x0", "x1"]


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("x0 + (x1 + 2)", "x0 + x1 + 2"),
        ("x0 - (x1 + 2)", "x0 - (x1 + 2)"),
        ("x0 - (-2*x1)", "x0 + 2*x1"),
        ("x0 + (-2)*x1", "x0 - 2*x1"),
        ("x0 + (-x1 + 2)", "x0 - x1 + 2"),
        ("x0 - -(-x1)", "x0 - x1"),
        ("x0*-2", "x0*(-2)"),
        ("x0*(-x1*2)", "x0*(-x1*2)"),
        ("x0/-2", "x0/(-2)"),
        ("x0/(x1*2)", "x0/(x1*2)"),
        ("x0*(x1/2)", "x0*x1/2"),
        ("(x0 + 1)**2", "(x0 + 1)**2"),
        ("(x0**2)**3", "x0**6"),
        ("x0**5", "x0**5"),
        ("1/(x0 + 1)**4", "1/(x0 + 1)**4"),
        ("(x0**12)**2", "(x0**12)**2"),  # larger ones cannot be read
        ("x0**2*x0", "x0**2*x0"),
        ("exp(x0)**2", "exp(x0)**2"),
        ("1/(x0 + x1)", "1/(x0 + x1)"),
        ("-(1/x0)", "-(1/x0)"),
        ("exp(-(x0 + 1))", "exp(-(x0 + 1))"),
        ("1.000000001*x0", "x0"),
        ("1.000000001*(x0 + 1)", "x0 + 1"),
        ("(1.000000001*(x0 + 1))**2", "(x0 + 1)**2"),
        ("123456789*x0", "1.23457e+08*x0"),
    ],
)
def test_printed_with_no_more_parentheses_than_needed(text, printed):
    assert to_text(parse(text, NAMES), NAMES) == printed


def test_all_digits_keep_the_grouping():
    text = "x0 + (x1 + 0.10000000000000001)*(x0*x1)"
    assert to_text(parse(text, NAMES), NAMES, digits=17) == text
    assert to_text(parse(text, NAMES), NAMES) == "x0 + (x1 + 0.1)*x0*x1"
    assert to_text(parse("x0**5", NAMES), NAMES, digits=17) == "(x0**2)**2*x0"


def test_numbers_stay_finite_when_rounded():
    assert number(1234.5678, 3) == "1.23e+03"
    assert float(number(1.7e308, 1)) == 1.7e308
    assert number(-0.0, 6) == "-0"


def test_plain_words_stand_without_quotes():
    assert quoted("age") == "age"
    assert quoted("λ_1") == "λ_1"
    assert quoted("pi") == "pi"
    for name in ("sin", "ln", "lt", "a b", "1st", ""):
        assert quoted(name) == f"`{name}`"
    assert quoted("a`\\") == "`a\\`\\\\`"


# Raised, lowered, and other forms of what is another name; then a caret, an exclamation mark, a
# bar, a prime, dots, a plus, nothing.
READ_OTHERWISE = [
    "x²", "²x", "x₁", "xᵀ", "xⁿ", "x½", "x①", "ﬁt", "ª", "µ", "\uff58", "\u2113", "\u212a",
    "e\u0301", "x\u02c62", "x\u01c3", "a\u01c0b", "x\u02b9", "a·b", "a\ua78fb", "a\u1429b",
    "x\u1160",
]  # fmt: skip


def test_names_that_read_as_something_else_are_quoted():
    formula = ("+", ("square", ("x", 0)), ("x", 1))
    for name in READ_OTHERWISE:
        assert quoted(name) == f"`{name}`"
        assert parse(to_text(formula, [name, "x"]), [name, "x"]) == formula


def test_whatever_stands_bare_is_one_plain_identifier():
    """All characters of Unicode, at the beginning of a name and behind its first letter."""
    for code in range(0x110000):
        c = chr(code)
        for name in (c, f"x{c}"):
            if quoted(name) == name:
                assert name.isidentifier(), ascii(name)
                assert unicodedata.normalize("NFKC", name) == name, ascii(name)
                assert unicodedata.category(c)[0] in "LMN" or c == "_", ascii(name)


def test_words_of_all_languages_stand_bare():
    for name in ("größe", "λ", "列", "データ", "возраст", "عمر", "ñ_2", "x٣", "_a"):
        assert quoted(name) == name


def test_what_cannot_be_seen_is_shown():
    assert shown("a b") == "a b"
    assert shown("") == shown(" \n") == shown("\u200d") == "\u2423"
    assert shown("a\nb\x00\u202e") == "a b\ufffd\ufffd"
    assert shown("می\u200cرود") == "می\u200cرود"


def test_letters_with_an_index():
    assert letter_and_index("x0") == letter_and_index("x_0") == ("x", "0")
    assert letter_and_index("λ12") == ("λ", "12")
    for name in ("x", "ab1", "_1", "11", "x__1", "x1\n", "x1a"):
        assert letter_and_index(name) is None
