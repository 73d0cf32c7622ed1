"""Evaluation against the twin: random trees, every operator, block boundaries."""

from __future__ import annotations

import numpy as np
import pytest

from symbayes.formula.operators import OPERATORS
from symbayes.inputs.prior import TreePrior
from symbayes.kernels.evaluate import BLOCK, PADDING, stack_slots
from symbayes.kernels.tree import NODE
from symbayes.kernels.units import load_evaluate

from .. import naive
from ..problems import beliefs, problem, table
from .calling import generator_state


def evaluate(tree, X, begin=0, stop=None):
    n_rows = len(X)
    stop = n_rows if stop is None else stop
    nodes = np.zeros(3 + tree.size(), NODE)
    nodes[3:] = naive.to_nodes(tree)
    out = np.full(n_rows + 5, -77.0)
    size = tree.size()
    load_evaluate()(
        nodes, 3, np.ascontiguousarray(X.T).ravel(), n_rows, begin, stop, out, 2,
        np.empty(stack_slots(size) * BLOCK), np.empty(2 * size + 4, np.int64),
    )  # fmt: skip
    assert np.all(out[:2] == -77.0)  # nothing is written outside
    assert np.all(out[2 + stop - begin :] == -77.0)
    return out[2 : 2 + stop - begin]


@pytest.mark.parametrize("max_nodes", [1, 7, 25])
def test_random_trees_equal_the_twin(max_nodes):
    X = np.random.default_rng(0).uniform(-2, 2, (24, 3))
    weights = dict.fromkeys(OPERATORS, 1.0)
    tree_prior = TreePrior(alpha=0.95, beta=0.2, max_nodes=max_nodes)
    believed = beliefs(problem(table(n_features=3), weights, tree_prior=tree_prior))
    rng = naive.Random(generator_state(max_nodes))
    tried = finite = 0
    while tried < 400:
        try:
            tree = naive.draw_tree(rng, believed, 0, [max_nodes])
        except naive.TooLarge:
            continue
        tried += 1
        got, expected = evaluate(tree, X), naive.evaluate(tree, X)
        # Errors of a few ulp may be blown up by what follows (tan near its pole, differences).
        well_behaved = np.abs(expected) < 1e6
        if np.isfinite(expected).all() and well_behaved.all():
            finite += 1
            shaken = naive.evaluate(tree, X * (1 + 1e-15))
            room = 1e-12 * (1 + np.abs(expected)) + 100 * np.abs(shaken - expected)
            assert np.all(np.abs(got - expected) <= room)
        np.testing.assert_array_equal(np.isnan(got), np.isnan(expected))
    assert finite > 40


@pytest.mark.parametrize("n_rows", [1, 7, PADDING, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK + 9])
def test_blocks_cover_all_rows(n_rows):
    X = np.random.default_rng(1).uniform(0.5, 2, (n_rows, 2))
    codes = {name: operator.opcode for name, operator in OPERATORS.items()}
    x0, x1 = naive.Tree(0, 0), naive.Tree(0, 1)
    # x0 / (x1 - sin(x0 + x1)) uses both operands from the table, from the stack, and mixed.
    inner = naive.Tree(codes["sin"], children=[naive.Tree(codes["+"], children=[x0, x1])])
    tree = naive.Tree(codes["/"], children=[x0, naive.Tree(codes["-"], children=[x1, inner])])
    np.testing.assert_allclose(evaluate(tree, X), naive.evaluate(tree, X), rtol=1e-13)
    np.testing.assert_array_equal(evaluate(x1, X), X[:, 1])


def test_a_deep_and_a_wide_tree_fit_the_stack():
    codes = {name: operator.opcode for name, operator in OPERATORS.items()}
    X = np.random.default_rng(2).uniform(0.1, 1, (10, 2))
    left = right = chain = naive.Tree(0, 0)
    for i in range(12):
        left = naive.Tree(codes["+"], children=[left, naive.Tree(0, i % 2)])
        right = naive.Tree(codes["*"], children=[naive.Tree(0, i % 2), right])
        chain = naive.Tree(codes["cos"], children=[chain])
    for tree in (left, right, chain):
        np.testing.assert_allclose(evaluate(tree, X), naive.evaluate(tree, X), rtol=1e-13)


@pytest.mark.parametrize(("begin", "stop"), [(0, 5), (3, 3), (7, 2 * BLOCK), (BLOCK, BLOCK + 1)])
def test_some_of_the_rows(begin, stop):
    X = np.random.default_rng(0).uniform(-2, 2, (2 * BLOCK + 9, 2))
    product = naive.Tree(OPERATORS["*"].opcode, children=[naive.Tree(0, 0), naive.Tree(0, 1)])
    for tree in (naive.Tree(0, 1), naive.Tree(OPERATORS["sin"].opcode, children=[product])):
        np.testing.assert_array_equal(evaluate(tree, X, begin, stop), evaluate(tree, X)[begin:stop])
