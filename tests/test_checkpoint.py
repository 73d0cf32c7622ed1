"""Checkpoints: a run goes on from any of them, and nothing that happens to a file is a surprise."""

import errno
import os
import shutil
import signal
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from symbayes import (
    BayesianSymbolicRegressor,
    ModelFileError,
    PaperSampler,
    SamplingWarning,
    TemperedSampler,
    TreePrior,
    checkpoint,
    checksums,
    display,
    whole_file,
)
from symbayes.samplers import tempered
from symbayes.samplers.running import Watch

from .fits import NOISY, X, assert_same, small
from .fuzzing import fuzz
from .killing import digest

resume = BayesianSymbolicRegressor.resume
TEMPERED = {
    "chains": 2, "tune": 1000, "draws": 200, "n_jobs": 1, "warm_start": True,
    "sampler": TemperedSampler(temperatures=3, steps_per_draw=20),
}  # fmt: skip
PAPER = {"sampler": "paper", "chains": 2, "n_jobs": 1, "warm_start": True, "n_terms": 2}
POSITIVE = np.exp(X[:, 0]) + NOISY**2


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.checkpoint"


@pytest.fixture
def always(monkeypatch):
    """A checkpoint after every round."""
    monkeypatch.setattr(checkpoint, "SECONDS_BETWEEN", 0.0)
    monkeypatch.setattr(checkpoint, "_MOST_OF_THE_TIME", 1e9)


@pytest.fixture
def every_point(always, monkeypatch, tmp_path):
    """All checkpoints of a run, each in a file of its own, by phase."""
    kept = {}
    real = checkpoint.Checkpoints.write

    def write(self, point, seconds):
        real(self, point, seconds)
        if point.finished:
            phase = "end"
        elif point.search is not None:
            phase = "search on other targets" if point.search.others else "search"
        elif point.trace is None:
            phase = "start"
        else:
            phase = "drawing" if point.settling is None else "settling"
        copies = kept.setdefault(phase, [])
        copies.append(tmp_path / f"{phase} {len(copies)}")
        shutil.copy(self.path, copies[-1])

    def fit(model, *data):
        with monkeypatch.context() as patch:
            patch.setattr(checkpoint.Checkpoints, "write", write)
            return model.fit(*data, checkpoint=tmp_path / "run"), kept

    return fit


class Stop(Exception):
    """Ends a run in the middle, as an error elsewhere would."""


def stopping(phase, done=0):
    """A progress function that ends a run with an error once a phase has come so far."""

    def progress(status):
        if status.phase == phase and status.done >= done:
            raise Stop

    return progress


def stopped(path, phase="drawing", done=0, **options):
    """Leave the checkpoint of a run that did not come to its end."""
    with pytest.raises(Stop):
        small(**(TEMPERED | options), progress=stopping(phase, done)).fit(X, NOISY, checkpoint=path)


# From every phase.


def test_all_phases(every_point):
    whole, points = every_point(small(**TEMPERED), X, POSITIVE)
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
        TEMPERED,
        TEMPERED | {"sampler": TemperedSampler(temperatures=3, search=False, first_rows=20)},
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
    whole, points = every_point(small(**TEMPERED | {"tune": 8000, "chains": 4}), X, y)
    assert whole.diagnostics_["search_agreed"]
    assert whole._earlier.trace.pause.exact
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
    assert digest(small(**TEMPERED).fit(X, NOISY, checkpoint=path)) == digest(
        small(**TEMPERED).fit(X, NOISY)
    )


def test_a_run_that_stops_again_and_again(always, path):
    whole = small(**TEMPERED).fit(X, NOISY)
    stopped(path, "search", 300)
    for phase, done in (("search", 700), ("settling", 50), ("drawing", 60), ("drawing", 150)):
        with pytest.raises(Stop):
            resume(path, X, NOISY, progress=stopping(phase, done))
    assert digest(resume(path, X, NOISY)) == digest(whole)


@pytest.mark.parametrize("before", [1, 2])
def test_other_numbers_of_jobs(always, path, before):
    stopped(path, done=60, n_jobs=before)
    resumed = resume(path, X, NOISY, n_jobs=3 - before)
    assert resumed.n_jobs == 3 - before
    assert digest(resumed) == digest(small(**TEMPERED).fit(X, NOISY))


@pytest.mark.slow
def test_processes_before_and_threads_after(always, path):
    with joblib.parallel_config(backend="loky"):
        stopped(path, done=60, n_jobs=2)
    assert digest(resume(path, X, NOISY)) == digest(small(**TEMPERED).fit(X, NOISY))
    shutil.move(path, path.with_suffix(".other"))
    os.remove(whole_file.previous_of(str(path)))
    stopped(path, "search", 200)
    with joblib.parallel_config(backend="loky"):
        resumed = resume(path, X, NOISY, n_jobs=2)
    assert digest(resumed) == digest(small(**TEMPERED).fit(X, NOISY))


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
    monkeypatch.setattr(TemperedSampler, "sample", lambda *_, **__: pytest.fail("at once"))
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


# When a file is there already.


def test_no_other_run_is_lost(path):
    stopped(path, "settling")
    before = path.read_bytes()
    message = r"exists, and may be the checkpoint of another run; go on with that one by Bayesian"
    with pytest.raises(FileExistsError, match=message):
        small().fit(X, NOISY, checkpoint=path)
    assert path.read_bytes() == before
    os.replace(path, whole_file.previous_of(str(path)))
    with pytest.raises(FileExistsError, match=message):
        small().fit(X, NOISY, checkpoint=path)
    assert Path(whole_file.previous_of(str(path))).read_bytes() == before


@pytest.mark.parametrize("wrong", [3, b"x", True])
def test_a_path_that_is_none(wrong):
    with pytest.raises(TypeError, match=r"checkpoint must be a str or a pathlib\.Path, not "):
        small().fit(X, NOISY, checkpoint=wrong)
    with pytest.raises(TypeError, match=r"path must be a str or a pathlib\.Path, not "):
        resume(wrong, X, NOISY)


def test_nothing_is_there(path):
    with pytest.raises(FileNotFoundError):
        resume(path, X, NOISY)


# Where nothing can be written.


@pytest.fixture
def no_work(monkeypatch):
    monkeypatch.setattr(TemperedSampler, "sample", lambda *_, **__: pytest.fail("no work yet"))


def test_no_folder(no_work, tmp_path):
    with pytest.raises(OSError, match=r"no file can be made in this folder .*; create it first"):
        small().fit(X, NOISY, checkpoint=tmp_path / "none" / "run")


def test_a_folder_for_a_file(no_work, tmp_path):
    with pytest.raises(IsADirectoryError, match="this is a folder; add the name of a file"):
        small().fit(X, NOISY, checkpoint=tmp_path)


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() == 0, reason="this user may write everywhere"
)
def test_a_folder_that_cannot_be_written_to(no_work, tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(OSError, match=r"no file can be made in this folder \(Permission denied\)"):
        small().fit(X, NOISY, checkpoint=tmp_path / "run")


def refusing(real, number, after):
    """A function that fails with an error of the system from its so manieth call on."""
    calls = 0

    def call(*arguments, **options):
        nonlocal calls
        calls += 1
        if after < calls:
            raise OSError(number, os.strerror(number))
        return real(*arguments, **options)

    return call


@pytest.mark.parametrize(
    ("where", "number"),
    [("fsync", errno.ENOSPC), ("open", errno.EROFS), ("replace", errno.EACCES)],
)
def test_a_disk_that_fills_up(always, path, monkeypatch, where, number):
    """One warning; the run comes to its end, and the last checkpoint stays."""
    owner = whole_file if where == "open" else whole_file.os
    real = open if where == "open" else getattr(os, where)
    # At the third checkpoint: the second has two files to rename.
    after = 3 if where == "replace" else 2
    with monkeypatch.context() as patch:
        patch.setattr(owner, where, refusing(real, number, after), raising=False)
        message = rf"run\.checkpoint' could not be written \(.*{os.strerror(number)}.*the run goes"
        with pytest.warns(SamplingWarning, match=message) as warned:
            whole = small(**TEMPERED).fit(X, NOISY, checkpoint=path)
    assert len(warned) == 1
    names = {path.name, f"{path.name}.previous"}
    assert {one.name for one in path.parent.iterdir()} <= names
    assert digest(resume(path, X, NOISY)) == digest(whole)


def test_a_disk_that_has_room_again(always, path, monkeypatch):
    full = True

    def fsync(file):
        if full and path.exists():
            raise OSError(errno.ENOSPC, "No space left on device")

    def progress(status):
        nonlocal full
        full = status.phase != "drawing"

    monkeypatch.setattr(whole_file.os, "fsync", fsync)
    with pytest.warns(SamplingWarning, match="No space left on device"):
        small(**TEMPERED, progress=progress).fit(X, NOISY, checkpoint=path)
    monkeypatch.setattr(TemperedSampler, "sample", lambda *_, **__: pytest.fail("it is finished"))
    resume(path, X, NOISY)


# Files that are damaged.


def test_a_truncated_checkpoint(always, path):
    whole = small(**TEMPERED).fit(X, NOISY)
    stopped(path, done=60)
    path.write_bytes(path.read_bytes()[:-100])
    message = r"is damaged: .*\. The run goes on from the checkpoint before it, '.*\.previous'"
    with pytest.warns(SamplingWarning, match=message):
        resumed = resume(path, X, NOISY)
    assert digest(resumed) == digest(whole)
    assert digest(resume(path, X, NOISY)) == digest(whole)


def test_a_damaged_one_never_replaces_a_good_one(always, path, monkeypatch):
    stopped(path, done=60)
    previous = Path(whole_file.previous_of(str(path)))
    good = previous.read_bytes()
    path.write_bytes(b"")
    real = checkpoint.Checkpoints.write

    def write(*arguments):
        real(*arguments)
        raise Stop

    monkeypatch.setattr(checkpoint.Checkpoints, "write", write)
    with pytest.warns(SamplingWarning, match="is empty.*goes on from"), pytest.raises(Stop):
        resume(path, X, NOISY)
    assert previous.read_bytes() == good
    assert path.stat().st_size > len(good) / 2


def test_no_checkpoint_but_the_one_before(always, path):
    """A kill between two renamings."""
    whole = small(**TEMPERED).fit(X, NOISY)
    stopped(path, done=60)
    path.unlink()
    with pytest.warns(SamplingWarning, match=r"checkpoint' does not exist\. The run goes on"):
        assert digest(resume(path, X, NOISY)) == digest(whole)


def test_both_are_damaged(always, path):
    stopped(path, done=60)
    for one in (path, Path(whole_file.previous_of(str(path)))):
        one.write_bytes(one.read_bytes()[:500])
    message = r"is damaged.*; the one before it, .*, cannot be read either"
    with pytest.raises(ModelFileError, match=message):
        resume(path, X, NOISY)


def test_a_model_is_no_checkpoint(path):
    small().fit(X, NOISY).save(path)
    with pytest.raises(ModelFileError, match="holds 'model', not 'checkpoint'"):
        resume(path, X, NOISY)


class Begun(Exception):
    """Sampling has begun, from the point that comes with this."""


@pytest.fixture
def load(monkeypatch):
    """Resume, up to where sampling begins."""

    def sample(self, *_, before, **__):
        raise Begun(before)

    for sampler in (TemperedSampler, PaperSampler):
        monkeypatch.setattr(sampler, "sample", sample)

    def load(path):
        try:
            model = resume(path, X, NOISY)
        except Begun as begun:
            return begun.args[0]
        except ModelFileError:
            raise
        except (TypeError, ValueError) as error:  # a forged checksum of the table, or parameter
            raise ModelFileError(f"{str(path)!r} {error}") from error
        return checkpoint.Point(model._earlier.trace, finished=True)

    return load


MUTATED = {"search": TEMPERED, "drawing": TEMPERED, "trees": PAPER}


@pytest.mark.parametrize("phase", MUTATED)
def test_mutations(always, path, tmp_path, phase, request):
    """Bit flips and worse: an error that says so, or the very same checkpoint."""
    with pytest.raises(Stop):
        small(**MUTATED[phase], progress=stopping(phase, 100)).fit(X, NOISY, checkpoint=path)
    load = request.getfixturevalue("load")
    expected = stored(load(path))
    ends = fuzz(load, lambda point: stored(point) == expected, path.read_bytes(), 200, 4, tmp_path)
    assert sum(n for (_, end), n in ends.items() if end == "refused") > 100


def stored(point):
    document, arrays = checkpoint.to_parts(point)
    return document, {name: array.tobytes() for name, array in arrays.items()}


# The end of a run.


@pytest.fixture
def told(monkeypatch):
    """Progress is told after every round."""
    monkeypatch.setattr(display, "SECONDS_A_REPORT", 0.0)


def test_ctrl_c_leaves_a_checkpoint(path, monkeypatch, told):
    """The draws so far are the model's; the run goes on where it was, not where it was cut off."""
    whole = small(**TEMPERED).fit(X, NOISY)
    for phase in ("search", "settling", "drawing"):
        one = path.with_suffix(f".{phase}")

        pressed = []

        def interrupt(status, phase=phase, pressed=pressed):
            if status.phase == phase and not pressed:
                pressed.append(True)
                signal.raise_signal(signal.SIGINT)

        monkeypatch.setattr(Watch, "_last_interrupt", -np.inf)
        advice = r"BayesianSymbolicRegressor\.resume\('.*', X, y\) goes on from its checkpoint"
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
    assert digest(resume(path, X, NOISY)) == digest(small(**TEMPERED).fit(X, NOISY))


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
    kept = checkpoint.Checkpoints("nowhere", {}, {})
    watch = Watch(None, started=0.0)
    for _ in range(1000):
        now += 1.0
        kept.save(watch, checkpoint.Point)
    assert written == [60.0, 315.0, 570.0, 825.0]
