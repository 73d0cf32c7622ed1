"""Which structures teleports are offered: what was met, and what was missed."""

import numpy as np
import pytest
from benchmarks.checks.two_modes import OPERATORS, two_modes

from symbayes import BayesianSymbolicRegressor
from symbayes.formula.trees import structure
from symbayes.inputs.task import make_task
from symbayes.samplers import tempered
from symbayes.samplers.catalogue import StateList, VisitedRows, misses

from ..problems import tree

X, Y = two_modes(8)
PROBLEM = make_task(BayesianSymbolicRegressor(OPERATORS), X, Y, None).problem
FIRST, SECOND = (
    tree("*", i, "exp", "+", "sin", "square", i, i + 1) for i in (0, 2)
)  # x0*exp(sin(x0**2) + x1), and the same of x2 and x3
POWERS = np.geomspace(1.0, 0.05, 5)


def listed(*states):
    states = [list(state) for state in states]
    known = StateList(PROBLEM)
    known.add_met(states)
    return known.make(POWERS, lambda: False)


def keys(known):
    return {structure(one.nodes, one.n_terms) for one in known.visited}


def test_parts_of_what_was_met_are_known_too():
    known = StateList(PROBLEM)
    known.add_met([[SECOND, tree("exp", 0), tree(1)]])
    assert len(known.visited) == 4  # all of it, and without each of the terms
    alone = StateList(PROBLEM)
    alone.add_met([[SECOND, tree("exp", 0)], [SECOND]])
    assert len(alone.visited) == 3
    assert keys(alone) > {structure(SECOND, 1)}


def test_the_order_in_which_states_come_makes_no_difference():
    """Rounds are longer or shorter with a time limit, and end elsewhere after a resumption."""
    ways = [tree("+", 0, "exp", 1), tree("+", "exp", 1, 0), tree(0), tree(1)]
    rows = [(nodes, 1, value) for nodes in ways for value in (-5.0, -5.0, -6.0)]

    def seen(order):
        known = StateList(PROBLEM)
        for i in order:
            nodes, n_terms, value = rows[i]
            known.add(VisitedRows(nodes[None], np.array([n_terms]), np.array([value])))
        kept = {one.nodes.tobytes(): one.log_likelihood for one in known.visited}
        return kept, [one.tobytes() for (one,) in listed_of(known)]

    rng = np.random.default_rng(3)
    expected, in_list = seen(range(len(rows)))
    assert len(expected) == len(in_list) == 3
    assert set(expected.values()) == {-5.0}
    for _ in range(10):
        assert seen(rng.permutation(len(rows))) == (expected, in_list)


def listed_of(known):
    known.make(POWERS, lambda: False)
    return known.listed


def test_states_that_are_not_possible_are_left_out():
    known = StateList(PROBLEM)
    known.add_met([[tree(0), tree("+", 0, 0)], [tree(0)] * 9])
    assert keys(known) == {structure(tree(0), 1), structure(tree("+", 0, 0), 1)}


def test_the_log_likelihood_is_that_of_the_state():
    known = StateList(PROBLEM)
    known.add_met([[FIRST]])
    values = X[:, 0] * np.exp(np.sin(X[:, 0] ** 2) + X[:, 1])
    rest = Y - np.polyval(np.polyfit(values, Y, 1), values)
    n, (nu, lam) = len(Y), PROBLEM.data.noise_prior
    rss = rest @ rest / Y.var()
    expected = -0.5 * np.log(1 + n) - 0.5 * (n - 1 + nu) * np.log(nu * lam + rss)
    (only,) = known.visited
    assert only.log_likelihood == pytest.approx(expected, rel=1e-9)


def test_what_is_as_good_and_not_listed_is_missed():
    one = listed([FIRST], [tree(0)])
    assert misses(one, [[tree(1)], [SECOND]])
    assert misses(one, [[SECOND, tree(2)]])  # a part of it is what is missed
    assert not misses(one, [[tree(1)], [tree("exp", 1), tree(2)], [FIRST]])
    assert not misses(listed([FIRST], [SECOND]), [[SECOND], [FIRST]])
    assert not misses(PROBLEM, [[SECOND]])  # there is no list at all


def test_warm_up_is_repeated_for_what_was_missed(monkeypatch):
    """If hot replicas come upon the second explanation only while draws are made."""
    asked = []

    def once(problem, states):
        asked.append(states)
        return len(asked) == 1

    monkeypatch.setattr(tempered, "misses", once)
    model = BayesianSymbolicRegressor(
        OPERATORS, tune=300, draws=300, chains=2, n_jobs=1, random_state=0
    ).fit(X, Y)
    assert asked
    assert model.diagnostics_["restarts"] == 1


@pytest.mark.slow
@pytest.mark.parametrize("seed", [8, 15])
def test_an_explanation_that_no_search_ended_at(seed):
    """Four chains agreed on the first one here, before what was met was listed."""
    X, y = two_modes(seed)
    model = BayesianSymbolicRegressor(OPERATORS, n_jobs=1, random_state=seed).fit(X, y)
    uses = model.inclusion_probability()
    assert 0.35 < uses["x0"] / (uses["x0"] + uses["x2"]) < 0.65
