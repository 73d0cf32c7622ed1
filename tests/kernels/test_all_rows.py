"""The fit in blocks over all rows is the fit that a chain makes of its own rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from symbayes.formula.operators import OPERATORS
from symbayes.inputs.prior import TermsPrior, TreePrior
from symbayes.inputs.validation import Table
from symbayes.kernels.all_rows import fit_all
from symbayes.kernels.chain import ALL_LOG_LIKELIHOOD, LOG_LIKELIHOOD, RSS
from symbayes.kernels.evaluate import BLOCK, evaluate
from symbayes.kernels.run import KEPT
from symbayes.samplers.ladder import Replicas

from .. import naive
from ..exact import loops
from ..problems import problem, table, tree
from .test_likelihood import X0, X1, op, rss_of

SMALL = TreePrior(max_nodes=7)


@pytest.fixture(scope="module", autouse=True)
def compiled():
    loops.compile_units()


def rss_of_all(made, trees, part=4):
    """Residual sum of squares on all rows, in blocks."""
    made = made.in_two_stages(np.arange(part))
    chain, scratch = made.new_chain(np.random.SeedSequence(0)), made.new_scratch()
    for k, nodes in enumerate(trees):
        start = k * made.max_nodes
        chain.nodes[start : start + nodes.size()] = naive.to_nodes(nodes)
    return fit_all(evaluate, chain, len(trees), made.data, scratch)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_known", [0, 2])
@pytest.mark.parametrize("n_rows", [9, 100, BLOCK, BLOCK + 3, 3 * BLOCK + 500])
def test_equals_the_fit_of_a_chain(n_rows, weighted, n_known):
    rng = np.random.default_rng(n_rows)
    rows = table(n_rows, weights=rng.uniform(0.2, 3, n_rows) if weighted else None, seed=n_rows)
    known = (tree("square", 0), tree("cos", 1))[:n_known]
    made = problem(rows, {"+": 1.0}, terms=3, known=known)
    trees = [X0, op("sin", X1), op("*", X0, op("exp", X1))]
    for k in range(4):
        expected = made.data.n if k == 0 else rss_of(made, trees[:k])
        assert rss_of_all(made, trees[:k]) == pytest.approx(expected, rel=1e-11)


def test_every_operator():
    rng = np.random.default_rng(0)
    n = 2 * BLOCK
    X = np.asfortranarray(rng.uniform(0.1, 0.9, (n, 2)))
    rows = Table(X, X[:, 0] + 0.1 * rng.normal(size=n), np.ones(n), np.arange(2))
    made = problem(rows, {"+": 1.0}, terms=2)
    for name, operator in OPERATORS.items():
        tree_of = op(name, *[X1, X0][: operator.arity])
        if name == "lt":
            tree_of.a, tree_of.b = 2.5, 0.5
        expected = rss_of(made, [tree_of])
        assert rss_of_all(made, [tree_of]) == pytest.approx(expected, rel=1e-11), name


def test_exact_fits_keep_their_digits():
    rng = np.random.default_rng(0)
    n = BLOCK + 100
    X = np.asfortranarray(rng.uniform(-3, 3, (n, 2)))
    y = 2.5 * X[:, 0] ** 4 - 1.3 * X[:, 0] ** 3
    trees = [op("square", op("square", X0)), op("cube", X0)]
    for error, lower, upper in ((0.0, 0.0, 1e-25 * np.var(y)), (1e-6, 0.5e-12, 2e-12)):
        rows = Table(X, y + error * rng.normal(size=n), np.ones(n), np.arange(2))
        made = problem(rows, {"+": 1.0}, terms=2)
        for known in ((), (tree("sin", 1),)):
            rss = rss_of_all(problem(rows, {"+": 1.0}, terms=2, known=known), trees)
            assert lower <= rss / n * made.y_scale**2 <= upper


@pytest.mark.parametrize("unit", [1e-200, 1e-160, 1.0, 1e160, 1e200])
@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_extreme_sizes_and_offsets(unit, offset):
    rng = np.random.default_rng(1)
    n = 2 * BLOCK
    x = rng.normal(size=n)
    X = np.asfortranarray(np.column_stack([(x + offset) * unit, rng.normal(size=n)]))
    rows = Table(X, x + 0.1 * rng.normal(size=n), np.ones(n), np.arange(2))
    made = problem(rows, {"+": 1.0}, terms=2)
    assert rss_of_all(made, [X0, X1]) == pytest.approx(rss_of(made, [X0, X1]), rel=1e-8)


def test_rows_of_another_size_than_the_first_block():
    rng = np.random.default_rng(2)
    n = 2 * BLOCK
    x = rng.normal(size=n)
    x[:BLOCK] *= 1e-170
    x[BLOCK:] *= 1e170
    X = np.asfortranarray(np.column_stack([x, rng.normal(size=n)]))
    rows = Table(X, rng.normal(size=n), np.ones(n), np.arange(2))
    made = problem(rows, {"+": 1.0}, terms=1)
    assert rss_of_all(made, [X0]) == pytest.approx(rss_of(made, [X0]), rel=1e-10)


@pytest.mark.parametrize(
    ("trees", "why"),
    [
        ([op("log", X0)], "not finite in the second block"),
        ([op("-", X0, X0)], "constant"),
        ([X0, op("neg", X0)], "redundant"),
        ([op("square", X1)], "nothing beside the known term"),
    ],
)
def test_what_has_no_place(trees, why):
    rng = np.random.default_rng(3)
    n = 2 * BLOCK
    X = np.asfortranarray(rng.uniform(0.5, 2.0, (n, 2)))
    X[-1, 0] = -1.0
    rows = Table(X, rng.normal(size=n), np.ones(n), np.arange(2))
    made = problem(rows, {"+": 1.0}, terms=2, known=(tree("square", 1),))
    assert rss_of_all(made, trees) == -1.0


def test_too_many_constants():
    made = problem(table(20), {"lt": 1.0}, terms=1, most_constants=4)
    one, two = op("lt", X0), op("lt", op("lt", X0))
    one.a = two.a = two.children[0].a = 2.0
    assert rss_of_all(made, [one]) > 0.0
    assert rss_of_all(made, [two]) == -1.0


def test_a_part_refuses_nothing_that_is_finite():
    """What is constant or redundant on the part has coefficient 0 there, and all rows decide."""
    rows = table(6)
    rows.X[:3, 1] = 1.0
    made = problem(rows, {"+": 1.0}, terms=2).in_two_stages(np.arange(3))
    part = replace(made, data=made.part)
    only = rss_of(part, [X0])
    assert rss_of(part, [X0, X1]) == pytest.approx(only)
    assert rss_of(part, [X1, X0]) == pytest.approx(only)
    assert rss_of(part, [X0, op("neg", X0)]) == pytest.approx(only)
    assert rss_of(part, [X1]) == pytest.approx(part.data.n)
    assert rss_of(part, [op("log", op("neg", op("square", X0)))]) == -1.0


def test_replicas_know_what_they_are_worth():
    """After many steps and swaps: on the part everywhere, on all rows where all rows decide."""
    rows = table(40)
    made = problem(
        rows, {"*": 1.0, "sin": 1.0, "lt": 1.0}, terms=TermsPrior(2, 0.5), tree_prior=SMALL,
        known=(tree("cos", 1),),
    )  # fmt: skip
    staged = made.in_two_stages(np.arange(10))
    powers = np.array([1.0, 0.5, 0.2, 0.1])
    ladder = Replicas(staged, np.random.SeedSequence(0), powers)
    for _ in range(4):
        ladder.run(15, 6, 1)
        kept = ladder.output[2][0].copy()
        assert kept[LOG_LIKELIHOOD] == kept[KEPT] == ladder.log_likelihood
        assert kept[RSS] == ladder.rss
        fresh = Replicas(staged, np.random.SeedSequence(1), powers)
        for t, power in enumerate(powers):
            r, numbers = int(ladder.ladder.replica[t]), ladder.chains.numbers
            fresh.put(ladder.trees(r), t)
            fresh.fit()
            expected = fresh.chains.numbers[t]
            assert numbers[r, LOG_LIKELIHOOD] == pytest.approx(expected[LOG_LIKELIHOOD], rel=1e-9)
            if power * 4 >= 1.0:
                assert numbers[r, ALL_LOG_LIKELIHOOD] == pytest.approx(
                    expected[ALL_LOG_LIKELIHOOD], rel=1e-9
                )
            else:
                assert kept[KEPT + t] == 4 * numbers[r, LOG_LIKELIHOOD]
    counts = ladder.chains.counts.sum(axis=(0, 2))
    assert counts[2] > 50  # accepted
    assert (ladder.ladder.rejected < ladder.ladder.tried).all()


def test_a_state_that_travels_takes_its_columns_along():
    made = problem(table(30), {"*": 1.0, "sin": 1.0}, terms=2, tree_prior=SMALL)
    for case in (made, made.in_two_stages(np.arange(12))):
        ladder = Replicas(case, np.random.SeedSequence(0), np.array([1.0, 0.3]))
        ladder.run(10, 3, 1)
        other = Replicas(case, np.random.SeedSequence(5), np.array([1.0, 0.3]))
        other.restore(ladder.state())
        for one in (ladder, other):
            one.run(10, 3, 1)
        np.testing.assert_array_equal(ladder.chains.numbers, other.chains.numbers)
        for replica in range(2):
            pairs = zip(ladder.trees(replica), other.trees(replica), strict=True)
            assert all(np.array_equal(one, two) for one, two in pairs)
