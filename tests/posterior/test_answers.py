"""Intervals, draws and the choice of a formula."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from symbayes import SamplingWarning
from symbayes.posterior.posterior import front

from ..fits import NOISY, X, small, with_result

RNG = np.random.default_rng(90)


@pytest.fixture(scope="module", params=["tempered", "paper"])
def model(request):
    return small(draws=200, chains=2, sampler=request.param, n_terms=2).fit(X, NOISY)


@pytest.mark.parametrize("kind", ["mean", "observation"])
def test_intervals_are_the_quantiles_of_draws(model, kind):
    """To three standard errors of a quantile of these draws, and a little for formulas' gaps."""
    draws = model.sample_predictive(X[:10], 40_000, kind=kind)
    assert draws.shape == (40_000, 10)
    for level in (0.5, 0.9):
        lower, upper = model.predict_interval(X[:10], level, kind)
        assert (lower < upper).all()
        for p, ends in (((1 - level) / 2, lower), ((1 + level) / 2, upper)):
            below = np.mean(draws <= ends + 1e-9, axis=0)
            strictly = np.mean(draws < ends - 1e-9, axis=0)
            assert (strictly < p + 0.015).all()
            assert (below > p - 0.015).all()


def test_intervals_nest_and_those_of_observations_are_wider(model):
    narrow, wide = (model.predict_interval(X, level) for level in (0.5, 0.95))
    assert (wide[0] < narrow[0]).all()
    assert (narrow[1] < wide[1]).all()
    mean = model.predict_interval(X, 0.9, "mean")
    observation = model.predict_interval(X, 0.9, "observation")
    assert (observation[1] - observation[0] > mean[1] - mean[0]).all()
    prediction = model.predict(X)
    assert ((wide[0] < prediction) & (prediction < wide[1])).all()


def test_draws_repeat_and_belong_together(model):
    first = model.sample_predictive(X, 100, random_state=3)
    np.testing.assert_array_equal(first, model.sample_predictive(X, 100, random_state=3))
    assert not np.array_equal(first, model.sample_predictive(X, 100, random_state=4))
    # The order says nothing: halves have the same mean, to five standard errors.
    draws = model.sample_predictive(X[:1], 4000)[:, 0]
    difference = draws[:2000].mean() - draws[2000:].mean()
    assert abs(difference) < 5 * draws.std() * np.sqrt(2 / 2000)


def test_intervals_where_a_formula_has_no_value():
    """Left of 0 the square root is left out, and the others predict as they did."""
    rng = np.random.default_rng(91)
    x = np.linspace(0, 1, 25)[:, None]
    y = np.sqrt(x[:, 0]) + rng.normal(0, 0.1, 25)
    found = small(operators=["sqrt", "square"], draws=400, chains=2).fit(x, y)
    with pytest.warns(SamplingWarning, match="no finite value on 1 of 1 rows"):
        lower, upper = found.predict_interval([[-0.05]])
    draws = found.sample_predictive([[-0.05]], 20_000)[:, 0]  # it is said once
    # To ten standard errors of a quantile of that many draws.
    for p, end in ((0.05, lower[0]), (0.95, upper[0])):
        assert abs(np.mean(draws <= end) - p) < 0.016
    assert lower[0] < np.median(draws) < upper[0]


def test_draws_without_a_value_are_replaced():
    positive = np.abs(X) + 0.1
    y = np.log(positive[:, 0]) + RNG.normal(0, 0.5, 60)
    found = small(operators=["log", "+"], draws=200).fit(positive, y)
    uses_log = [any((tree["op"] > 0).any() for tree in fit.state.trees)
                for _, fit in found.result_.posterior.mixture.models]  # fmt: skip
    assert any(uses_log)
    rows = [[-1.0, 1.0], [1.0, 1.0]]
    with pytest.warns(SamplingWarning):
        draws = found.sample_predictive(rows, 500)
    if not all(uses_log):
        assert np.isfinite(draws).all()
    assert np.isfinite(draws[:, 1]).all()


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda m: m.predict_interval(X, 90), ValueError, "level is 90; it is a probability"),
        (lambda m: m.predict_interval(X, "90%"), TypeError, "level must be a number, not str"),
        (lambda m: m.predict_interval(X, 0.9, "new"), ValueError, "kind='new'; it must be one of"),
        (lambda m: m.sample_predictive(X, 0), ValueError, "n is 0; it must be at least 1"),
        (lambda m: m.select("best"), ValueError, "rule='best'; it must be one of 'auto'"),
        (lambda m: m.sample_predictive(X, random_state="a"), ValueError, "random_state is 'a'"),
    ],
)
def test_bad_questions(model, call, error, says):
    with pytest.raises(error, match=says):
        call(model)


def test_extrapolation_is_told_once():
    found = small().fit(X, NOISY)
    found.predict(1.05 * X)
    with pytest.warns(SamplingWarning, match="1 of 1 rows lie well outside .*columns 'x0'") as told:
        found.predict([[9.0, 0.0]])
    assert told[0].filename == __file__  # where it was asked for
    found.predict([[9.0, 0.0]])
    found.predict_interval([[9.0, 0.0]])
    found.fit(X, NOISY)
    with pytest.warns(SamplingWarning, match="once for each fit"):
        found.predict_interval([[9.0, 0.0]])


@pytest.mark.parametrize("kind", ["mean", "observation"])
def test_predictions_lie_inside_their_intervals(model, kind):
    """Also where formulas part ways."""
    rows = np.vstack([X, 3.0 * X])
    found = model.combined("pool")  # what it has told is its own
    with pytest.warns(SamplingWarning):
        predicted, std = found.predict(rows, return_std=True)
    for level in (0.5, 0.8, 0.95):
        lower, upper = found.predict_interval(rows, level, kind)
        assert ((lower <= predicted) & (predicted <= upper)).all()
    lower, upper = found.predict_interval(rows, 0.6826894921)
    np.testing.assert_allclose(std, (upper - lower) / 2, rtol=1e-6)


def test_wild_formulas_are_told_once():
    """A few draws of exp(exp(x)) are nothing at the training rows, and all at a new one."""
    found = small(draws=200, operators=["square"]).fit(X, NOISY)
    posterior = found.result_.posterior
    weight, model = posterior.mixture.models[0]
    steep = replace(model, beta=1e6 * model.beta)
    shares = [(0.97 * weight, model), (0.03 * weight, steep)]
    mixture = replace(posterior.mixture, models=[*shares, *posterior.mixture.models[1:]])
    calm = found.predict(X)
    found = with_result(found, posterior=replace(posterior, mixture=mixture))
    what = r"disagree wildly on \d+ of 60 rows: there up to 3%"
    with pytest.warns(SamplingWarning, match=what) as told:
        predicted = found.predict(X)
    assert told[0].filename == __file__
    assert np.abs(predicted - calm).max() < 0.1 * np.std(NOISY)
    found.predict(X)
    again = found.combined("pool")
    with pytest.warns(SamplingWarning, match="once for each fit"):
        again.predict(X)


def test_a_column_that_no_formula_uses_may_have_any_value():
    found = small(operators=["square"], feature_weights=[1, 0]).fit(X, NOISY)
    found.predict([[0.0, 1e9]])


TABLE = pd.DataFrame(
    {
        "probability": [0.5, 0.2, 0.2, 0.1],
        "n_nodes": [9, 5, 3, 20],
        "rmse": [1.0, 1.2, 2.0, 0.9],
        "r2": [0.9, 0.86, 0.6, 0.92],
    }
)


def result_of(model, table, limit=1.1):
    return replace(model.result_, formulas=table, one_standard_error_rmse=limit)


def test_rules(model):
    assert result_of(model, TABLE, 1.1).select("probability") == (0, None)
    assert result_of(model, TABLE, 1.1).select("accuracy") == (3, None)
    assert result_of(model, TABLE, 1.1).select("one_standard_error") == (0, None)
    assert result_of(model, TABLE, 1.3).select("one_standard_error") == (1, None)
    assert result_of(model, TABLE, 5.0).select("one_standard_error") == (2, None)
    assert result_of(model, TABLE, 0.0).select("one_standard_error") == (3, None)


def places_on_front(table):
    return front(table["n_nodes"].to_numpy(), table["rmse"].to_numpy())


def test_the_front_has_the_best_of_each_size():
    assert TABLE["n_nodes"].iloc[places_on_front(TABLE)].tolist() == [3, 5, 9, 20]
    worse = pd.concat([TABLE, TABLE.assign(n_nodes=[9, 6, 3, 30], rmse=[1.5, 1.3, 2.5, 0.95])])
    assert worse["rmse"].iloc[places_on_front(worse)].tolist() == [2.0, 1.2, 1.0, 0.9]


def test_the_best_formula_is_chosen_by_the_rule_named(model):
    pd.testing.assert_series_equal(
        model.pareto_["rmse"], model.pareto_["rmse"].sort_values(ascending=False)
    )
    assert model.best_formula_ == model.formula_objects_[0] == model.select("probability")
    accurate = model.select("accuracy")
    best = model.formulas_["rmse"].idxmin()
    assert str(accurate) == model.formulas_["formula"][best]
    found = small(model_selection="accuracy", draws=200).fit(X, NOISY)
    assert found.best_formula_ == found.select("accuracy")
    assert found.select("one_standard_error").n_nodes <= found.select("accuracy").n_nodes


def test_one_standard_error_is_that_of_the_best(model):
    """By hand: the mean squared error and its standard error over the rows."""
    formulas = model.formulas_
    best = model.formula_objects_[int(formulas["rmse"].argmin())]
    squares = (best.predict(X) - NOISY) ** 2
    near = np.sqrt(squares.mean() + squares.std() / np.sqrt(len(X)))
    expected = formulas[formulas["rmse"] <= near]["n_nodes"].min()
    assert model.select("one_standard_error").n_nodes == expected
