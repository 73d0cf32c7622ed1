"""Newton against a twin with NumPy's least squares and SciPy's normal laws."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from symbayes.formula.operators import OPERATORS
from symbayes.inputs.validation import Table
from symbayes.kernels.chain import Mode
from symbayes.kernels.evaluate import evaluate
from symbayes.kernels.likelihood import fit
from symbayes.kernels.moves.newton import newton

from .. import naive
from ..exact import loops
from ..problems import problem
from .calling import take_back

CODES = {name: operator.opcode for name, operator in OPERATORS.items()}
SCALES = (0.8, 1.7)
X0 = naive.Tree(0, 0)


@pytest.fixture(scope="module", autouse=True)
def compiled():
    loops.compile_units()


def op(name, *children, a=0.0, b=0.0):
    return naive.Tree(CODES[name], a=a, b=b, children=list(children))


def wave(a, b):
    return op("sin", op("lt", X0, a=a, b=b))


def nested(a, b):
    inner = op("lt", X0, a=0.7, b=0.2)
    return op("*", op("exp", op("lt", op("sin", inner), a=a, b=b)), X0)


def growth(a, b):
    """What b does, the coefficient does as well."""
    return op("exp", op("lt", X0, a=a, b=b))


def table(n=60, weighted=False):
    rng = np.random.default_rng(8)
    X = np.asfortranarray(rng.uniform(-2, 2, (n, 1)))
    y = np.sin(1.3 * X[:, 0] + 0.4) + 0.5 * X[:, 0] + 0.2 * rng.normal(size=n)
    weights = rng.uniform(0.5, 2, n) if weighted else np.ones(n)
    return Table(X, y, weights, np.arange(1))


def loaded(rows, trees):
    made = problem(rows, {"lt": 1.0}, terms=len(trees))
    chain, scratch = made.new_chain(np.random.SeedSequence(3)), made.new_scratch()
    prior = made.new_prior((0.5, 1.0))
    prior.scales[:] = SCALES
    for k, tree in enumerate(trees):
        start = k * made.max_nodes
        chain.nodes[start : start + tree.size()] = naive.to_nodes(tree)
        rss = fit(evaluate, chain, k, k + 1, made.data, scratch, False)
    chain.n_terms[0] = len(trees)
    return made, chain, scratch, prior, rss


def propose(made, chain, scratch, prior, k=0, temperature=1.0):
    mode = Mode(temperature, 0.0, 0.0)
    result = newton(evaluate, fit, chain, k, prior, made.data, mode, scratch)
    take_back(chain.slots, scratch.moves.swaps)
    return result


def law(rows, made, trees, k, node, temperature):
    """Mean and covariance of the proposal for the constants of a node of the k-th tree."""
    root = np.sqrt(rows.weights)
    y = naive.scaled(rows.y, rows.weights) * root

    def column(tree):
        values = naive.evaluate(tree, rows.X)
        values = (values - np.average(values, weights=rows.weights)) * root
        return values / np.linalg.norm(values)

    columns = np.column_stack([column(tree) for tree in trees])
    derivatives = []
    for name in ("a", "b"):
        value = getattr(node, name)
        step = 1e-6 * max(1.0, abs(value))
        setattr(node, name, value + step)
        derivatives.append((column(trees[k]) - columns[:, k]) / step)
        setattr(node, name, value)
    J = np.column_stack(derivatives)
    solution = np.linalg.lstsq(columns, y, rcond=None)[0]
    residual = y - columns @ solution
    J = J - columns @ np.linalg.lstsq(columns, J, rcond=None)[0]
    nu, lam = made.data.noise_prior
    weight = temperature * (made.data.n - 1 + nu) / (nu * lam + residual @ residual)
    precision = weight * solution[k] ** 2 * J.T @ J + np.diag(1 / np.array(SCALES))
    slope = weight * solution[k] * J.T @ residual - np.array([node.a - 1, node.b]) / SCALES
    covariance = np.linalg.inv(precision)
    return np.array([node.a, node.b]) + covariance @ slope, covariance


@pytest.mark.parametrize("temperature", [1.0, 0.3])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("make", [wave, nested, growth])
def test_ratio_equals_the_twins(make, weighted, temperature):
    rows = table(weighted=weighted)
    for k, (a, b) in enumerate([(1.2, 0.3), (0.4, -0.2)]):
        trees = [make(a, b), X0] if k == 0 else [X0, make(a, b)]
        made, chain, scratch, prior, _ = loaded(rows, trees)
        twin = naive.Random(chain.rng.copy())
        before = chain.nodes.copy()
        log_ratio, rss = propose(made, chain, scratch, prior, k, temperature)
        assert chain.slots.tolist() == [0, 1, 2, 3]
        used = slice(0, 2 * made.max_nodes)
        np.testing.assert_array_equal(chain.nodes[used], before[used])

        transforms = trees[k].transforms()
        place = twin.integer(len(transforms))
        node = transforms[place]
        old = np.array([node.a, node.b])
        mean, covariance = law(rows, made, trees, k, node, temperature)
        there = stats.multivariate_normal(mean, covariance)
        start = 3 * made.max_nodes
        proposed = naive.from_nodes(chain.nodes[start : start + trees[k].size()])
        new_node = proposed.transforms()[place]
        new = np.array([new_node.a, new_node.b])
        # The same random numbers, in the order in which they are drawn.
        normals = np.array([twin.normal(), twin.normal()])[::-1]
        factor = np.linalg.cholesky(np.linalg.inv(covariance))
        np.testing.assert_allclose(
            new, mean + np.linalg.solve(factor.T, normals), rtol=1e-5, atol=1e-6
        )
        assert list(map(int, chain.rng)) == twin.s

        trees[k] = proposed
        back = stats.multivariate_normal(*law(rows, made, trees, k, new_node, temperature))
        spread = np.sqrt(SCALES)
        expected = back.logpdf(old) - there.logpdf(new)
        expected += stats.norm.logpdf(new, [1, 0], spread).sum()
        expected -= stats.norm.logpdf(old, [1, 0], spread).sum()
        assert log_ratio == pytest.approx(expected, abs=1e-4)
        values = [naive.evaluate(tree, rows.X) for tree in trees]
        exact, _ = naive.fit(values, naive.scaled(rows.y, rows.weights), rows.weights)
        assert rss == pytest.approx(exact, rel=1e-9)


def test_most_proposals_are_accepted_where_the_posterior_is_nearly_normal():
    rows = table(2000)
    made, chain, scratch, prior, rss = loaded(rows, [wave(1.3, 0.4), X0])
    nu, lam = made.data.noise_prior
    chances = []
    for _ in range(200):
        log_ratio, new_rss = propose(made, chain, scratch, prior)
        gain = 0.5 * (made.data.n - 1 + nu) * math.log((nu * lam + rss) / (nu * lam + new_rss))
        chances.append(min(1.0, math.exp(log_ratio + gain)))
    assert np.mean(chances) > 0.9


def test_without_constants_there_is_nothing_to_propose():
    made, chain, scratch, prior, _ = loaded(table(), [op("sin", X0), X0])
    assert propose(made, chain, scratch, prior) == (-math.inf, -1.0)


def test_a_derivative_that_is_not_finite_ends_the_proposal():
    """Just below 709.78 the exponential is finite, a little further it is not."""
    rows = table()
    edge = 709.7827 / np.abs(rows.X).max()
    largest = rows.X[np.argmax(np.abs(rows.X)), 0]
    tree = growth(math.copysign(edge, largest), 0.0)
    made, chain, scratch, prior, rss = loaded(rows, [tree])
    assert rss > 0
    assert propose(made, chain, scratch, prior) == (-math.inf, -1.0)
