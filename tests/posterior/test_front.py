"""The front: from one column up to the largest formula, with the best of every size."""

import itertools
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from symbayes import BayesianSymbolicRegressor, ConvergenceWarning, load, run
from symbayes.deadline import Deadline
from symbayes.fitting.model import Fitter
from symbayes.inputs.prior import TermsPrior
from symbayes.inputs.validation import Table
from symbayes.posterior.pool import Pool

from ..fits import assert_same, small
from ..problems import problem, tree

RNG = np.random.default_rng(61)
X = RNG.uniform(0.5, 3.0, (300, 4))
Y = np.sqrt(X[:, 0] + X[:, 3] ** 2) + np.sin(X[:, 0]) + RNG.normal(0.0, 0.1, 300)
SEARCHED = {"draws": 100, "tune": 300, "chains": 2}
# Without constants, whose values take most of the time of a fit.
QUICK = SEARCHED | {"operators": ["+", "*", "sin", "sqrt", "square"]}


@pytest.fixture(scope="module")
def model():
    return small(**SEARCHED).fit(X, Y)


@pytest.fixture(scope="module")
def quick():
    return small(**QUICK).fit(X, Y)


def test_it_starts_at_one_column_and_gets_closer(model):
    front = model.pareto_
    assert front["n_nodes"].iloc[0] == 5  # b0 + b1*x
    assert len(model.pareto_objects_[0].features) == 1
    assert (np.diff(front["n_nodes"]) > 0).all()
    assert (np.diff(front["rmse"]) < 0).all()
    assert (np.diff(front["r2"]) > 0).all()
    assert len(front) >= 6
    alone = [
        np.sqrt(np.mean((Y - np.polyval(np.polyfit(column, Y, 1), column)) ** 2)) for column in X.T
    ]
    assert front["rmse"].iloc[0] == pytest.approx(min(alone), rel=1e-9)
    assert front["rmse"].iloc[-1] <= model.formulas_["rmse"].min()


def test_rows_say_what_their_formulas_are(model):
    rows = zip(model.pareto_.itertuples(), model.pareto_objects_, strict=True)
    for row, formula in rows:
        assert row.formula == str(formula)
        assert row.n_nodes == formula.n_nodes
        error = np.sqrt(np.mean((Y - formula.predict(X)) ** 2))
        assert row.rmse == pytest.approx(error, rel=1e-9)
        assert row.r2 == pytest.approx(1.0 - error**2 / Y.var(), abs=1e-9)
        assert np.isfinite(row.log_evidence)


def test_no_formula_that_was_drawn_is_shorter_and_closer(model):
    for row in model.formulas_.itertuples():
        near = model.pareto_[model.pareto_["n_nodes"] <= row.n_nodes]
        assert near["rmse"].min() <= row.rmse * (1.0 + 1e-12)


def test_those_that_were_drawn_have_their_probability(model):
    front = model.pareto_
    shares = dict(zip(model.formulas_["formula"], model.formulas_["probability"], strict=True))
    drawn = front[front["formula"].isin(shares)]
    assert len(drawn)
    assert drawn["probability"].tolist() == [shares[text] for text in drawn["formula"]]
    assert (front["probability"] == 0.0).any()
    stacked = model.combined("stack")
    shares = dict(zip(stacked.formulas_["formula"], stacked.formulas_["probability"], strict=True))
    drawn = stacked.pareto_[stacked.pareto_["formula"].isin(shares)]
    assert drawn["probability"].tolist() == [shares[text] for text in drawn["formula"]]


def test_probabilities_by_evidence_are_those_of_the_evidence(model):
    """In both tables together: what has an evidence has its share, drawn or not."""
    formulas, front = model.formulas_, model.pareto_
    assert (front["log_evidence"].notna() == front["by_evidence"].notna()).all()
    met = front[(front["probability"] == 0.0) & front["by_evidence"].notna()]
    drawn = formulas[formulas["by_evidence"].notna()]
    of = front.set_index("formula").to_dict("index")
    evidence = [
        row.log_evidence if np.isfinite(row.log_evidence) else of[row.formula]["log_evidence"]
        for row in drawn.itertuples()
    ]
    both = np.append(evidence, met["log_evidence"])
    expected = np.exp(both - both.max()) / np.exp(both - both.max()).sum()
    shares = np.append(drawn["by_evidence"], met["by_evidence"])
    np.testing.assert_allclose(shares, expected * drawn["probability"].sum(), rtol=1e-9)


# In other processes: `test_the_same_model_wherever_it_is_fitted`.
def test_the_same_on_one_core(model):
    assert_same(small(n_jobs=1, **SEARCHED).fit(X, Y), model, X)


class Stopped(Exception):
    pass


@pytest.mark.parametrize("phase", ["search", "settling", "drawing"])
def test_the_same_after_a_run_was_resumed(quick, phase, tmp_path):
    def stop(status):
        if status.phase == phase and status.done > 1:
            raise Stopped

    path = tmp_path / "run"
    with pytest.raises(Stopped):
        small(progress=stop, **QUICK).fit(X, Y, checkpoint=path)
    assert_same(BayesianSymbolicRegressor.resume(path, X, Y), quick, X)


def test_a_file_has_it(model, tmp_path):
    model.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert_same(loaded, model, X)
    assert loaded.pareto_objects_ == model.pareto_objects_
    assert_same(loaded.combined("stack"), model.combined("stack"), X)


def test_changes_to_the_table_stay_outside(model):
    front = model.pareto_
    front["rmse"] = 0.0
    assert (model.pareto_["rmse"] > 0).all()


def test_a_fixed_number_of_terms_is_that_of_all():
    found = small(n_terms=2, **QUICK).fit(X, Y)
    assert (found.pareto_["n_terms"] == 2).all()
    assert (found.pareto_["probability"] == 0).any()


def test_known_terms_are_in_all():
    found = small(known_terms=["x1*x2"], **QUICK).fit(X, Y)
    for formula in found.pareto_objects_:
        assert {"x1", "x2"} <= set(formula.features)


def test_weights_count_as_rows():
    weights = np.where(X[:, 0] > 2.0, 0.0, 1.0)
    found = small(**QUICK).fit(X, Y, sample_weight=weights)
    kept = weights > 0
    for row, formula in zip(found.pareto_.itertuples(), found.pareto_objects_, strict=True):
        error = np.sqrt(np.mean((Y[kept] - formula.predict(X[kept])) ** 2))
        assert row.rmse == pytest.approx(error, rel=1e-9)


def test_with_the_sampler_of_the_paper_it_is_that_of_the_draws():
    found = small(sampler="paper", n_terms=2, draws=100).fit(X, Y)
    assert (found.pareto_["probability"] > 0).all()
    assert set(found.pareto_["formula"]) <= set(found.formulas_["formula"])


def test_an_exact_formula_is_its_end():
    found = small(**SEARCHED).fit(X, 3.0 * X[:, 0] ** 2 + 2.0)
    assert found.pareto_["n_nodes"].iloc[-1] == found.best_formula_.n_nodes
    assert found.pareto_["rmse"].iloc[-1] < 1e-12


# Rules that choose from it.


@pytest.mark.parametrize("lost", [0.0, 0.001, 0.02, 0.3, 0.99])
def test_the_simplest_that_loses_no_more(model, lost):
    chosen = model.select(f"simplest within {lost}")
    best = model.formulas_["r2"].max()
    good = [
        formula
        for formula, r2 in zip(model.pareto_objects_, model.pareto_["r2"], strict=True)
        if r2 >= best - lost
    ]
    assert chosen == min(good, key=lambda formula: formula.n_nodes)
    assert chosen == model.select(f"simplest within {100 * lost:g} %")
    everything = [*model.formula_objects_, *model.pareto_objects_]
    r2 = [*model.formulas_["r2"], *model.pareto_["r2"]]
    enough = [f.n_nodes for f, one in zip(everything, r2, strict=True) if one >= best - lost]
    assert chosen.n_nodes == min(enough)


def test_it_may_be_the_rule_of_the_fit(quick, tmp_path):
    rule = "simplest within 5 %"
    found = small(model_selection=rule, **QUICK).fit(X, Y)
    assert found.best_formula_ == quick.select(rule)
    assert found.best_formula_ != quick.best_formula_
    pd.testing.assert_frame_equal(found.formulas_, quick.formulas_)
    found.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert loaded.best_formula_ == found.best_formula_ == found.combined("stack").best_formula_
    assert loaded.result_.best_row["formula"] == str(found.best_formula_)
    assert found.constants(found.best_formula_)["value"].notna().all()
    pd.testing.assert_frame_equal(found.constants(), found.constants(found.best_formula_))
    page = found.report(tmp_path / "page.html").read_text(encoding="utf-8")
    assert "the simplest that loses at most 0.05 of R2" in page


def test_where_no_formula_stands_out_the_best_is_a_short_one(model):
    result = model.result_
    assert result.formulas["probability"][0] >= 0.1
    assert model.best_formula_ == model.select("auto") == model.select("probability")
    assert result.chosen_by("auto") == "the most probable"
    crowd = result.formulas.assign(probability=0.09)
    among_many = replace(result, formulas=crowd)
    chosen, (_, place) = among_many.selected("auto"), among_many.select("auto")
    r2, leading = result.front["r2"].to_numpy(), crowd["r2"][0]
    least = leading - min(0.01, 0.1 * (1.0 - leading))
    assert (r2[:place] < least).all()
    assert r2[place] >= least
    assert chosen == model.pareto_objects_[place]
    assert chosen.n_nodes <= model.formula_objects_[0].n_nodes
    # What leaves nearly nothing is not given up for what leaves a hundredth.
    front = result.front.assign(r2=np.linspace(0.99, 1.0 - 1e-6, len(r2)))
    close = replace(result, formulas=crowd.assign(r2=1.0 - 1e-6), front=front)
    assert close.select("auto") == (0, len(front) - 1)
    assert among_many.chosen_by("auto").startswith("none stands out: the shortest that is nearly")


@pytest.mark.parametrize(
    ("rule", "says"),
    [
        ("simplest", "must be one of 'auto', 'probability'"),
        ("best", "'simplest within 0.01'"),
        ("simplest within", "how much of R2 may be lost"),
        ("simplest within one", "how much of R2 may be lost"),
        ("simplest within -0.1", "from 0 to below 1"),
        ("simplest within 1", "from 0 to below 1"),
        ("simplest within 100 %", "from 0 to below 1"),
        ("simplest within 1e400", "how much of R2 may be lost"),
        (0.01, "rule=0.01"),
        (None, "rule=None"),
    ],
)
def test_rules_that_there_are_not(model, rule, says):
    with pytest.raises(ValueError, match=says):
        model.select(rule)
    with pytest.raises(ValueError, match=says.replace("rule=", "model_selection=")):
        small(model_selection=rule).fit(X, Y)


def test_constants_of_a_formula_of_the_front(model):
    formula = model.pareto_objects_[0]
    constants = model.constants(formula)
    slope, intercept = np.polyfit(X[:, int(formula.features[0][1:])], Y, 1)
    np.testing.assert_allclose(constants["value"], [slope, intercept], rtol=1e-9)
    with pytest.raises(ValueError, match="none of this model"):
        model.constants(type(formula)("x0 + 1", ["x0", "x1", "x2", "x3"]))


# The pool of terms.


def pool_of(terms, most_constants=np.inf, known=()):
    rows = Table(X, Y, np.ones(len(Y)), np.arange(4))
    target = problem(
        rows, {"+": 1.0, "*": 1.0, "lt": 1.0}, TermsPrior(3), known=known,
        most_constants=most_constants,
    )  # fmt: skip
    fitter = Fitter(target, Y, np.ones(len(Y)), plug_in=False)
    return fitter, Pool(fitter, [terms])


@pytest.mark.parametrize("known", [(), (tree("square", 1),)], ids=["free", "known"])
def test_sums_of_one_and_two_are_the_best_of_their_size(known):
    terms = [tree("sqrt", "+", 0, 3), tree("sin", 0), tree("*", 1, 2), tree("square", 3)]
    fitter, pool = pool_of(terms, known=known)
    found = pool.best_sums(2, Deadline())
    every = [*terms, *(tree(i) for i in range(4)), tree("+", 0, 3)]
    best = {}
    for n in (1, 2):
        for some in itertools.combinations(every, n):
            size = 1 + sum(3 + len(one) for one in some)
            fit = fitter.fit_trees(some)
            best[size] = min(best.get(size, np.inf), fit.mse)
    none = fitter.fit_trees([]).mse if known else np.mean(fitter.scaled_y**2)
    for size, mse in best.items():
        own = min(one.rss for one in found if one.size == size)
        assert own * none == pytest.approx(mse, rel=1e-6), size
    for one in found:
        assert pool.candidate(one.trees).rss == pytest.approx(one.rss, rel=1e-6)


def test_sums_keep_to_the_number_of_constants():
    terms = [tree("sin", "lt", 0, a=2.0, b=0.3), tree("square", 3), tree("*", 1, 2)]
    _, pool = pool_of(terms, most_constants=4.0)
    for one in pool.best_sums(3, Deadline()):
        transforms = sum(int((nodes["op"] == 1).sum()) for nodes in one.trees)
        assert len(one.trees) == 1 or 1 + len(one.trees) + 2 * transforms <= 4


def test_terms_without_numbers_are_left_out():
    _, pool = pool_of([tree("log", "-", 0, 3), tree("-", 1, 1), tree("/", 0, 0)])
    # The columns, and what is inside the logarithm.
    assert [len(nodes) for nodes in pool.trees] == [1, 1, 1, 1, 3]
    assert pool.candidate([tree("log", "-", 0, 3)]) is None


def test_what_was_met_and_never_drawn_is_a_rival(monkeypatch):
    """The leading formula is taken out of the draws: then it was only met."""
    made = {}
    make = run.make_posterior

    def without_the_first(fitter, *rest):
        whole = make(fitter, *rest)
        first, *others = whole.groups
        made["lost"] = first
        drawn = [replace(one, weight=one.weight / (1.0 - first.weight)) for one in others]
        return replace(whole, groups=drawn)

    monkeypatch.setattr(run, "make_posterior", without_the_first)
    y = X[:, 0] * X[:, 1] + RNG.normal(0.0, 0.3, 300)
    options = {"operators": ["+", "*", "square"], "draws": 400, "tune": 300, "chains": 2}
    with pytest.warns(ConvergenceWarning, match="was met and never drawn") as told:
        model = small(**options).fit(X, y)
    assert "x0*x1" in str(told[0].message)
    facts = model.diagnostics_["verdict_data"]["facts"]
    assert facts["missed"] == pytest.approx(made["lost"].weight, abs=0.1)
