"""Terms exchanged between two ladders: from exact draws of both, neither law may change."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from symbayes.kernels import opcodes
from symbayes.prior import TermsPrior
from symbayes.samplers.exchange import exchange, log_prior_given
from symbayes.samplers.ladder import Replicas
from symbayes.trace import split_terms

from .. import naive
from ..kernels.calling import generator_state
from ..problems import beliefs, problem, table
from .cases import FALSE_ALARM, OPERATORS, Case, space_of
from .spaces import p_value
from .test_stationarity import constants, weights_and_trees

PLAIN = Case("collapsed", (2, 2.0), max_nodes=3)
LEARNED = Case("collapsed", (2, 2.0), "sums", max_nodes=3, learn=True)
LT = Case("collapsed", (2, 2.0), "lt", max_nodes=3, n_features=1, learn=True)


def test_prior_under_the_weights_of_a_chain_equals_the_twin():
    made = problem(table(), OPERATORS["lt"], TermsPrior(2, 0.5), learn=True)
    ladder = Replicas(made, np.random.SeedSequence(3), np.array([1.0, 0.5]))
    ladder.run(20, 5, 3)  # other weights and variances in each replica
    r = ladder.cold
    sums = (ladder.priors.operator_cdf[r], ladder.priors.feature_cdf[r])
    scales = ladder.priors.scales[r]
    believed = replace(beliefs(ladder.problem, tuple(scales)), max_nodes=9)
    believed.operator_weights, believed.feature_weights = (
        np.diff(values, prepend=0.0).tolist() for values in sums
    )
    rng = naive.Random(generator_state(4))
    for _ in range(40):
        try:
            tree = naive.draw_tree(rng, believed, 0, [9])
        except naive.TooLarge:
            continue
        expected = naive.log_prior(tree, believed) - naive.log_shape(tree, believed)
        for i, (name, mean) in enumerate((("a", 1.0), ("b", 0.0))):
            values = [getattr(node, name) for node in tree.transforms()]
            expected += stats.norm.logpdf(values, mean, np.sqrt(scales[i])).sum()
        assert log_prior_given(naive.to_nodes(tree), ladder) == pytest.approx(expected)


def load(ladder, nodes, n_terms, scales, weights):
    """Put a state into the coldest chain, weights and variances included."""
    r = ladder.cold
    ladder.put([tree.copy() for tree in split_terms(nodes, int(n_terms))])
    ladder.priors.scales[r] = scales
    if len(weights):
        ladder.priors.operator_cdf[r] = weights[: opcodes.N_OPCODES]
        ladder.priors.feature_cdf[r] = weights[opcodes.N_OPCODES :]
    ladder.run(1, 1, 0)


def p_values(case, n, times=4, seed=0):
    """Start pairs of chains from exact draws, exchange a few times, compare both."""
    space = space_of(case)
    rng = np.random.default_rng([11, seed])
    pair = [
        Replicas(space.problem, np.random.SeedSequence([seed, i]), np.ones(1)) for i in range(2)
    ]
    nodes, terms, scales, _, weights = space.draw(2 * n, rng)
    accepted = 0
    for i in range(n):
        for k, ladder in enumerate(pair):
            at = 2 * i + k
            load(ladder, nodes[at], terms[at], scales[at], weights[at])
        for _ in range(times):
            accepted += exchange(*pair, rng.uniform(size=3))
        for k, ladder in enumerate(pair):
            at = 2 * i + k
            trees = ladder.trees()
            packed = np.concatenate([nodes[at, :0], *trees])
            nodes[at] = 0
            nodes[at, : len(packed)] = packed
            assert len(trees) == terms[at]  # it never changes
            assert np.all(ladder.priors.scales[ladder.cold] == scales[at])
    assert n * times / 20 < accepted < n * times
    results = {"structures": p_value(space, nodes, terms)}
    for k, name in enumerate(("first", "second")):  # what one gains the other may lose
        results[f"structures, {name}"] = p_value(space, nodes[k::2], terms[k::2])
    fresh = space.draw(2 * n, np.random.default_rng([12, seed]))
    if case.operators == "lt":
        for i, name in enumerate(("a", "b")):
            old = constants(fresh[0], fresh[2], i, name)
            new = constants(nodes, scales, i, name)
            results[f"constant {name}"] = stats.ks_2samp(old[0], new[0]).pvalue
            results[f"{name} in units of its scale"] = stats.ks_2samp(old[1], new[1]).pvalue
    if case.learn:
        old = weights_and_trees(fresh[0], fresh[1], fresh[4])
        new = weights_and_trees(nodes, terms, weights)
        for k, name in enumerate(("first", "second")):  # what one gains the other may lose
            results[f"trees given weights, {name}"] = stats.ks_2samp(
                old[:, -1], new[k::2, -1]
            ).pvalue
    return results


def test_exchange_between_ladders_keeps_the_posterior():
    results = p_values(LEARNED, n=500)
    assert min(results.values()) > FALSE_ALARM / len(results), results


@pytest.mark.slow
@pytest.mark.parametrize("case", [PLAIN, LEARNED, LT], ids=lambda case: case.name)
def test_exchange_between_ladders_keeps_the_posterior_to_fine_resolution(case):
    results = p_values(case, n=10_000, seed=1)
    assert min(results.values()) > FALSE_ALARM / len(results), results
