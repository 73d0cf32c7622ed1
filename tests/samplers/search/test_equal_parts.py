"""Parts of trees replaced by something shorter that takes the same values."""

from types import SimpleNamespace

import numpy as np
import pytest

from symbayes.formula.operators import OPERATORS
from symbayes.formula.trees import evaluate_trees, join, leaf, transform
from symbayes.samplers.search import equal_parts

from ...problems import posed

RNG = np.random.default_rng(12)
TABLE = RNG.uniform(0.5, 3, (3, 100))
ALL = dict.fromkeys(OPERATORS, 1.0)
X0, X1 = leaf(0), leaf(1)
Z = join("-", join("/", X0, X1), leaf(2))


def shorter(trees, operators):
    """What is suggested for a state of these trees."""
    state = SimpleNamespace(trees=lambda: trees)
    return equal_parts.suggest(posed(TABLE, TABLE[0], operators), state)


def spanned(tree, other):
    """Whether a tree is a x + b of another."""
    x, y = evaluate_trees([tree, other], TABLE)
    return np.corrcoef(x, y)[0, 1] ** 2 == pytest.approx(1.0, abs=1e-12)


CASES = {
    "inverse functions": (
        join("*", X0, join("exp", transform(join("log", join("cube", X1)), 1 / 3, 0.0))),
        join("*", X0, X1),
    ),
    "inside a larger tree": (
        join("sin", join("exp", join("log", join("+", X0, X1)))),
        join("sin", join("+", X0, X1)),
    ),
    "one over": (join("+", join("/", join("/", X0, X0), X0), X1), join("+", join("inv", X0), X1)),
    "a constant that was a column": (
        join("sin", join("/", transform(X0, 0.0, -7.2), join("+", X0, X1))),
        join("sin", transform(join("inv", join("+", X0, X1)), -7.2, 0.0)),
    ),
    "the transform above takes it over": (
        join("exp", transform(join("+", X0, join("+", X0, X0)), 2.0, 1.0)),
        join("exp", transform(X0, 6.0, 1.0)),
    ),
    "the coefficient takes it over": (join("+", X0, join("+", X0, X0)), X0),
}


@pytest.mark.parametrize("case", CASES)
def test_a_part_is_replaced_by_something_shorter(case):
    tree, short = CASES[case]
    offers = list(shorter([X1, tree], ALL))
    assert all(len(state) == 2 and state[0].tobytes() == X1.tobytes() for state in offers)
    assert all(len(state[1]) < len(tree) for state in offers)
    assert all(spanned(state[1], tree) for state in offers)
    assert len(offers[0][1]) <= len(short)
    saved = [len(tree) - len(state[1]) for state in offers]
    assert saved == sorted(saved, reverse=True)


def test_what_is_short_already_is_left_alone():
    for tree in (X0, Z, join("sin", join("*", X0, X1)), join("exp", transform(X0, 2.0, 1.0))):
        assert not list(shorter([tree], ALL))
    assert not list(shorter([], ALL))


def test_only_operators_of_the_problem_are_used():
    tree = join("sin", join("/", join("/", X0, X0), X0))
    operators = dict.fromkeys(("/", "sin"), 1.0)
    assert not list(shorter([tree], operators))
    (short, *_) = shorter([tree], {**operators, "inv": 1.0})
    assert short[0].tobytes() == join("sin", join("inv", X0)).tobytes()


def test_what_is_only_close_is_not_the_same():
    tree = join("exp", join("+", X0, transform(join("sin", X1), 1e-6, 0.0)))
    assert not [
        state for state in shorter([tree], ALL) if not spanned(state[0], tree) or len(state[0]) < 5
    ]


def test_parts_without_finite_values():
    tree = join("+", X0, join("log", join("-", X0, X0)))
    assert not list(shorter([tree], ALL))
