"""Teleport's parts against plain definitions: structures, prior, law of constants, whole states."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numba import njit
from scipy import stats

from symbayes.formula.trees import concatenated, split_terms
from symbayes.inputs.prior import NoisePrior, TermsPrior, TreePrior
from symbayes.kernels.chain import LOG_LIKELIHOOD
from symbayes.kernels.ladder import chain_at, prior_at
from symbayes.kernels.opcodes import LT
from symbayes.kernels.teleport import FREEDOM, _log_law, _make_law, log_prior_of_state
from symbayes.samplers.catalogue import StateList, describe, make_odds, room_for
from symbayes.samplers.ladder import Replicas

from .. import naive
from ..problems import problem, table, tree

EVERY = {"+": 1.0, "-": 1.0, "*": 1.0, "lt": 1.0, "sin": 1.0}
POWERS = np.geomspace(1.0, 0.05, 4)


def target(**options):
    tree_prior = TreePrior(alpha=0.7, slope_shape=3.0, slope_scale=0.5, offset_scale=2.0)
    return problem(
        table(40), EVERY, TermsPrior(3, 0.7), tree_prior, NoisePrior(3.0, 0.1), **options
    )


def described(made, states):
    """What `describe` says of states, given by their terms."""
    width = max(sum(map(len, trees)) for trees in states)
    nodes = np.zeros((len(states), width), tree(0).dtype)
    for row, trees in zip(nodes, states, strict=True):
        packed = concatenated(trees)
        row[: len(packed)] = packed
    return describe(made, nodes, np.array([len(trees) for trees in states]))


def test_writings_of_a_structure_are_one():
    made = target()
    first = [tree("+", 0, "sin", 1), tree("*", "lt", 0, 1, a=2.0, b=3.0)]
    same = [tree("*", 1, "lt", 0, a=5.0, b=7.0), tree("+", "sin", 1, 0)]
    others = [
        [tree("+", 0, "sin", 0), first[1]],
        [tree("-", 0, "sin", 1), first[1]],
        [tree("-", "sin", 1, 0), first[1]],
        [first[1]],
        [tree("+", 0, "sin", 1), tree("*", "lt", 1, 0)],
        [],
    ]
    about = described(made, [first, same, *others])
    assert about.key[0] == about.key[1] != 0
    assert len(set(about.key[1:].tolist())) == 1 + len(others)
    # Two terms, a sum and a product.
    assert about.log_forms[:2] == pytest.approx([math.log(8.0)] * 2)
    assert about.constants[0, :2].tolist() == [2.0, 3.0]
    assert about.constants[1, :2].tolist() == [5.0, 7.0]
    assert about.log_forms[-1] == 0.0


def test_structures_that_cannot_be_told_have_no_key():
    """Two equal parts with constants have no order, and two equal terms no place."""
    made = target()
    about = described(
        made,
        [
            [tree("+", "lt", 0, "lt", 0)],
            [tree("lt", 0), tree("lt", 0)],
            [tree("-", "lt", 0, "lt", 0)],
            [tree("+", 0, 0)],
        ],
    )
    assert (about.key == 0).tolist() == [True, True, False, False]
    assert about.log_forms[3] == 0.0  # exchanged, it is the same


@njit(error_model="numpy", _nrt=False)
def prior_of_replicas(chains, priors, room, out):
    for r in range(out.shape[0]):
        out[r] = log_prior_of_state(chain_at(chains, r), prior_at(priors, r), room)


def plain_log_prior(made, trees, prior):
    """The same by the plain twins, variances and learned weights integrated out."""
    terms = [naive.from_nodes(nodes) for nodes in trees]
    believed = naive.Beliefs(
        [], [], made.tree_prior.alpha, made.tree_prior.beta, 30, (1, 1), (1, 1)
    )
    total = len(trees) * math.log(made.terms.decay)
    total += sum(naive.log_shape(term, believed) for term in terms)
    concentrations = prior.operator_concentration, prior.feature_concentration
    if made.learn:
        counts = naive.node_counts(terms, *map(len, concentrations))
        total += sum(map(naive.log_urn, counts, concentrations))
    else:
        weights = np.diff(prior.operator_cdf, prepend=0.0), np.diff(prior.feature_cdf, prepend=0.0)
        counts = naive.node_counts(terms, *map(len, weights))
        for seen, weight in zip(counts, weights, strict=True):
            total += sum(n * math.log(w) for n, w in zip(seen, weight, strict=True) if n)
    constants = [node for term in terms for node in term.transforms()]
    believed_scales = made.tree_prior
    for values, nu, lam in (
        ([node.a - 1.0 for node in constants], believed_scales.slope_shape,
         believed_scales.slope_scale),
        ([node.b for node in constants], believed_scales.offset_shape,
         believed_scales.offset_scale),
    ):  # fmt: skip
        if values:
            law = stats.multivariate_t(np.zeros(len(values)), lam * np.eye(len(values)), nu)
            total += law.logpdf(values)
    return total


@pytest.mark.parametrize("learn", [False, True])
def test_the_prior_of_a_state(learn):
    made = target(learn=learn)
    ladder = Replicas(made, np.random.SeedSequence(1), POWERS)
    room, out = room_for(made), np.zeros(len(POWERS))
    with_constants = 0
    for _ in range(40):
        ladder.run(10, 1, 1)
        prior_of_replicas(ladder.chains, ladder.priors, room, out)
        for r in range(len(POWERS)):
            prior = made.new_prior((0.5, 1.0))
            prior.operator_cdf[:] = ladder.priors.operator_cdf[r]
            prior.feature_cdf[:] = ladder.priors.feature_cdf[r]
            trees = ladder.trees(r)
            with_constants += any((nodes["op"] == LT).any() for nodes in trees)
            assert out[r] == pytest.approx(plain_log_prior(made, trees, prior), abs=1e-9)
    assert with_constants > 20


@njit(error_model="numpy", _nrt=False)
def law_at(catalogue, j, power, constants, room):
    half_log = _make_law(catalogue, j, power, room)
    n = catalogue.first_constant[j + 1] - catalogue.first_constant[j]
    return _log_law(n, half_log, constants, room)


def listed(**options):
    made = target(**options)
    ladder = Replicas(made, np.random.SeedSequence(2), POWERS)
    ladder.run(20, 1, 60, every=True)
    met = StateList(made)
    met.add(ladder.visited(60))
    return met.make(POWERS, lambda: False)


def test_the_law_of_constants_is_students():
    made = listed()
    catalogue, room, rng = made.catalogue, room_for(made), np.random.default_rng(0)
    seen = set()
    for j in range(len(catalogue.key)):
        first, last = catalogue.first_constant[j : j + 2]
        n = int(last - first)
        if n == 0:
            continue
        seen.add(n)
        start = catalogue.first_product[j]
        curvature = catalogue.curvature[start : start + n * n].reshape(n, n)
        own, mean = np.tile(catalogue.precision, n // 2), np.tile([1.0, 0.0], n // 2)
        for power in (1.0, 0.1):
            precision = power * curvature + np.diag(own)
            right = own * mean + power * (
                catalogue.slope[first:last] + curvature @ catalogue.centre[first:last]
            )
            best = np.linalg.solve(precision, right)
            law = stats.multivariate_t(best, np.linalg.inv(precision), FREEDOM)
            constants = best + rng.normal(size=n) / np.sqrt(np.diag(precision))
            found = law_at(catalogue, j, power, constants, room)
            assert found == pytest.approx(law.logpdf(constants), rel=1e-6, abs=1e-6)
    assert len(seen) > 1


def test_expansions_are_of_the_log_likelihood():
    """Slope and curvature at the listed constants, against differences of the chain's own."""
    made = listed()
    catalogue = made.catalogue
    chain = Replicas(made, np.random.SeedSequence(0), np.ones(1))
    checked = 0
    for j in range(len(catalogue.key)):
        nodes = catalogue.nodes[catalogue.first_node[j] : catalogue.first_node[j + 1]]
        trees = split_terms(nodes, int(catalogue.n_terms[j]))
        chain.move_to([one.copy() for one in trees])
        assert chain.log_likelihood == pytest.approx(catalogue.log_likelihood[j], abs=1e-6)
        first, last = catalogue.first_constant[j : j + 2]
        if first == last or not catalogue.slope[first:last].any():
            continue
        at = next((k, i) for k, one in enumerate(trees) for i in np.flatnonzero(one["op"] == LT))
        place = catalogue.place[catalogue.first_node[j] :][sum(map(len, trees[: at[0]])) + at[1]]
        sides = []
        for step in (-1e-5, 1e-5):
            moved = [one.copy() for one in trees]
            moved[at[0]][at[1]]["a"] += step
            chain.move_to(moved)
            sides.append(chain.log_likelihood)
        slope = (sides[1] - sides[0]) / 2e-5
        assert slope == pytest.approx(catalogue.slope[first + place], rel=1e-2, abs=1e-2)
        checked += 1
    assert checked > 5


@pytest.mark.parametrize("in_stages", [False, True], ids=["all rows", "two stages"])
def test_where_a_teleport_leads_is_fitted(in_stages):
    """After teleports, numbers and columns are those of the trees."""
    made = target(learn=True)
    if in_stages:
        made = made.in_two_stages(np.arange(0, 40, 2))
    first = Replicas(made, np.random.SeedSequence(3), POWERS)
    first.run(20, 1, 40, every=True)
    met = StateList(made)
    met.add(first.visited(40))
    ladder = Replicas(met.make(POWERS, lambda: False), np.random.SeedSequence(4), POWERS)
    fresh = Replicas(made, np.random.SeedSequence(5), POWERS)
    for _ in range(20):
        ladder.run(1, 1, 1)
        for t in range(len(POWERS)):
            r = int(ladder.ladder.replica[t])
            fresh.put(ladder.trees(r), int(fresh.ladder.replica[t]))
        fresh.fit()
        for t in range(len(POWERS)):
            mine, its = (one.chains.numbers[int(one.ladder.replica[t])] for one in (ladder, fresh))
            assert mine[LOG_LIKELIHOOD] == pytest.approx(its[LOG_LIKELIHOOD], abs=1e-6)
    tried, known, taken = ladder.ladder.teleports.sum(axis=0)
    assert tried == 20 * len(POWERS)
    assert known >= taken > 5


def test_odds_are_probabilities():
    made = listed()
    odds = make_odds(made, POWERS)
    np.testing.assert_allclose(np.exp(odds.log_weight).sum(axis=1), 1.0)
    np.testing.assert_allclose(
        np.diff(odds.cumulative, axis=1, prepend=0.0), np.exp(odds.log_weight), atol=1e-12
    )
    assert (odds.cumulative[:, -1] == 1.0).all()
