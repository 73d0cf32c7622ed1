"""How a fit runs: seeds, weights of rows, stopping, the paper's sampler."""

import os
import signal
import threading

import numpy as np
import pandas as pd
import pytest

from symbayes import (
    BayesianSymbolicRegressor,
    ConvergenceWarning,
    NoisePrior,
    PaperSampler,
    SamplingWarning,
    TemperedSampler,
)
from symbayes.fitting import model as fitting
from symbayes.samplers import tempered
from symbayes.samplers.search import search

from .fits import EXACT, NOISY, RNG, X, assert_same, restless_clock, small

QUICK = {"draws": 100, "chains": 2, "operators": ["+", "*", "sin"]}


@pytest.fixture(scope="module")
def noisy():
    return small(**QUICK).fit(X, NOISY)


# Reproducible.


@pytest.mark.parametrize("sampler", ["tempered", "paper"])
def test_same_seed_same_result_for_any_n_jobs(sampler):
    models = [
        small(chains=3, sampler=sampler, n_jobs=n_jobs, draws=20).fit(X, NOISY)
        for n_jobs in (None, 1, 2, -1, 1)
    ]
    for other in models[1:]:
        assert_same(models[0], other)


@pytest.mark.parametrize("sampler", ["tempered", "paper"])
def test_the_clock_has_no_influence(sampler, monkeypatch):
    options = {"chains": 2, "sampler": sampler, "operators": ["+", "*", "sin"]}
    usual = small(**options).fit(X, NOISY)
    monkeypatch.setattr("symbayes.samplers.run.clock.time.monotonic", restless_clock())
    assert_same(usual, small(**options).fit(X, NOISY))


def test_other_seeds_give_other_draws(noisy):
    other = small(random_state=1, **QUICK).fit(X, NOISY)
    assert not np.array_equal(other.predict(X), noisy.predict(X))


def test_random_state_objects():
    first, second, third = (
        small(random_state=seed, operators=["+", "*", "sin"]).fit(X, NOISY)
        for seed in (np.random.RandomState(7), np.random.RandomState(7), 7)
    )
    assert_same(first, second)
    assert_same(first, third)


def test_fitting_again_forgets_the_first_fit():
    model = small(sampler="paper", operators=["+", "square"]).fit(X, NOISY)
    model.set_params(sampler="tempered").fit(X[:, :1], EXACT)
    assert not hasattr(model, "history_")
    assert model.n_features_in_ == 1
    fresh = small(operators=["+", "square"]).fit(X[:, :1], EXACT)
    pd.testing.assert_frame_equal(model.formulas_, fresh.formulas_, check_exact=True)


# Weights of rows.


# The search looks at a part of the rows, and these are others when rows are repeated.
@pytest.mark.parametrize("sampler", [TemperedSampler(search=False), "paper"])
def test_whole_weights_are_repeated_rows(sampler):
    weights = RNG.integers(1, 4, 60)
    rows = np.repeat(np.arange(60), weights)
    weighted = small(sampler=sampler, random_state=3).fit(X, NOISY, sample_weight=weights)
    repeated = small(sampler=sampler, random_state=3).fit(X[rows], NOISY[rows])
    if sampler != "paper":
        assert weighted.formulas_["formula"].tolist() == repeated.formulas_["formula"].tolist()
    for column in ("probability", "n_terms", "n_nodes"):
        assert weighted.formulas_[column].tolist() == repeated.formulas_[column].tolist()
    np.testing.assert_allclose(weighted.formulas_["rmse"], repeated.formulas_["rmse"], rtol=1e-6)
    for one, two in zip(
        weighted.predict(X, return_std=True), repeated.predict(X, return_std=True), strict=True
    ):
        # With the paper's sampler rounding decides which of two extreme draws is left out.
        np.testing.assert_allclose(one, two, rtol=1e-3 if sampler == "paper" else 1e-6)
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


@pytest.fixture
def endless(monkeypatch):
    """No search and no drawing ends because its answer is clear."""
    monkeypatch.setattr(search.Search, "_settled", lambda *_: False)
    monkeypatch.setattr(tempered, "settled", lambda *_: False)


@pytest.mark.parametrize("sampler", ["tempered", "paper"])
def test_timeout_gives_a_fitted_model(sampler, endless):
    settings = PaperSampler(max_trees=10**9) if sampler == "paper" else sampler
    model = small(draws=10**8, tune=5, chains=2, sampler=settings, timeout=0.3).fit(X, NOISY)
    assert model.diagnostics_["timed_out"]
    assert model.diagnostics_["seconds"] >= 0.24  # the rest is kept back for what follows
    assert model.predict(X).shape == (60,)


def test_a_timeout_too_short_for_anything():
    with pytest.warns(ConvergenceWarning, match="time limit was reached before warm-up"):
        model = small(timeout=1e-9, chains=3).fit(X, NOISY)
    assert model.diagnostics_["timed_out"]
    assert model.formulas_["probability"].sum() == pytest.approx(1.0)


def test_a_timeout_that_is_not_reached_changes_nothing(noisy):
    assert_same(noisy, small(timeout=1e6, **QUICK).fit(X, NOISY))


@pytest.mark.slow
def test_nor_does_it_where_draws_have_no_other_limit():
    rng = np.random.default_rng(5)
    table = rng.uniform(0.5, 2.0, (300, 4))
    target = table[:, 0] * table[:, 1] + 0.5 * table[:, 2] + rng.normal(0.0, 0.5, 300)
    one, other = (
        BayesianSymbolicRegressor(tolerance=0.01, random_state=0, timeout=timeout)
        for timeout in (None, 1e6)
    )
    assert_same(one.fit(table, target), other.fit(table, target), table)


def test_ctrl_c_after_sampling_keeps_the_model(monkeypatch):
    polished = []

    def interrupted(terms, stop):
        polished.append(terms)
        signal.raise_signal(signal.SIGINT)
        return terms.trees

    monkeypatch.setattr(fitting, "polish", interrupted)
    model = small(operators=["sin", "lt"], draws=100, chains=2).fit(X, NOISY)
    assert len(polished) == 1
    assert model.diagnostics_["interrupted"]
    assert len(model.formulas_) > 1
    assert model.predict(X).shape == (60,)


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize(
    ("phase", "options"),
    [
        ("warm-up", {"tune": 10**8}),
        ("drawing", {"tune": 5, "draws": 10**8}),
        ("paper", {"sampler": PaperSampler(max_trees=10**9), "draws": 10**8, "tune": 0}),
    ],
)
def test_ctrl_c_keeps_what_there_is(phase, options, n_jobs, endless):
    handler = signal.getsignal(signal.SIGINT)
    model = small(chains=2, n_jobs=n_jobs, operators=["+", "*", "sin"], **options)
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
    thread = threading.Thread(target=lambda: models.append(small(n_jobs=2, **QUICK).fit(X, NOISY)))
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


def test_predictions_on_the_way_of_the_paper():
    model = small(sampler=PaperSampler(max_trees=500), chains=2, tune=0, draws=10**6)
    history = model.fit(X, NOISY).history_
    stages = np.array(list(model.staged_predict(X)))
    assert stages.shape == (len(history), len(X))
    error = np.sqrt(np.mean((stages - NOISY) ** 2, axis=1))
    np.testing.assert_allclose(error, history["rmse"], rtol=1e-6)
    np.testing.assert_allclose(list(model.staged_predict(X[:5])), stages[:, :5], rtol=1e-9)


def test_only_the_paper_has_predictions_on_the_way():
    model = small().fit(X, NOISY)
    with pytest.raises(AttributeError, match="sampler='paper'"):
        model.staged_predict(X)


def test_paper_stops_after_enough_models():
    reported = []
    model = small(
        sampler=PaperSampler(max_trees=10**6), chains=2, tune=10, draws=15,
        noise_prior=NoisePrior(shape=4, scale=0.1), progress=reported.append,
    )  # fmt: skip
    history = model.fit(X, NOISY).history_
    assert history.groupby("chain").size().tolist() == [25, 25]
    assert reported[-1].done < 10**6  # no rounds after that
    assert not model.diagnostics_["timed_out"]


def test_paper_with_more_trees_than_the_data_can_tell_apart():
    model = small(sampler="paper", n_terms=5, operators=["+"]).fit(X, NOISY)
    assert (model.formulas_["n_terms"] == 5).all()
    assert np.isfinite(model.predict(X)).all()


def test_paper_finds_an_easy_formula():
    model = small(sampler="paper", n_terms=1, operators="paper-simulation", draws=10**4, tune=10**4)
    model.fit(X, EXACT)
    assert str(model.best_formula_) == "3*x0**2 + 2"
