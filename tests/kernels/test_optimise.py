"""Constants of a proposal: recovered where data have no noise, never worse, left alone if not."""

from __future__ import annotations

import numpy as np
import pytest

from symbayes.inputs.prior import TreePrior
from symbayes.inputs.validation import Table
from symbayes.kernels.evaluate import evaluate
from symbayes.kernels.likelihood import fit
from symbayes.kernels.optimise import MOST_CONSTANTS, MOST_ROWS, optimise

from .. import naive
from ..exact import loops
from ..problems import beliefs, problem
from ..problems import tree as tree_of
from .calling import generator_state

OPERATORS = dict.fromkeys(["+", "-", "*", "/", "sin", "exp", "log", "sqrt", "square", "lt"], 1.0)


@pytest.fixture(scope="module", autouse=True)
def compiled():
    loops.compile_units()


def rows_of(y, X, weights=None):
    weights = np.ones(len(y)) if weights is None else weights
    return Table(np.asfortranarray(X), y, weights, np.arange(X.shape[1]))


def column(tree, X):
    return naive.evaluate(naive.from_nodes(tree), X)


def prepared(rows, trees, max_nodes=15):
    """A chain with these terms, all but the first one fitted."""
    made = problem(rows, OPERATORS, terms=4, tree_prior=TreePrior(max_nodes=max_nodes))
    chain, scratch = made.new_chain(np.random.SeedSequence(0)), made.new_scratch()
    for k in (*range(1, len(trees)), 0):
        chain.nodes[k * max_nodes : k * max_nodes + len(trees[k])] = trees[k]
        if k > 0:
            fit(evaluate, chain, k, k + 1, made.data, scratch, True)
    return made, chain, scratch


def improved(rows, trees, times=1, max_nodes=15):
    """Return the first tree with its constants optimised beside the others."""
    made, chain, scratch = prepared(rows, trees, max_nodes)
    for _ in range(times):
        optimise(evaluate, chain, 0, len(trees), made.tables().few, scratch)
    return chain.nodes[: len(trees[0])].copy()


def rss_on_few(rows, trees):
    """Residual sum of squares on the rows the kernel looks at, as a part of the total."""
    made = problem(rows, OPERATORS, terms=4)
    few = made.tables().few.rows
    X, y, weights = rows.X[few], naive.scaled(rows.y, rows.weights)[few], rows.weights[few]
    rss, _ = naive.fit([column(tree, X) for tree in trees], y, weights)
    return rss / np.sum(weights * y**2)


RNG = np.random.default_rng(70)
X = RNG.uniform(-2, 2, (200, 2))


def lts(*parts, constants):
    """A tree whose transforms have these constants, in preorder."""
    nodes = tree_of(*parts)
    at = np.flatnonzero(nodes["op"] == tree_of("lt", 0)[0]["op"])
    nodes["a"][at], nodes["b"][at] = np.array(constants, dtype=float).T
    return nodes


# Trees, the constants they were made with, and those the search begins with.
CASES = {
    "sin": (("sin", "lt", 0), [(1.7, 0.4)], [(1.55, 0.55)]),
    "two of them": (
        ("+", "sin", "lt", 0, "square", "lt", 1),
        [(2.1, -0.3), (0.8, 0.5)],
        [(2.0, -0.2), (0.9, 0.4)],
    ),
    "in a denominator": (("/", 0, "lt", "square", 1), [(1.0, 1.5)], [(1.0, 1.3)]),
    "root": (("sqrt", "lt", "square", 0), [(1.0, 0.7)], [(1.0, 1.0)]),
}
# What data cannot tell apart: a factor that a coefficient makes up for.
FREE = {"two of them": 1, "in a denominator": 0, "root": 0}


@pytest.mark.parametrize("weighted", [False, True], ids=["even", "weighted"])
@pytest.mark.parametrize("others", [0, 2], ids=["alone", "beside others"])
@pytest.mark.parametrize("case", CASES)
def test_constants_are_recovered(case, others, weighted):
    parts, true, start = CASES[case]
    beside = [tree_of("*", 0, 1), tree_of("exp", 1)][:others]
    y = 3.0 + 2.0 * column(lts(*parts, constants=true), X)
    for factor, tree in zip((0.7, -1.3), beside, strict=False):
        y = y + factor * column(tree, X)
    weights = RNG.uniform(0.3, 2.0, len(y)) if weighted else None
    rows = rows_of(y, X, weights)
    got = improved(rows, [lts(*parts, constants=start), *beside], times=2)
    assert got["op"].tolist() == lts(*parts, constants=start)["op"].tolist()
    found = np.column_stack([got["a"], got["b"]])[got["op"] == 1]
    expected = np.array(true)
    if case in FREE:  # compare b over a there
        i = FREE[case]
        assert found[i, 1] / found[i, 0] == pytest.approx(expected[i, 1] / expected[i, 0], abs=1e-6)
        found, expected = np.delete(found, i, axis=0), np.delete(expected, i, axis=0)
    np.testing.assert_allclose(found, expected, atol=1e-6)
    assert rss_on_few(rows, [got, *beside]) < 1e-16


def test_product_of_an_exponential_and_a_line():
    """exp(a x + b) (c x + d): b is a factor, and so is c; a and d / c are left."""
    parts = ("*", "exp", "lt", 0, "lt", 1)
    y = 1.0 - 4.0 * column(lts(*parts, constants=[(0.9, 0.0), (1.0, 2.3)]), X)
    rows = rows_of(y, X)
    got = improved(rows, [lts(*parts, constants=[(0.7, 0.1), (1.1, 1.9)])], times=2)
    slope, line = got[2], got[4]
    assert slope["a"] == pytest.approx(0.9, abs=1e-6)
    assert line["b"] / line["a"] == pytest.approx(2.3, abs=1e-6)
    assert rss_on_few(rows, [got]) < 1e-16


@pytest.mark.parametrize("n_rows", [7, 90, 400])
def test_the_fit_on_its_rows_never_gets_worse(n_rows):
    """Random trees on noise, some beside another term."""
    rng = np.random.default_rng(n_rows)
    x = rng.uniform(0.2, 3, (n_rows, 2))
    rows = rows_of(rng.normal(size=n_rows), x, rng.uniform(0.5, 2, n_rows))
    believed = beliefs(
        problem(rows, OPERATORS, tree_prior=TreePrior(alpha=0.9, beta=0.3, max_nodes=15))
    )
    random = naive.Random(generator_state(n_rows))
    beside = tree_of("sin", 1)
    tried = changed = better = 0
    while tried < 120:
        try:
            tree = naive.draw_tree(random, believed, 0, [15])
        except naive.TooLarge:
            continue
        start = naive.to_nodes(tree)
        values = column(start, x)
        if not tree.transforms() or not (np.abs(values) < 1e50).all() or np.ptp(values) < 1e-3:
            continue
        tried += 1
        terms = [start, beside][: 1 + tried % 2]
        got = improved(rows, terms)
        assert got[["op", "feature"]].tolist() == start[["op", "feature"]].tolist()
        assert np.isfinite(got["a"]).all()
        assert np.isfinite(got["b"]).all()
        before, after = rss_on_few(rows, terms), rss_on_few(rows, [got, *terms[1:]])
        assert after <= before * (1 + 1e-7) + 1e-9, (start, got)
        changed += got.tolist() != start.tolist()
        better += after < 0.999 * before
    assert changed > 30
    assert better > 20


def test_what_has_no_value_is_left_alone():
    y = RNG.normal(size=200)
    rows = rows_of(y, X)
    for tree in (
        lts("log", "lt", 0, constants=[(1.0, -5.0)]),  # not finite on any row
        lts("log", "lt", 0, constants=[(1.0, 0.0)]),  # not on half of them
        lts("*", 0, "lt", "-", 1, 1, constants=[(1.0, 0.0)]),  # zero
        lts("exp", "exp", "lt", 0, constants=[(9.0, 9.0)]),  # overflows
    ):
        np.testing.assert_array_equal(improved(rows, [tree]), tree)


def test_a_tree_that_the_others_contain_is_left_alone():
    rows = rows_of(RNG.normal(size=200), X)
    tree = lts("lt", 0, constants=[(2.0, 1.0)])
    np.testing.assert_array_equal(improved(rows, [tree, tree_of(0)]), tree)


def test_constants_beyond_the_most_stay_as_they_are():
    most = MOST_CONSTANTS // 2
    parts = []
    for _ in range(most + 2):
        parts += ["+", "sin", "lt", 0]
    parts += [1]
    start = lts(*parts, constants=[(1.0 + k, 0.2) for k in range(most + 2)])
    true = [(1.0 + k + 0.02 * (k < most), 0.2) for k in range(most + 2)]
    y = 2.0 * column(lts(*parts, constants=true), X)
    rows = rows_of(y, X)
    got = improved(rows, [start], max_nodes=40)
    transforms = np.flatnonzero(start["op"] == 1)
    np.testing.assert_array_equal(got[transforms[most:]], start[transforms[most:]])
    assert np.all(got["a"][transforms[:most]] != start["a"][transforms[:most]])
    assert rss_on_few(rows, [got]) < rss_on_few(rows, [start])


def test_few_rows_are_spread_over_those_with_weight():
    weights = np.where(np.arange(500) % 3 == 0, 0.0, 1.5)
    x = RNG.normal(size=(500, 2))
    few = problem(rows_of(x[:, 0], x, weights), OPERATORS).tables().few
    assert len(few.rows) == MOST_ROWS
    assert np.all(np.diff(few.rows) > 0)
    assert np.all(weights[few.rows] > 0)
    assert few.rows[0] < 10
    assert few.rows[-1] > 490
    np.testing.assert_array_equal(few.x.reshape(2, -1), x[few.rows].T)
