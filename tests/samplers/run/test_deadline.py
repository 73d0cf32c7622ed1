"""A time limit is for the whole fit: where it is over, little is left to do, and that is done."""

import inspect
import threading
import time
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from symbayes import BayesianSymbolicRegressor, TemperedSampler, load, regressor, result, run
from symbayes.deadline import Deadline, OutOfTime, until
from symbayes.fitting import least_squares
from symbayes.fitting.constants import Terms
from symbayes.fitting.model import Fitter
from symbayes.posterior import front, posterior, stacking
from symbayes.posterior import table as formula_table
from symbayes.posterior.front import seconds_of_front
from symbayes.posterior.posterior import thin
from symbayes.samplers import tempered
from symbayes.samplers.ladder import Replicas
from symbayes.samplers.run.clock import Watch, run_in_rounds
from symbayes.samplers.run.context import RunContext
from symbayes.samplers.run.workers import Workers
from symbayes.samplers.search import library, power_law, rational, search
from symbayes.samplers.search.common_factor import common_factor
from symbayes.samplers.search.library import Library, LibraryCache
from symbayes.storage.checkpoint import CheckpointWriter

from ...fits import NOISY, RNG, X, assert_same, small
from ...problems import posed, problem, table

# Little to learn from: no formula stands out.
Y = X[:, 0] * np.sin(3 * X[:, 1]) + RNG.normal(0, 0.4, 60)


class Clock:
    """A clock that stands still unless it is set."""

    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    result = Clock()
    monkeypatch.setattr(time, "monotonic", result)
    return result


def test_shares_of_the_time_left(clock):
    deadline = Deadline(clock.now + 10.0)
    half = deadline.share(0.5)
    clock.now += 4.9
    assert not half.over()
    assert half.share(0.5).at == pytest.approx(half.at - 0.05)
    clock.now += 0.2
    assert half.over()
    assert half.share(0.5).over()
    assert not deadline.over()
    assert not Deadline().share(0.5).is_set
    assert not Deadline().earlier(2.0).is_set
    assert Deadline(5.0).earlier(2.0) == Deadline(3.0)
    assert not Deadline().over()
    interrupted = Deadline(interrupted=lambda: True).share(0.5)
    assert interrupted.cut_short()
    assert not interrupted.over()


def test_a_function_until_it_is_time_to_stop():
    stop = iter([False, False, True])
    doubled = until(lambda: next(stop), lambda x: 2 * x)
    assert [doubled(1), doubled(2)] == [2, 4]
    with pytest.raises(OutOfTime):
        doubled(3)


# Where the time of a fit is over, one after the other.
STAGES = {
    "known forms": (power_law, "suggest"),
    "search": (search.Search, "_advance"),
    "library": (Library, "__init__"),
    "shorter states": (search.Search, "_replace_equal_parts"),
    "start": (tempered, "_begin_at"),
    "settling": (tempered.Phases, "settle"),
    "drawing": (Workers, "advance_rounds"),
    "checkpoint": (CheckpointWriter, "finish"),
    "models": (posterior, "_fit_all"),
    "formulas": (posterior, "group"),
    "constants": (posterior, "polished"),
    "table": (formula_table.FormulaWriter, "table"),
    "simple constants": (formula_table, "rounded"),
    "front": (run, "make_front"),
    "terms of the front": (front.Pool, "best_sums"),
    "table of the front": (formula_table.FormulaWriter, "front"),
    "verdict": (run, "judge"),
    "stacking": (result, "stack"),
    "what was found": (run, "_formulas_of"),
}
# Work that is done after that at most: fits of models, residuals for constants, searches for the
# best constants, models without single rows, steps of chains.
MOST_WORK = {"fits": 14, "residuals": 12, "searches": 0, "left out": 0, "steps": 3000}


class Meter:
    """Counts how often work is done."""

    def __init__(self, monkeypatch):
        self.counts = dict.fromkeys(MOST_WORK, 0)
        run = Replicas.run

        def counted_run(ladder, steps, rounds, n_draws, *rest):
            self.counts["steps"] += steps * n_draws
            return run(ladder, steps, rounds, n_draws, *rest)

        monkeypatch.setattr(Replicas, "run", counted_run)
        for name, owner, function in (
            ("fits", Fitter, "fit"),
            ("residuals", Terms, "residual"),
            ("searches", least_squares, "least_squares"),
            ("left out", stacking, "_without_each"),
        ):
            monkeypatch.setattr(owner, function, self._counted(name, getattr(owner, function)))

    def _counted(self, name, function):
        def counted(*arguments, **options):
            self.counts[name] += 1
            return function(*arguments, **options)

        return counted

    def reset(self):
        self.counts = dict.fromkeys(MOST_WORK, 0)


def noisy_fit(**options):
    """Return a model with many states, whose search has a library."""
    options = {"chains": 2, "draws": 100, "tune": 900, "random_state": 5} | options
    sampler = TemperedSampler(temperatures=3, steps_per_draw=10)
    return BayesianSymbolicRegressor(sampler=sampler, **options)


@pytest.fixture
def disagreement(monkeypatch):
    plain = run.judge
    monkeypatch.setattr(run, "judge", lambda *a: plain(*a) | {"chains_disagree": True})
    # No search ends before its time, so that every stage is reached.
    monkeypatch.setattr(search.Search, "_settled", lambda *_: False)


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.filterwarnings("ignore:timeout")
def test_time_that_is_over_at_any_stage(stage, clock, disagreement, monkeypatch, tmp_path):
    owner, name = STAGES[stage]
    plain, meter, reached = getattr(owner, name), Meter(monkeypatch), []

    def over(*arguments, **options):
        if not reached:
            reached.append(True)
            meter.reset()
            clock.now += 1000.0
        return plain(*arguments, **options)

    monkeypatch.setattr(owner, name, over)
    model = noisy_fit(timeout=100.0).fit(X, Y, checkpoint=tmp_path / "run.checkpoint")
    assert reached
    assert all(meter.counts[what] <= most for what, most in MOST_WORK.items()), meter.counts
    assert_complete(model, tmp_path)
    if stage in ("known forms", "models", "verdict"):  # a page takes its time
        assert "What each chain found" in model.report(tmp_path / "page.html").read_text("utf-8")


def test_without_a_limit_there_is_more_work(clock, disagreement, monkeypatch, tmp_path):
    meter = Meter(monkeypatch)
    model = noisy_fit().fit(X, Y)
    assert all(meter.counts[what] > 5 * max(most, 4) for what, most in MOST_WORK.items()), (
        meter.counts
    )
    assert_complete(model, tmp_path)
    assert model.diagnostics_["stacking_weights"] is not None
    assert_same(model, noisy_fit(timeout=100.0).fit(X, Y))  # as the clock stands still


def assert_complete(model, folder):
    """Whatever can be asked of a model is answered."""
    assert 0 < model.formulas_["probability"].sum() <= 1 + 1e-9
    assert len(model.formulas_) == len(model.formula_objects_)
    assert (model.formulas_["rounded"] != "").all()
    mean, std = model.predict(X, return_std=True)
    assert np.isfinite(mean).all()
    assert (std > 0).all()
    low, high = model.predict_interval(X)
    assert (low < high).all()
    assert model.sample_predictive(X, 5).shape == (5, len(X))
    assert str(model.best_formula_)
    assert len(model.inclusion_probability()) == 2
    assert model.diagnostics_["verdict"]
    assert len(model.constants(0)) >= 0
    assert sum(mixed.weight for mixed in model.result_.posterior.states) == pytest.approx(1.0)
    assert model.result_.posterior.mixture.weights.sum() == pytest.approx(1.0)
    assert len(model.formulas_by_chain()) > 0
    model.save(folder / "model.symbayes")
    assert_same(model, load(folder / "model.symbayes"))
    stacked = model.combined("stack")
    assert stacked.chain_weights_.sum() == pytest.approx(1.0)
    assert stacked.diagnostics_["stacking_weights"] is not None


def test_models_are_fitted_as_long_as_there_is_time(clock, monkeypatch):
    """They are a sample of the states, however many there are."""
    # So much noise that many formulas explain it about as well.
    y = Y + np.random.default_rng(7).normal(0.0, 1.0, len(Y))
    model = noisy_fit(tune=100, draws=900, operators=["+", "*", "sin"]).fit(X, y)
    states = model.result_.posterior.states
    assert len(states) > 100
    # One that is drawn often would be taken several times, and fitted only once.
    states = [replace(state, weight=1.0 / len(states)) for state in states]
    plain, fitter, seen = Fitter.fit, None, {}

    def fit(self, state):
        nonlocal fitter
        fitter = self
        return plain(self, state)

    monkeypatch.setattr(Fitter, "fit", fit)
    noisy_fit(tune=1, draws=5).fit(X, Y)

    def timed(self, state):
        clock.now += 1.0
        return plain(self, state)

    monkeypatch.setattr(Fitter, "fit", timed)
    for seconds in (0.0, 25.0, 75.0, 1e6):
        models = posterior._fit_all(fitter, states, 90, Deadline(clock.now + seconds))
        sizes = [n for n in (8, 24, 72, 90) if len(thin(states, n)) == len(models)]
        assert sizes
        seen[seconds] = sizes[0]
        expected = [state.weight for state in thin(states, sizes[0])]
        np.testing.assert_allclose([weight for weight, _ in models], expected)
        assert [one.state.weight for _, one in models] == expected
    assert list(seen.values()) == sorted(seen.values())
    assert seen[0.0] == 8
    assert 8 < seen[25.0] < seen[75.0] < 90
    assert seen[1e6] == 90


def test_what_one_fit_costs_tells_how_much_time_is_kept_back(clock, monkeypatch):
    plain = Fitter.fit

    def slow(self, state):
        clock.now += 0.01
        return plain(self, state)

    monkeypatch.setattr(Fitter, "fit", slow)
    kept = []
    monkeypatch.setattr(Watch, "keep_back", lambda self, seconds: kept.append(seconds))
    small(timeout=1e9).fit(X, NOISY)
    fits = 0.01 * posterior._MOST_FITS * posterior._FITS_IN_ALL
    assert kept == [pytest.approx(fits + seconds_of_front(1e9))]
    assert seconds_of_front(1e9) == 2.0
    assert seconds_of_front(4.0) == 0.4
    assert seconds_of_front(None) == 0.0


def test_the_table_is_looked_at_within_the_time(monkeypatch, clock):
    """What comes before sampling counts as well, compilation does not."""
    plain, load_plain, started = run.Watch, run.units.load, []

    def load_slowly(*arguments):
        clock.now += 50.0
        return load_plain(*arguments)

    def watch(timeout, began):
        started.append(clock.now - began)
        return plain(timeout, began)

    def checked(*arguments):
        clock.now += 3.0
        return plain_task(*arguments)

    plain_task = regressor.make_task
    monkeypatch.setattr(regressor, "make_task", checked)
    monkeypatch.setattr(run, "Watch", watch)
    monkeypatch.setattr(run.units, "load", load_slowly)
    small().fit(X, NOISY)
    assert started == [pytest.approx(3.0)]


# Steps of a search.


def test_known_forms_are_tried_until_it_is_time_to_stop(monkeypatch):
    x = RNG.uniform(0.5, 2, (2, 60))
    operators = dict.fromkeys(["+", "*", "/", "lt", "inv", "square"], 1.0)
    ratio = (x[0] + 2) / (x[0] ** 2 + 3)
    for way, y in ((power_law, x[0] ** 2 * x[1]), (rational, ratio)):
        made = posed(x, y, operators)
        assert list(way.suggest(made))
        assert not list(way.suggest(made, None, lambda: True))


def test_a_common_factor_is_not_looked_for_where_that_takes_too_long():
    x = RNG.uniform(1, 3, (3, 100))
    y = x[0] ** 2 * (x[1] + x[2])
    assert common_factor(x, y, 1.0).tolist() == [2.0, 0.0, 0.0]
    assert common_factor(x, y, 1e-9).tolist() == [0.0, 0.0, 0.0]


def test_a_library_that_is_cut_short_offers_what_it_has():
    made = problem(table(50, 6), dict.fromkeys(["+", "*", "/", "sin"], 1.0))
    whole, part = Library(made), Library(made, lambda: True)
    assert 0 < len(part._values) < len(whole._values)
    np.testing.assert_array_equal(part._values, whole._values[: len(part._values)])
    assert part.best_for(np.arange(float(len(made.data.y)))) is not None


def test_nobody_waits_for_a_library_that_is_not_wanted_any_more(monkeypatch):
    libraries, begun, go_on = LibraryCache(), threading.Event(), threading.Event()
    stopped = []

    def slow(problem, stop):
        begun.set()
        while not stop():
            go_on.wait(0.001)
        stopped.append(True)

    monkeypatch.setattr(library, "Library", slow)
    made = problem(table(), {"+": 1.0})
    thread = threading.Thread(target=libraries.library_for, args=[made])
    thread.start()
    assert begun.wait(10.0)
    libraries.clear()
    thread.join(10.0)
    assert stopped == [True]
    assert libraries._library is None


@pytest.mark.parametrize("timeout", [None, 1000.0])
def test_long_rounds_are_made_in_parts(clock, timeout):
    """A look at the clock comes every half second."""
    parts, looks = [], []

    def advance(n):
        parts.append(n)
        looks.append(clock.now)
        clock.now += 0.1 * n

    first = 64 if timeout is None else 4
    done = run_in_rounds(advance, 150, Watch(timeout), lambda n: None, first=first, multiple=64)
    assert done == sum(parts) == 150
    assert looks[1] - looks[0] == pytest.approx(0.1 * first)
    assert max(np.diff(looks[1:])) <= 0.5 + 1e-9


def test_short_rounds_are_made_several_at_once(clock):
    calls = []

    def advance(rounds):
        calls.append(rounds)
        clock.now += 0.001 * sum(rounds)

    data = SimpleNamespace(y=np.zeros(100))
    ladder = SimpleNamespace(problem=SimpleNamespace(data=data))
    run = RunContext(None, Watch(None))
    tempered.Phases(None, [ladder], None, run).in_rounds(advance, 600, lambda n: None)
    assert calls == [[64], [64] * 7, [64, 24]]
    limited = RunContext(None, Watch(1000.0))
    tempered.Phases(None, [ladder], None, limited).in_rounds(advance, 64, lambda n: None)
    assert calls[3] == [4]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:timeout")
@pytest.mark.parametrize(("rows", "columns"), [(100, 5), (20_000, 10), (300, 100)])
@pytest.mark.parametrize("timeout", [2.0, 6.0])
def test_a_fit_ends_in_time(rows, columns, timeout, tmp_path):
    """Within a second and a twentieth of it; another second is for a machine that is busy."""
    rng = np.random.default_rng(0)
    x = rng.uniform(0.5, 3, (rows, columns))
    y = x[:, 0] * np.sin(2 * x[:, 1]) + x[:, 3] ** 2 / (1 + x[:, 4]) + rng.normal(0, 0.2, rows)
    small(draws=1, tune=0).fit(x, y)  # compiled before the clock runs
    began = time.monotonic()
    model = BayesianSymbolicRegressor(timeout=timeout, random_state=0).fit(
        x, y, checkpoint=tmp_path / "run.checkpoint"
    )
    assert time.monotonic() - began < 1.05 * timeout + 2.0
    assert len(model.formulas_) >= 1
    assert np.isfinite(model.predict(x[:10])).all()


def test_every_stage_is_one_that_is_there():
    assert all(inspect.isfunction(getattr(owner, name)) for owner, name in STAGES.values())


@pytest.mark.parametrize(("first_rows", "expected"), [(None, False), (20, True)])
def test_what_a_table_needs_is_compiled_before_its_time_begins(monkeypatch, first_rows, expected):
    """Judging on all rows what has passed on a part of them is compiled only where it is needed."""
    plain, asked = run.units.load, []

    def load(*arguments):
        asked.append(arguments)
        return plain(*arguments)

    monkeypatch.setattr(run.units, "load", load)
    sampler = TemperedSampler(temperatures=2, search=False, first_rows=first_rows)
    small(sampler=sampler, tune=5, draws=5).fit(X, NOISY)
    assert asked[0] == ("tempered", expected)
