"""What a user believes is kept to exactly: limits, known terms, guesses, noise."""

import numpy as np
import pytest

from symbayes import (
    BayesianSymbolicRegressor,
    DataWarning,
    Formula,
    NoisePrior,
    TemperedSampler,
    TreePrior,
)
from symbayes.formula.operators import OPERATORS
from symbayes.inputs.prior import noise_prior
from symbayes.inputs.probe import is_sensible, probe_rows
from symbayes.kernels import opcodes

from .. import naive
from ..fits import EXACT, NOISY, X, small

RNG = np.random.default_rng(70)


def drawn_trees(model):
    return [tree for state in model.result_.posterior.states for tree in state.trees]


@pytest.mark.parametrize("sampler", ["tempered", "paper"])
def test_limits_hold_for_every_draw(sampler):
    prior = TreePrior(max_depth=3, nesting={"sin": {"sin": 0, "*": 0}, "*": {"*": 0}})
    model = small(operators=["sin", "*", "+"], tree_prior=prior, sampler=sampler, draws=200)
    model.fit(X, NOISY)
    trees = [naive.from_nodes(tree) for tree in drawn_trees(model)]
    assert all(naive.is_allowed(tree, 3, prior.nesting) for tree in trees)
    free = small(operators=["sin", "*", "+"], sampler=sampler, draws=200).fit(X, NOISY)
    others = [naive.from_nodes(tree) for tree in drawn_trees(free)]
    assert not all(naive.is_allowed(tree, 3, prior.nesting) for tree in others)


def test_limits_hold_where_the_truth_breaks_them():
    """The search may not bring in what is not allowed."""
    y = np.sin(X[:, 0] + np.sin(X[:, 1]))
    prior = TreePrior(nesting={"sin": {"sin": 0}})
    model = small(operators=["sin", "+"], tree_prior=prior, tune=400).fit(X, y)
    assert all(naive.is_allowed(naive.from_nodes(t), None, prior.nesting)
               for t in drawn_trees(model))  # fmt: skip
    free = small(operators=["sin", "+"], tune=400).fit(X, y)
    assert not naive.is_allowed(naive.from_nodes(drawn_trees(free)[0]), None, prior.nesting)


def test_every_draw_is_sensible():
    """Also where the truth is not, and is suggested: a wave that the rows cannot tell."""
    rng = np.random.default_rng(3)
    table = rng.uniform(0.0, 10.0, (30, 1))
    y = np.sin(400.0 * table[:, 0])
    options = {"operators": ["sin", "lt", "exp", "+", "*"], "initial_formulas": ["sin(400*x0)"]}
    noisy = y + rng.normal(0.0, 0.01, 30)
    with pytest.warns(DataWarning, match=r"initial_formulas: 'sin\(400\*x0\)' is dropped unless"):
        fitted = small(draws=200, chains=2, **options).fit(table, noisy)
    prior = TreePrior(sensible=False)
    free = small(draws=200, chains=2, tree_prior=prior, **options).fit(table, noisy)
    probe = probe_rows(np.ascontiguousarray(table.T))
    assert all(is_sensible(tree, probe) for tree in drawn_trees(fitted))
    assert not all(is_sensible(tree, probe) for tree in drawn_trees(free))
    # The best constants of what is shown are not looked for elsewhere.
    shown = [tree for _, fit in fitted.result_.posterior.formula_models for tree in fit.state.trees]
    assert all(is_sensible(tree, probe) for tree in shown)


def test_what_fits_to_all_digits_is_believed():
    rng = np.random.default_rng(3)
    table = rng.uniform(0.0, 10.0, (30, 1))
    options = {"operators": ["sin", "lt", "+"], "initial_formulas": ["sin(400*x0)"], "chains": 2}
    with pytest.warns(DataWarning, match="is dropped unless it fits to all digits"):
        fitted = small(**options).fit(table, np.sin(400.0 * table[:, 0]))
    assert fitted.best_formula_.text(digits=6) == "sin(400*x0)"
    assert fitted.formulas_["probability"][0] > 0.9


def test_data_may_insist_on_nested_operators():
    y = np.sin(3.0 * np.sin(X[:, 0]))
    model = small(operators=["sin", "lt", "+"], tune=600, draws=50).fit(X, y)
    assert model.best_formula_.text().count("sin") == 2


@pytest.mark.parametrize("sampler", ["tempered", "paper"])
def test_known_terms_are_in_every_model(sampler):
    y = 2 * X[:, 0] * X[:, 1] + 3 * X[:, 0] ** 2 + RNG.normal(0, 0.3, 60)
    model = small(known_terms=["x0*x1"], operators=["square", "+"], sampler=sampler, draws=200)
    model.fit(X, y)
    for _, fit in model.result_.posterior.mixture.models:
        first = fit.state.trees[0]
        assert first["op"].tolist() == [OPERATORS["*"].opcode, 0, 0]
        assert first["feature"].tolist() == [0, 0, 1]
    assert "x0*x1" in str(model.best_formula_)
    assert model.inclusion_probability().tolist() == [1.0, 1.0]
    mean, std = model.predict(X, return_std=True)
    assert np.abs(mean - y).mean() < 0.5
    assert (std > 0).all()


def test_known_terms_make_the_same_models_as_terms_that_were_found():
    """Coefficients, errors and intervals are those of the same formula without the knowledge."""
    y = 2 * X[:, 0] * X[:, 1] + 3 * X[:, 0] ** 2 + RNG.normal(0, 0.3, 60)
    prior = TreePrior(max_nodes=3)
    common = {"operators": ["*", "square"], "tree_prior": prior, "draws": 300, "tune": 500}
    found = small(n_terms=2, **common).fit(X, y)
    known = small(n_terms=1, known_terms=["5 - 0.5*x1*x0"], **common).fit(X, y)
    assert found.best_formula_.is_equivalent(known.best_formula_)
    for name in ("rmse", "r2"):
        assert found.formulas_[name][0] == pytest.approx(known.formulas_[name][0], rel=1e-9)
    pick = [
        next(fit for _, fit in m.result_.posterior.mixture.models
             if sorted(len(t) for t in fit.state.trees) == [2, 3])
        for m in (found, known)
    ]  # fmt: skip
    assert pick[0].noise_variance * found.result_.posterior.mixture.y_scale**2 == pytest.approx(
        pick[1].noise_variance * known.result_.posterior.mixture.y_scale**2, rel=1e-6
    )


def test_constants_in_known_terms_stay():
    y = np.sin(2 * X[:, 0] + 1) + X[:, 1] ** 2 + RNG.normal(0, 0.05, 60)
    model = small(known_terms=["sin(2.2*x0 + 1)"], operators=["sin", "lt"], n_terms=1).fit(X, y)
    assert all("sin(2.2*x0 + 1)" in text for text in model.formulas_["formula"])
    transforms = [
        fit.state.trees[0][fit.state.trees[0]["op"] == opcodes.LT]
        for _, fit in model.result_.posterior.mixture.models
    ]
    assert all((t["a"] == 2.2).all() and (t["b"] == 1.0).all() for t in transforms)


def test_a_known_term_helps_to_find_the_rest():
    y = 5 * np.tanh(X[:, 0] * X[:, 1]) + EXACT
    model = small(known_terms=["tanh(x0*x1)"], operators=["square", "*", "+"], tune=200)
    assert model.fit(X, y).formulas_["rounded"][0] in (
        "5*tanh(x0*x1) + 3*x0**2 + 2", "3*x0**2 + 5*tanh(x0*x1) + 2",
    )  # fmt: skip


def test_weights_of_rows_count_for_known_terms():
    twice = small(known_terms=["x1"], tune=50).fit(np.vstack([X, X]), np.tile(NOISY, 2))
    weighted = small(known_terms=["x1"], tune=50).fit(X, NOISY, sample_weight=np.full(60, 2.0))
    one, two = twice.result_.posterior.mixture, weighted.result_.posterior.mixture
    assert one.y_scale == pytest.approx(two.y_scale)
    assert one.noise_prior == pytest.approx(two.noise_prior)


@pytest.mark.parametrize("sampler", ["tempered", "paper"])
def test_a_run_starts_at_a_guess(sampler):
    guess = "2*x0**2 - sin(x1)"
    settings = sampler if sampler == "paper" else TemperedSampler(search=False, steps_per_draw=1)
    model = BayesianSymbolicRegressor(
        ["square", "sin", "*"], n_terms=2, initial_formulas=[guess], sampler=settings, draws=1,
        tune=0, chains=3, random_state=0,
    ).fit(X, 2 * X[:, 0] ** 2 - np.sin(X[:, 1]) + RNG.normal(0, 1e-3, 60))  # fmt: skip
    assert model.best_formula_.features == ["x0", "x1"]
    assert model.formulas_["formula"][0].count("x0**2") == 1
    assert model.formulas_["formula"][0].count("sin(x1)") == 1


def test_a_guess_that_nothing_else_would_find():
    """Ten nodes deep, with constants that are nearly right."""
    truth = "3*exp(-0.5*(x0 - 1)**2)*cos(2*x1 + 0.3)"
    y = Formula(truth, ["x0", "x1"]).predict(X)
    guess = "exp(-0.45*(x0 - 0.9)**2)*cos(2.1*x1 + 0.2)"
    model = small(initial_formulas=["x0", Formula(guess, ["x0", "x1"])], tune=60).fit(X, y)
    assert model.formulas_["r2"][0] > 1 - 1e-12


def test_names_in_formulas_of_the_user():
    import pandas as pd

    table = pd.DataFrame(X, columns=["a b", "sin"])
    model = small(known_terms=["`a b`*`sin`"], initial_formulas=["`a b`**2"], tune=50)
    model.fit(table, NOISY)
    assert "`a b`*`sin`" in str(model.best_formula_)


BAD = [
    ({"known_terms": "x0"}, TypeError, r"known_terms must be a list of formulas.*\['x0\*x1'\]"),
    ({"known_terms": [3]}, TypeError, "known_terms: a formula is a str or a Formula, not 3"),
    ({"known_terms": ["z"]}, ValueError, "known_terms: 'z' is not a column"),
    ({"known_terms": ["2 + 3"]}, ValueError, "'2 . 3' is a constant; the model has an intercept"),
    ({"known_terms": ["log(x0)"]}, ValueError, "'log.x0.' has no finite value on .* of 60 train"),
    ({"known_terms": ["x0", "3*x0 - 1"]}, ValueError, "is a combination of the other known terms"),
    ({"known_terms": ["x0*0"]}, ValueError, "is a constant"),
    ({"initial_formulas": ["sin(x0/0)"]}, ValueError, "divides by 0 or has a constant that is not"),
    ({"initial_formulas": ["log(x0)"]}, ValueError, "initial_formulas: 'log.x0.' has no finite va"),
    ({"initial_formulas": ["tanh(x0)"]}, ValueError, "needs the operator 'tanh', which is not am"),
    ({"initial_formulas": ["sin(2*x0)"], "operators": ["sin"]}, ValueError, "operator lt .const"),
    ({"initial_formulas": ["x0 + x1"], "n_terms": 1}, ValueError, "has 2 terms and n_terms allo"),
    ({"initial_formulas": ["x0**12"], "tree_prior": TreePrior(max_nodes=3)}, ValueError, "max_nod"),
    ({"initial_formulas": ["x0 +"]}, ValueError, "initial_formulas: expected a value"),
    ({"noise_prior": "tiny"}, ValueError, "noise_prior='tiny'; it must be 'small', a number"),
    ({"noise_prior": -1.0}, ValueError, "noise_prior: share is -1.0; it must be above 0"),
    ({"noise_prior": [1]}, TypeError, "noise_prior must be 'small', a number .* not list"),
]


@pytest.mark.parametrize(("options", "error", "says"), BAD, ids=lambda v: str(v)[:40])
def test_impossible_beliefs(options, error, says):
    with pytest.raises(error, match=says):
        small(**options).fit(X, NOISY)


def test_nothing_left_to_find():
    with pytest.raises(ValueError, match="known_terms explain y to all digits"):
        small(known_terms=["x0**2"]).fit(X, EXACT)


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        ({"max_depth": 0}, ValueError, "max_depth is 0; it must be at least 1"),
        ({"nesting": [("sin", "sin")]}, TypeError, "nesting must be a dict, for example"),
        ({"nesting": {"sin": ["sin"]}}, TypeError, "nesting of 'sin' must be a dict of limits"),
        ({"nesting": {"sine": {"sin": 0}}}, ValueError, "'sine' is not an operator .did you mean"),
        ({"nesting": {"sin": {"sin": -1}}}, ValueError, "limit of 'sin' in 'sin' is -1"),
        ({"nesting": {"sin": {"sin": 0.5}}}, TypeError, "must be an integer, not float"),
        ({"sensible": 1}, TypeError, "sensible must be True or False, not 1"),
        ({"nesting_price": -1}, ValueError, "nesting_price is -1; it must not be negative"),
        ({"nesting_price": "6"}, TypeError, "nesting_price must be a number"),
    ],
)
def test_bad_limits(options, error, says):
    with pytest.raises(error, match=says):
        TreePrior(**options)


def test_what_a_belief_about_noise_means():
    default = NoisePrior(3.0, 4.0)
    assert noise_prior(None, default) is default
    assert noise_prior(0.05, default) == NoisePrior.about(0.05) == NoisePrior(10.0, 0.05**2)
    assert noise_prior("small", default) == NoisePrior.about(0.001)
    assert noise_prior(NoisePrior(1.0, 2.0), default) == NoisePrior(1.0, 2.0)


@pytest.mark.parametrize("belief", [1, 2.0])
def test_a_share_of_noise_is_no_percentage(belief):
    says = f"{belief:g} is {belief:g}00 % of the spread of y; {belief:g} % is 0.0{belief:g}"
    with pytest.raises(ValueError, match=says):
        noise_prior(belief, NoisePrior())
    # Who writes the prior itself may believe what he likes.
    assert NoisePrior(10.0, 4.0).scale == 4.0


def test_noise_known_to_be_large_keeps_formulas_short():
    """Six rows with noise: believed to be small it is fitted, believed to be large it is not."""
    x = np.linspace(0, 1, 12)[:, None]
    y = x[:, 0] + RNG.normal(0, 0.3, 12)
    sizes = [
        small(noise_prior=belief, draws=300, chains=2, tune=300).fit(x, y).formulas_
        for belief in ("small", 0.9)
    ]
    means = [float((t["probability"] * t["n_nodes"]).sum()) for t in sizes]
    assert means[1] < means[0]


def test_known_terms_in_arviz():
    pytest.importorskip("arviz", reason="needs symbayes[arviz]")
    model = small(known_terms=["x1"], draws=60).fit(X, NOISY)
    data = model.to_arviz()
    assert (data["posterior"]["uses"].sel(column="x1") == 1).all()
    assert float(data["posterior"]["r2"].max()) == pytest.approx(model.formulas_["r2"].max())
    assert all("x1" in text for text in np.unique(data["trees"]["formula"]))


def test_noise_that_was_expected_is_no_rounding_error():
    """A run must not end, nor be called exact, because the residuals are what was believed."""
    belief = NoisePrior.about(0.2, rows=20.0)
    model = small(noise_prior=belief, chains=2, draws=200).fit(X, NOISY)
    assert model.formulas_["r2"][0] > 0.8
    assert not model.diagnostics_["settled"]
    assert "rounding error" not in model.diagnostics_["verdict"]
