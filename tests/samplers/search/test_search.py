"""The search phase: what it may change, when it ends, what it makes of an exact fit."""

from dataclasses import fields, replace
from types import SimpleNamespace

import numpy as np
import pytest

from symbayes import BayesianSymbolicRegressor, TemperedSampler
from symbayes.inputs.prior import NoisePrior, TermsPrior, TreePrior
from symbayes.inputs.validation import Table
from symbayes.samplers.exactness import is_exact
from symbayes.samplers.ladder import same_state
from symbayes.samplers.run.clock import Watch
from symbayes.samplers.run.context import RunContext
from symbayes.samplers.run.workers import Workers
from symbayes.samplers.search import heuristics, search, targets
from symbayes.samplers.search.search import Search
from symbayes.samplers.trace import Find

from ...problems import problem, tree

OPERATORS = dict.fromkeys(["+", "-", "*", "/", "sqrt", "square", "cos", "exp", "lt"], 1.0)


def make(X, y, terms=None, operators=OPERATORS):
    rows = Table(np.asfortranarray(X), y, np.ones(len(y)), np.arange(X.shape[1]))
    return problem(rows, operators, terms or TermsPrior(3, 0.5), TreePrior(), NoisePrior())


def seek(made, chains=2):
    settings = TemperedSampler(temperatures=4)
    return Search(made, settings.powers, np.random.SeedSequence(0).spawn(chains), 20)


def run(looking, budget):
    with Workers(1) as workers:
        return looking.run(budget, RunContext(workers, Watch(None)))


def budget_spent(looking, budget):
    seen = []
    with Workers(1) as workers:
        report = lambda status: seen.append(status.done)  # noqa: E731
        looking.run(budget, RunContext(workers, Watch(None), report))
    return seen[-1]


def positive(n=60, columns=2):
    return np.random.default_rng(1).uniform(0.5, 2.0, (n, columns))


def noisy(X):
    return X[:, 0] + np.random.default_rng(2).normal(size=len(X))


def hypotenuse(X):
    return np.sqrt(X[:, 0] ** 2 + 3.0 * X[:, 1])


@pytest.mark.parametrize("n_terms", [1, 2, 3])
def test_a_fixed_number_of_terms_stays(n_terms):
    # The square of y is a plain sum: a search on it would come back with one term.
    X = positive()
    model = BayesianSymbolicRegressor(
        ["+", "*", "sqrt", "square", "lt"], n_terms=n_terms, tune=2_500, draws=50, chains=2,
        random_state=0,
    ).fit(X, hypotenuse(X))  # fmt: skip
    assert (model.formulas_["n_terms"] == n_terms).all()
    assert all(np.isfinite(rate) for rate in model.diagnostics_["acceptance"].values())


def test_other_targets_only_where_one_term_is_allowed():
    X = positive()
    for terms, any_ in ((TermsPrior(3, 0.5), True), (1, True), (2, False)):
        assert bool(seek(make(X, hypotenuse(X), terms))._targets) == any_


@pytest.mark.parametrize("name", [one.name for one in fields(heuristics.Heuristics)])
def test_each_heuristic_can_be_turned_off(name, monkeypatch):
    monkeypatch.setattr(heuristics, "in_use", replace(heuristics.in_use, **{name: False}))
    X = positive(300, 4)
    looking = seek(make(X, X[:, 0] ** 2 / X[:, 1] * np.sqrt(X[:, 2] ** 2 + X[:, 3])))
    assert bool(looking._targets) == (name != "targets")
    assert bool(looking._divided) == (name != "common_factor")
    assert run(looking, 1_000).trees


def test_an_exact_fit_is_made_shorter():
    X = positive()
    looking = seek(make(X, hypotenuse(X)))
    # x0^2 + 3 x1 under the root, written with detours: x0*x1/x1 for x0, x1 + x1 - x1 for x1.
    long = tree(
        "sqrt", "+", "*", "/", "*", 0, 1, 1, 0, "lt", "-", "+", 1, 1, 1, a=3.0, b=0.0
    )  # fmt: skip
    looking._ladders[0].on_y.put([long])
    looking._ladders[0].on_y.fit()
    assert is_exact(looking._ladders[0].on_y)
    found = run(looking, 10_000)
    assert found.exact
    assert sum(map(len, found.trees)) <= 7
    for ladder in found.ladders:
        assert is_exact(ladder)
        assert sum(map(len, ladder.trees())) <= 7


def test_it_does_not_settle_while_something_is_left_to_explain(monkeypatch):
    # Everything else speaks for an end: any state confirms any other, after the first stage.
    monkeypatch.setattr(search, "_SAME", np.inf)
    monkeypatch.setattr(search, "_CONFIRMATIONS", 1)
    monkeypatch.setattr(search, "_LEAST_DRAWS", 1)
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, (80, 2))
    noise = rng.normal(size=80)
    only_products = {"*": 1.0, "+": 1.0}
    wave = make(X, 3 * np.cos(2 * X[:, 0]) + 0.1 * noise, operators=only_products)
    assert budget_spent(seek(wave), 2_000) == 2_000
    only_noise = make(X, noise, operators=only_products)
    assert budget_spent(seek(only_noise), 2_000) == search._STAGE


def test_a_target_fitted_exactly_is_left_for_y_at_once(monkeypatch):
    # What was found there cannot be brought back: it is too long.
    X = positive()
    looking = seek(make(X, hypotenuse(X)))
    looking._stage = 1
    looking._assign_targets()
    ladder = looking._ladders[-1]
    assert ladder.target.name == "square"
    ladder.on_target.put([tree("square", 0), tree(1)])
    ladder.on_target.fit()
    monkeypatch.setattr(targets, "carry_back", lambda *_: [])
    looking._carry_back(ladder)
    assert ladder.on_target is None
    assert ladder.active is ladder.on_y


def test_the_search_has_its_own_priors_of_size_within_the_limits():
    X = positive()
    tight = problem(
        Table(np.asfortranarray(X), hypotenuse(X), np.ones(60), np.arange(2)), OPERATORS,
        TermsPrior(2, 0.01), TreePrior(alpha=0.1, beta=1.5, max_nodes=9), NoisePrior(),
    )  # fmt: skip
    searched = seek(tight).problem
    assert searched.tree_prior == replace(tight.tree_prior, alpha=0.6)
    assert searched.terms == TermsPrior(2, 0.1)
    fixed = seek(make(X, hypotenuse(X), 2)).problem
    assert fixed.terms == 2
    # Larger trees are tried if the user expects them, but not more terms.
    generous = problem(
        Table(np.asfortranarray(X), hypotenuse(X), np.ones(60), np.arange(2)), OPERATORS,
        TermsPrior(2, 0.5), TreePrior(alpha=0.9), NoisePrior(),
    )  # fmt: skip
    assert seek(generous).problem.tree_prior.alpha == 0.9
    assert seek(generous).problem.terms == TermsPrior(2, 0.1)


def test_large_states_spend_the_budget_sooner(monkeypatch):
    X = positive()
    made = make(X, np.random.default_rng(0).normal(size=60))
    monkeypatch.setattr(Search, "_settled", lambda *_: False)
    counts = []
    for cost in (1.0, 4.0):
        monkeypatch.setattr(search, "mean_cost", lambda ladders, cost=cost: cost)
        looking = seek(made)
        assert run(looking, 1024).finished
        counts.append(looking.counts()[0].sum())
    assert counts[1] == pytest.approx(counts[0] / 4, rel=0.1)


def test_a_power_law_is_found_before_anything_else():
    X = positive(columns=5)
    y = np.sqrt(1.0 + 2.0 * X[:, 0] ** 2 * X[:, 1] / (X[:, 2] * X[:, 3] ** 4))
    found = run(seek(make(X, y)), 64)
    assert found.exact
    # Not where one term is not allowed, nor from columns that may not be used.
    assert not run(seek(make(X, y, 2)), 64).exact
    rows = Table(np.asfortranarray(X), y, np.ones(60), np.arange(5))
    without = problem(
        rows, OPERATORS, TermsPrior(3, 0.5), TreePrior(), NoisePrior(),
        feature_weights=[1.0, 1.0, 1.0, 0.0, 1.0],
    )  # fmt: skip
    for tree_ in run(seek(without), 64).trees:
        assert 3 not in tree_["feature"][tree_["op"] == 0]


def test_targets_of_y_and_of_y_without_its_factor_take_turns():
    X = positive(300, 4)
    y = X[:, 0] ** 2 / X[:, 1] * np.sqrt(X[:, 2] ** 2 + X[:, 3])
    looking = seek(make(X, y))
    assert looking._divided
    names = [(t.name, t.divisor is not None) for t in map(looking._target, range(4))]
    assert names == [("square", False), ("itself", True), ("inverse", False), ("square", True)]
    assert not seek(make(X, X[:, 0] ** 2 + 3.0 * np.cos(4.0 * X[:, 1])))._divided


@pytest.mark.slow
def test_a_long_product_with_a_sum_inside():
    X = positive(300, 6)
    y = X[:, 2] ** 2 * X[:, 3] / X[:, 4] ** 2 * (X[:, 0] / X[:, 1] + np.cos(X[:, 5]) ** 2)
    model = BayesianSymbolicRegressor(
        list(OPERATORS), tune=4_000, draws=20, random_state=0
    ).fit(X, y)  # fmt: skip
    assert model.formulas_["r2"][0] > 1 - 1e-12
    assert model.best_formula_.n_nodes <= 35


@pytest.mark.parametrize(
    ("chains", "expected"),
    [
        (2, [64] * 12 + [64] * 3 + [8]),
        (16, [64, 64, *[128] * 5, 128, 64, 8]),
        (40, [64, 64, 128, 256, 256, 192, 8]),
    ],
)
def test_many_ladders_are_looked_at_less_often(chains, expected, monkeypatch):
    """Never later than after twice the draws made so far, and at the end of every stage."""
    X = positive()
    looking = seek(make(X, noisy(X)), chains)
    orders = []

    def advance(ladders, asked, again=0, stop=None):
        orders.append((asked[0], again))
        for ladder in ladders:
            if not ladder.trees():
                ladder.run(1, 1, 1)
        return [order.n_draws * order.times for order in asked]

    workers = Workers(1)
    monkeypatch.setattr(workers, "advance", advance)
    monkeypatch.setattr(search, "mean_cost", lambda ladders: 1.0)
    looking.run(768 + 200, RunContext(workers, Watch(None)))
    assert [order.n_draws * order.times for order, _ in orders] == expected
    assert all(order.n_draws <= 64 for order, _ in orders)
    assert [order.offer for order, _ in orders] == [
        sum(expected[:i]) >= 768 for i in range(len(expected))
    ]
    # What is foreseen is asked for, at least.
    for i, (order, again) in enumerate(orders):
        assert all(later == order for later, _ in orders[i : i + 1 + again])


class Late(Workers):
    """Something happens when it is asked for the fifth time."""

    def __init__(self, happens):
        super().__init__(1)
        self._happens, self.made = happens, []

    def advance(self, *arguments):
        if len(self.made) == 4:
            self._happens()
        self.made.append(super().advance(*arguments))
        return self.made[-1]


def test_time_that_runs_out_between_two_looks_ends_the_rounds():
    X = positive()
    looking, watch, told = seek(make(X, noisy(X)), 32), Watch(None), []
    with Late(lambda: setattr(watch, "timeout", 0.0)) as workers:
        run_ = RunContext(workers, watch, lambda status: told.append(status.done))
        found = looking.run(10_000, run_)
    assert [set(one) for one in workers.made] == [{64}, {64}, {128}, {256}, {64}]
    assert max(told) < 10_000
    assert not found.finished


def test_an_interrupt_between_two_looks_keeps_what_was_there_before():
    """With it a run goes on to the same end as one that nobody has interrupted."""
    X = positive()
    states = {}
    for interrupted in (False, True):
        looking, watch = seek(make(X, noisy(X)), 32), Watch(None)
        kept = states[interrupted] = []
        with Late(lambda: setattr(watch, "interrupted", interrupted)) as workers:  # noqa: B023
            keep = lambda make: kept.append(make().search)  # noqa: B023, E731
            looking.run(10_000 if interrupted else 768, RunContext(workers, watch, save=keep))
    assert set(workers.made[-1]) == {64}
    assert [state.done for state in states[True]] == [64, 128, 256, 512, 512]
    expected, found = states[False][3], states[True][4]
    assert all(map(same_state, expected.ladders, found.ladders))
    for name in ("done", "spent", "stage", "in_stage", "stages", "spawned", "ends"):
        assert getattr(expected, name) == getattr(found, name)
    assert len(expected.history) == len(found.history)
    np.testing.assert_array_equal(expected.counts, found.counts)


def found_so_far(looking, own, ends):
    """A search whose ladders are at some states, and whose starts have ended at others."""
    for ladder, (score, trees) in zip(looking._ladders, own, strict=True):
        ladder.on_y = SimpleNamespace(
            score=score, trees=lambda trees=trees: trees, problem=looking.problem
        )
    looking._ends = [Find(0.0, score, trees) for score, trees in ends]
    looking.best.score, looking.best.state = max(own + ends, key=lambda one: one[0])
    return [[as_text(one) for one in start] for start in looking._starts()]


def as_text(nodes):
    return " ".join(f"{op}:{x}" for op, x in zip(nodes["op"], nodes["feature"], strict=True))


A, SAME_COLUMN, B, BOTH = [tree(0)], [tree("square", 0)], [tree(1)], [tree("*", 0, 1)]
WORDS = {name: [as_text(state[0])] for name, state in
         {"A": A, "a": SAME_COLUMN, "B": B, "AB": BOTH}.items()}  # fmt: skip


@pytest.mark.parametrize(
    ("own", "ends", "expected"),
    [
        # Ladders that are at different good states stay there.
        ([(0.0, A), (-3.0, B)], [], ["A", "B"]),
        ([(-3.0, B), (0.0, A)], [(-1.0, BOTH)], ["AB", "A"]),
        # One explanation in all ladders: another that a start has ended in comes in.
        ([(0.0, A), (-1.0, A)], [(-9.0, B)], ["A", "B"]),
        ([(-1.0, A), (0.0, A)], [(-9.0, B)], ["A", "B"]),
        # Other columns come before other forms.
        ([(0.0, A), (-1.0, SAME_COLUMN)], [(-9.0, B)], ["A", "B"]),
        ([(0.0, A), (-1.0, A)], [(-2.0, SAME_COLUMN)], ["A", "a"]),
        # What is far behind is left alone, and a ladder there starts at something better.
        ([(0.0, A), (-11.0, B)], [(-40.0, BOTH)], ["A", "A"]),
        ([(-11.0, A), (-30.0, B)], [(0.0, BOTH), (-4.0, SAME_COLUMN)], ["AB", "a"]),
        # Nothing but one find.
        ([(0.0, A), (-2.0, A)], [(-1.0, A)], ["A", "A"]),
    ],
)
def test_ladders_start_at_different_finds(own, ends, expected):
    X = positive()
    starts = found_so_far(seek(make(X, noisy(X))), own, ends)
    assert starts == [WORDS[name] for name in expected]


def test_the_ends_of_all_starts_are_kept():
    X = positive()
    looking = seek(make(X, noisy(X)), 4)
    found = run(looking, 2_304)
    assert len(looking._ends) >= 6  # of stages on y and on other targets
    assert len(found.starts) == 4
    for find in looking._ends:
        assert find.score <= looking.best.score


def test_what_is_not_sensible_counts_only_if_it_is_exact():
    """Every other ladder may pass through such states; none of them is where draws begin."""
    rng = np.random.default_rng(3)
    X = rng.uniform(0.0, 10.0, (30, 1))
    wave = [tree("sin", "lt", 0, a=400.0, b=0.0)]
    for noise in (0.01, 0.0):
        y = np.sin(400.0 * X[:, 0]) + rng.normal(0.0, noise, 30)
        rows = Table(np.asfortranarray(X), y, np.ones(30), np.arange(1))
        some = {"sin": 1.0, "lt": 1.0, "+": 1.0}
        looking = seek(problem(rows, some, TermsPrior(3, 0.5), sensible=True), 2)
        limited, free = looking._ladders
        assert limited.on_y.problem.tree_prior.sensible
        assert not free.on_y.problem.tree_prior.sensible
        free.on_y.move_to(wave)
        limited.on_y.move_to([tree(0)])
        found = looking._find_of(free)
        assert (found.score > -np.inf) == (noise == 0.0)
        met = looking._met_by(free.on_y).states()
        assert not any(one[0]["op"][0] == wave[0]["op"][0] for one in met)
        if noise:
            assert looking._starts() == [[], []]
            looking.best.update(limited.on_y.score, limited.on_y.trees(), 0.0)
            assert [len(one[0]) for one in looking._starts()] == [1, 1]
