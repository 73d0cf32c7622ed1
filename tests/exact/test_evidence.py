"""Probabilities that follow from the evidence, against a list of all states with the exact ones."""

from dataclasses import replace

import numpy as np
import pytest

from symbayes.deadline import Deadline
from symbayes.fitting.model import Fitter, State
from symbayes.posterior.posterior import (
    Member,
    Posterior,
    _with_evidence,
    gap_to_evidence,
    group,
    shares_by_evidence,
)

from .. import naive, problems
from .cases import Case, space_of


def posterior_of(case: Case) -> Posterior:
    """The exact posterior of a small space, as if every state had been drawn as often as it is."""
    space = space_of(case)
    weights = [1.0, 2.0, 0.5, 1.5, 1.0, 3.0] if case.weighted else None
    rows = problems.table(n_features=case.n_features, weights=weights)
    fitter = Fitter(space.problem, rows.y, rows.weights, plug_in=False)
    rng = np.random.default_rng(5)
    states = []
    for i in np.argsort(-space.probability, kind="stable").tolist():
        trees = [tree.copy() for tree in space.states[i]]
        nodes = [node for tree in trees for node in tree.transforms()]
        for node, (a, b) in zip(nodes, space.prepared["draw"](i, rng)[0], strict=True):
            node.a, node.b = a, b
        terms = tuple(naive.to_nodes(tree) for tree in trees)
        weight = float(space.probability[i])
        states.append(State((*space.problem.known, *terms), weight, 0.0, 1.0))
    groups = _with_evidence(group(states, fitter, 300, Deadline()), states, fitter, Deadline())
    return Posterior(states, [], np.ones(0), None, groups, np.ones(0))


@pytest.mark.parametrize(
    "case",
    [
        Case("collapsed", 1),
        Case("collapsed", 2, max_nodes=4),
        Case("collapsed", (2, 0.5), max_nodes=4),
        Case("collapsed", (3, 1.5), "sums", max_nodes=4, n_features=1),
        Case("collapsed", 2, max_nodes=3, weighted=True),
        Case("collapsed", (2, 0.5), max_nodes=5, n_features=1, price=2.0),
        Case("collapsed", (2, 0.5), max_nodes=4, known=(("*", 0, 1),)),
        Case("collapsed", (2, 0.5), max_nodes=4, learn=True),
        Case("collapsed", (2, 0.5), "sums", max_nodes=3, learn=True),
    ],
    ids=str,
)
def test_without_constants_they_are_the_exact_ones(case):
    found = posterior_of(case)
    shares, _ = shares_by_evidence(found)
    known = np.isfinite(shares)
    assert known.sum() == min(20, len(found.groups)) >= 3
    exact = [one.weight for one in found.groups]
    np.testing.assert_allclose(shares[known], np.array(exact)[known], rtol=1e-6)


@pytest.mark.parametrize(
    ("case", "within"),
    [
        (Case("collapsed", 1, "lt", max_nodes=4, n_features=1), 0.1),
        (Case("collapsed", (2, 0.5), "lt", max_nodes=3, n_features=1), 0.1),
    ],
    ids=str,
)
def test_otherwise_they_are_near(case, within):
    """Six rows leave the constants open, which is the worst case for an expansion around them."""
    found = posterior_of(case)
    shares, _ = shares_by_evidence(found)
    known = np.isfinite(shares)
    exact = np.array([one.weight for one in found.groups])
    print(np.c_[shares[known], exact[known]].round(3))
    assert 0.5 * np.abs(shares - exact)[known].sum() < within


@pytest.mark.parametrize("learn", [False, True])
def test_what_the_draws_have_missed_is_told(learn):
    found = posterior_of(Case("collapsed", (2, 0.5), max_nodes=4, learn=learn))
    gap = gap_to_evidence(found.groups, [])
    assert (gap.missed, gap.away) == pytest.approx((0.0, 0.0), abs=1e-6)
    # One of the formulas was met, and never drawn.
    for i in range(3):
        lost, rest = found.groups[i], found.groups[:i] + found.groups[i + 1 :]
        drawn = [replace(one, weight=one.weight / (1.0 - lost.weight)) for one in rest]
        rivals = [Member(one.model, -1, one.log_evidence) for one in (found.groups[9], lost)]
        gap = gap_to_evidence(drawn, rivals)
        assert gap.missed == pytest.approx(lost.weight, rel=1e-6)
        assert gap.formula is lost.model
        assert gap.away == pytest.approx(0.0, abs=1e-6)
    # The first two were drawn as often as each other.
    first, second, *rest = found.groups
    mean = 0.5 * (first.weight + second.weight)
    even = [replace(first, weight=mean), replace(second, weight=mean), *rest]
    of_listed = sum(one.weight for one in found.groups[:20])
    away = gap_to_evidence(even, []).away
    assert away == pytest.approx(0.5 * (first.weight - second.weight) / of_listed, rel=1e-5)
