"""What a running fit tells a program: when, what, and that it changes nothing."""

import signal
from functools import partial
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from symbayes import DataWarning, Formula, PaperSampler, Progress, SamplingWarning
from symbayes.fitting.model import Fitter
from symbayes.posterior.table import FormulaWriter
from symbayes.samplers.run.context import Look, Status
from symbayes.show import display, progress
from symbayes.show.progress import Reporter

from ..fits import EXACT, NOISY, X, assert_same, small
from ..problems import problem, table, tree

NAMES = ["[red]", "a b"]


@pytest.fixture
def no_rest(monkeypatch):
    """A glance may take all the time it wants."""
    monkeypatch.setattr(progress, "_LEAST_REST", 0.0)


@pytest.fixture
def at_every_round(monkeypatch, no_rest):
    monkeypatch.setattr(progress, "SECONDS_PER_REPORT", 0.0)
    monkeypatch.setattr(display, "_SECONDS_PER_LINE", 0.0)


@pytest.fixture(scope="module")
def told():
    """A fit that told of every round, and what it told."""
    seen = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(progress, "SECONDS_PER_REPORT", 0.0)
        patch.setattr(progress, "_LEAST_REST", 0.0)
        rows = pd.DataFrame(X, columns=NAMES)
        # A column that never varies is left out of the fit, and positions move.
        rows.insert(0, "constant", 1.0)
        model = small(tune=300, draws=200, chains=2, progress=seen.append)
        with pytest.warns(DataWarning, match="constant"):
            model.fit(rows, 100.0 * NOISY)
    return model, seen, rows


def test_phases_follow_each_other_and_advance(told):
    _, seen, _ = told
    phases = [one.phase for one in seen]
    assert list(dict.fromkeys(phases)) == ["search", "settling", "drawing"]
    for phase in set(phases):
        done = [one.done for one in seen if one.phase == phase]
        assert len(done) > 2
        assert done == sorted(done)
        assert done[0] < done[-1] <= {one.total for one in seen if one.phase == phase}.pop()
    assert all(np.diff([one.seconds for one in seen]) >= 0)


def test_proposals_are_those_of_the_record(told):
    model, seen, _ = told
    proposals = [one.proposals for one in seen]
    assert proposals == sorted(proposals)
    assert proposals[0] < proposals[-1] == model.diagnostics_["proposals"]


def test_the_formula_is_one_with_its_error_and_size(told):
    _, seen, rows = told
    for one in seen:
        formula = Formula(one.formula, list(rows.columns))
        error = np.sqrt(np.mean((formula.predict(rows) - 100.0 * NOISY) ** 2))
        assert one.rmse == pytest.approx(error, rel=1e-3)
        assert one.n_nodes == formula.n_nodes
    assert "`[red]`" in seen[-1].formula


def test_swaps_are_told_while_there_are_some(told):
    model, seen, _ = told
    assert {one.swap_rate for one in seen if one.phase == "search"} == {None}
    rates = np.mean(model.diagnostics_["swap_rates"])
    assert seen[-1].swap_rate == pytest.approx(rates)


def test_time_left(told):
    _, seen, _ = told
    assert all(one.seconds_left >= 0.0 for one in seen)
    assert [one.seconds_left for one in seen].count(0.0) >= 3
    assert seen[0].seconds_left > 0.0


@pytest.mark.parametrize("sampler", ["tempered", "paper"])
def test_reports_change_nothing(sampler, at_every_round, capsys):
    options = {"sampler": sampler, "chains": 2, "tune": 200, "n_jobs": 2}
    silent = small(**options).fit(X, NOISY)
    seen = []
    assert_same(silent, small(**options, progress=seen.append).fit(X, NOISY))
    assert len(seen) > 3
    assert_same(silent, small(**options, progress=True).fit(X, NOISY))
    assert len(capsys.readouterr().err.splitlines()) > 3


def test_the_paper_tells_its_last_model(at_every_round):
    seen = []
    model = small(
        sampler=PaperSampler(max_trees=3_000), tune=0, draws=10**6, progress=seen.append
    ).fit(X, NOISY)
    assert {one.phase for one in seen} == {"trees"}
    assert (seen[-1].done, seen[-1].total, seen[-1].proposals) == (3_000, 3_000, 3_000)
    assert seen[-1].rmse == pytest.approx(model.history_["rmse"].iloc[-1])
    assert all(one.swap_rate is None for one in seen)


@pytest.mark.parametrize("phase", ["search", "settling", "drawing", "trees"])
def test_something_true_ends_the_run(phase, at_every_round):
    seen = []

    def stop(one):
        seen.append(one)
        return one.phase == phase

    sampler = PaperSampler(max_trees=10**7) if phase == "trees" else "tempered"
    model = small(chains=2, draws=10**6, tune=10**4, sampler=sampler, progress=stop)
    if phase in ("settling", "drawing"):
        model.set_params(tune=200)
    with pytest.warns(SamplingWarning, match="interrupted: .* draws made so far"):
        model.fit(X, NOISY)
    assert model.diagnostics_["interrupted"]
    assert not model.diagnostics_["timed_out"]
    assert "the run was interrupted" in model.diagnostics_["verdict"]
    assert sum(one.phase == phase for one in seen) == 2  # where it said so, and the end
    assert model.predict(X).shape == (60,)


def test_something_true_at_the_end_is_no_interruption():
    model = small(progress=lambda one: one.phase == "drawing").fit(X, NOISY)
    assert [len(chain) for chain in model.diagnostics_["log_likelihood"]] == [50]
    assert not model.diagnostics_["interrupted"]


def test_an_error_ends_the_fit(at_every_round):
    handler = signal.getsignal(signal.SIGINT)

    def fail(one):
        raise RuntimeError("enough")

    model = small(progress=fail)
    with pytest.raises(RuntimeError, match="enough"):
        model.fit(X, NOISY)
    assert not hasattr(model, "formulas_")
    assert signal.getsignal(signal.SIGINT) is handler


def test_exact_formulas_are_told():
    seen = []
    small(tune=500, draws=200, progress=seen.append).fit(X, EXACT)
    assert "x0" in seen[-1].formula
    assert seen[-1].rmse < 1e-12


# The reporter by itself.


class Clock(SimpleNamespace):
    """Stands for a watch."""

    timeout = None
    interrupted = False


ROWS = table(20)
TREES = [tree("*", 0, 1)]


def reporter(receiver, clock, interval=1.0):
    made = problem(ROWS, {"*": 1.0})
    writer = FormulaWriter(Fitter(made, ROWS.y, ROWS.weights, False), ["a", "b"], np.arange(2))
    patient = partial(receiver)
    patient.interval = interval
    return Reporter(patient, writer, clock)


def status(done=1, total=10, phase="drawing", trees=TREES, ended=False):
    return Status(phase, done, total, lambda: Look(trees, 7, 0.5), ended)


def test_reports_come_now_and_then_and_at_the_end(no_rest):
    seen, clock = [], Clock(seconds=0.0)
    report = reporter(seen.append, clock)
    for tenth in range(35):
        clock.seconds = tenth / 10
        report(status(done=tenth))
    assert [one.done for one in seen] == [10, 20, 30]
    report(status(done=35, ended=True))
    report(status(done=1, phase="next"))
    report(status(done=2, phase="next", ended=True))
    assert [one.done for one in seen[3:]] == [35, 2]


def test_a_glance_that_takes_long_is_rare(monkeypatch):
    seen, clock = [], Clock(seconds=0.0)
    ticks = iter(range(1000))  # every glance takes a second
    monkeypatch.setattr(progress.time, "perf_counter", lambda: next(ticks))
    report = reporter(seen.append, clock)
    for second in range(50):
        clock.seconds = float(second)
        report(status(done=second))
    assert [one.done for one in seen] == [1, 21, 41]


def test_nothing_is_looked_at_for_nothing():
    looks = []
    clock = Clock(seconds=0.0)
    report = reporter(lambda one: None, clock)
    report(Status("drawing", 1, 2, lambda: looks.append(1)))
    assert looks == []


def test_the_report_is_as_the_sampler_says():
    seen, clock = [], Clock(seconds=0.0)
    report = reporter(seen.append, clock)
    clock.seconds = 2.0
    report(status(done=4))
    (one,) = seen
    x = ROWS.X[:, 0] * ROWS.X[:, 1]
    slope, intercept = np.polyfit(x, ROWS.y, 1)
    expected = f"{slope:.6g}*a*b {'+' if intercept > 0 else '-'} {abs(intercept):.6g}"
    assert one == Progress(
        phase="drawing", done=4, total=10, seconds=2.0, seconds_left=3.0, proposals=7,
        formula=expected, rmse=pytest.approx(np.std(ROWS.y - slope * x)), n_nodes=7, swap_rate=0.5,
    )  # fmt: skip


def test_time_left_is_that_of_the_phase_and_within_the_limit(no_rest):
    seen, clock = [], Clock(seconds=0.0)
    report = reporter(seen.append, clock, interval=0.0)
    clock.seconds = 4.0
    report(status(done=10, phase="search", ended=True))
    clock.seconds = 6.0
    report(status(done=0))
    report(status(done=1))
    clock.seconds = 8.0
    report(status(done=8))
    clock.timeout = 8.5
    report(status(done=8))
    clock.seconds = 9.0
    report(status(done=8))
    left = [one.seconds_left for one in seen]
    assert left == [0.0, None, 2.0 * 9, pytest.approx(4.0 * 2 / 8), 0.5, 0.0]
    # With a limit, as many draws as it allows for.
    assert [one.total for one in seen] == [10, 10, 10, 10, 9, 8]


def test_a_constant_and_a_state_without_a_fit(no_rest):
    seen, clock = [], Clock(seconds=5.0)
    report = reporter(seen.append, clock, interval=0.0)
    report(status(trees=[]))
    assert float(seen[0].formula) == pytest.approx(ROWS.y.mean(), rel=1e-5)
    assert seen[0].rmse == pytest.approx(ROWS.y.std())
    report(status(trees=[tree("exp", "exp", "exp", "exp", "cube", "lt", 0, a=9.0)]))
    assert seen[1].formula == ""
    assert np.isnan(seen[1].rmse)
    assert seen[1].n_nodes == 0


def test_something_true_is_an_interrupt():
    clock = Clock(seconds=0.0)
    reporter(lambda one: None, clock, interval=0.0)(status())
    assert not clock.interrupted
    reporter(lambda one: 1, clock, interval=0.0)(status())
    assert clock.interrupted
