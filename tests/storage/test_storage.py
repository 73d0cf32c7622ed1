"""A model that was saved and loaded is the same, to the last bit."""

import hashlib
import os
import pickle
import subprocess
import sys
import zipfile
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import symbayes
from symbayes import ModelFileError, SamplingWarning, TermsPrior, run
from symbayes.posterior import posterior
from symbayes.storage import model_file
from symbayes.storage.archive import write_archive

from ..fits import EXACT, NOISY, X, assert_same, reloaded, small, with_result
from ..inputs.test_extreme_data import EXTREME
from .saving import answers, contents

HOSTILE = ["<script>", "a b", "x^2", "sin", "λ", "$x_1$", ""]
WIDE = np.random.default_rng(11).uniform(-2, 2, (60, len(HOSTILE)))
FRAME = pd.DataFrame(WIDE, columns=HOSTILE)
TARGET = WIDE[:, 0] * WIDE[:, 3] + np.sin(WIDE[:, 6]) + 0.1 * WIDE[:, 4] + NOISY / 30
WEIGHTS = np.random.default_rng(12).uniform(0, 3, 60).round()
FITS = {
    "tempered": lambda: small(chains=2).fit(X, NOISY),
    "paper": lambda: small(sampler="paper", chains=2, n_terms=3).fit(X, NOISY),
    "exact": lambda: small().fit(X, EXACT),
    "many terms": lambda: small(n_terms=7, draws=100).fit(X, NOISY),
    "known terms": lambda: small(known_terms=["sin(2*x0)"], draws=100).fit(X, NOISY),
    "weights": lambda: small(draws=100).fit(X, NOISY, WEIGHTS),
    "names": lambda: small(draws=100).fit(FRAME, TARGET),
    "nothing found": lambda: small(n_terms=TermsPrior(1, 1e-9)).fit(X, WIDE[:, 5]),
    "another rule": lambda: small(model_selection="accuracy", draws=100).fit(X, NOISY),
}


@pytest.fixture(scope="module", params=FITS)
def model(request):
    return FITS[request.param]()


@pytest.fixture(scope="module")
def fitted():
    return FITS["tempered"]()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.symbayes"


def table_for(model):
    return FRAME if hasattr(model, "feature_names_in_") else X


# The round trip.


def test_everything_comes_back(model, path):
    loaded = reloaded(model, path)
    assert vars(loaded).keys() == vars(model).keys()
    assert contents(loaded) == contents(model)
    assert repr(loaded.get_params()) == repr(model.get_params())
    assert loaded.formula_objects_ == model.formula_objects_
    assert loaded.pareto_objects_ == model.pareto_objects_
    assert loaded.best_formula_ == model.best_formula_
    own = [*loaded.formula_objects_, *loaded.pareto_objects_]
    assert any(loaded.best_formula_ is one for one in own)


def test_answers_are_the_same_to_the_last_bit(model, path):
    loaded, table = reloaded(model, path), table_for(model)
    assert answers(loaded, table) == answers(model, table)


def test_a_loaded_model_gives_the_same_file(model, path):
    loaded = reloaded(model, path)
    data = path.read_bytes()
    loaded.save(path)
    assert path.read_bytes() == data


def test_pickle_and_joblib_of_a_loaded_model(model, path):
    loaded = reloaded(model, path)
    assert contents(pickle.loads(pickle.dumps(loaded))) == contents(model)
    joblib.dump(loaded, path)
    assert contents(joblib.load(path)) == contents(model)


def test_a_model_that_joblib_left_on_disk(model, path):
    joblib.dump(model, path.with_name("dumped"))
    mapped = joblib.load(path.with_name("dumped"), mmap_mode="r")
    assert isinstance(mapped.result_.rows.X, np.memmap)
    assert contents(reloaded(mapped, path)) == contents(model)


@pytest.mark.parametrize("n", [1, 2, 3, 8, 17, 1025, 5000])
def test_tables_of_any_length(fitted, path, n):
    """Linear algebra may sum in another order for another shape or alignment."""
    loaded = reloaded(fitted, path)
    table = np.random.default_rng(n).uniform(-2, 2, (n, 2))
    for one, two in zip(fitted.predict(table, True), loaded.predict(table, True), strict=True):
        np.testing.assert_array_equal(one, two)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:some formulas have no finite value")
@pytest.mark.filterwarnings("ignore:formulas disagree wildly")
@pytest.mark.parametrize("n_terms", [1, 2, 3, 4, 5, 8, 12])
@pytest.mark.parametrize("sampler", ["tempered", "paper"])
def test_any_number_of_terms(sampler, n_terms, path):
    fresh = small(sampler=sampler, n_terms=n_terms, draws=200, operators="all").fit(X, NOISY)
    loaded = reloaded(fresh, path)
    assert contents(loaded) == contents(fresh)
    assert answers(loaded, X[:9]) == answers(fresh, X[:9])
    for n in (1, 2, 3, 5, 8, 33, 3000):
        table = np.random.default_rng(n).uniform(-2, 2, (n, 2))
        for one, two in zip(fresh.predict(table, True), loaded.predict(table, True), strict=True):
            np.testing.assert_array_equal(one, two)


@pytest.mark.slow
@pytest.mark.parametrize("sampler", ["tempered", "paper"])
@pytest.mark.parametrize("case", EXTREME)
def test_extreme_data(case, sampler, path):
    table, y = EXTREME[case]
    fresh = small(operators="all", sampler=sampler).fit(table, y)
    assert answers(reloaded(fresh, path), table) == answers(fresh, table)


@pytest.mark.slow
def test_in_another_process(model, path):
    model.save(path)
    table = table_for(model)
    joblib.dump(table, path.with_name("table"))
    command = f"""
import hashlib, joblib, symbayes
from tests.storage.saving import answers
print(hashlib.sha256(repr(answers(symbayes.load({str(path)!r}), joblib.load(
    {str(path.with_name("table"))!r}))).encode()).hexdigest())
"""
    here = subprocess.run(
        [sys.executable, "-c", command],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[2],
    )
    found = hashlib.sha256(repr(answers(model, table)).encode()).hexdigest()
    assert here.stdout.strip() == found


def test_models_thinned_out(path, monkeypatch):
    """Of very many states a sample predicts, with weights of its own."""
    monkeypatch.setattr(posterior, "_MOST_FITS", 20)
    fresh = small(chains=2, n_terms=4).fit(X, NOISY)
    states = fresh.result_.posterior.states
    assert len(fresh.result_.posterior.mixture.models) <= 20 < len(states)
    loaded = reloaded(fresh, path)
    assert contents(loaded) == contents(fresh)
    assert answers(loaded, X) == answers(fresh, X)


def test_some_of_the_rows(path, monkeypatch):
    monkeypatch.setattr(run, "MOST_ROWS_KEPT", 20)
    fresh = small().fit(X, NOISY)
    loaded = reloaded(fresh, path)
    assert loaded.result_.rows.X.shape == (20, 2)
    assert contents(loaded) == contents(fresh)


def test_a_run_cut_short(path):
    with pytest.warns(SamplingWarning, match="interrupted"):
        fresh = small(progress=lambda told: True, draws=1000).fit(X, NOISY)
    loaded = reloaded(fresh, path)
    assert loaded.diagnostics_["interrupted"]
    assert answers(loaded, X) == answers(fresh, X)


def test_what_is_the_same_is_stored_once(fitted, path):
    fitted.save(path)
    with zipfile.ZipFile(path) as file:
        sizes = {info.filename: info.file_size for info in file.infolist()}
    distinct = {tree.tobytes() for state in fitted.result_.posterior.states for tree in state.trees}
    posterior = fitted.result_.posterior
    polished = {
        tree.tobytes()
        for one in (*posterior.groups, *posterior.front)
        for tree in one.model.state.trees
    }
    assert sizes["arrays/trees/length.bin"] == 4 * len(distinct | polished)
    loaded = symbayes.load(path)
    visited = {id(state) for state in loaded.result_.posterior.states}
    models = [model for _, model in loaded.result_.posterior.mixture.models]
    assert {id(model.state) for model in models} <= visited
    shared = {id(model) for model in models} & {
        id(one.model) for one in loaded.result_.posterior.groups
    }
    assert shared
    assert path.stat().st_size < len(pickle.dumps(fitted))


# What is not kept, and what a loaded model can do.


def test_the_path_of_the_papers_sampler_is_not_kept(path):
    fresh = FITS["paper"]()
    loaded = reloaded(fresh, path)
    pd.testing.assert_frame_equal(loaded.history_, fresh.history_, check_exact=True)
    with pytest.raises(AttributeError, match="the accepted models, which files do not keep; fit"):
        loaded.staged_predict(X)
    loaded.fit(X, NOISY)
    first = next(loaded.staged_predict(X))
    np.testing.assert_array_equal(first, next(fresh.staged_predict(X)))


def test_a_loaded_model_can_be_fitted_again(fitted, path):
    loaded = reloaded(fitted, path)
    assert answers(clone(loaded).fit(X, NOISY), X)[0] == answers(fitted, X)[0]
    assert answers(loaded.fit(X, NOISY), X)[0] == answers(fitted, X)[0]


def test_a_model_of_the_paper_fitted_again_with_the_other_sampler(path):
    loaded = reloaded(FITS["paper"](), path).set_params(sampler="tempered", n_terms="auto")
    assert not hasattr(loaded.fit(X, NOISY), "history_")


def test_extrapolation_is_told_again(path):
    fresh = FITS["exact"]()
    with pytest.warns(SamplingWarning, match="outside"):
        fresh.predict([[9.0, 0.0]])
    with pytest.warns(SamplingWarning, match="outside"):
        reloaded(fresh, path).predict([[9.0, 0.0]])


# Names.


def test_hostile_names(path):
    fresh = FITS["names"]()
    loaded = reloaded(fresh, path)
    assert loaded.feature_names_in_.tolist() == HOSTILE
    assert loaded.feature_names_in_.dtype == object
    assert loaded.inclusion_probability().index.tolist() == HOSTILE
    assert loaded.best_formula_.feature_names == tuple(HOSTILE)
    np.testing.assert_array_equal(loaded.predict(FRAME), fresh.predict(FRAME))
    with pytest.raises(ValueError, match="feature names"):
        loaded.predict(FRAME[HOSTILE[::-1]])


def test_names_that_are_hardly_text(path):
    """JSON has half a character, but takes two halves for a whole one."""
    names = ["\ud800", "\0\n\u202e\U0001f600"]
    fresh = with_result(FITS["exact"](), column_names=names)
    assert reloaded(fresh, path).feature_names_in_.tolist() == names
    data = path.read_bytes()
    fresh = with_result(fresh, column_names=["a", "\ud83d\ude00"])
    with pytest.raises(ValueError, match="a name that is no valid text"):
        fresh.save(path)
    assert path.read_bytes() == data


# Files.


@pytest.mark.parametrize("name", ["model", "model.zip", "model.pkl", "a b.λ", "<script>"])
def test_any_name_of_a_file(fitted, tmp_path, name):
    fitted.save(str(tmp_path / name))
    assert symbayes.load(str(tmp_path / name)).best_formula_ == fitted.best_formula_
    assert [entry.name for entry in tmp_path.iterdir()] == [name]


def test_the_old_file_survives_a_failure(fitted, path, monkeypatch):
    fitted.save(path)
    data = path.read_bytes()

    def fail(*args):
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        FITS["exact"]().save(path)
    assert path.read_bytes() == data
    assert list(path.parent.iterdir()) == [path]


def test_not_fitted(path):
    with pytest.raises(NotFittedError, match="not fitted yet"):
        small().save(path)
    failed = small()
    with pytest.raises(ValueError, match="NaN"):
        failed.fit(np.full((5, 2), np.nan), np.arange(5.0))
    with pytest.raises(NotFittedError, match="not fitted yet"):
        failed.save(path)
    assert not path.exists()


def test_a_fit_that_failed_halfway_is_not_saved_as_a_mixture_of_two(path):
    model, untouched = FITS["exact"](), FITS["exact"]()
    with pytest.raises(ValueError, match="y is constant"):
        model.fit(np.ones((9, 3)), np.ones(9))
    saved = reloaded(model, path)
    assert saved.n_features_in_ == 2
    assert_same(saved, untouched)


def test_too_much_to_save(fitted, path, monkeypatch):
    monkeypatch.setitem(model_file._SIZES, "states", (1, 3))
    with pytest.raises(ValueError, match=r"cannot be saved: it has .* states, and a file can"):
        fitted.save(path)
    assert not path.exists()


def refused(path, says):
    with pytest.raises(ModelFileError, match=says) as info:
        symbayes.load(path)
    assert str(info.value).startswith(repr(str(path)))


def test_files_of_another_kind(fitted, path):
    path.write_bytes(pickle.dumps(fitted))
    refused(path, "is not a symbayes file; choose one that symbayes saved")
    joblib.dump(fitted, path)
    refused(path, "is not a symbayes file")
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("model.json", "{}")
    refused(path, "is not a symbayes file")
    path.write_bytes(b"")
    refused(path, "is empty")
    write_archive(path, "checkpoint", 1, {}, {})
    refused(path, "holds 'checkpoint', not 'model'")


def test_a_newer_format(path):
    write_archive(path, "model", 2, {"unheard": "of"}, {})
    refused(path, "newer version of symbayes .*file format 2; this one reads up to 1.; upgrade")


def test_files_that_cannot_be_opened(tmp_path):
    with pytest.raises(FileNotFoundError, match="missing"):
        symbayes.load(tmp_path / "missing")
    with pytest.raises(IsADirectoryError, match="this is a folder"):
        symbayes.load(tmp_path)
    with pytest.raises(TypeError, match=r"path must be a str or a pathlib\.Path, not int"):
        symbayes.load(3)
    with pytest.raises(OSError, match="no file can be made in this folder"):
        FITS["exact"]().save(tmp_path / "missing" / "model")


def test_large_files_are_refused_unless_asked_for(fitted, path):
    fitted.save(path)
    size = path.stat().st_size
    with pytest.raises(ModelFileError, match=f"has {size} bytes, more than the 999 .*max_bytes"):
        symbayes.load(path, max_bytes=999)
    assert symbayes.load(path, max_bytes=size).best_formula_ == fitted.best_formula_


@pytest.mark.slow
def test_loading_neither_unpickles_nor_runs_anything(fitted, path):
    fitted.save(path)
    command = f"""
import sys, symbayes
symbayes.load({str(path)!r})
events = set()
sys.addaudithook(lambda event, args: events.add(event))
symbayes.load({str(path)!r})
print(*events)
"""
    result = subprocess.run(
        [sys.executable, "-c", command], capture_output=True, text=True, check=True
    )
    events = set(result.stdout.split())
    assert "open" in events
    assert not events & {"import", "exec", "compile", "marshal.loads", "pickle.find_class"}
    assert not any(event.startswith(("os.", "subprocess.", "socket.")) for event in events)
