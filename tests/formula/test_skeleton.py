"""Two draws are one formula when they differ in constants only."""

import pytest

from symbayes.formula.trees import concatenated, skeleton, structure

from ..problems import tree


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ((0,), "x0"),
        (("sin", 1), "sin(x1)"),
        (("lt", 0), "x0"),
        (("neg", "lt", "neg", 0), "x0"),
        (("lt", "lt", "sin", "lt", "lt", 0), "sin(lt(x0))"),
        (("neg", "lt", "sin", "neg", 0), "sin(neg(x0))"),
        (("+", 1, 0), "+(x0,x1)"),
        (("*", "sin", 1, "cos", 0), "*(cos(x0),sin(x1))"),
        (("-", 1, 0), "-(x1,x0)"),
        (("/", "lt", 1, 0), "/(lt(x1),x0)"),
        (("lt", "+", "lt", 0, 1), "+(lt(x0),x1)"),
    ],
)
def test_skeleton(parts, expected):
    assert skeleton(tree(*parts)) == expected


def test_constants_do_not_matter():
    parts = ("exp", "lt", "+", 0, "lt", 1)
    assert skeleton(tree(*parts, a=1.0, b=0.0)) == skeleton(tree(*parts, a=-7.5, b=1e9))


def test_columns_and_structure_matter():
    shapes = [(0,), (1,), ("sin", 0), ("sin", "lt", 0), ("-", 0, 1), ("-", 1, 0), ("+", 0, 1)]
    assert len({skeleton(tree(*shape)) for shape in shapes}) == len(shapes)


def test_the_structure_of_a_state_is_that_of_its_terms_in_any_order():
    first, second = tree("sin", "lt", 0, a=2.0), tree("+", 1, 0)
    for trees in ([first, second], [second, first], [tree("+", 0, 1), tree("sin", "lt", 0, a=7.0)]):
        assert structure(concatenated(trees), 2) == ("+(x0,x1)", "sin(lt(x0))")
    assert structure(concatenated([]), 0) == ()
