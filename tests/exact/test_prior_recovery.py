"""Without a likelihood the samplers draw from the prior: compared with forward draws of it."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from symbayes.formula.trees import state_size
from symbayes.inputs.prior import NoisePrior, TreePrior
from symbayes.kernels import opcodes
from symbayes.kernels.moves.choice import N_MOVES
from symbayes.kernels.tree import NODE

from .. import naive
from ..kernels.calling import generator_state
from ..problems import beliefs, problem, table
from . import loops
from .cases import FALSE_ALARM

# Operators whose trees are finite and not constant on any rows, so that nothing is cut away.
OPERATORS = {"+": 1.0, "*": 2.0, "sin": 1.0, "lt": 1.5}


def made(noise):
    return problem(
        table(n_rows=8, n_features=3),
        OPERATORS,
        terms=1,
        tree_prior=TreePrior(
            alpha=0.75, beta=0.9, max_nodes=15, slope_shape=6.0, slope_scale=0.4, offset_shape=5.0,
            offset_scale=2.0,
        ),
        noise_prior=noise,
        feature_weights=[1.0, 2.0, 3.0],
    )  # fmt: skip


def forward(target, seed, n):
    """Draw from the prior, by the twin."""
    generator = np.random.default_rng(seed)
    rng = naive.Random(generator_state(seed))
    trees, scales = [], []
    while len(trees) < n:
        p = target.tree_prior
        variances = (
            stats.invgamma.rvs(
                p.slope_shape / 2, scale=p.slope_shape * p.slope_scale / 2, random_state=generator
            ),
            stats.invgamma.rvs(
                p.offset_shape / 2, scale=p.offset_shape * p.offset_scale / 2,
                random_state=generator,
            ),
        )  # fmt: skip
        believed = beliefs(target, variances)
        try:
            trees.append(naive.draw_tree(rng, believed, 0, [believed.max_nodes]))
            scales.append(variances)
        except naive.TooLarge:
            continue
    return trees, np.array(scales)


def sampled(target, likelihood, steps, n):
    nodes = np.zeros((1, target.max_nodes), NODE)  # start from the first column alone
    out_nodes, out_terms = np.zeros((n, target.max_nodes), NODE), np.zeros(n, np.int64)
    out_scales, out_noise = np.zeros((n, 2)), np.zeros(n)
    chain, scratch = target.new_chain(np.random.SeedSequence(4)), target.new_scratch()
    prior = target.new_prior((0.25, 3.0))
    picks, allowed = np.zeros(n, np.int64), np.ones(N_MOVES, np.bool_)
    start = (nodes, np.ones(1, np.int64), np.ones((1, 2)))
    if likelihood == "collapsed":
        loops.load("collapsed")(
            chain, prior, target.tables(), scratch, *start, np.zeros((1, 0)), picks, allowed, True,
            False, 0.0, steps, out_nodes, out_terms, out_scales, np.zeros((n, 0)),
        )  # fmt: skip
    else:
        loops.load("paper")(
            chain, prior, target.data, scratch, *start, np.full(1, 1e14), picks, allowed, steps,
            out_nodes, out_terms, out_scales, out_noise,
        )  # fmt: skip
    return [naive.from_nodes(row[: state_size(row, 1)]) for row in out_nodes], out_scales


def p_of_counts(first, second):
    """Two-sample chi-squared test of small integers, rare ones pooled."""
    size = max(max(first), max(second)) + 1
    table = np.array([np.bincount(first, minlength=size), np.bincount(second, minlength=size)])
    common = table.sum(axis=0) >= 20
    pooled = np.column_stack([table[:, common], table[:, ~common].sum(axis=1)])
    return stats.chi2_contingency(pooled[:, pooled.sum(axis=0) > 0]).pvalue


@pytest.mark.parametrize("likelihood", ["collapsed", "plug-in"])
@pytest.mark.parametrize("n", [1_000, pytest.param(3_000, marks=pytest.mark.slow)])
def test_prior_is_recovered(likelihood, n):
    # With an enormous noise variance the plug-in likelihood is flat; the collapsed one is
    # switched off by its power.
    target = made(NoisePrior(4.0, 0.5 if likelihood == "collapsed" else 1e14))
    trees, scales = sampled(target, likelihood, steps=1_500, n=n)
    expected, expected_scales = forward(target, seed=7, n=n)

    def depth(tree):
        return max(tree.depth_of(node) for node in tree.preorder())

    def constants(sample, name):
        return [getattr(t, name) for tree in sample for t in tree.transforms()[:1]]

    results = {
        "sizes": p_of_counts([t.size() for t in trees], [t.size() for t in expected]),
        "depths": p_of_counts([depth(t) for t in trees], [depth(t) for t in expected]),
        "roots": p_of_counts([t.op for t in trees], [t.op for t in expected]),
        "lt nodes": p_of_counts(
            [len(t.transforms()) for t in trees], [len(t.transforms()) for t in expected]
        ),
        "first features": p_of_counts(
            [t.terminals()[0].feature for t in trees], [t.terminals()[0].feature for t in expected]
        ),
        "last features": p_of_counts(
            [t.terminals()[-1].feature for t in trees],
            [t.terminals()[-1].feature for t in expected],
        ),
        "a": stats.ks_2samp(constants(trees, "a"), constants(expected, "a")).pvalue,
        "b": stats.ks_2samp(constants(trees, "b"), constants(expected, "b")).pvalue,
    }
    # Scales of states without `lt` have no data either: the whole prior must come back.
    for i, name in enumerate(("slope scale", "offset scale")):
        results[name] = stats.ks_2samp(scales[:, i], expected_scales[:, i]).pvalue
    assert any(t.op == opcodes.LT for t in trees)
    assert min(results.values()) > FALSE_ALARM / len(results), results
