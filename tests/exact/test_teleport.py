"""Teleport against the exact posterior: alone from exact draws, in ladders from the worst state.

The list has a part of all structures only, and its weights and laws of constants are wrong on
purpose: the acceptance ratio has to make up for that.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from symbayes.kernels.tree import NODE
from symbayes.samplers.catalogue import describe, make_odds, room_for, with_catalogue

from .. import naive
from . import loops
from .cases import FALSE_ALARM, Case, space_of
from .spaces import count_states, p_value
from .test_stationarity import constants, weights_and_trees
from .test_tempering import p_values_of_ladders

PLAIN = Case("collapsed", (2, 0.5), max_nodes=4)
SUMS = Case("collapsed", (3, 1.5), "sums", max_nodes=3, beta=1.5, temperature=0.6)
LT = Case("collapsed", (2, 0.5), "lt", max_nodes=3, n_features=1)
HOT_LT = replace(LT, temperature=0.4)
WAVES = Case("collapsed", 1, "waves", max_nodes=3, n_features=1)
LEARNED = Case("collapsed", (2, 2.0), "sums", max_nodes=3, temperature=0.3, learn=True)
LEARNED_LT = Case("collapsed", (2, 0.5), "lt", max_nodes=3, n_features=1, learn=True)
LIMITED = replace(LT, most_constants=4)
SHALLOW = Case(
    "collapsed", (2, 0.5), max_nodes=5, n_features=1, max_depth=3, nesting=(("*", "*", 0),)
)
WEIGHTED = Case("collapsed", 2, max_nodes=3, weighted=True)
KNOWN = Case("collapsed", (2, 0.5), max_nodes=4, known=(("*", 0, 1),))
PART = replace(PLAIN, part=4)
HOT_PART = replace(PLAIN, part=3, temperature=0.3)
LT_PART = replace(LT, part=4)
SENSIBLE = replace(PLAIN, sensible=True)
SENSIBLE_LT = replace(LT, sensible=True)
SENSIBLE_PART = replace(PART, sensible=True)
PRICE = Case("collapsed", 1, max_nodes=6, n_features=1, temperature=0.5, price=1.0)

CASES = [
    PLAIN, SUMS, LT, HOT_LT, WAVES, LEARNED, LEARNED_LT, LIMITED, SHALLOW, WEIGHTED, KNOWN, PART,
    HOT_PART, LT_PART, SENSIBLE, SENSIBLE_LT, SENSIBLE_PART, PRICE,
]  # fmt: skip


def listed(space, share=0.7, seed=0):
    """The problem with a list of a part of its structures, each with constants of its own."""
    rng = np.random.default_rng(seed)
    states = []
    for state in space.states:
        trees = [tree.copy() for tree in state]
        for tree in trees:
            for node in tree.transforms():
                node.a, node.b = rng.normal(1.0, 0.5), rng.normal(0.0, 0.5)
        if rng.random() < share or not trees:
            states.append([naive.to_nodes(tree) for tree in trees])
    problem = with_catalogue(space.problem, states)
    assert problem.catalogue is not None
    catalogue = problem.catalogue
    wrong = catalogue.log_likelihood + rng.normal(0.0, 1.0, len(catalogue.key))
    return replace(problem, catalogue=catalogue._replace(log_likelihood=wrong))


def p_values(case, n, steps=6, seed=0, counts_too=True):
    """P-values of structures, constants, variances and learned weights after a few teleports.

    How often they were possible and accepted is checked as well, unless a bug was planted.
    """
    space = space_of(case)
    problem = listed(space)
    rng = np.random.default_rng([seed, steps])
    nodes, terms, scales, _, weights = space.draw(n, rng)
    prior = problem.new_prior(case.move_shape)
    chain = problem.new_chain(np.random.SeedSequence([seed, steps, n]))
    other = problem.new_chain(np.random.SeedSequence(0))
    counts = np.zeros((1, 3), np.int64)
    out_nodes, out_terms = np.zeros((n, space.width), NODE), np.zeros(n, np.int64)
    out_scales, out_weights = np.zeros((n, 2)), np.zeros((n, weights.shape[1]))
    loops.load("teleport")(
        chain, prior, problem.tables(), problem.new_scratch(), other, room_for(problem),
        problem.catalogue, make_odds(problem, np.array([case.temperature])), counts,
        nodes, terms, scales, weights, case.temperature, steps,
        out_nodes, out_terms, out_scales, out_weights,
    )  # fmt: skip
    tried, found, taken = counts[0].tolist()
    assert tried == n * steps
    # Otherwise nothing was tested: states outside the list, rejected and accepted proposals.
    if counts_too:
        assert 0.2 * tried < found < tried
        assert 0.05 * found < taken < 0.98 * found
    results = {"structures": p_value(space, out_nodes, out_terms)}
    again = space.draw(n, np.random.default_rng([99, seed]))
    if case.has_constants:
        for i, name in enumerate(("slope scale", "offset scale")):
            results[name] = stats.ks_2samp(out_scales[:, i], again[2][:, i]).pvalue
        for i, name in enumerate(("a", "b")):
            new = constants(out_nodes, out_scales, i, name)
            old = constants(again[0], again[2], i, name)
            results[f"constant {name}"] = stats.ks_2samp(old[0], new[0]).pvalue
            results[f"{name} in units of its scale"] = stats.ks_2samp(old[1], new[1]).pvalue
    if case.learn:
        old = weights_and_trees(again[0], again[1], again[4])
        new = weights_and_trees(out_nodes, out_terms, out_weights)
        for i in range(old.shape[1]):
            results[f"weight {i}"] = stats.ks_2samp(old[:, i], new[:, i]).pvalue
    return results


@pytest.mark.parametrize("case", CASES[::4], ids=lambda case: case.name)
def test_teleport_alone_keeps_the_posterior(case):
    results = p_values(case, n=4_000)
    assert min(results.values()) > FALSE_ALARM / len(results), results


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_teleport_alone_keeps_the_posterior_to_fine_resolution(case):
    results = p_values(case, n=40_000, seed=1)
    assert min(results.values()) > FALSE_ALARM / len(results), results


@pytest.mark.parametrize("case", [PLAIN, LEARNED], ids=lambda case: case.name)
def test_ladders_that_teleport_reach_the_exact_posterior(case):
    results = p_values_of_ladders(case, (1.0, 0.5, 0.1), n=700, rounds=30, lists=listed)
    assert min(results.values()) > FALSE_ALARM / len(results), results


@pytest.mark.slow
@pytest.mark.parametrize(
    "case", [PLAIN, SUMS, LT, LEARNED, PART, PRICE, SENSIBLE], ids=lambda case: case.name
)
def test_ladders_that_teleport_reach_the_exact_posterior_to_fine_resolution(case):
    results = p_values_of_ladders(
        case, (1.0, 0.5, 0.2, 0.05), n=10_000, rounds=50, seed=1, lists=listed
    )
    assert min(results.values()) > FALSE_ALARM / len(results), results


def test_writings_of_a_structure_are_counted_right():
    """Every structure has as many states as `log_forms` says, and none is in two of them."""
    for case in (PLAIN, SUMS):
        space = space_of(case)
        packed = np.stack([space.pack(state) for state in space.states])
        n_terms = np.array([len(state) for state in space.states])
        about = describe(space.problem, packed, n_terms)
        # Without redundant terms, all writings of a state are states as well.
        keys, which, counts = np.unique(about.key, return_inverse=True, return_counts=True)
        assert (keys != 0).all()
        assert counts[which].tolist() == np.round(np.exp(about.log_forms)).astype(int).tolist()
        assert np.ptp([np.ptp(space.probability[which == i]) for i in range(len(keys))]) < 1e-12
        assert count_states(space, packed, n_terms) is not None
