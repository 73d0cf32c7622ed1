"""What is found for a transformation of y becomes one tree for y itself."""

import numpy as np
import pytest

from symbayes.formula.operators import OPERATORS
from symbayes.formula.trees import evaluate_trees
from symbayes.samplers.search.targets import TARGETS, carry_back, divided_targets, targets_of

from ...problems import tree

RNG = np.random.default_rng(90)
X = RNG.uniform(0.5, 2.0, (2, 60))
ALL = dict.fromkeys(OPERATORS, 1.0)
BY_NAME = {target.name: target for target in TARGETS}
# For each target, y as a function of z, and where z has to lie.
INVERSES = {
    "square": (np.sqrt, (0.5, 4.0)),
    "inverse": (np.reciprocal, (0.5, 4.0)),
    "log": (np.exp, (-1.0, 2.0)),
    "square root": (np.square, (0.5, 3.0)),
    "exp": (np.log, (0.5, 3.0)),
    "cos": (np.arccos, (-0.8, 0.8)),
    "sin": (np.arcsin, (-0.8, 0.8)),
    "arctanh": (np.tanh, (-1.0, 1.0)),
}
TREES = [
    tree("*", 0, 1), tree("sin", "lt", 0, a=1.3, b=0.4), tree("lt", "square", 1, a=0.7, b=-2.0),
]  # fmt: skip
# Coefficients, before they are scaled: whole ratios, opposite signs, nothing special, a zero.
COEFFICIENTS = {
    "one": [1.0],
    "one, negative": [-0.7],
    "equal": [1.0, 1.0],
    "difference": [1.0, -1.0],
    "difference first": [-1.0, 1.0],
    "halves": [2.0, -1.0, 1.0],
    "any": [0.313, 1.71, -0.456],
    "all negative": [-0.3, -1.1],
    "a zero": [1.0, 0.0, -0.4],
}


def without(*names):
    return {name: weight for name, weight in ALL.items() if name not in names}


def in_range(values, low, high):
    """Scale a sum into a range; return the factor and the offset that do."""
    factor = (high - low) / np.ptp(values)
    return factor, low - factor * values.min()


def linear_error(values, y):
    """Largest error of the best linear function of the values, in units of y's spread."""
    design = np.column_stack([np.ones(len(y)), values])
    return np.abs(design @ np.linalg.lstsq(design, y, rcond=None)[0] - y).max() / np.std(y)


@pytest.mark.parametrize("operators", [ALL, without("-"), without("inv", "-")])
@pytest.mark.parametrize("name", INVERSES)
def test_what_is_carried_back_is_linear_in_y(name, operators):
    target, (inverse, bounds) = BY_NAME[name], INVERSES[name]
    allowed = {0, *(OPERATORS[operator].opcode for operator in operators)}
    for case, values in COEFFICIENTS.items():
        coefficients = np.array(values)
        trees = TREES[: len(coefficients)]
        total = coefficients @ evaluate_trees(trees, X)
        factor, intercept = in_range(total, *bounds)
        y = inverse(intercept + factor * total)
        np.testing.assert_allclose(target.forward(y), intercept + factor * total, atol=1e-12)
        results = carry_back(target, trees, intercept, factor * coefficients, operators)
        assert results, case
        for result in results:
            (values,) = evaluate_trees([result], X)
            assert linear_error(values, y) < 1e-9, case
            assert set(result["op"].tolist()) <= allowed, case
            # At most: one on top (or three for 1 / ...), a transform each, the sums between them;
            # in a product an exponential each as well.
            product = name == "log" and result is not results[-1]
            most = 3 + sum(len(t) + 1 + product for t in trees) + len(trees) - 1
            assert len(result) <= most, case


def test_simple_sums_stay_small():
    root = carry_back(BY_NAME["square"], [tree("square", 0), tree("square", 1)], 0.0,
                      np.array([3.0, 3.0]), ALL)  # fmt: skip
    assert [len(t) for t in root] == [6]  # sqrt(x0^2 + x1^2), the 3 left to the coefficient
    difference = carry_back(BY_NAME["inverse"], [tree(0), tree(1)], 1e-13, np.array([-2.0, 2.0]),
                            ALL)  # fmt: skip
    assert [len(t) for t in difference] == [4]  # 1 / (x1 - x0)
    divided = carry_back(BY_NAME["inverse"], [tree(0)], 0.5, np.array([2.0]), without("inv"))
    assert [len(t) for t in divided] == [5]  # lt(x0) / lt(x0)


def test_the_logarithm_of_a_product_becomes_a_product():
    trees = [tree("log", 0), tree("log", "sin", 1), tree("log", "square", 1)]
    y = 3.0 * X[0] ** 2 * np.sqrt(np.sin(X[1])) / X[1] ** 2
    coefficients = np.array([2.001, 0.499, -1.0])  # as noise would shift them
    results = carry_back(BY_NAME["log"], trees, np.log(3.0), coefficients, ALL)
    values = evaluate_trees(results, X)
    errors = [linear_error(v, y) for v in values]
    assert min(errors) < 1e-9
    product = results[int(np.argmin(errors))]
    assert OPERATORS["exp"].opcode not in product["op"]
    # Without the operators it needs there is no product, but still an exponential.
    for missing in ("*", "/", "sqrt"):
        (only,) = carry_back(BY_NAME["log"], trees, np.log(3.0), coefficients, without(missing))
        assert only[0]["op"] == OPERATORS["exp"].opcode


def test_a_product_with_something_else_and_one_below_the_line():
    trees = [tree("log", 0), tree(1)]
    y = np.exp(0.37 * X[1]) / X[0]
    product, _ = carry_back(BY_NAME["log"], trees, 0.0, np.array([-1.0, 0.37]), ALL)
    assert linear_error(evaluate_trees([product], X)[0], y) < 1e-9
    product, _ = carry_back(BY_NAME["log"], trees[:1], 0.0, np.array([-2.0]), ALL)
    assert linear_error(evaluate_trees([product], X)[0], X[0] ** -2) < 1e-9


def test_a_term_without_weight_is_no_factor():
    trees = [tree("log", 0), tree("sin", 1)]
    product, _ = carry_back(BY_NAME["log"], trees, 0.0, np.array([2.0, 0.0]), ALL)
    np.testing.assert_array_equal(product, tree("*", 0, 0))


@pytest.mark.parametrize("coefficients", [[], [0.0, 0.0], [np.nan, 1.0], [1.0, np.inf]])
def test_nothing_is_carried_back_from_nothing(coefficients):
    coefficients = np.array(coefficients)
    trees = TREES[: len(coefficients)]
    assert carry_back(BY_NAME["square"], trees, 1.0, coefficients, ALL) == []


def test_trees_are_not_changed():
    before = [t.copy() for t in TREES]
    for target in TARGETS:
        carry_back(target, TREES, 0.3, np.array([0.5, -0.7, 0.2]), ALL)
    for old, new in zip(before, TREES, strict=True):
        np.testing.assert_array_equal(old, new)


def names(y, operators=ALL):
    return {target.name for target in targets_of(np.asarray(y), operators)}


def test_targets_have_to_be_possible():
    y = RNG.uniform(0.2, 0.9, 100)
    assert names(y) == set(BY_NAME)
    assert names(y + 2) == set(BY_NAME) - {"sin", "arctanh"}
    assert names(y - 0.5) == {"inverse", "exp", "sin", "arctanh"}
    assert "exp" not in names(30 * y)
    assert "inverse" not in names(np.append(y, 0.0))
    assert names(y, without("lt")) == names(y, without("+")) == set()
    assert names(y, without("inv")) == set(BY_NAME)
    assert names(y, without("inv", "/", "exp")) == set(BY_NAME) - {"inverse", "log"}
    assert names(np.ones(50)) == set()
    # One row far out: nothing else would be seen in its reciprocal.
    assert "inverse" not in names(np.append(y, 1e-9))


def test_targets_without_a_common_factor():
    divisor = tree("/", "square", 0, 1)
    (values,) = evaluate_trees([divisor], X)
    y = 3.0 * values * np.sqrt(X[0] + 2.0 * X[1])
    made = divided_targets(y, divisor, values, ALL)
    assert [target.name for target in made][:2] == ["itself", "square"]
    square = made[1]
    np.testing.assert_allclose(square.forward(y), 9.0 * (X[0] + 2.0 * X[1]))
    (back,) = carry_back(square, [tree(0), tree(1)], 0.0, np.array([9.0, 18.0]), ALL)
    assert linear_error(evaluate_trees([back], X)[0], y) < 1e-9
    itself = made[0]
    (back,) = carry_back(itself, [tree(0), tree(1)], 2.0, np.array([1.0, 0.5]), ALL)
    expected = values * (2.0 + X[0] + 0.5 * X[1])
    assert linear_error(evaluate_trees([back], X)[0], expected) < 1e-9


def test_no_division_without_what_it_takes():
    y = X[0] + X[1]
    for needed in ("*", "+", "lt"):
        assert divided_targets(y, tree(0), X[0], without(needed)) == []
    for values in (np.zeros(60), np.where(X[0] > 1, X[0], np.nan)):
        assert divided_targets(y, tree(0), values, ALL) == []
