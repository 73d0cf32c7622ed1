"""LaTeX: as mathematics is written, and nothing that can be misread."""

import unicodedata

import pytest
from matplotlib.mathtext import MathTextParser

from symbayes.formula.parser import parse
from symbayes.formula.printing import latex_name, to_latex


@pytest.mark.parametrize(
    ("text", "latex"),
    [
        ("x0*x1", "x_{0} x_{1}"),
        ("(x0 + 1)/(x1 - 1)", r"\frac{x_{0} + 1}{x_{1} - 1}"),
        ("1/x0", r"\frac{1}{x_{0}}"),
        ("-(1/x0)", r"-\frac{1}{x_{0}}"),
        ("-(x0*x1)", "-x_{0} x_{1}"),
        ("-(x0 + x1)", r"-\left(x_{0} + x_{1}\right)"),
        ("sqrt(x0 + 1)", r"\sqrt{x_{0} + 1}"),
        ("exp(-x0)", "e^{-x_{0}}"),
        ("abs(x0)", r"\left|x_{0}\right|"),
        ("(x0 + x1)**2", r"\left(x_{0} + x_{1}\right)^{2}"),
        ("x0**2", "x_{0}^{2}"),
        ("1.5e-7*x0", r"1.5 \cdot 10^{-7} x_{0}"),
        ("(-1.5e7)**2", r"\left(-1.5 \cdot 10^{7}\right)^{2}"),
        ("x0 - -2*x1", "x_{0} + 2 x_{1}"),
    ],
)
def test_latex(text, latex):
    assert to_latex(parse(text, ["x0", "x1"]), ["x0", "x1"]) == latex


@pytest.mark.parametrize(
    ("text", "latex"),
    [
        ("x0*2", r"x_{0} \cdot 2"),  # not x02
        ("2*(3/4)", r"2 \cdot \frac{3}{4}"),  # not two and three quarters
        ("2*(1/x0)", r"2 \cdot \frac{1}{x_{0}}"),
        ("x0*-2", r"x_{0} \left(-2\right)"),  # not x0 minus 2
        ("x0*-x0", r"x_{0} \left(-x_{0}\right)"),
        ("x0*(-x0*3)", r"x_{0} \left(-x_{0} \cdot 3\right)"),
        ("exp(x0)**2", r"\left(e^{x_{0}}\right)^{2}"),  # no superscript of a superscript
        ("e**2", r"\mathrm{e}^{2}"),  # not the base of exp
        ("2*`7`", r"2 \cdot \mathrm{7}"),  # not 27
        ("mass*area", r"\mathrm{mass} \, \mathrm{area}"),  # not massarea
        ("2*x0*mass", r"2 \, x_{0} \, \mathrm{mass}"),
        (
            "2*`air speed (m/s)`**2*mass",
            r"2 \cdot \left(\mathrm{air\ speed\ (m/s)}\right)^{2} \cdot \mathrm{mass}",
        ),
        ("1/`air speed (m/s)`", r"\frac{1}{\mathrm{air\ speed\ (m/s)}}"),
        ("x0**5", "x_{0}^{5}"),
    ],
)
def test_nothing_is_misread(text, latex):
    names = ["x0", "e", "7", "mass", "area", "air speed (m/s)"]
    assert to_latex(parse(text, names), names) == latex


@pytest.mark.parametrize(
    ("name", "latex"),
    [
        ("x12", "x_{12}"),
        ("v_3", "v_{3}"),
        ("λ2", r"\lambda_{2}"),
        ("t", "t"),
        ("λ", r"\lambda"),
        ("θ", r"\theta"),
        ("Ω", r"\Omega"),
        ("µ", r"\mu"),
        ("\u0391", r"\mathrm{A}"),  # LaTeX has no capital alpha
        ("\u03a1_1", r"\mathrm{P}_{1}"),
        ("\u03c3z", r"\mathrm{{\sigma}z}"),
        ("ж", "ж"),
        ("a b", r"\mathrm{a\ b}"),
        ("50%", r"\mathrm{50\%}"),
        ("a_b", r"\mathrm{a\_b}"),
        ("x^2", r"\mathrm{x{\wedge}2}"),
        ("R&D", r"\mathrm{R{\text{\&}}D}"),
        ("m/s", r"\mathrm{m/s}"),
        ("a-b", r"\mathrm{a{-}b}"),
        ("<b>", r"\mathrm{{<}b{>}}"),
        ("$x_1$", r"\mathrm{\$x\_1\$}"),
        ("\\", r"\mathrm{{\backslash}}"),
        ("", r"\mathrm{\sqcup}"),
        ("a\x00", r"\mathrm{a?}"),
        ("été", r"\mathrm{été}"),
        ("e\u0301te\u0301", r"\mathrm{été}"),
        ("\u0301", r"\mathrm{?}"),
        ("\U00020000", r"\mathrm{?}"),
        ("5 €", r"\mathrm{5\ {\text{€}}}"),
    ],
)
def test_latex_names(name, latex):
    assert latex_name(name) == latex


SMALL = [chr(c) for c in range(0x3B1, 0x3CA)]
CAPITAL = [chr(c) for c in range(0x391, 0x3AA) if c != 0x3A2]


def test_greek_letters_are_commands_that_renderers_know():
    parser = MathTextParser("path")
    for letter in SMALL + CAPITAL:
        for name in (letter, f"{letter}_1", f"a {letter}b"):
            latex = to_latex(parse(f"2*`{name}`**2", [name]), [name])
            assert latex.isascii()
            parser.parse(f"${latex}$")


def test_greek_letters_are_told_from_each_other():
    names = {latex_name(letter) for letter in SMALL + CAPITAL}
    assert len(names) == 49
    for letter in SMALL + CAPITAL:
        called = unicodedata.name(letter).split()[-1].lower().replace("lamda", "lambda")
        assert called in latex_name(letter).lower() or len(latex_name(letter)) == len(r"\mathrm{A}")
