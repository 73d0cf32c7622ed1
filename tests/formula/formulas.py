"""Random formulas over every operator, and column names that nobody hopes for."""

import numpy as np
from hypothesis import strategies as st

from symbayes import OPERATORS
from symbayes.formula import expression as ex
from symbayes.formula.trees import to_expression
from symbayes.kernels.tree import NODE

UNARY = [name for name, row in OPERATORS.items() if row.arity == 1 and name != "lt"]
BINARY = [name for name, row in OPERATORS.items() if row.arity == 2]

RNG = np.random.default_rng(30)
TABLE = np.concatenate([RNG.normal(0, 2, (3, 20)), np.zeros((3, 1)), np.ones((3, 1))], axis=1)

SPECIAL = [1.0, -1.0, 0.0, -0.0, 2.0, -3.0, 0.1, 1e-9, -2.5e16, 1e22, 1e300, -1.7e308, 5e-324]
MODERATE = st.one_of(st.integers(-9, 9).map(float), st.floats(-9, 9, allow_subnormal=False))
ANY_NUMBER = st.one_of(
    st.sampled_from(SPECIAL), MODERATE, st.floats(allow_nan=False, allow_infinity=False)
)
COLUMNS = st.integers(0, 2).map(lambda i: ("x", i))

HOSTILE = [
    "", " ", "a b", "  a  ", "x^2", "sin", "lt", "ln", "e", "pi", "λ", "x0", "x_1", "$x_1$", "1",
    "1e5", "-x", "x'", '"""', "'''\\", "\\", "`", "a`b\\`", "{", "}}", "{0}", "%s", "a_b", "R&D",
    "#", "^~", "a\nb", "# c\nimport os\n", "a\r\tb", "]]>", "<script>alert(1)</script>", "&amp;",
    "<!--", "\x00\x1b[31m", "\u202egnp", "\ud800", "\ufffe", "€", "m²", "x\u0302", "\u0301",
    "²", "x₁", "ª1", "\uff58", "ﬁt", "x\u02c62", "x\u01c3", "a·b", "x½", "xᵀ", "µ",
    "\u200c", "می\u200cرود", "列", "\U00020000", "\U00020000_1", "😀", "|", "[]", "a,b;c:d", "f(x)",
    "it's", "\u2028", "\\end{math}", "${x}", "coding: latin-1", "+", "*/", "λ_2", "?",
]  # fmt: skip
ANY_NAME = st.one_of(st.sampled_from(HOSTILE), st.text(max_size=8))
ANY_NAMES = st.lists(ANY_NAME, min_size=3, max_size=3, unique=True)


def expressions(numbers=ANY_NUMBER, max_leaves=12):
    """Expressions in three columns, over every operator but `lt`, which no formula shows."""
    return st.recursive(
        st.one_of(COLUMNS, numbers.map(lambda value: ("c", value))),
        lambda inner: st.one_of(
            st.tuples(st.sampled_from(UNARY), inner),
            st.tuples(st.sampled_from(BINARY), inner, inner),
        ),
        max_leaves=max_leaves,
    )


def tree_of(name, a=-2.5e-9, b=0.1):
    """The expression of a sampled tree of one operator: that of `lt` has two constants."""
    operator = OPERATORS[name]
    nodes = np.zeros(1 + operator.arity, NODE)
    nodes["op"][0] = operator.opcode
    nodes["feature"][1:] = np.arange(operator.arity)
    nodes["a"][0], nodes["b"][0] = a, b
    return to_expression(nodes, [0, 1])


def value(expression, table=TABLE):
    with np.errstate(all="ignore"):
        return np.array(ex.evaluate(expression, table))


def assert_same_bits(found, expected, message=""):
    """Equal to the sign of a zero; any nan is like any other."""
    found, expected = np.asarray(found), np.asarray(expected)
    np.testing.assert_array_equal(found, expected, err_msg=message)
    finite = ~np.isnan(expected)
    np.testing.assert_array_equal(
        np.signbit(found[finite]), np.signbit(expected[finite]), err_msg=message
    )
