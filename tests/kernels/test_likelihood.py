"""Columns, fits and log-likelihoods against NumPy's least squares."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest

from symbayes.formula.operators import OPERATORS
from symbayes.inputs.prior import NoisePrior
from symbayes.inputs.problem import make_problem
from symbayes.inputs.validation import Table
from symbayes.kernels.evaluate import evaluate
from symbayes.kernels.likelihood import fit
from symbayes.kernels.moves.choice import N_MOVES
from symbayes.kernels.tree import NODE

from .. import naive
from ..exact import loops
from ..problems import problem, table

CODES = {name: operator.opcode for name, operator in OPERATORS.items()}


@pytest.fixture(scope="module", autouse=True)
def compiled():
    loops.compile_units()


def op(name, *children):
    return naive.Tree(CODES[name], children=list(children))


X0, X1 = naive.Tree(0, 0), naive.Tree(0, 1)


def rss_of(made, trees, allow=False):
    """Residual sum of squares of the fit on these trees, by the kernels."""
    chain, scratch = made.new_chain(np.random.SeedSequence(0)), made.new_scratch()
    rss = None
    for k, tree in enumerate(trees):
        start = k * made.max_nodes
        chain.nodes[start : start + tree.size()] = naive.to_nodes(tree)
        rss = fit(evaluate, chain, k, k + 1, made.data, scratch, allow)
    return rss


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_rows", [5, 8, 100, 1500])
def test_fit_equals_least_squares(n_rows, weighted):
    rng = np.random.default_rng(n_rows)
    weights = rng.uniform(0.2, 3, n_rows) if weighted else None
    rows = table(n_rows, weights=weights, seed=n_rows)
    made = problem(rows, {"+": 1.0}, terms=3)
    trees = [X0, op("sin", X1), op("*", X0, op("exp", X1))]
    for k in (1, 2, 3):
        values = [naive.evaluate(tree, rows.X) for tree in trees[:k]]
        expected, _ = naive.fit(values, naive.scaled(rows.y, rows.weights), rows.weights)
        assert rss_of(made, trees[:k]) == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_exact_fits_keep_their_digits():
    """The residual of an exact formula is rounding noise, far below what a difference shows."""
    rng = np.random.default_rng(0)
    X = np.asfortranarray(rng.uniform(-3, 3, (100, 2)))
    y = 2.5 * X[:, 0] ** 4 - 1.3 * X[:, 0] ** 3
    # The mean square error has to be that of the noise, or rounding noise where there is none.
    for error, lower, upper in ((0.0, 0.0, 1e-25 * np.var(y)), (1e-6, 0.5e-12, 2e-12)):
        rows = Table(X, y + error * rng.normal(size=100), np.ones(100), np.arange(2))
        made = problem(rows, {"+": 1.0}, terms=2)
        rss = rss_of(made, [op("square", op("square", X0)), op("cube", X0)])
        assert lower <= rss / 100 * np.var(rows.y) <= upper


def test_a_model_may_have_only_so_many_constants():
    """An intercept, a coefficient for each term and two constants for each `lt` are counted."""
    trees = [op("lt", X0), op("sin", op("lt", X1))]
    trees[0].a = trees[1].children[0].a = 2.0
    rows = table(20)
    for most, possible in ((7.0, True), (6.0, False)):
        made = problem(rows, {"+": 1.0}, terms=2, most_constants=most)
        assert rss_of(made, trees[:1]) >= 0.0
        assert (rss_of(made, trees) >= 0.0) == possible
        assert rss_of(made, trees, allow=True) >= 0.0  # the paper's likelihood has no such limit


def test_nearly_collinear_terms_are_refined():
    rng = np.random.default_rng(3)
    X = np.asfortranarray(rng.uniform(1, 2, (200, 2)))
    lt = naive.Tree(CODES["lt"], a=1.0, b=-1.5, children=[X0])
    y = X[:, 0] + 0.3 * np.sin(X[:, 0] - 1.5)
    made = problem(Table(X, y, np.ones(200), np.arange(2)), {"lt": 1.0}, terms=2)
    assert rss_of(made, [X0, op("sin", lt)]) < 1e-24


@pytest.mark.parametrize("noise", [0.01, 0.3])
def test_nearly_collinear_terms_explain_no_noise(noise):
    """Rounding errors of an ill-conditioned fit must not pass for a better one.

    Functions that are nearly linear, beside a linear one: as a difference of sums of squares,
    residuals are then wrong by more than their own size, and a sampler finds those errors that are
    to its advantage.
    """
    rng = np.random.default_rng(5)
    X = np.asfortranarray(rng.uniform(-3, 3, (200, 1)))
    y = np.exp(-0.7 * X[:, 0])
    y += noise * y.std() * rng.normal(size=200)
    rows = Table(X, y, np.ones(200), np.arange(1))
    made = problem(rows, {"lt": 1.0}, terms=3)
    fitted = 0
    for slope in np.geomspace(1e-6, 1e-1, 100):
        lt = naive.Tree(CODES["lt"], a=slope, b=0.3, children=[X0])
        trees = [X0, op("exp", lt), op("square", X0)]
        rss = rss_of(made, trees)
        if rss != -1:
            expected = accurate_rss([naive.evaluate(tree, X) for tree in trees], y)
            assert rss > (1 - 1e-4) * expected
            # At the edge of what counts as redundant a fit may be worse than it has to be.
            if slope > 1e-3:
                assert rss == pytest.approx(expected, rel=1e-4)
            fitted += 1
    assert fitted > 50


def accurate_rss(columns, y):
    """Residual sum of squares of y scaled to unit variance, computed with 40 digits."""
    with mpmath.workdps(40):
        design = mpmath.matrix(np.column_stack([np.ones(len(y)), *columns]).tolist())
        response = mpmath.matrix(y.tolist())
        solution = mpmath.cholesky_solve(design.T * design, design.T * response)
        residual = response - design * solution
        return float(mpmath.fdot(residual, residual)) / np.var(y)


def test_what_has_no_column_is_impossible():
    rows = table(50)
    made = problem(rows, {"+": 1.0}, terms=2)
    log_of_negative = op("log", X0)
    constant = op("-", X0, X0)
    almost_constant = op("+", op("square", op("sin", X0)), op("square", op("cos", X0)))
    for tree in (log_of_negative, constant, almost_constant, op("/", X0, op("-", X1, X1))):
        assert rss_of(made, [tree]) == -1
        assert rss_of(made, [tree], allow=True) == -1


def test_redundant_terms_are_impossible_or_free_of_effect():
    rows = table(50)
    made = problem(rows, {"+": 1.0}, terms=3)
    double = op("+", X0, X0)
    assert rss_of(made, [X0, double]) == -1
    assert rss_of(made, [X0, X1, op("+", X0, X1)]) == -1
    alone = rss_of(made, [X0])
    assert rss_of(made, [X0, double], allow=True) == pytest.approx(alone, rel=1e-12)
    both = rss_of(made, [X0, X1])
    assert rss_of(made, [X0, double, X1], allow=True) == pytest.approx(both, rel=1e-12)
    assert rss_of(made, [X0, op("neg", X0), X1], allow=True) == pytest.approx(both, rel=1e-12)


@pytest.mark.parametrize("scale", [1e-300, 1e-160, 1e-5, 1.0, 1e150, 1e300])
def test_scale_of_columns_does_not_matter(scale):
    rows = table(40)
    usual = rss_of(problem(rows, {"+": 1.0}, terms=2), [X0, X1])
    scaled = Table(rows.X * scale, rows.y, rows.weights, rows.used)
    got = rss_of(problem(scaled, {"+": 1.0}, terms=2), [X0, X1])
    assert got == pytest.approx(usual, rel=1e-9)


@pytest.mark.parametrize("scale", [1e-300, 1.0, 1e300])
def test_scale_of_y_does_not_matter(scale):
    rows = table(40)
    made = make_problem(
        Table(rows.X, rows.y * scale, rows.weights, rows.used), {"+": 1.0}, np.array([0.5, 0.5]),
        problem(rows, {"+": 1.0}).tree_prior, NoisePrior(), 2,
    )  # fmt: skip
    usual = rss_of(problem(rows, {"+": 1.0}, terms=2), [X0, X1])
    assert rss_of(made, [X0, X1]) == pytest.approx(usual, rel=1e-9)
    assert made.y_scale == pytest.approx(np.std(rows.y) * scale)


def test_overflowing_columns_are_impossible():
    rows = table(40)
    huge = Table(rows.X * 1e200, rows.y, rows.weights, rows.used)
    assert rss_of(problem(huge, {"+": 1.0}, terms=2), [op("square", X0)]) == -1


def test_log_likelihoods_equal_the_twins():
    rows = table(weights=[1.0, 2.0, 0.5, 1.5, 1.0, 3.0])
    made = problem(rows, {"+": 1.0}, terms=2, noise_prior=NoisePrior(3.0, 0.2))
    trees = [op("sin", X0), X1]
    nodes = np.zeros((1, 2 * made.max_nodes), NODE)
    packed = np.concatenate([naive.to_nodes(tree) for tree in trees])
    nodes[0, : len(packed)] = packed
    none, zero, one = np.zeros(N_MOVES, np.bool_), np.zeros(1, np.int64), np.ones((1, 2))
    out = (np.zeros_like(nodes), np.zeros(1, np.int64), np.zeros((1, 2)))
    two = np.array([2])
    chain = made.new_chain(np.random.SeedSequence(0))
    loops.load("collapsed")(
        chain, made.new_prior((0.25, 3.0)), made.tables(), made.new_scratch(), nodes, two, one,
        np.zeros((1, 0)), zero, none, False, False, 1.0, 1, *out, np.zeros((1, 0)),
    )  # fmt: skip
    expected = naive.collapsed_log_likelihood(trees, rows.X, rows.y, rows.weights, 3.0, 0.2)
    assert chain.numbers[0] == pytest.approx(expected, rel=1e-12)
    variance = 0.37
    loops.load("paper")(
        chain, made.new_prior((0.25, 3.0)), made.data, made.new_scratch(), nodes, two, one,
        np.array([variance]), zero, none, 1, *out, np.zeros(1),
    )  # fmt: skip
    rss, _ = naive.fit(
        [naive.evaluate(t, rows.X) for t in trees], naive.scaled(rows.y, rows.weights), rows.weights
    )
    n = rows.weights.sum()
    plug_in = -0.5 * (n * math.log(2 * math.pi * variance) + rss / variance)
    assert chain.numbers[0] == pytest.approx(plug_in, rel=1e-12)
