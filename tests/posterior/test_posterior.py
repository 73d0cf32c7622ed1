"""From draws to probabilities and predictions, against formulas worked out by hand."""

import re

import numpy as np
import pytest
from scipy import stats

from symbayes import BayesianSymbolicRegressor, NoisePrior, TreePrior
from symbayes.deadline import Deadline
from symbayes.fitting.model import Fitter, State
from symbayes.formula.trees import evaluate_trees
from symbayes.inputs.problem import make_problem, pad, padded
from symbayes.inputs.validation import Table
from symbayes.kernels.chain import NUMBERS
from symbayes.kernels.tree import NODE
from symbayes.posterior.posterior import (
    columns_of,
    inclusion,
    make_posterior,
)
from symbayes.posterior.table import FormulaWriter
from symbayes.samplers.trace import ChainTrace, Trace

from ..problems import tree

RNG = np.random.default_rng(60)
X = RNG.uniform(0.5, 2, (40, 2))
Y = 2 * X[:, 0] ** 2 - 3 * X[:, 1] + 1 + RNG.normal(0, 0.1, 40)


def posterior(*chains, y=Y, x=X, weights=None, holding=None, plug_in=False, noise=0.25, late=False):
    """The posterior of draws, each a list of trees; one list of draws for each chain."""
    weights = np.ones(len(y)) if weights is None else weights
    table = Table(x, y, weights, np.arange(x.shape[1]))
    even = np.full(x.shape[1], 1 / x.shape[1])
    problem = make_problem(table, {"+": 1.0}, even, TreePrior(), NoisePrior(1.0, 1e-12), 1)
    traces = []
    for draws in chains:
        numbers = np.zeros(NUMBERS + 2)
        numbers[2] = noise
        traces.append(
            ChainTrace(
                nodes=[np.concatenate([np.zeros(0, NODE), *trees]) for trees in draws],
                n_terms=[len(trees) for trees in draws],
                numbers=[numbers] * len(draws),
            )
        )
    holding = holding or [np.ones(len(draws)) for draws in chains]
    trace = Trace(traces, holding, np.zeros((len(chains), 3, 9)), 0.0)
    fitter = Fitter(problem, y, weights, plug_in)
    return Found(make_posterior(fitter, trace, _deadline(late)), fitter)


class Found:
    """A posterior, and what is asked of it."""

    def __init__(self, found, fitter):
        self.found = found
        self.models, self.formula_models = found.mixture.models, found.formula_models
        self.predict, self.sample = found.mixture.predict, found.mixture.sample
        self.quantiles, self.deviations = found.mixture.quantiles, found.mixture.deviations
        self.leading_by_chain = found.leading_by_chain
        n_columns = len(fitter.columns)
        names = [f"x{i}" for i in range(n_columns)]
        self._writer = FormulaWriter(fitter, names, np.arange(n_columns))

    def table(self, late=False):
        return self._writer.table(self.found, _deadline(late))


def _deadline(late):
    """After a Ctrl-C if it is late."""
    return Deadline(interrupted=lambda: late)


def table_of(result):
    return result.table()


@pytest.mark.parametrize("weights", [np.ones(40), RNG.uniform(0.5, 3, 40)], ids=["even", "uneven"])
def test_fit_is_least_squares(weights):
    ((_, model),) = posterior([[tree("square", 0), tree(1)]], weights=weights).models
    design = np.column_stack([np.ones(40), X[:, 0] ** 2, X[:, 1]])
    root = np.sqrt(weights)
    expected = np.linalg.lstsq(design * root[:, None], Y * root)[0]
    np.testing.assert_allclose([model.intercept, *model.coefficients], expected, rtol=1e-10)
    mse = np.average((Y - design @ expected) ** 2, weights=weights)
    spread = np.average((Y - np.average(Y, weights=weights)) ** 2, weights=weights)
    assert model.mse == pytest.approx(mse / spread)


def test_predictive_distribution_of_one_model():
    result = posterior([[tree(0)]])
    x, n = X[:, 0], 40
    slope, intercept = np.polyfit(x, Y, 1)
    rss = np.sum((Y - intercept - slope * x) ** 2)
    noise = (1e-12 * np.var(Y) + rss) / (n - 2)
    new = np.array([[0.0, 0.0], [1.0, 0.0], [30.0, 0.0]])
    mean, far, left_out = result.predict(new)
    np.testing.assert_allclose(mean, intercept + slope * new[:, 0], rtol=1e-10)
    leverage = (new[:, 0] - x.mean()) ** 2 / np.sum((x - x.mean()) ** 2)
    scale = np.sqrt(noise * (1 + 1 / n + n / (n + 1) * leverage))
    # What would hold 68.3 per cent of a normal distribution within one standard deviation.
    one = stats.t.ppf(stats.norm.cdf(1.0), n - 2)
    np.testing.assert_allclose(result.deviations(new), one * scale)
    for share in (far, left_out):
        np.testing.assert_allclose(share, 0.0, atol=1e-12)


def test_plug_in_predictions_have_the_noise_of_the_draws_only():
    result = posterior([[tree(0)]], plug_in=True, noise=0.25)
    std = result.deviations(np.array([[0.0, 0.0], [30.0, 0.0]]))
    # Drawn with 41 degrees of freedom, of which 38 are left: the ratio of the means of both laws.
    np.testing.assert_allclose(std, 0.5 * np.std(Y) * np.sqrt(39 / 36), rtol=1e-9)


def test_mixture_of_models():
    both = posterior([[tree(0)], [tree(0)], [tree(1)], [tree(0)]])
    assert [weight for weight, _ in both.models] == pytest.approx([0.75, 0.25])
    (m0, *_), (m1, *_) = (posterior([[tree(i)]]).predict(X) for i in (0, 1))
    mean, _, _ = both.predict(X)
    # Where the two are far apart, it stays in the middle half of the posterior.
    (lower, upper), _ = both.quantiles(X, (0.26, 0.74), False)
    expected = np.clip(0.75 * m0 + 0.25 * m1, lower, upper)
    np.testing.assert_allclose(mean, expected)
    assert 0.2 < np.mean(np.isclose(mean, 0.75 * m0 + 0.25 * m1)) < 1.0


def test_chains_count_the_same_whatever_their_length():
    result = posterior([[tree(0)]], [[tree(1)]] * 9)
    assert [weight for weight, _ in result.models] == pytest.approx([0.5, 0.5])


def test_holding_times_are_weights():
    result = posterior([[tree(0)], [tree(1)], [tree("square", 0)]], holding=[np.array([0, 1, 3])])
    assert [weight for weight, _ in result.models] == pytest.approx([0.75, 0.25])


def test_a_column_of_all_formulas_has_probability_one():
    states = [State((tree(0), *[tree(1)] * (i > 0)), 0.1, 0.0, 0.0) for i in range(10)]
    assert sum(state.weight for state in states) < 1.0
    assert inclusion(states, 2).tolist() == [1.0, 0.9]


def test_out_of_time_only_the_first_formula_is_polished(monkeypatch):
    draws = [[tree("exp", "lt", 0, a=0.5)]] * 3 + [[tree("sin", "lt", 0)], [tree("cos", "lt", 1)]]
    calls = []
    monkeypatch.setattr(
        "symbayes.fitting.model.polish", lambda terms, _: calls.append(1) or terms.trees
    )
    monkeypatch.setattr(
        "symbayes.posterior.table.rounded", lambda expression, *_: calls.append(2) or expression
    )
    for late, expected in ((False, [1, 1, 1, 2, 2, 2]), (True, [1, 2])):
        calls.clear()
        result = posterior(draws, late=late)
        result.table(late)
        assert calls == expected
    # The same where formulas are too much work.
    monkeypatch.setattr("symbayes.posterior.posterior._MOST_POLISHING", 1)
    calls.clear()
    frame, _ = table_of(posterior(draws))
    assert calls == [1, 2]
    assert len(frame) == 3


def test_digits_are_few_also_when_out_of_time():
    late = posterior([[tree(0)], [tree(1)], [tree("square", 0)]], late=True)
    frame, _ = late.table(late=True)
    for text in frame["formula"]:
        assert max(len(number) for number in re.findall(r"[\d.]+", text)) <= 5


def test_the_front_is_polished_too(monkeypatch):
    """However improbable its formulas are; others are not, beyond the first ones."""
    monkeypatch.setattr("symbayes.posterior.posterior._POLISHED", 1)
    draws = [[tree(1)]] * 5 + [[tree("cos", "lt", 1, a=3.0)]] * 2
    frame, formulas = table_of(posterior([*draws, [tree("square", "lt", 0, a=1.0, b=0.7)]]))
    place = frame.index[frame["formula"].str.contains("x0")][0]
    assert place == 2
    # The offset in the square was a draw. The data do not ask for it.
    assert "*x0**2 - 2.05" in frame["formula"][place]
    assert "cos(3*x1 + 3)" in formulas[1].text(6)


def test_formulas_that_turn_out_equal_do_not_count_twice(monkeypatch):
    """The first two are one formula: a third one is looked after."""
    monkeypatch.setattr("symbayes.posterior.posterior._POLISHED", 2)
    polished = []
    monkeypatch.setattr(
        "symbayes.fitting.model.polish", lambda terms, _: polished.append(1) or terms.trees
    )
    draws = [[tree("cube", 0)]] * 3 + [[tree("*", 0, "square", 0)]] * 2
    posterior([*draws, [tree("+", "exp", "lt", 0, 1)], [tree("+", "sin", "lt", 0, 1)]])
    assert len(polished) == 1


def test_equal_structures_and_equal_functions_are_one_formula():
    draws = [
        [tree("exp", "lt", 0, a=0.5)],
        [tree("exp", "lt", 0, a=0.6)],  # other constants
        [tree("lt", 0, a=3.0)],
        [tree(0)],  # a transform that the coefficient absorbs
        [tree("+", 0, 1)],
        [tree("+", 1, 0)],  # another order
        [tree("cube", 0)],
        [tree("*", 0, "square", 0)],  # the same function
        [tree(0), tree(1)],
        [tree(1), tree(0)],  # terms in another order
    ]
    frame, formulas = table_of(posterior(draws))
    assert frame["probability"].tolist() == pytest.approx([0.2] * 5)
    assert sorted(formula.n_nodes for formula in formulas)[0] == 5
    texts = " ".join(frame["formula"])
    assert "x0**3" in texts
    assert "x0*x0**2" not in texts


def test_terms_may_come_in_any_order_with_other_constants():
    first = [tree("exp", "lt", 0, a=0.5), tree(1)]
    second = [tree(1), tree("exp", "lt", 0, a=0.6)]
    assert len(table_of(posterior([first, second]))[0]) == 1


def test_a_group_shows_its_simplest_member():
    frame, _ = table_of(posterior([[tree("neg", "neg", "sqrt", 0)], [tree("sqrt", 0)]]))
    assert len(frame) == 1
    assert "--" not in frame["formula"][0]


def test_rounding_errors_are_not_printed():
    exact = 2 * X[:, 0]
    frame, formulas = table_of(posterior([[tree(0), tree(1)]], y=exact))
    assert frame["formula"][0] == "2*x0"
    assert frame["n_terms"][0] == 2
    np.testing.assert_allclose(formulas[0].predict(X), exact, rtol=1e-12)


def test_no_terms():
    result = posterior([[]])
    frame, formulas = table_of(result)
    assert formulas[0].predict(X[:1])[0] == pytest.approx(Y.mean(), rel=1e-12)
    assert frame["r2"][0] == pytest.approx(0.0, abs=1e-12)
    mean, _, _ = result.predict(X[:3])
    np.testing.assert_allclose(mean, Y.mean())
    scale = np.sqrt(np.sum((Y - Y.mean()) ** 2) / 39 * (1 + 1 / 40))
    std = stats.t.ppf(stats.norm.cdf(1.0), 39) * scale
    np.testing.assert_allclose(result.deviations(X[:3]), std)
    assert formulas[0].features == []


@pytest.mark.parametrize("n_rows", [40, 3])
def test_redundant_terms_of_the_paper(n_rows):
    draw = [tree(0), tree(0), tree("lt", 0, a=2.0, b=1.0), tree(1), tree("+", 0, 1)]
    result = posterior([draw], x=X[:n_rows], y=Y[:n_rows], plug_in=True)
    reduced = posterior([[tree(0), tree(1)]], x=X[:n_rows], y=Y[:n_rows], plug_in=True)
    np.testing.assert_allclose(result.predict(X)[0], reduced.predict(X)[0], rtol=1e-6)


def test_models_without_numbers_are_dropped_and_the_others_share():
    draws = [[tree(0)], [tree("square", 1)], [tree("square", 1)], [tree(1)]]
    result = posterior(draws, x=X * [1.0, 1e-150], y=Y * 1e200)
    assert [len(model.state.trees[0]) for _, model in result.models] == [1]
    assert result.models[0][0] == 1.0
    with pytest.raises(ValueError, match="coefficients of all formulas found are too large"):
        posterior(draws[1:], x=X * [1.0, 1e-150], y=Y * 1e200)


def test_rows_outside_the_domain():
    draws = [[tree("log", 0)], [tree(1)], [tree(1)], [tree(1)]]
    mean, _, left_out = posterior(draws).predict(np.array([[-1.0, 1.0], [1.0, 1.0]]))
    np.testing.assert_allclose(left_out, [0.25, 0.0], atol=1e-12)
    assert mean[0] == pytest.approx(posterior([[tree(1)]]).predict(np.ones((1, 2)))[0][0])


def test_more_terms_than_a_byte_can_count():
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(400, 300)), rng.normal(size=400)
    ((_, model),) = posterior([[tree(i) for i in range(300)]], x=x, y=y).models
    assert len(model.state.trees) == 300


def test_padding():
    assert [padded(n) for n in (1, 8, 9)] == [8, 8, 16]
    assert pad(np.array([1.0, 2.0]), 7.0).tolist() == [1, 2, 7, 7, 7, 7, 7, 7]


def test_problem_is_scaled():
    y = 1e300 * Y
    weights = RNG.uniform(0.5, 2, 40)
    table = Table(X, y, weights, np.array([1]))
    problem = make_problem(table, {"+": 1.0}, np.array([1.0]), TreePrior(), NoisePrior(), terms=2)
    data = problem.data
    assert np.sum(data.y**2) == pytest.approx(data.n)
    assert np.sum(data.y * data.root_weight) == pytest.approx(0, abs=1e-9)
    assert data.n == pytest.approx(weights.sum())
    assert problem.y_mean == pytest.approx(np.average(y / 1e300, weights=weights) * 1e300)
    np.testing.assert_array_equal(data.x[:40], X[:, 1])


def test_whole_way_of_one_model():
    """With one column and one node there is one model, so that all is known."""
    model = BayesianSymbolicRegressor(
        tree_prior=TreePrior(max_nodes=1), n_terms=1, draws=20, tune=20, chains=2, random_state=0
    ).fit(X[:, :1], Y)
    assert len(model.formulas_) == 1
    slope, intercept = np.polyfit(X[:, 0], Y, 1)
    np.testing.assert_allclose(model.predict(X[:, :1]), intercept + slope * X[:, 0])


def test_large_tables_are_fitted_on_a_thinned_sample(monkeypatch):
    """With many rows only some states are fitted; each still counts by its weight."""
    states = [[tree("square", 0)], [tree(1)], [tree("square", 0), tree(1)]]
    monkeypatch.setattr("symbayes.posterior.posterior._FEWEST_FITS", 2)
    monkeypatch.setattr("symbayes.posterior.posterior._MOST_WORK", 0)
    result = posterior([states[0]] * 6 + [states[1]] * 3 + [states[2]])
    assert [weight for weight, _ in result.models] == pytest.approx([0.5, 0.5])
    table, _ = result.table()
    assert table["probability"].tolist() == pytest.approx([0.6, 0.3])


@pytest.mark.parametrize("plug_in", [False, True])
def test_samples_have_the_middle_and_spread_of_the_prediction(plug_in):
    result = posterior([[tree("square", 0), tree(1)], [tree(1)]], plug_in=plug_in)
    means, noises = result.sample(X[:5], 20_000, np.random.default_rng(3))
    assert means.shape == (20_000, 5)
    observed = means + noises[:, None] * np.random.default_rng(4).normal(size=means.shape)
    # Six standard errors of a share of that many draws.
    slack = 6 * 0.5 / np.sqrt(20_000)
    for draws in (means, observed):
        below = np.mean(draws <= result.predict(X[:5])[0], axis=0)
        assert (np.abs(below - 0.5) < 0.25 + slack).all()
    lower, upper = np.quantile(observed, (stats.norm.cdf(-1.0), stats.norm.cdf(1.0)), axis=0)
    np.testing.assert_allclose((upper - lower) / 2, result.deviations(X[:5]), rtol=0.05)


@pytest.mark.parametrize("share", [1, 95])
def test_formulas_of_little_weight_cannot_ruin_a_prediction(share):
    """Of a thousand draws few take off between the training rows and the new one."""
    steep = tree("exp", "exp", "square", 0)
    good = [tree("square", 0), tree(1)]
    mixed = posterior([good] * (1000 - share) + [[steep]] * share)
    alone = posterior([good])
    new = np.array([[2.5, 1.0]])
    assert 1e200 < evaluate_trees([steep], new.T)[0, 0] < np.inf
    mean, far, _ = mixed.predict(new)
    np.testing.assert_allclose(mean, alone.predict(new)[0], rtol=1e-9)
    np.testing.assert_allclose(far, share / 1000)
    # As much as the posterior of the others says of its tails, and no more.
    np.testing.assert_allclose(mixed.deviations(new), alone.deviations(new), rtol=0.6)


def test_predicting_in_chunks_changes_nothing(monkeypatch):
    result = posterior([[tree("square", 0), tree(1)], [tree(1)]])
    whole = result.predict(X)
    monkeypatch.setattr("symbayes.posterior.prediction._NUMBERS_AT_ONCE", 10)
    for one, other in zip(whole, result.predict(X), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


def test_the_leading_formula_by_chain():
    leading, same, other = [tree("square", 0)], [tree("*", 0, 0)], [tree(1)]
    result = posterior(
        [leading, same, other, leading], [other, other], [same, leading],
        holding=[np.ones(4), np.array([1.0, 3.0]), np.array([5.0, 2.0])],
    )  # fmt: skip
    np.testing.assert_allclose(result.leading_by_chain, [0.75, 0.0, 1.0])
    assert result.formula_models[0][0] == pytest.approx(1.75 / 3)


def test_columns_that_cancel_are_not_used():
    states = [
        State((tree("/", "/", 1, 1, 0),), 0.25, 0.0, 0.0),
        State((tree("*", 2, 0), tree("inv", "/", 1, 1)), 0.75, 0.0, 0.0),
    ]
    assert columns_of(states[0]).tolist() == [0]
    np.testing.assert_array_equal(inclusion(states, 3), [1.0, 0.0, 0.75])
