"""A ladder of replicas from outside: states in and out, temperatures adapted."""

import numpy as np
import pytest

from symbayes.inputs.prior import TermsPrior, TreePrior
from symbayes.inputs.validation import Table
from symbayes.samplers.ladder import LARGEST_ROUND, Replicas, mean_cost

from .. import naive
from ..kernels.calling import generator_state
from ..problems import beliefs, problem, table, tree

OPERATORS = {"+": 1.0, "*": 1.0, "sin": 1.0, "lt": 1.0}


def ladder_of(powers=(1.0, 0.5, 0.2), seed=0, terms=None, learn=True, n_rows=20):
    target = problem(
        table(n_rows), OPERATORS, terms or TermsPrior(3, 0.5), TreePrior(max_nodes=9), learn=learn
    )
    return Replicas(target, np.random.SeedSequence(seed), np.array(powers))


def as_lists(trees):
    return [t.tolist() for t in trees]


def test_trees_come_out_as_they_were_put_in():
    ladder = ladder_of()
    believed = beliefs(ladder.problem)
    rng = naive.Random(generator_state(3))
    done = 0
    while done < 60:
        try:
            state = [naive.draw_tree(rng, believed, 0, [9]) for _ in range(done % 4)]
        except naive.TooLarge:
            continue
        nodes = [naive.to_nodes(t) for t in state]
        r = done % 3
        ladder.put(nodes, r)
        assert as_lists(ladder.trees(r)) == as_lists(nodes)
        done += 1


def test_a_draw_of_large_states_costs_more():
    ladder = ladder_of()
    assert mean_cost([ladder]) == 1.0
    nine = tree("+", 0, "sin", "+", 0, "sin", "+", 0, 1)
    sums = [nine] * 3
    for replica in range(3):
        ladder.put(sums, replica)
    assert mean_cost([ladder]) == pytest.approx(3 * len(nine) / 18)
    ladder.put([], 0)
    assert mean_cost([ladder]) == pytest.approx(2 * len(nine) / 18)
    # That of none is at least one.
    assert mean_cost([ladder, ladder_of()]) == pytest.approx(len(nine) / 18 + 0.5)


def test_what_has_not_started_is_worse_than_anything():
    ladder = ladder_of()
    assert ladder.score == -np.inf
    ladder.run(20, 1, 1)
    assert np.isfinite(ladder.score)


def test_without_a_name_the_coldest_replica_is_meant():
    ladder = ladder_of()
    ladder.ladder.replica[:] = [2, 0, 1]
    ladder.put([tree(0), tree("sin", 1)])
    assert ladder.cold == 2
    assert (
        as_lists(ladder.trees()) == as_lists(ladder.trees(2)) == as_lists([tree(0), tree("sin", 1)])
    )
    assert ladder.trees(0) == []  # it has not started
    ladder.run(1, 1, 0)
    assert ladder.log_likelihood == ladder.chains.numbers[2, 0]
    assert ladder.rss == ladder.chains.numbers[2, 1]


def test_what_comes_out_is_a_copy():
    ladder = ladder_of()
    ladder.put([tree("sin", 0)])
    ladder.trees()[0]["op"] = 0
    assert as_lists(ladder.trees()) == as_lists([tree("sin", 0)])


def test_no_more_draws_at_once_than_there_is_room_for():
    ladder = ladder_of()
    with pytest.raises(ValueError, match="draws at once"):
        ladder.run(1, 1, LARGEST_ROUND + 1)


def test_states_are_taken_over_temperature_by_temperature():
    source, ladder = ladder_of(seed=1), ladder_of(seed=2)
    source.run(20, 10, 3)
    assert source.ladder.replica.tolist() != [0, 1, 2]
    ladder.ladder.replica[:] = [1, 2, 0]
    random, order = ladder.chains.rng.copy(), ladder.ladder.replica.copy()
    ladder.take_over(source)
    np.testing.assert_array_equal(ladder.chains.rng, random)
    np.testing.assert_array_equal(ladder.ladder.replica, order)
    for t in range(3):
        mine, theirs = ladder.ladder.replica[t], source.ladder.replica[t]
        assert as_lists(ladder.trees(mine)) == as_lists(source.trees(theirs))
        for name in ("scales", "operator_cdf", "feature_cdf"):
            one, other = (getattr(x.priors, name) for x in (ladder, source))
            np.testing.assert_array_equal(one[mine], other[theirs])
    # Fitted again, the numbers are the same.
    ladder.run(1, 1, 0)
    for t in range(3):
        mine, theirs = ladder.ladder.replica[t], source.ladder.replica[t]
        np.testing.assert_allclose(ladder.chains.numbers[mine], source.chains.numbers[theirs])


def rejecting(ladder, barrier, tried=1_000):
    """Let every pair reject as often as a known barrier says."""
    between = np.abs(np.diff(barrier(ladder.ladder.power)))
    ladder.ladder.tried[:] = tried
    ladder.ladder.rejected[:] = tried * between
    return between


BARRIERS = {
    "even in log": lambda power: 0.3 * np.log(power),
    "all near the cold end": lambda power: 1.5 * power**2,
    "all near the hot end": lambda power: -0.2 / (power + 0.05) ** 0.5,
    "a step": lambda power: 0.9 / (1 + np.exp(-30 * (power - 0.3))) + 0.1 * power,
}


@pytest.mark.parametrize("barrier", BARRIERS)
def test_adapting_makes_all_pairs_reject_equally_often(barrier):
    ladder = ladder_of(powers=[1.0, 0.9, 0.85, 0.3, 0.25, 0.02])
    first = rejecting(ladder, BARRIERS[barrier])
    for _ in range(40):
        ladder.adapt()
        assert ladder.ladder.power[0] == 1.0
        assert ladder.ladder.power[-1] == pytest.approx(0.02, rel=1e-12)
        assert np.all(np.diff(ladder.ladder.power) < 0)
        last = rejecting(ladder, BARRIERS[barrier])
    assert last.std() < 0.05 * first.std()
    np.testing.assert_allclose(last, last.mean(), rtol=0.1)


def test_adapting_a_barrier_that_is_even_in_log_needs_one_step():
    ladder = ladder_of(powers=[1.0, 0.9, 0.1, 0.05, 0.01])
    rejecting(ladder, BARRIERS["even in log"])
    ladder.adapt()
    np.testing.assert_allclose(ladder.ladder.power, np.geomspace(1.0, 0.01, 5), rtol=1e-12)


def test_adapting_forgets_what_was_counted():
    ladder = ladder_of()
    ladder.run(10, 10, 3)
    assert ladder.ladder.tried.sum() > 0
    ladder.adapt()
    for values in (ladder.ladder.rejected, ladder.ladder.tried, ladder.ladder.clock):
        assert not values.any()
    assert not ladder.ladder.direction.any()


def test_pairs_that_never_reject_stay_apart():
    ladder = ladder_of(powers=[1.0, 0.8, 0.6, 0.4])
    ladder.ladder.tried[:] = 100
    ladder.ladder.rejected[:] = [0.0, 90.0, 0.0]
    ladder.adapt()
    assert np.all(np.diff(ladder.ladder.power) < 0)
    # Nothing counted since: no reason to move.
    before = ladder.ladder.power.copy()
    ladder.adapt()
    np.testing.assert_allclose(ladder.ladder.power, before, rtol=1e-12)


def test_one_temperature_needs_no_adapting():
    ladder = ladder_of(powers=[1.0])
    ladder.run(10, 2, 2)
    ladder.adapt()
    assert ladder.ladder.power.tolist() == [1.0]


def test_adapting_evens_out_a_real_ladder():
    """The same in a run: an uneven ladder on data that tell formulas apart."""
    ladder = ladder_of(powers=[1.0, 0.98, 0.96, 0.94, 0.02], n_rows=100, terms=TermsPrior(2, 0.5))
    ladder.run(20, 100, 1)
    ladder.forget()
    spread = []
    for _ in range(5):
        ladder.run(20, 300, 1)
        rejection = ladder.ladder.rejected / ladder.ladder.tried
        spread.append(np.ptp(rejection))
        ladder.adapt()
    assert spread[0] > 0.3
    assert spread[-1] < 0.5 * spread[0]


def test_spread_gives_a_state_to_the_temperatures_where_it_is_better():
    ladder = ladder_of(powers=(1.0, 0.5, 0.1, 1e-9), n_rows=60)
    good = [tree("*", 0, 1)]
    ladder.fit()
    before = [as_lists(ladder.trees(r)) for r in ladder.ladder.replica]
    ladder.spread(good, 2.0)
    after = [as_lists(ladder.trees(r)) for r in ladder.ladder.replica]
    assert after[0] == as_lists(good)
    # Where the data hardly count it is no better than another.
    assert after[-1] == before[-1]
    ladder.spread(good, np.inf)
    assert [as_lists(ladder.trees(r)) for r in ladder.ladder.replica] == after


def test_coefficients_are_those_of_least_squares():
    ladder = ladder_of(n_rows=60)
    rows = table(60)
    state = [tree("*", 0, 1), tree("sin", 0), tree("+", 0, 0)]
    ladder.put(state)
    intercept, coefficients = ladder.coefficients()
    x0, x1 = rows.X.T
    design = np.column_stack([np.ones(60), x0 * x1, np.sin(x0), 2 * x0])
    expected = np.linalg.lstsq(design, rows.y, rcond=None)[0]
    np.testing.assert_allclose([intercept, *coefficients], expected, rtol=1e-9)


def test_coefficients_of_idle_terms_are_zero():
    rows = table(60)
    exact = Table(rows.X, 5.0 * rows.X[:, 0] * rows.X[:, 1], rows.weights, rows.used)
    target = problem(exact, OPERATORS, TermsPrior(3, 0.5), TreePrior(max_nodes=9))
    ladder = Replicas(target, np.random.SeedSequence(0), np.ones(1))
    ladder.put([tree("sin", 0), tree("*", 0, 1)])
    intercept, coefficients = ladder.coefficients()
    assert intercept == 0.0
    assert coefficients[0] == 0.0
    assert coefficients[1] == pytest.approx(5.0)
