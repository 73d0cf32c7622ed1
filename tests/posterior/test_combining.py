"""Chains combined otherwise: weights multiply the posterior of each chain, in every answer."""

import json
import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

import symbayes
from symbayes import BayesianSymbolicRegressor, ModelFileError, NoisePrior, TreePrior
from symbayes.cli.output import answer_text, facts, to_json
from symbayes.fitting.model import Fitter
from symbayes.inputs.problem import make_problem
from symbayes.inputs.validation import Table
from symbayes.posterior.posterior import make_posterior
from symbayes.posterior.prediction import Mixture
from symbayes.posterior.stacking import reweighted, stack
from symbayes.posterior.verdict import verdict_of
from symbayes.samplers.trace import ChainTrace, Trace

from ..fits import EXACT, NOISY, X, small
from ..problems import tree
from ..storage.saving import answers, contents, write_edited

RNG = np.random.default_rng(152)
# No term explains this table, and runs are far too short to agree.
TABLE = RNG.uniform(-3, 3, (80, 2))
Y = np.sin(3 * TABLE[:, 0]) * TABLE[:, 1] + 0.3 * TABLE[:, 0] ** 2 + RNG.normal(0, 0.3, 80)
HASTY = {"operators": ["+", "*", "sin", "/"], "draws": 40, "tune": 0, "chains": 3}


def hasty(**options):
    return small(**(HASTY | options)).fit(TABLE, Y)


@pytest.fixture(scope="module")
def model():
    made = hasty()
    assert made.diagnostics_["chains_disagree"]
    return made


@pytest.fixture(scope="module")
def stacked(model):
    return model.combined("stack")


def state_shares(posterior):
    """The probability of each state in each chain, one row a chain."""
    n = len(posterior.states)
    return np.array(
        [np.bincount(d.state, d.weight / d.weight.sum(), minlength=n) for d in posterior.draws]
    )


def test_pooled_chains_count_the_same(model):
    np.testing.assert_array_equal(model.chain_weights_, np.full(3, 1 / 3))
    shares = state_shares(model.result_.posterior).mean(axis=0)
    np.testing.assert_allclose(
        [s.weight for s in model.result_.posterior.states], shares, atol=1e-12
    )


def test_weights_multiply_the_posterior_of_each_chain(model):
    weights = np.array([0.7, 0.2, 0.1])
    found, order = reweighted(model.result_.posterior, weights)
    shares = weights @ state_shares(found)
    np.testing.assert_allclose([s.weight for s in found.states], shares, atol=1e-12)
    np.testing.assert_allclose(found.mixture.weights, shares, atol=1e-12)  # all were fitted
    groups = [shares[sorted(one.members)].sum() for one in found.groups]
    np.testing.assert_allclose([one.weight for one in found.groups], groups, atol=1e-12)
    assert sorted(order) == list(range(len(found.groups)))
    assert groups == sorted(groups, reverse=True)
    uses = [
        [(0.0 if not s.trees else float(any((t["feature"][t["op"] == 0] == c).any()
                                            for t in s.trees))) for s in found.states]
        for c in range(2)
    ]  # fmt: skip
    np.testing.assert_allclose(found.inclusion, uses @ shares, atol=1e-12)


def test_all_weight_on_a_chain_is_that_chain_alone(model):
    tiny = 1e-300
    found, _ = reweighted(model.result_.posterior, np.array([tiny, 1.0, tiny]))
    mean, std, _ = found.mixture.predict(TABLE[:5])
    own = state_shares(model.result_.posterior)[1]
    chosen = [(w, m) for w, (_, m) in zip(own, found.mixture.models, strict=True) if w > 0]
    alone = Mixture(chosen, *list(vars(found.mixture).values())[1:])
    expected = alone.predict(TABLE[:5])
    np.testing.assert_allclose(mean, expected[0], rtol=1e-9)
    np.testing.assert_allclose(std, expected[1], rtol=1e-9)


def test_a_stacked_mixture_predicts_left_out_rows_better(model):
    found = stack(model.result_.posterior, model.result_.rows)
    assert found.gain > 0.0
    assert found.weights.sum() == pytest.approx(1.0)
    assert model.diagnostics_["stacking_gain"] == found.gain
    assert model.diagnostics_["stacking_weights"] == found.weights.tolist()


def test_a_chain_that_knows_better_takes_over():
    """One chain is at the truth, the others are not: two that say the same share what is left."""
    table = Table(X, NOISY, np.ones(60), np.arange(2))
    made = make_problem(table, {"+": 1.0}, np.full(2, 0.5), TreePrior(), NoisePrior(), 1)
    chains = [
        ChainTrace([nodes] * 30, [1] * 30, [np.zeros(10)] * 30)
        for nodes in (tree("square", 0), tree(1), tree(1))
    ]
    trace = Trace(chains, [np.ones(30)] * 3, np.zeros((3, 3, 9)), 0.0)
    made = make_posterior(Fitter(made, NOISY, np.ones(60), False), trace)
    found = stack(made, table)
    assert found.weights[0] > 0.99
    assert found.weights[1] == pytest.approx(found.weights[2], rel=1e-6)
    # Of the pooled chains a third is at the truth: at most log 3 a row can be gained.
    assert 0.5 * 60 * np.log(3) < found.gain <= 60 * np.log(3)


def test_stacking_after_the_fit_is_stacking_in_the_fit(stacked):
    fitted = hasty(combine="stack")
    fitted.diagnostics_["seconds"] = stacked.diagnostics_["seconds"]
    assert contents(fitted) == contents(stacked)
    assert answers(fitted, TABLE) == answers(stacked, TABLE)
    assert fitted.combine == stacked.combine == "stack"


def test_all_answers_are_of_the_stacked_chains(model, stacked):
    weights = stacked.chain_weights_
    np.testing.assert_array_equal(weights, model.diagnostics_["stacking_weights"])
    assert np.ptp(weights) > 0.01
    by_chain = stacked.formulas_by_chain(300)
    mixed = by_chain["probability"] * weights[by_chain["chain"]]
    np.testing.assert_allclose(
        mixed.groupby(mixed.index).sum(), stacked.formulas_["probability"], atol=1e-12
    )
    assert stacked.best_formula_ == stacked.formula_objects_[0]
    assert str(stacked.best_formula_) == stacked.formulas_["formula"][0]
    assert stacked.formulas_["probability"].is_monotonic_decreasing
    assert stacked.diagnostics_["leading_by_chain"] == stacked.result_.posterior.leading_by_chain
    mean, std = stacked.predict(TABLE, return_std=True)
    assert not np.array_equal(mean, model.predict(TABLE))
    lower, upper = stacked.predict_interval(TABLE, 0.8)
    draws = stacked.sample_predictive(TABLE, 4000)
    inside = ((lower < draws) & (draws < upper)).mean(axis=0)
    np.testing.assert_allclose(inside, 0.8, atol=0.035)  # five deviations of 4,000 draws
    np.testing.assert_allclose(draws.mean(axis=0), mean, atol=0.12 * std.max())


def test_the_model_itself_stays_as_it_is(model):
    before = contents(model)
    model.combined("stack")
    assert contents(model) == before
    assert model.combine == "pool"


def test_and_back(model, stacked):
    again = stacked.combined("pool")
    np.testing.assert_allclose(again.predict(TABLE), model.predict(TABLE), rtol=1e-9)
    # Up to the order of formulas with the same probability.
    one, two = (m.formulas_.sort_values("formula", ignore_index=True) for m in (again, model))
    pd.testing.assert_frame_equal(one, two)


@pytest.mark.parametrize("sampler", ["paper", "tempered"])
def test_both_samplers(sampler):
    model = hasty(sampler=sampler, n_terms=2, draws=30, combine="stack")
    assert model.chain_weights_.sum() == pytest.approx(1.0)
    assert np.isfinite(model.diagnostics_["stacking_gain"])
    assert np.isfinite(model.predict(TABLE)).all()


def test_one_chain_has_nothing_to_be_combined():
    model = small(combine="stack").fit(X, NOISY)
    assert model.chain_weights_.tolist() == [1.0]
    assert model.diagnostics_["stacking_weights"] is None
    assert model.diagnostics_["chains_disagree"] is False


def test_many_states_of_which_a_sample_is_fitted(monkeypatch):
    """A thinned mixture is reweighted by the states that its models stand for."""
    monkeypatch.setattr(symbayes.posterior.posterior, "_MOST_FITS", 20)
    monkeypatch.setattr(symbayes.posterior.posterior, "_FEWEST_FITS", 20)
    model = hasty(draws=120)
    assert len(model.result_.posterior.mixture.models) < len(model.result_.posterior.states)
    weights = np.array([0.5, 0.3, 0.2])
    found, _ = reweighted(model.result_.posterior, weights)
    ratio = weights @ state_shares(found) / state_shares(found).mean(axis=0)
    expected = model.result_.posterior.mixture.weights.copy()
    for i, place in enumerate(model.result_.posterior.model_places):
        if place >= 0:
            expected[place] *= ratio[i]
    np.testing.assert_allclose(found.mixture.weights, expected / expected.sum(), rtol=1e-9)
    assert model.combined("stack").chain_weights_.sum() == pytest.approx(1.0)


def test_a_sample_of_the_rows_is_enough(model, monkeypatch):
    monkeypatch.setattr(symbayes.posterior.stacking, "_MOST_ROWS", 40)
    some = stack(model.result_.posterior, model.result_.rows)
    assert some.weights.sum() == pytest.approx(1.0)
    # The gain is that of all rows, of which half were looked at.
    rows = model.result_.rows.sample(40)
    monkeypatch.setattr(symbayes.posterior.stacking, "_MOST_ROWS", 1000)
    of_mixture = replace(
        model.result_.posterior, mixture=replace(model.result_.posterior.mixture, n=80.0)
    )
    assert stack(of_mixture, rows).gain == some.gain


# What is told and shown.


def test_the_verdict_says_what_to_do(model):
    verdict = model.diagnostics_["verdict"]
    assert verdict.startswith("Not converged: the chains do not agree")
    assert "formulas_by_chain() shows what each chain found" in verdict
    assert "raise draws, or leave out operators and columns that are not needed" in verdict
    data = verdict_of(model.diagnostics_)
    assert data.stacking_gain == model.diagnostics_["stacking_gain"]
    assert data.text() == verdict
    assert (
        "Stacked instead of pooled, combined('stack'), they predict left-out rows better, by 12 "
        "nats."
    ) in replace(data, stacking_gain=12.4).text()
    assert "would not predict better" in replace(data, stacking_gain=1.0).text()


def test_the_verdict_of_stacked_chains_does_not_advise_to_stack_them(model):
    gain = model.diagnostics_["stacking_gain"]
    stacked = model.combined("stack")
    assert stacked.diagnostics_["verdict"].endswith(
        "They are stacked, and predict left-out rows better than if they were pooled, by "
        f"{gain:.0f} nats."
    )
    assert "combined('stack')" not in stacked.diagnostics_["verdict"]
    again = stacked.combined("pool")
    assert again.diagnostics_["verdict"] == model.diagnostics_["verdict"]


def test_chains_that_agree_are_not_stacked():
    model = small(chains=2).fit(X, EXACT)
    assert model.diagnostics_["chains_disagree"] is False
    assert model.diagnostics_["stacking_weights"] is None
    assert "stack" not in model.diagnostics_["verdict"]
    assert "chain  weight" not in answer_text(model)


def test_formulas_by_chain(model):
    found = model.formulas_by_chain(2)
    assert found["chain"].tolist() == [0, 0, 1, 1, 2, 2]
    for chain, part in found.groupby("chain"):
        draws = model.result_.posterior.draws[chain]
        assert part["probability"].is_monotonic_decreasing
        for i, row in part.iterrows():
            members = sorted(model.result_.posterior.groups[i].members)
            assert row["probability"] == np.isin(draws.state, members).mean()
            assert row["formula"] == model.formulas_.loc[i, "formula"]
            assert row["r2"] == model.formulas_.loc[i, "r2"]
    with pytest.raises(ValueError, match="n is 0"):
        model.formulas_by_chain(0)


def test_text_and_json_show_each_chain(model, stacked):
    text = answer_text(stacked)
    assert "chain  weight  probability  formula" in text
    for weight in stacked.chain_weights_:
        assert f"{weight:.3f}" in text
    told = json.loads(to_json(facts(stacked)))["chains"]
    assert told["combined"] == "stack"
    assert told["weights"] == stacked.chain_weights_.tolist()
    assert len(told["formulas"]) == len(stacked.formulas_by_chain())
    assert json.loads(to_json(facts(model)))["chains"]["combined"] == "pool"


def test_the_report_shows_each_chain_where_they_disagree(model, tmp_path):
    page = model.report(tmp_path / "page.html").read_text(encoding="utf-8")
    assert page.count("What each chain found") == 2  # as a caption and for screen readers
    agreed = small(chains=2).fit(X, EXACT)
    page = agreed.report(tmp_path / "page.html").read_text(encoding="utf-8")
    assert "What each chain found" not in page


@pytest.mark.parametrize("value", ["average", None, 1])
def test_another_way_is_refused(model, value):
    with pytest.raises(ValueError, match="must be one of 'pool', 'stack'"):
        model.combined(value)
    with pytest.raises(ValueError, match=r"combine=.*must be one of 'pool', 'stack'"):
        small(combine=value).fit(X, NOISY)


def test_unfitted():
    model = BayesianSymbolicRegressor()
    for ask in (model.formulas_by_chain, lambda: model.chain_weights_, lambda: model.combined("x")):
        with pytest.raises(NotFittedError):
            ask()


# Files.


def test_files_keep_the_weights(stacked, tmp_path):
    stacked.save(tmp_path / "a")
    loaded = symbayes.load(tmp_path / "a")
    assert contents(loaded) == contents(stacked)
    assert answers(loaded, TABLE) == answers(stacked, TABLE)
    assert contents(pickle.loads(pickle.dumps(stacked))) == contents(stacked)


def test_a_loaded_model_can_be_stacked(model, stacked, tmp_path):
    model.save(tmp_path / "a")
    loaded = symbayes.load(tmp_path / "a").combined("stack")
    assert answers(loaded, TABLE) == answers(stacked, TABLE)


@pytest.mark.parametrize(
    "weights", [[0.5, 0.5, 0.5], [0.5, 0.5, 0.0], [1.5, -0.5, 0.0], [0.5, 0.5], [np.nan, 1, 0]]
)
def test_weights_of_a_file_are_checked(stacked, tmp_path, weights):
    def edit(document, arrays):
        arrays["chains/weight"] = np.array(weights)

    write_edited(stacked, tmp_path / "a", edit)
    with pytest.raises(ModelFileError):
        symbayes.load(tmp_path / "a")


def test_stacking_of_a_file_is_checked(stacked, tmp_path):
    for value in ("0.5", [0.5, 0.5], [1, 1, 1]):

        def edit(document, arrays, value=value):
            document["diagnostics"]["stacking_weights"] = value

        write_edited(stacked, tmp_path / "a", edit)
        with pytest.raises(ModelFileError):
            symbayes.load(tmp_path / "a")
