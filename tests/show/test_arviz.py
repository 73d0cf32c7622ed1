"""A fitted model in ArviZ's schema."""

import pickle
import sys
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.special import digamma
from scipy.stats import norm
from sklearn.exceptions import NotFittedError

from symbayes import DataWarning, Formula, __version__
from symbayes.posterior import posterior
from symbayes.posterior.posterior import Draws
from symbayes.samplers.convergence import r_hat

from ..fits import NOISY, X, small, with_result

with warnings.catch_warnings():
    warnings.filterwarnings("ignore", r"\s*ArviZ is undergoing a major refactor", FutureWarning)
    az = pytest.importorskip("arviz", reason="needs symbayes[arviz]")

RNG = np.random.default_rng(91)
HOSTILE = ["<script>", "a b", "x^2", "sin", "λ", "$x_1$", ""]


@pytest.fixture(scope="module")
def tempered():
    return small(draws=200, chains=2, n_terms=2).fit(X, NOISY)


@pytest.fixture(scope="module")
def paper():
    return small(draws=200, chains=2, n_terms=2, sampler="paper").fit(X, NOISY)


@pytest.fixture(params=["tempered", "paper"])
def model(request):
    return request.getfixturevalue(request.param)


def values(data, group, name):
    return data[group][name].values


def test_schema(model):
    data = model.to_arviz()
    shape = {"chain": 2, "draw": 200, "row": 60, "column": 2}
    dims = {
        "posterior": dict.fromkeys(("n_terms", "n_nodes", "noise", "rmse", "r2"), "chain draw")
        | {"uses": "chain draw column"},
        "sample_stats": {"log_likelihood_of_trees": "chain draw"},
        "log_likelihood": {"y": "chain draw row"},
        "posterior_predictive": {"y": "chain draw row"},
        "observed_data": {"y": "row"},
        "constant_data": {"X": "row column", "weight": "row"},
        "trees": {"formula": "chain draw", "state": "chain draw"},
    }
    assert set(data) == set(dims)
    for group, variables in dims.items():
        assert set(data[group].data_vars) == set(variables)
        for name, expected in variables.items():
            variable = data[group][name]
            assert variable.dims == tuple(expected.split())
            assert variable.shape == tuple(shape[dim] for dim in variable.dims)
            assert set(variable.coords) == set(variable.dims)
            if name != "formula":
                assert np.isfinite(variable.values).all()
        assert data[group].attrs["inference_library"] == "symbayes"
        assert data[group].attrs["inference_library_version"] == __version__
        assert data[group].attrs["sampling_time"] == model.diagnostics_["seconds"]
        assert "created_at" in data[group].attrs
        assert data[group].attrs["chain_weights"] == model.chain_weights_.tolist()
    assert data.attrs["inference_library"] == "symbayes"
    assert data["posterior"]["column"].values.tolist() == ["x0", "x1"]
    np.testing.assert_array_equal(values(data, "observed_data", "y"), NOISY)
    np.testing.assert_array_equal(values(data, "constant_data", "X"), X)


# What ArviZ says of quantities that do not vary, and of the few distinct noises of the paper.
@pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")
@pytest.mark.filterwarnings("ignore:Estimated shape parameter of Pareto:UserWarning")
def test_arviz_can_work_with_it(model):
    data = model.to_arviz()
    summary = az.summary(data)
    assert {"noise", "n_nodes", "uses[x0]", "uses[x1]"} <= set(summary.index)
    found = az.loo(data)
    elpd = found.elpd_loo if hasattr(found, "elpd_loo") else found.elpd
    log_likelihood = values(data, "log_likelihood", "y").reshape(-1, 60)
    assert elpd < np.log(np.exp(log_likelihood).mean(axis=0)).sum()
    # The noise is known to be 0.3, so that is about what new rows get.
    assert elpd == pytest.approx(60 * (norm.logpdf(0, 0, 0.3) - 0.5), abs=15)


def test_r_hat_is_the_same_on_either_side(tempered):
    data = tempered.to_arviz()
    for name in ("n_nodes", "noise", "rmse"):
        draws = values(data, "posterior", name).astype(float)
        assert float(az.rhat(draws, method="split")) == pytest.approx(r_hat(draws), abs=1e-6)
    sizes = values(data, "posterior", "n_nodes").astype(float)
    told = tempered.diagnostics_["r_hat"]["n_nodes"]
    assert float(az.rhat(sizes, method="split")) == pytest.approx(told, abs=1e-6)


def test_sizes_are_those_of_the_trees(tempered):
    """Those of formulas have coefficients, intercept and signs besides."""
    data = tempered.to_arviz()
    state = tempered.result_.posterior.states[0]
    sizes = values(data, "posterior", "n_nodes")[values(data, "trees", "state") == 0]
    assert set(sizes) == {sum(len(tree) for tree in state.trees)}
    formulas = values(data, "trees", "formula")[values(data, "trees", "state") == 0]
    assert Formula(formulas[0], ["x0", "x1"]).n_nodes > sizes[0]
    assert "without coefficients" in data["posterior"]["n_nodes"].attrs["description"]


def test_draws_are_those_of_the_chains(tempered):
    data = tempered.to_arviz()
    assert data["posterior"].attrs["draws"] == "all draws of the chains"
    np.testing.assert_array_equal(
        values(data, "sample_stats", "log_likelihood_of_trees"),
        tempered.diagnostics_["log_likelihood"],
    )
    np.testing.assert_array_equal(
        values(data, "trees", "state"), [draws.state for draws in tempered.result_.posterior.draws]
    )
    np.testing.assert_allclose(
        values(data, "posterior", "uses").mean(axis=(0, 1)), tempered.inclusion_probability()
    )


def test_draws_of_the_paper_are_there_as_long_as_they_were_held(paper):
    data = paper.to_arviz()
    assert data["posterior"].attrs["draws"].startswith("resampled")
    states = values(data, "trees", "state")
    for draws, chain in zip(paper.result_.posterior.draws, states, strict=True):
        for state in np.unique(draws.state):
            own = draws.state == state
            visits = 1 + int(np.count_nonzero(np.diff(np.flatnonzero(own)) > 1))
            expected = 200 * draws.weight[own].sum() / draws.weight.sum()
            assert abs(np.count_nonzero(chain == state) - expected) <= visits


def test_a_formula_is_that_of_its_draw(model):
    data = model.to_arviz()
    for place in np.ndindex(2, 20):
        formula = Formula(values(data, "trees", "formula")[place], ["x0", "x1"])
        rmse = np.sqrt(np.mean((formula.predict(X) - NOISY) ** 2))
        assert values(data, "posterior", "rmse")[place] == pytest.approx(rmse, rel=1e-4)
        assert values(data, "posterior", "r2")[place] == pytest.approx(
            1 - rmse**2 / NOISY.var(), abs=1e-5
        )
        used = [f"x{i}" for i in np.flatnonzero(values(data, "posterior", "uses")[place])]
        assert formula.features == used
        assert values(data, "posterior", "n_terms")[place] == 2


def test_new_observations_are_where_predictions_are(model):
    """To five standard errors, and a little for what `predict` leaves out at the ends."""
    draws = values(model.to_arviz(), "posterior_predictive", "y").reshape(-1, 60)
    mean, std = model.predict(X, return_std=True)
    assert (np.abs(draws.mean(axis=0) - mean) < 5 * std / np.sqrt(400) + 0.01).all()
    assert np.mean(draws.std(axis=0) / std) == pytest.approx(1, abs=0.05)


@pytest.mark.parametrize("weighted", [False, True])
def test_log_likelihood_of_a_line_is_that_of_the_textbook(weighted):
    """Linear regression on one known column; expectations over coefficients and noise by hand."""
    weights = RNG.integers(1, 4, 60).astype(float) if weighted else np.ones(60)
    line = small(operators=["square"], n_terms=1, feature_weights=[1, 0], draws=500, chains=2)
    data = line.fit(X, NOISY, sample_weight=weights).to_arviz()
    x, n = X[:, 0] ** 2, weights.sum()
    assert len(line.result_.posterior.states) == 1
    centred = x - np.average(x, weights=weights)
    slope = np.sum(weights * centred * NOISY) / np.sum(weights * centred**2)
    residual = NOISY - np.average(NOISY, weights=weights) - slope * centred
    # The noise variance is inverse gamma(a, b), with a row less for each of the two constants.
    a, b = 0.5 * (n - 2), 0.5 * np.sum(weights * residual**2)
    leverage = 1 / n + n / (1 + n) * centred**2 / np.sum(weights * centred**2)
    expected = -0.5 * weights * (
        np.log(2 * np.pi) + np.log(b) - digamma(a) + residual**2 * a / b + leverage
    )  # fmt: skip
    found = values(data, "log_likelihood", "y").reshape(-1, 60)
    assert (np.abs(found.mean(axis=0) - expected) < 5 * found.std(axis=0) / np.sqrt(1000)).all()
    variance = values(data, "posterior", "noise").ravel() ** 2
    assert abs(variance.mean() - b / (a - 1)) < 5 * variance.std() / np.sqrt(1000)
    np.testing.assert_array_equal(values(data, "constant_data", "weight"), weights)


def test_log_likelihood_of_the_paper_has_everything_plugged_in(paper):
    data = paper.to_arviz()
    for place in np.ndindex(2, 5):
        formula = Formula(values(data, "trees", "formula")[place], ["x0", "x1"])
        noise = values(data, "posterior", "noise")[place]
        np.testing.assert_allclose(
            values(data, "log_likelihood", "y")[place],
            norm.logpdf(NOISY, formula.predict(X), noise),
            atol=1e-3,
        )


def test_a_model_of_one_draw_a_chain():
    data = small(draws=1, chains=3).fit(X, NOISY).to_arviz()
    assert values(data, "posterior", "noise").shape == (3, 1)
    assert values(data, "log_likelihood", "y").shape == (3, 1, 60)


@pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")
def test_names_are_data(tmp_path):
    pytest.importorskip("h5netcdf", reason="ArviZ 1.x can do without")
    table = pd.DataFrame(RNG.uniform(-2, 2, (60, len(HOSTILE))), columns=HOSTILE)
    y = table[""] + 2 * table["<script>"] + RNG.normal(0, 0.1, 60)
    data = small(operators=["+"], chains=2).fit(table, y).to_arviz()
    assert az.summary(data).loc["uses[<script>]", "mean"] == 1
    data.to_netcdf(str(tmp_path / "draws.nc"))
    read = az.from_netcdf(str(tmp_path / "draws.nc"))
    for again in (data, read):
        assert again["posterior"]["column"].values.tolist() == HOSTILE
        uses = again["posterior"]["uses"].mean(["chain", "draw"])
        assert uses.sel(column="").item() == uses.sel(column="<script>").item() == 1.0
        formula = Formula(again["trees"]["formula"].values[0, 0], HOSTILE)
        assert {"", "<script>"} <= set(formula.features)


def test_columns_that_are_left_out_of_formulas_are_there():
    table = np.column_stack([np.ones(60), X])
    with pytest.warns(DataWarning, match="constant"):
        found = small(operators=["square"]).fit(table, NOISY)
    uses = found.to_arviz()["posterior"]["uses"].mean(["chain", "draw"])
    np.testing.assert_allclose(uses.values, found.inclusion_probability())
    assert uses.sel(column="x0").item() == 0.0
    assert uses.sel(column="x1").item() == 1.0


def test_rows_have_their_numbers(tempered):
    data = tempered.to_arviz(max_rows=7)
    rows = data["observed_data"]["row"].values
    assert len(set(rows)) == 7
    np.testing.assert_array_equal(values(data, "observed_data", "y"), NOISY[rows])
    np.testing.assert_array_equal(values(data, "constant_data", "X"), X[rows])
    assert values(data, "log_likelihood", "y").shape == (2, 200, 7)


def test_rows_of_no_weight_are_not_there():
    weights = np.ones(60)
    weights[[3, 17]] = 0
    data = small().fit(X, NOISY, sample_weight=weights).to_arviz()
    rows = data["log_likelihood"]["row"].values
    np.testing.assert_array_equal(rows, np.flatnonzero(weights))
    np.testing.assert_array_equal(values(data, "observed_data", "y"), NOISY[rows])


def test_states_that_were_fitted_stand_for_all(monkeypatch):
    monkeypatch.setattr(posterior, "_MOST_FITS", 30)
    found = small(draws=400, chains=2).fit(X, NOISY)
    mixture = found.result_.posterior.mixture
    assert len(mixture.models) <= 30 < len(found.result_.posterior.states)
    data = found.to_arviz()
    assert (
        f"{len(mixture.models)} of {len(found.result_.posterior.states)} states"
        in data.attrs["draws"]
    )
    n_nodes = values(data, "posterior", "n_nodes")
    assert n_nodes.shape[1] < 400
    expected = sum(weight * fit.state.n_nodes for weight, fit in mixture.models)
    assert n_nodes.mean() == pytest.approx(expected, rel=0.1)


def test_chains_get_the_same_length(tempered):
    found = pickle.loads(pickle.dumps(tempered))
    first, second = found.result_.posterior.draws
    short = Draws(second.state[:50], second.weight[:50])
    shorter = replace(found.result_.posterior, draws=[first, short])
    found = with_result(found, posterior=shorter)
    states = values(found.to_arviz(), "trees", "state")
    np.testing.assert_array_equal(states[0], first.state)
    np.testing.assert_array_equal(states[1], np.repeat(short.state, 4))


def test_a_chain_without_a_fit_is_left_out(tempered):
    found = pickle.loads(pickle.dumps(tempered))
    mixture = found.result_.posterior.mixture
    assert len(mixture.models) == len(found.result_.posterior.states)
    mixture = replace(mixture, models=mixture.models[:-1])
    bad = Draws(np.full(200, len(mixture.models)), np.ones(200))
    good = Draws(np.zeros(200, int), np.ones(200))
    posterior = replace(found.result_.posterior, mixture=mixture, draws=[bad, good])
    found = with_result(found, posterior=posterior)
    data = found.to_arviz()
    assert data["posterior"]["chain"].values.tolist() == [1]
    assert "chains without one are left out" in data.attrs["draws"]


def test_seeds(tempered):
    first, second, other = (tempered.to_arviz(random_state=seed) for seed in (0, 0, 1))
    for group, name in (("posterior", "noise"), ("posterior_predictive", "y")):
        np.testing.assert_array_equal(values(first, group, name), values(second, group, name))
        assert not np.array_equal(values(first, group, name), values(other, group, name))
    for name in ("n_nodes", "rmse"):
        np.testing.assert_array_equal(
            values(first, "posterior", name), values(other, "posterior", name)
        )


def test_a_model_from_disk_says_the_same(tempered):
    read = pickle.loads(pickle.dumps(tempered))
    for group, name in (("log_likelihood", "y"), ("trees", "state"), ("posterior", "noise")):
        np.testing.assert_array_equal(
            values(read.to_arviz(), group, name), values(tempered.to_arviz(), group, name)
        )


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        ({"max_rows": 0}, ValueError, "to_arviz: max_rows is 0; it must be at least 1"),
        ({"max_rows": None}, TypeError, "max_rows must be an integer, not NoneType"),
        ({"random_state": "a"}, ValueError, "random_state is 'a'"),
    ],
)
def test_bad_questions(tempered, options, error, says):
    with pytest.raises(error, match=says):
        tempered.to_arviz(**options)


def test_a_model_must_be_fitted():
    with pytest.raises(NotFittedError):
        small().to_arviz()


def test_without_arviz_the_remedy_is_named(tempered, monkeypatch):
    monkeypatch.setitem(sys.modules, "arviz", None)
    with pytest.raises(ImportError, match=r"to_arviz needs ArviZ: pip install 'symbayes\[arviz\]'"):
        tempered.to_arviz()


def test_stacked_chains_come_as_they_were_drawn():
    pooled = small(draws=40, tune=0, chains=3).fit(X, NOISY)
    stacked = pooled.combined("stack")
    one, two = pooled.to_arviz(), stacked.to_arviz()
    for name in ("n_terms", "n_nodes", "rmse", "uses"):
        np.testing.assert_array_equal(one["posterior"][name], two["posterior"][name])
    assert two.attrs["chain_weights"] == stacked.chain_weights_.tolist()
    assert one.attrs["chain_weights"] == [1 / 3] * 3
