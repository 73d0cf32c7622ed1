"""The estimator as a user of scikit-learn meets it."""

import io
import os
import pickle
import signal
import sys
import threading

import joblib
import numpy as np
import pandas as pd
import pytest
import sympy
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from symbayes import (
    OPERATORS,
    BayesianSymbolicRegressor,
    CollapsedSampler,
    NoisePrior,
    PaperSampler,
    SamplingWarning,
    TermsPrior,
    TreePrior,
)
from symbayes.kernels import units
from symbayes.parser import parse
from symbayes.progress import Display
from symbayes.samplers import collapsed

RNG = np.random.default_rng(50)
X = RNG.uniform(-2, 2, (60, 2))
EXACT = 3 * X[:, 0] ** 2 + 2
NOISY = EXACT + RNG.normal(0, 0.3, 60)


def small(**options):
    options = {"draws": 50, "tune": 100, "chains": 1, "random_state": 0} | options
    return BayesianSymbolicRegressor(**options)


@pytest.fixture(scope="module")
def exact():
    return small(draws=100).fit(X, EXACT)


@pytest.fixture(scope="module")
def noisy():
    return small(draws=100, chains=2).fit(X, NOISY)


def assert_same(first, second):
    pd.testing.assert_frame_equal(first.formulas_, second.formulas_, check_exact=True)
    for one, two in zip(
        first.predict(X, return_std=True), second.predict(X, return_std=True), strict=True
    ):
        np.testing.assert_array_equal(one, two)


# scikit-learn's own checks: none is expected to fail.


@parametrize_with_checks([small()])
@pytest.mark.filterwarnings("default")
def test_scikit_learn_checks(estimator, check):
    check(estimator)


# Parameters.


def test_parameters_round_trip():
    model = small(operators=["+", "*"], tree_prior=TreePrior(alpha=0.4), n_terms=2)
    copy = clone(model)
    assert copy is not model
    assert copy.get_params() == model.get_params()
    copy.set_params(draws=7, operators="paper")
    assert (copy.draws, copy.operators) == (7, "paper")
    assert model.draws == 50
    with pytest.raises(ValueError, match="Invalid parameter 'depth'"):
        copy.set_params(depth=3)
    assert "draws=50" in repr(model)


def test_fit_leaves_parameters_alone():
    model = small(operators={"+": 1, "square": 2}, feature_weights=[1, 1], tree_prior=TreePrior())
    before = dict(model.get_params())
    model.fit(X, EXACT)
    assert model.get_params() == before


def test_in_a_pipeline_and_a_grid_search():
    pipeline = make_pipeline(StandardScaler(), small(draws=20, tune=50))
    assert cross_val_score(pipeline, X, EXACT, cv=2).min() > 0.9
    search = GridSearchCV(small(tune=50), {"n_terms": [1, 2]}, cv=2).fit(X, EXACT)
    assert search.best_params_["n_terms"] in (1, 2)


# What a fit gives.


def test_an_easy_formula_is_found_exactly(exact):
    assert str(exact.best_formula_) == "3*x0**2 + 2"
    assert exact.formulas_["probability"][0] > 0.5
    assert exact.formulas_["rmse"][0] < 1e-12
    np.testing.assert_allclose(exact.predict(X), EXACT, rtol=1e-9)
    assert exact.score(X, EXACT) == pytest.approx(1.0)


@pytest.mark.parametrize("fitted", ["exact", "noisy"])
def test_table_of_formulas(fitted, request):
    model = request.getfixturevalue(fitted)
    table = model.formulas_
    assert list(table.columns) == ["probability", "formula", "n_terms", "n_nodes", "rmse", "r2"]
    assert table["probability"].is_monotonic_decreasing
    assert table["probability"].sum() == pytest.approx(1.0, abs=1e-12)
    assert table["probability"].between(0, 1).all()
    assert table.index.tolist() == list(range(len(table)))
    assert len(model.formula_objects_) == len(table)
    assert model.best_formula_ is model.formula_objects_[0]


@pytest.mark.parametrize("fitted", ["exact", "noisy"])
def test_formulas_are_what_the_table_says(fitted, request):
    model = request.getfixturevalue(fitted)
    y = EXACT if fitted == "exact" else NOISY
    for row, formula in zip(model.formulas_.itertuples(), model.formula_objects_, strict=True):
        assert row.formula == str(formula)
        assert row.n_nodes == formula.n_nodes
        assert parse(row.formula, ["x0", "x1"])
        mse = np.mean((formula.predict(X) - y) ** 2)
        assert np.sqrt(mse) == pytest.approx(row.rmse, rel=1e-6, abs=1e-12)
        assert 1 - mse / np.var(y) == pytest.approx(row.r2, rel=1e-6)


def test_every_draw_counts_the_same(noisy):
    counts = noisy.formulas_["probability"] * 200
    np.testing.assert_allclose(counts, np.round(counts), atol=1e-9)
    assert counts.nunique() > 1


def test_sympy_and_latex_of_the_best_formula(noisy):
    formula = noisy.best_formula_
    symbols = [sympy.Symbol(name) for name in ("x0", "x1")]
    values = sympy.lambdify(symbols, formula.sympy(), "numpy")(*X.T)
    np.testing.assert_allclose(values * np.ones(60), formula.predict(X), rtol=1e-9)
    assert "x_{0}" in formula.latex()


def test_column_names_appear_in_formulas():
    names = ["body mass (kg)", "sin"]
    frame = pd.DataFrame(X, columns=names)
    model = small().fit(frame, EXACT)
    assert str(model.best_formula_) == "3*`body mass (kg)`**2 + 2"
    assert model.feature_names_in_.tolist() == names
    np.testing.assert_allclose(model.best_formula_.predict(frame[names[::-1]]), EXACT, rtol=1e-9)
    np.testing.assert_allclose(model.predict(frame), EXACT, rtol=1e-9)


def test_numbered_columns_of_a_data_frame():
    frame = pd.DataFrame(X, columns=[2019, 2020])
    model = small().fit(frame, EXACT)
    assert str(model.best_formula_) == "3*x0**2 + 2"
    np.testing.assert_allclose(model.best_formula_.predict(frame), EXACT, rtol=1e-9)


def test_diagnostics(noisy):
    effort = noisy.diagnostics_
    assert effort["proposals"] == 2 * 200 * CollapsedSampler().steps_per_draw
    assert 0 < effort["evaluations"] <= effort["proposals"]
    assert all(0 <= share <= 1 for share in effort["acceptance"].values())
    assert [len(chain) for chain in effort["log_likelihood"]] == [100, 100]
    assert not effort["interrupted"]
    assert not effort["timed_out"]


def test_a_constant_is_a_possible_answer():
    model = small(chains=2).fit(X, np.random.default_rng(3).normal(5, 1, 60))
    constant = model.formulas_[model.formulas_["n_terms"] == 0]
    assert len(constant) == 1
    row = constant.iloc[0]
    assert row["n_nodes"] == 1
    assert float(row["formula"]) == pytest.approx(5, abs=1)
    assert row["r2"] == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("n_terms", [1, 2, 3])
@pytest.mark.parametrize("sampler", ["collapsed", "paper"])
def test_a_fixed_number_of_terms_is_kept(n_terms, sampler):
    model = small(n_terms=n_terms, sampler=sampler).fit(X, NOISY)
    assert (model.formulas_["n_terms"] == n_terms).all()


def test_most_terms():
    model = small(n_terms=TermsPrior(most=1)).fit(X, NOISY)
    assert model.formulas_["n_terms"].max() <= 1


def test_only_the_operators_asked_for():
    model = small(operators=["+", "*"], tree_prior=TreePrior(max_nodes=7)).fit(X, NOISY)
    trees = [tree for _, fit in model._posterior.models for tree in fit.state.trees]
    allowed = {0, *(OPERATORS[name].opcode for name in ("+", "*"))}
    assert {int(op) for tree in trees for op in tree["op"]} <= allowed
    assert max(len(tree) for tree in trees) <= 7


@pytest.mark.parametrize("weights", [{"x0": 0}, {0: 0}, [0, 1], np.array([0.0, 2.0])])
def test_a_column_of_weight_zero_never_appears(weights):
    model = small(feature_weights=weights).fit(X, EXACT + X[:, 1])
    used = {name for formula in model.formula_objects_ for name in formula.features}
    assert used == {"x1"}


def test_names_in_feature_weights():
    frame = pd.DataFrame(X, columns=["a", "b"])
    model = small(feature_weights={"a": 0, "b": 3}).fit(frame, X[:, 1])
    assert model.best_formula_.features == ["b"]


# Predictions.


def test_standard_deviation(noisy):
    mean, std = noisy.predict(X, return_std=True)
    assert mean.shape == std.shape == (60,)
    assert (std > 0).all()
    np.testing.assert_array_equal(noisy.predict(X), mean)
    assert 0.2 < np.median(std) < 0.45
    _, far = noisy.predict(20 * X, return_std=True)
    assert np.median(far) > 3 * np.median(std)


@pytest.mark.parametrize("sampler", ["collapsed", "paper"])
def test_standard_deviation_of_each_sampler_is_positive(sampler):
    _, std = small(sampler=sampler).fit(X, NOISY).predict(X, return_std=True)
    assert (std > 0).all()


@pytest.mark.slow
def test_coverage():
    """Of 1,000 new values 95 % intervals miss 50; a standard error is 7, here 5 of them."""
    rng = np.random.default_rng(51)
    model = small(draws=500, tune=1000, chains=2).fit(X, NOISY)
    new = rng.uniform(-2, 2, (1000, 2))
    y = 3 * new[:, 0] ** 2 + 2 + rng.normal(0, 0.3, 1000)
    mean, std = model.predict(new, return_std=True)
    missed = np.mean(np.abs(y - mean) > 1.96 * std)
    assert 0.015 < missed < 0.12


def test_draws_that_are_not_finite_are_left_out_with_a_warning():
    positive = np.abs(X) + 0.1
    y = np.log(positive[:, 0])
    model = small(operators=["log", "+"]).fit(positive, y)
    assert str(model.best_formula_) == "log(x0)"
    with pytest.warns(SamplingWarning, match="no finite value on 1 of 2 rows.*nan") as caught:
        mean, std = model.predict([[-1.0, 1.0], [1.0, 1.0]], return_std=True)
    assert caught[0].filename == __file__
    assert np.isnan(mean[0])
    assert np.isnan(std[0])
    assert mean[1] == pytest.approx(0.0, abs=1e-9)


def test_not_fitted():
    with pytest.raises(ValueError, match="not fitted yet"):
        small().predict(X)


def test_pickle_and_joblib(noisy, tmp_path):
    assert_same(noisy, pickle.loads(pickle.dumps(noisy)))
    joblib.dump(noisy, tmp_path / "model")
    assert_same(noisy, joblib.load(tmp_path / "model"))
    mapped = joblib.load(tmp_path / "model", mmap_mode="r")
    np.testing.assert_array_equal(mapped.predict(X), noisy.predict(X))


# Reproducible.


@pytest.mark.parametrize("sampler", ["collapsed", "paper"])
def test_same_seed_same_result_for_any_n_jobs(sampler):
    models = [
        small(chains=3, sampler=sampler, n_jobs=n_jobs).fit(X, NOISY)
        for n_jobs in (None, 1, 2, -1, 1)
    ]
    for other in models[1:]:
        assert_same(models[0], other)


def test_length_of_rounds_has_no_influence(noisy, monkeypatch):
    monkeypatch.setattr(collapsed, "_LARGEST_ROUND", 3)
    assert_same(noisy, small(draws=100, chains=2).fit(X, NOISY))


def test_other_seeds_give_other_draws(noisy):
    other = small(draws=100, chains=2, random_state=1).fit(X, NOISY)
    assert not np.array_equal(other.predict(X), noisy.predict(X))


def test_random_state_objects():
    first = small(random_state=np.random.RandomState(7)).fit(X, NOISY)
    assert_same(first, small(random_state=np.random.RandomState(7)).fit(X, NOISY))
    assert_same(first, small(random_state=7).fit(X, NOISY))


def test_fitting_again_forgets_the_first_fit():
    model = small(sampler="paper").fit(X, NOISY)
    model.set_params(sampler="collapsed").fit(X[:, :1], EXACT)
    assert not hasattr(model, "history_")
    assert model.n_features_in_ == 1
    fresh = small().fit(X[:, :1], EXACT)
    pd.testing.assert_frame_equal(model.formulas_, fresh.formulas_, check_exact=True)


# Weights of rows.


@pytest.mark.parametrize("sampler", ["collapsed", "paper"])
def test_whole_weights_are_repeated_rows(sampler):
    weights = RNG.integers(1, 4, 60)
    rows = np.repeat(np.arange(60), weights)
    weighted = small(sampler=sampler).fit(X, NOISY, sample_weight=weights)
    repeated = small(sampler=sampler).fit(X[rows], NOISY[rows])
    assert weighted.formulas_["formula"].tolist() == repeated.formulas_["formula"].tolist()
    for one, two in zip(
        weighted.predict(X, return_std=True), repeated.predict(X, return_std=True), strict=True
    ):
        np.testing.assert_allclose(one, two, rtol=1e-6)
    numbers = ["probability", "rmse", "r2"]
    np.testing.assert_allclose(weighted.formulas_[numbers], repeated.formulas_[numbers], rtol=1e-6)


def test_rows_of_weight_zero_are_absent():
    weights = np.ones(60)
    weights[::3] = 0
    spoiled = np.where(weights > 0, NOISY, 1e6)
    assert_same(
        small().fit(X, spoiled, sample_weight=weights),
        small().fit(X[weights > 0], NOISY[weights > 0]),
    )


def test_weights_matter():
    one_side = np.where(X[:, 0] > 0, 1.0, 1e-3)
    model = small().fit(X, np.abs(X[:, 0]), sample_weight=one_side)
    assert np.abs(model.predict(X) - np.abs(X[:, 0]))[X[:, 0] > 0].max() < 0.1


# Stopping.


@pytest.mark.parametrize("sampler", ["collapsed", "paper"])
def test_timeout_gives_a_fitted_model(sampler):
    endless = PaperSampler(max_trees=10**9) if sampler == "paper" else sampler
    model = small(draws=10**8, tune=5, chains=2, sampler=endless, timeout=0.3).fit(X, NOISY)
    assert model.diagnostics_["timed_out"]
    assert model.diagnostics_["seconds"] >= 0.3
    assert model.predict(X).shape == (60,)


def test_a_timeout_too_short_for_anything():
    with pytest.warns(SamplingWarning, match="timeout: .* warm-up was not finished"):
        model = small(timeout=1e-9, chains=3).fit(X, NOISY)
    assert model.diagnostics_["timed_out"]
    assert model.formulas_["probability"].sum() == pytest.approx(1.0)


def test_a_timeout_that_is_not_reached_changes_nothing(noisy):
    assert_same(noisy, small(draws=100, chains=2, timeout=1e6).fit(X, NOISY))


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize(
    ("phase", "options"),
    [
        ("warm-up", {"tune": 10**8}),
        ("drawing", {"tune": 5, "draws": 10**8}),
        ("paper", {"sampler": PaperSampler(max_trees=10**9), "draws": 10**8, "tune": 0}),
    ],
)
def test_ctrl_c_keeps_what_there_is(phase, options, n_jobs):
    handler = signal.getsignal(signal.SIGINT)
    model = small(chains=2, n_jobs=n_jobs, **options)
    small(sampler=model.sampler, draws=1, tune=0).fit(X, NOISY)  # compiled before the clock runs
    timer = threading.Timer(0.4, os.kill, [os.getpid(), signal.SIGINT])
    timer.start()
    try:
        with pytest.warns(SamplingWarning, match="interrupted: .* draws made so far") as caught:
            model.fit(X, NOISY)
    finally:
        timer.join()
    assert caught[0].filename == __file__
    assert ("warm-up was not finished" in str(caught[0].message)) == (phase == "warm-up")
    assert signal.getsignal(signal.SIGINT) is handler
    assert model.diagnostics_["interrupted"]
    assert not model.diagnostics_["timed_out"]
    draws = [len(chain) for chain in model.diagnostics_["log_likelihood"]]
    if phase == "warm-up":
        assert draws == [1, 1]
    else:
        assert min(draws) > 1
    assert str(sum(draws)) in str(caught[0].message)
    assert model.score(X, NOISY) > (0.9 if phase != "paper" else -1)


def test_fit_in_another_thread(noisy):
    models = []
    thread = threading.Thread(
        target=lambda: models.append(small(draws=100, chains=2, n_jobs=2).fit(X, NOISY))
    )
    thread.start()
    thread.join()
    assert_same(models[0], noisy)


def test_no_model_can_be_found():
    with pytest.raises(ValueError, match=r"no model of 3 terms .* use fewer terms .n_terms."):
        small(operators=["neg"], n_terms=3).fit(X, NOISY)


# The sampler of the paper.


def test_history_of_the_paper():
    model = small(sampler=PaperSampler(max_trees=3000), chains=2, tune=0, draws=10**6)
    history = model.fit(X, NOISY).history_
    assert list(history.columns) == ["chain", "trees", "rmse", "n_nodes"]
    assert set(history["chain"]) == {0, 1}
    for _, chain in history.groupby("chain"):
        assert chain["trees"].iloc[0] == 0
        assert chain["trees"].is_monotonic_increasing
        assert chain["trees"].is_unique
        assert 100 < chain["trees"].iloc[-1] <= 3000
    assert (history["n_nodes"] >= 2).all()
    assert history["rmse"].between(0, np.std(NOISY) * (1 + 1e-9)).all()
    assert model.diagnostics_["proposals"] == 2 * 3000
    assert not model.diagnostics_["timed_out"]
    assert (model.formulas_["n_terms"] == 2).all()


def test_paper_stops_after_enough_models(monkeypatch):
    reported = []
    monkeypatch.setattr(Display, "update", lambda self, *report: reported.append(report))
    model = small(
        sampler=PaperSampler(max_trees=10**6), chains=2, tune=10, draws=15,
        noise_prior=NoisePrior(shape=4, scale=0.1),
    )  # fmt: skip
    history = model.fit(X, NOISY).history_
    assert history.groupby("chain").size().tolist() == [25, 25]
    assert reported[-1][1] < 10**6  # no rounds after that
    assert not model.diagnostics_["timed_out"]


def test_paper_with_more_trees_than_the_data_can_tell_apart():
    model = small(sampler="paper", n_terms=5, operators=["+"]).fit(X, NOISY)
    assert (model.formulas_["n_terms"] == 5).all()
    assert np.isfinite(model.predict(X)).all()


def test_paper_finds_an_easy_formula():
    model = small(sampler="paper", n_terms=1, operators="paper-simulation", draws=10**4, tune=10**4)
    model.fit(X, EXACT)
    assert str(model.best_formula_) == "3*x0**2 + 2"


# Beliefs and settings.


def test_noise_prior_enters_the_predictions():
    sure = small(noise_prior=NoisePrior(shape=1e6, scale=0.25)).fit(X, NOISY)
    _, std = sure.predict(X, return_std=True)
    assert np.median(std) == pytest.approx(0.5 * np.std(NOISY), rel=0.1)


def test_settings_of_the_sampler_as_whole_numbers():
    settings = CollapsedSampler(steps_per_draw=np.int64(20), temperature=1, starts=np.int32(2))
    model = small(sampler=settings).fit(X, NOISY)
    assert model.diagnostics_["proposals"] == 150 * 20


def test_tune_may_be_zero_and_one_draw_is_enough():
    model = small(tune=0, draws=1).fit(X, NOISY)
    assert model.formulas_["probability"].tolist() == [1.0]


# Progress.


def test_silent_by_default(capfd):
    small().fit(X, NOISY)
    assert capfd.readouterr() == ("", "")


def test_progress_goes_to_stderr(capfd):
    small(progress=True).fit(X, NOISY)
    out, err = capfd.readouterr()
    assert out == ""
    assert "warm-up 100/100" in err
    assert "drawing 50/50" in err


def test_progress_in_a_terminal(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    small(progress=True).fit(X, NOISY)
    assert "drawing" in terminal.getvalue()


def test_compilation_is_announced(monkeypatch, capfd):
    monkeypatch.setattr(units, "is_cached", lambda name: False)
    small(progress=True).fit(X, NOISY)
    assert "compiling, once" in capfd.readouterr().err
