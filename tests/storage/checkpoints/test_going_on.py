"""A run resumes from any of its checkpoints, to the same end."""

import os
import shutil
import signal

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from symbayes import (
    BayesianSymbolicRegressor,
    ModelFileError,
    SamplingWarning,
    TemperedSampler,
    TreePrior,
    run,
)
from symbayes.inputs import checksums
from symbayes.samplers import tempered
from symbayes.samplers.run.clock import Watch
from symbayes.show import progress
from symbayes.storage import atomic, checkpoint
from symbayes.storage.checkpoint import read_checkpoint

from ...fits import NOISY, X, assert_same, small
from ..killing import digest
from .runs import (
    LT,
    PAPER,
    POSITIVE,
    TEMPERED,
    Stop,
    never_stopped,
    resume,
    stopped,
    stopping,
)

# From every phase.


def test_all_phases(every_point):
    whole, points = every_point(small(**TEMPERED | LT | {"tune": 900, "draws": 100}), X, POSITIVE)
    assert points.keys() == {
        "start", "search", "search on other targets", "settling", "drawing", "end",
    }  # fmt: skip
    for copies in points.values():
        resumed = resume(copies[-1], X, POSITIVE)
        assert digest(resumed) == digest(whole)
        assert_same(resumed, whole)
        assert resumed.diagnostics_["proposals"] == whole.diagnostics_["proposals"]
        assert [text for _, text in resumed.diagnostics_["found"]] == [
            text for _, text in whole.diagnostics_["found"]
        ]


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        TEMPERED | LT,
        TEMPERED | LT | {"sampler": TemperedSampler(temperatures=3, search=False, first_rows=20)},
        TEMPERED | {"initial_formulas": ["x0**2"], "known_terms": ["x0*x1"], "operators": "all"},
        PAPER,
        PAPER | {"initial_formulas": ["x0**2 + x1"]},
    ],
    ids=["search", "two stages", "guesses", "paper", "paper, guesses"],
)
def test_every_single_checkpoint(every_point, options):
    whole, points = every_point(small(**options), X, POSITIVE)
    for copies in points.values():
        for copy in copies:
            assert digest(resume(copy, X, POSITIVE)) == digest(whole), copy.name


@pytest.mark.slow
def test_an_exact_formula(every_point):
    """The search ends with looking for a shorter form, which is done again."""
    y = np.sqrt(X[:, 0] ** 2 + X[:, 1] ** 2 + 3)
    whole, points = every_point(small(**TEMPERED | LT | {"tune": 8000, "chains": 4}), X, y)
    assert whole.diagnostics_["search_agreed"]
    assert whole.result_.run.trace.state.exact
    for copies in points.values():
        for copy in copies[::5]:
            assert digest(resume(copy, X, y)) == digest(whole), copy.name


def test_the_sampler_of_the_paper(every_point):
    whole, points = every_point(small(**PAPER), X, NOISY)
    for copies in points.values():
        resumed = resume(copies[-1], X, NOISY)
        assert digest(resumed) == digest(whole)
        pd.testing.assert_frame_equal(resumed.history_, whole.history_)


def test_warm_up_that_is_gone_through_again(every_point, monkeypatch):
    """A restart, and the settling after it, are parts of a run like all others."""
    monkeypatch.setattr(tempered, "_FAR_BEHIND", 0.0)
    monkeypatch.setattr(tempered, "_DRAWS_PER_LOOK", 32)
    monkeypatch.setattr(tempered, "settled", lambda *_: False)
    sampler = TemperedSampler(temperatures=3, steps_per_draw=10, search=False)
    options = {"sampler": sampler, "tune": 300, "draws": 130}
    whole, points = every_point(small(**TEMPERED | options), X, NOISY)
    assert whole.diagnostics_["restarts"] == 3
    for copy in [*points["settling"][::7], *points["drawing"][::5]]:
        resumed = resume(copy, X, NOISY)
        assert digest(resumed) == digest(whole)
        assert resumed.diagnostics_["restarts"] == 3


def test_thinned_draws(every_point, monkeypatch):
    monkeypatch.setattr(tempered, "_most_kept", lambda n: 16)
    whole, points = every_point(small(**TEMPERED | {"tune": 0}), X, NOISY)
    assert whole.diagnostics_["thinning"] > 1
    for copy in points["drawing"]:
        assert digest(resume(copy, X, NOISY)) == digest(whole)


def test_checkpoints_leave_the_run_as_it_is(always, path):
    assert digest(small(**TEMPERED).fit(X, NOISY, checkpoint=path)) == digest(never_stopped())


def test_a_run_that_stops_again_and_again(always, path):
    whole = never_stopped()
    stopped(path, "search", 300)
    for phase, done in (("search", 700), ("settling", 50), ("drawing", 60), ("drawing", 150)):
        with pytest.raises(Stop):
            resume(path, X, NOISY, progress=stopping(phase, done))
    assert digest(resume(path, X, NOISY)) == digest(whole)


def test_a_search_after_its_first_starts(always, path):
    """From then on the ladders that had begun without limits have them."""
    options = {"chains": 2, "tune": 2_000, "draws": 20}
    whole = small(**TEMPERED | options).fit(X, NOISY)
    stopped(path, "search", 1_700, **options)
    assert digest(resume(path, X, NOISY)) == digest(whole)


@pytest.mark.parametrize("before", [1, 2])
def test_other_numbers_of_jobs(always, path, before):
    stopped(path, done=60, n_jobs=before)
    resumed = resume(path, X, NOISY, n_jobs=3 - before)
    assert resumed.n_jobs == 3 - before
    assert digest(resumed) == digest(never_stopped())


@pytest.mark.slow
def test_processes_before_and_threads_after(always, path):
    with joblib.parallel_config(backend="loky"):
        stopped(path, done=60, n_jobs=2)
    assert digest(resume(path, X, NOISY)) == digest(never_stopped())
    shutil.move(path, path.with_suffix(".other"))
    os.remove(atomic.previous_of(str(path)))
    stopped(path, "search", 200)
    with joblib.parallel_config(backend="loky"):
        resumed = resume(path, X, NOISY, n_jobs=2)
    assert digest(resumed) == digest(never_stopped())


def test_more_draws_after_a_run_that_was_resumed(always, path):
    """What warm_start needs is in the checkpoint."""
    first = small(**TEMPERED | {"draws": 100}).fit(X, NOISY, checkpoint=path)
    whole = first.set_params(draws=300).fit(X, NOISY)
    later = resume(path, X, NOISY).set_params(draws=300).fit(X, NOISY)
    assert digest(later) == digest(whole)


def test_a_warm_start_has_checkpoints_too(every_point):
    model = small(**TEMPERED | {"draws": 100}).fit(X, NOISY)
    whole, points = every_point(model.set_params(draws=300), X, NOISY)
    assert points.keys() == {"drawing", "end"}
    for copy in points["drawing"]:
        assert digest(resume(copy, X, NOISY)) == digest(whole)


def test_a_finished_run_is_there_at_once(path, monkeypatch):
    model = small(**TEMPERED).fit(X, NOISY, checkpoint=path)
    monkeypatch.setattr(run, "sample", lambda *_, **__: pytest.fail("at once"))
    content = path.read_bytes()
    resumed = resume(path, X, NOISY)
    assert_same(resumed, model)
    assert repr(dict(resumed.diagnostics_)) == repr(dict(model.diagnostics_))
    assert path.read_bytes() == content


# What belongs to a run.


def test_parameters_and_seed_are_those_of_the_run(path):
    rng = np.random.RandomState(5)
    options = {
        "tree_prior": TreePrior(max_nodes=20), "operators": ("+", "sin"), "random_state": rng,
        "feature_weights": {"b": 2.0}, "progress": lambda status: None,
    }  # fmt: skip
    table = pd.DataFrame(X, columns=["a", "b"])
    model = small(**TEMPERED | options).fit(table, NOISY, checkpoint=path)
    resumed = resume(path, table, NOISY)
    assert digest(resumed) == digest(model)
    assert list(resumed.feature_names_in_) == ["a", "b"]
    expected = model.get_params() | {"random_state": None, "progress": False}
    assert repr(resumed.get_params()) == repr(expected)


def changed_value():
    table = X.copy()
    table[17, 1] = np.nextafter(table[17, 1], 2)
    return table, NOISY, None


def swapped_rows():
    order = np.r_[1, 0, 2:60]
    return X[order], NOISY[order], None


@pytest.mark.parametrize(
    ("table", "what"),
    [
        (changed_value, r"\(other values of X\)"),
        (swapped_rows, r"\(other values of X, values of y\)"),
        (lambda: (X, NOISY[::-1], None), r"\(other values of y\)"),
        (lambda: (X[:-1], NOISY[:-1], None), r"\(other number of rows, "),
        (
            lambda: (np.c_[X, X[:, 0] ** 3], NOISY, None),
            r"\(other number of columns, names of columns",
        ),
        (lambda: (pd.DataFrame(X, columns=["a", "b"]), NOISY, None), r"\(other names of columns\)"),
        (lambda: (X, NOISY, np.r_[2.0, np.ones(59)]), r"\(other row weights\)"),
    ],
    ids=["value", "rows", "y", "fewer", "column", "names", "weights"],
)
def test_another_table_is_refused(path, table, what):
    stopped(path, "settling")
    content = path.read_bytes()
    rows, y, weights = table()
    with pytest.raises(ValueError, match=f"is of a run on another table {what}.*; resume it with"):
        resume(path, rows, y, weights)
    assert path.read_bytes() == content


def test_the_same_table_in_another_form(path):
    weights = np.tile([1.0, 2.0], 30)
    model = small(**TEMPERED).fit(np.asfortranarray(X), NOISY.tolist(), weights, checkpoint=path)
    assert_same(resume(path, X.tolist(), pd.Series(NOISY), weights.astype(int)), model)


def test_a_checkpoint_does_not_hold_the_table(path):
    rng = np.random.default_rng(1)
    table = rng.uniform(-1, 1, (20_000, 4))
    with pytest.raises(Stop):
        small(tune=0, progress=stopping("drawing")).fit(table, table[:, 0] ** 2, checkpoint=path)
    assert path.stat().st_size < 100_000


def test_a_checksum_takes_no_copy(monkeypatch):
    """It goes through a table in parts, whatever its order in memory."""
    table = np.random.default_rng(0).normal(size=(1000, 20))
    largest = []
    real = np.ascontiguousarray

    def watched(part):
        largest.append(part.nbytes)
        return real(part)

    monkeypatch.setattr(checksums, "_BYTES_AT_ONCE", 4000)
    monkeypatch.setattr(checksums.np, "ascontiguousarray", watched)
    expected = checksums.checksum([table])
    assert max(largest) <= 4000
    assert sum(largest) == table.nbytes
    assert checksums.checksum([np.asfortranarray(table)]) == expected
    assert checksums.checksum([table.T]) != expected
    assert checksums.checksum([table[::-1]]) != expected


def test_another_version(path, monkeypatch):
    stopped(path, "settling")
    monkeypatch.setattr(checkpoint, "__version__", "9.9")
    with pytest.raises(
        ModelFileError, match=r"written by symbayes 0\..*, and this is 9\.9, .*resume it with that"
    ):
        resume(path, X, NOISY)


def test_it_is_no_parameter(path):
    """Estimators are cloned, and several fits would write to one file."""
    assert "checkpoint" not in small().get_params()
    model = small().fit(X, NOISY, checkpoint=path)
    clone(model).fit(X, NOISY)


def test_a_note_says_where_a_run_comes_from(path):
    note = {"by": "night shift", "tables": ["a", 2]}
    small().fit(X, NOISY, checkpoint=path, note=note)
    assert read_checkpoint(path, BayesianSymbolicRegressor).origin == note
    resume(path, X, NOISY)
    assert read_checkpoint(path, BayesianSymbolicRegressor).origin == note


@pytest.mark.parametrize("note", ["a", {1: "a"}, {"a": {1}}, {"a": float("nan")}], ids=repr)
def test_a_note_that_is_no_json(path, note):
    with pytest.raises(TypeError, match="note must be a dict of what JSON can hold"):
        small().fit(X, NOISY, checkpoint=path, note=note)
    assert not os.path.exists(path)
    with pytest.raises(ValueError, match="there are none: give checkpoint"):
        small().fit(X, NOISY, note={"by": "night shift"})


# The end of a run.


@pytest.fixture
def told(monkeypatch):
    """Progress is told after every round."""
    monkeypatch.setattr(progress, "SECONDS_PER_REPORT", 0.0)
    monkeypatch.setattr(progress, "_LEAST_REST", 0.0)


def test_ctrl_c_leaves_a_checkpoint(path, monkeypatch, told):
    """The draws so far are the model's; the run resumes where it was, not where it was cut off."""
    whole = never_stopped()
    for phase in ("search", "settling", "drawing"):
        one = path.with_suffix(f".{phase}")

        pressed = []

        def interrupt(status, phase=phase, pressed=pressed):
            if status.phase == phase and not pressed:
                pressed.append(True)
                signal.raise_signal(signal.SIGINT)

        monkeypatch.setattr(Watch, "_last_interrupt", -np.inf)
        advice = r"BayesianSymbolicRegressor\.resume\('.*', X, y\) continues from its checkpoint"
        with pytest.warns(SamplingWarning, match=f"interrupted: the model is fitted.*; {advice}"):
            model = small(**TEMPERED, progress=interrupt).fit(X, NOISY, checkpoint=one)
        assert model.diagnostics_["interrupted"]
        assert len(model.diagnostics_["log_likelihood"][0]) < 200
        document = checkpoint.read_archive(one, "checkpoint", 1)[0]["point"]
        assert (document["search"] is not None) == (phase == "search")
        assert digest(resume(one, X, NOISY)) == digest(whole)


def test_a_function_that_ends_a_run_leaves_a_checkpoint(path, told):
    with pytest.warns(SamplingWarning, match="interrupted"):
        small(**TEMPERED, progress=lambda status: status.phase == "drawing").fit(
            X, NOISY, checkpoint=path
        )
    assert digest(resume(path, X, NOISY)) == digest(never_stopped())


def test_time_that_was_left(always, path):
    """A run with a time limit has what was left of it, and knows how long it took in all."""
    stopped(path, "drawing", timeout=1000.0)
    document, arrays = checkpoint.read_archive(path, "checkpoint", 1)
    checkpoint.write_archive(path, "checkpoint", 1, document | {"seconds": 999.0}, arrays)
    resumed = resume(path, X, NOISY)
    assert resumed.diagnostics_["timed_out"]
    assert resumed.diagnostics_["seconds"] > 999


def test_how_often(path, monkeypatch):
    """Every minute, and less often where writing takes long."""
    now = 0.0
    monkeypatch.setattr(checkpoint.time, "monotonic", lambda: now)
    written = []

    def write(*_, **__):
        nonlocal now
        written.append(now)
        now += 5.0

    monkeypatch.setattr(checkpoint, "write_archive", write)
    kept = checkpoint.CheckpointWriter("nowhere", {}, {})
    watch = Watch(None, started=0.0)
    for _ in range(1000):
        now += 1.0
        kept.save(watch, checkpoint.RunState)
    assert written == [60.0, 315.0, 570.0, 825.0]
