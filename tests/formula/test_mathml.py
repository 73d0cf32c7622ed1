"""MathML: the elements that browsers know, for every operator."""

import re
from xml.etree import ElementTree

import pytest

from symbayes import OPERATORS
from symbayes.formula.parser import parse
from symbayes.formula.printing import to_mathml

NAMES = ["x", "y", "x0", "mass", "e", "7", "speed (m/s)"]


def content(text, **options):
    found = to_mathml(parse(text, NAMES), NAMES, **options)
    start = '<math xmlns="http://www.w3.org/1998/Math/MathML" display="block">'
    assert found.startswith(start)
    ElementTree.fromstring(found)
    return found.removeprefix(start).removesuffix("</math>")


def test_every_operator_has_a_template_with_its_operands():
    for row in OPERATORS.values():
        places = set(re.findall(r"\{(\d)\}", row.mathml))
        assert places == {str(i) for i in range(row.arity)}
        ElementTree.fromstring(f"<mrow>{row.mathml.format('<mi>x</mi>', '<mi>y</mi>')}</mrow>")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x + y", "<mi>x</mi><mo>+</mo><mi>y</mi>"),
        ("x - y", "<mi>x</mi><mo>&#x2212;</mo><mi>y</mi>"),
        ("x - -y", "<mi>x</mi><mo>+</mo><mi>y</mi>"),
        ("x*y", "<mi>x</mi><mo>&#x2062;</mo><mi>y</mi>"),
        ("x*2", "<mi>x</mi><mo>&#x22C5;</mo><mn>2</mn>"),
        ("x*`7`", '<mi>x</mi><mo>&#x22C5;</mo><mi>7</mi>'),
        ("x*2**2", "<mi>x</mi><mo>&#x22C5;</mo><msup><mrow><mn>2</mn></mrow><mn>2</mn></msup>"),
        ("2*mass", '<mn>2</mn><mo>&#x2062;</mo><mspace width="0.17em"/><mi>mass</mi>'),
        (
            "x*-y",
            "<mi>x</mi><mo>&#x2062;</mo>"
            "<mrow><mo>(</mo><mo>&#x2212;</mo><mi>y</mi><mo>)</mo></mrow>",
        ),
        (
            "x/(y + 1)",
            "<mfrac><mrow><mi>x</mi></mrow><mrow><mi>y</mi><mo>+</mo><mn>1</mn></mrow></mfrac>",
        ),
        ("1/x", "<mfrac><mn>1</mn><mrow><mi>x</mi></mrow></mfrac>"),
        ("sqrt(x)", "<msqrt><mi>x</mi></msqrt>"),
        ("x**3", "<msup><mrow><mi>x</mi></mrow><mn>3</mn></msup>"),
        ("abs(x)", "<mrow><mo>|</mo><mi>x</mi><mo>|</mo></mrow>"),
        ("sin(x)", "<mi>sin</mi><mo>&#x2061;</mo><mrow><mo>(</mo><mi>x</mi><mo>)</mo></mrow>"),
        ("exp(e)", '<msup><mi>e</mi><mrow><mi mathvariant="normal">e</mi></mrow></msup>'),
        (
            "exp(x)**2",
            "<msup><mrow><mrow><mo>(</mo><msup><mi>e</mi><mrow><mi>x</mi></mrow></msup>"
            "<mo>)</mo></mrow></mrow><mn>2</mn></msup>",
        ),
        ("x0", "<msub><mi>x</mi><mn>0</mn></msub>"),
        ("-2.5", "<mo>&#x2212;</mo><mn>2.5</mn>"),
        (
            "1.5e-7",
            "<mn>1.5</mn><mo>&#xD7;</mo>"
            "<msup><mn>10</mn><mrow><mo>&#x2212;</mo><mn>7</mn></mrow></msup>",
        ),
        ("1.000000001*x", "<mi>x</mi>"),
        ("x**5", "<msup><mrow><mi>x</mi></mrow><mn>5</mn></msup>"),
        # Names of more than a word: nothing runs together, and a power is not that of the unit.
        (
            "x*`speed (m/s)`**2*sin(y)",
            "<mi>x</mi><mo>&#x22C5;</mo><msup><mrow><mrow><mo>(</mo><mi>speed (m/s)</mi><mo>)</mo>"
            "</mrow></mrow><mn>2</mn></msup><mo>&#x22C5;</mo><mi>sin</mi><mo>&#x2061;</mo>"
            "<mrow><mo>(</mo><mi>y</mi><mo>)</mo></mrow>",
        ),
        ("sqrt(`speed (m/s)`)", "<msqrt><mi>speed (m/s)</mi></msqrt>"),
    ],
)  # fmt: skip
def test_mathml(text, expected):
    assert content(text) == expected


def test_digits():
    assert content("1.23456789") == "<mn>1.23457</mn>"
    assert content("1.23456789", digits=3) == "<mn>1.23</mn>"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("<script>", "<mi>&lt;script&gt;</mi>"),
        ("a&b", "<mi>a&amp;b</mi>"),
        ("", "<mi>\u2423</mi>"),
        ("a\x00b\nc", "<mi>a\ufffdb c</mi>"),
        ("λ_2", "<msub><mi>λ</mi><mn>2</mn></msub>"),
    ],
)
def test_names(name, expected):
    assert to_mathml(("x", 0), [name]).partition(">")[2] == expected + "</math>"
