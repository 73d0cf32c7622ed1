"""Factors of a term go in front, and what is added to it goes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from symbayes.formula.operators import OPERATORS
from symbayes.formula.trees import evaluate_trees, join, leaf, normal_form, transform
from symbayes.kernels import opcodes

X = np.random.default_rng(4).uniform(0.5, 2, (2, 50))
X0, X1 = leaf(0), leaf(1)


def lt(tree, a, b=0.0):
    return transform(tree, a, b)


CASES = {
    "saturation": (join("/", lt(X0, 2.0), lt(X0, 3.0, 6.0)), join("/", X0, lt(X0, 1.0, 2.0))),
    "powers": (
        join("cube", lt(join("square", lt(X0, 2.0)), 3.0)),
        join("cube", join("square", X0)),
    ),
    "roots": (join("sqrt", lt(X0, 4.0, 8.0)), join("sqrt", lt(X0, 1.0, 2.0))),
    "signs": (join("neg", join("abs", lt(X0, -2.0, 4.0))), join("abs", lt(X0, 1.0, -2.0))),
    "inverse": (join("inv", lt(X0, -4.0, 2.0)), join("inv", lt(X0, 1.0, -0.5))),
    "equal factors": (join("+", lt(X0, 2.0), lt(X1, 2.0)), join("+", X0, X1)),
    "opposite factors": (join("-", lt(X0, 2.0), lt(X1, -2.0)), join("+", X0, X1)),
    "a difference": (join("+", lt(X0, 3.0), lt(X1, -3.0)), join("-", X0, X1)),
    "one factor in front": (join("+", lt(X0, 2.0), X1), join("+", X0, lt(X1, 0.5))),
    "offset": (lt(X0, 2.0, 3.0), X0),
    "a growth rate": (join("exp", lt(X0, -0.7, 0.5)), join("exp", lt(X0, -0.7))),
    "a product of them": (
        join("*", join("exp", lt(X0, 1.0, 2.0)), lt(X1, 3.0)),
        join("*", join("exp", X0), X1),
    ),
    "an inverse": (join("/", lt(X0, 2.0, 3.0), X0), join("inv", X0)),
    "an inverse of more": (
        join("/", lt(join("*", X0, X1), 2.0, 3.0), lt(join("*", X0, X1), 5.0)),
        join("inv", join("*", X0, X1)),
    ),
    "nested": (
        join("*", lt(join("*", lt(X0, -0.5, 0.5), X0), -0.2, 0.1), lt(X1, 7.0)),
        join("*", lt(join("*", lt(X0, 1.0, -1.0), X0), 1.0, 1.0), X1),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_factors_go_in_front(case):
    tree, expected = CASES[case]
    got = normal_form(tree)
    assert got["op"].tolist() == expected["op"].tolist()
    for name in ("a", "b"):
        np.testing.assert_allclose(got[name], expected[name], rtol=1e-12)


@pytest.mark.parametrize("name", ["sin", "exp", "log", "tanh", "arctan"])
def test_where_factors_do_not_pass(name):
    tree = join(name, join("/", lt(X0, 2.0), lt(X1, 4.0, 8.0)))
    expected = join(name, lt(join("/", X0, lt(X1, 1.0, 2.0)), 0.5))
    assert normal_form(tree).tobytes() == expected.tobytes()


def test_roots_of_negative_factors_and_zeros_stay():
    for tree in (join("sqrt", lt(X0, -2.0, 8.0)), lt(X0, 0.0, 1.0), join("*", X0, lt(X1, 0.0))):
        (old,), (new,) = evaluate_trees([tree], X), evaluate_trees([normal_form(tree)], X)
        np.testing.assert_allclose(new * old[0], old * new[0], rtol=1e-12)


def test_a_factor_whose_power_is_too_large_for_a_number_stays():
    tree = join("cube", lt(X0, 1e150))
    assert normal_form(tree).tobytes() == tree.tobytes()


NAMES = [name for name in OPERATORS if name != "lt"]
NUMBERS = st.floats(0.1, 5).flatmap(lambda a: st.sampled_from([a, -a]))
TREES = st.recursive(
    st.sampled_from([X0, X1]),
    lambda inner: st.one_of(
        st.builds(lt, inner, NUMBERS, st.one_of(st.just(0.0), NUMBERS)),
        st.builds(
            lambda name, x, y: join(name, *([x, y] if OPERATORS[name].arity == 2 else [x])),
            st.sampled_from(NAMES), inner, inner,
        ),
    ),
    max_leaves=6,
)  # fmt: skip


def transforms(tree):
    return (tree["op"] == opcodes.LT).sum()


@given(TREES)
def test_it_is_the_same_function_up_to_factor_and_offset(tree):
    form = normal_form(tree)
    with np.errstate(all="ignore"):
        old, new = evaluate_trees([tree, form], X)
    finite = np.isfinite(old) & np.isfinite(new)
    size = np.abs(old[finite])
    # Numbers that have lost their digits, or where operators end, prove nothing.
    if len(size) < 50 or not 1e-3 < size.min() <= size.max() < 1e3 or np.ptp(old) < 1e-3:
        return
    unit = np.abs(new).max()
    if not 1e-3 < np.ptp(new / unit):
        return
    design = np.column_stack([np.ones(50), new / unit])
    fitted = design @ np.linalg.lstsq(design, old)[0]
    np.testing.assert_allclose(fitted, old, atol=1e-6 * size.max())
    # A factor that cannot pass an operator stays below it: one for each operator at most.
    assert transforms(form) <= transforms(tree) + (tree["op"] > opcodes.LT).sum()
