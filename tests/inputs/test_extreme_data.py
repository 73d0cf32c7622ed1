"""Tables at the edge of what a double can hold: a fit gives numbers, or says why not."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from sklearn.metrics import r2_score

from symbayes import DataWarning, TemperedSampler, plots
from symbayes.fitting.least_squares import slopes

from .test_validation import X, Y, small


def neighbours(start):
    """A column of numbers that follow each other: nothing is between them."""
    return start + np.spacing(start) * np.arange(len(Y))


EXTREME = {
    "columns of 1e-300": (X * 1e-300, Y),
    "columns of 1e300": (X * 1e300, Y),
    "y of 1e-300": (X, Y * 1e-300),
    "y of 1e300": (X, Y * 1e299),
    "30 orders of magnitude": (X, 10 ** (15 * X[:, 0] / 2)),
    "x over 600 orders": (10.0 ** (150 * X), Y),
    "nearly constant": (X, 1 + 1e-15 * np.round(Y)),
    "far from 0": (X + 1e8, Y + 1e12),
    "one row a thousand times": (
        np.concatenate([X, np.repeat(X[:1], 1000, axis=0)]),
        np.concatenate([Y, np.repeat(Y[:1], 1000)]),
    ),
    "eight rows": (X[:8], Y[:8]),
    "y of 1e303": (X, Y / np.abs(Y).max() * 1e303),
    "columns of 1e303": (X / np.abs(X).max() * 1e303, Y),
    "ten rows a hundred times": (np.tile(X[:10], (100, 1)), np.tile(Y[:10], 100)),
    "ten rows that fit nothing": (
        np.tile(X[:10], (60, 1)),
        np.tile(np.random.default_rng(0).normal(size=10), 60),
    ),
    "neighbouring numbers": (neighbours(2.0**53)[:, None], Y),
    "neighbouring numbers near 1": (np.column_stack([np.abs(X), neighbours(1.0)]), np.abs(Y)),
    "neighbouring small and large numbers": (
        np.column_stack([X, neighbours(1e-300), neighbours(1e300)])[:40],
        Y[:40],
    ),
    "outlier": (np.vstack([X, [[1e30, 1, 1]]]), np.append(Y, -1e20)),
}


# Long formulas that all have to be fitted: these take long with the default sampler.
LONG = ("30 orders of magnitude", "ten rows that fit nothing")
EACH = [
    pytest.param(
        case,
        {} if sampler == "tempered" else {"sampler": sampler},
        id=f"{case}-{sampler}",
        marks=pytest.mark.slow if case in LONG or sampler == "paper" else (),
    )
    for case in EXTREME
    for sampler in ("tempered", "paper")
]


@pytest.mark.parametrize(("case", "parameters"), EACH)
def test_extreme_data(case, parameters):
    table, y = EXTREME[case]
    model = small(operators="all", **parameters).fit(table, y)
    mean, std = model.predict(table, return_std=True)
    assert np.isfinite(mean).all()
    assert (std >= 0).all()
    formulas = model.formulas_
    assert formulas["probability"].sum() == pytest.approx(1.0)
    assert np.isfinite(formulas[["rmse", "r2"]]).all(axis=None)
    assert np.isfinite(model.best_formula_.predict(table)).all()
    assert np.isfinite(model.score(table, y))


@pytest.mark.parametrize(
    "parameters",
    [
        {"sampler": TemperedSampler(temperatures=3, steps_per_draw=20)},
        pytest.param({"sampler": "paper"}, marks=pytest.mark.slow),
    ],
    ids=["tempered", "paper"],
)
@pytest.mark.parametrize(
    ("table", "y", "weights"),
    [
        (X, Y * 1e299, None),
        (X, Y / np.abs(Y).max() * 1e303, None),
        (X, Y * 1e-300, None),
        (X, Y, np.full(len(Y), 1e13)),
        (X, Y, np.where(np.arange(len(Y)) < 5, 1e14, 1e-5)),
        (np.tile(X[:10], (20, 1)), np.tile(Y[:10], 20), None),
    ],
    ids=["y 1e300", "y 1e303", "y 1e-300", "weights", "weights of all sizes", "ten rows"],
)
def test_everything_can_be_asked_without_a_warning(tmp_path, table, y, weights, parameters):
    """Warnings are errors in these tests; what NumPy has to say is of no use to anybody."""
    model = small(operators=["+", "*"], n_terms=2, chains=2, **parameters).fit(table, y, weights)
    assert np.isfinite(model.predict_interval(table)).all()
    assert np.isfinite(model.predict_interval(table, kind="mean")).all()
    assert np.isfinite(model.sample_predictive(table, 3, random_state=0)).all()
    assert -1 < model.score(table, y) <= 1
    model.constants()
    model.inclusion_probability()
    model.formulas_by_chain()
    model.combined("stack")
    model.report(tmp_path / "page.html")
    model.save(tmp_path / "model")
    for plot in (plots.plot_predictions, plots.plot_residuals):
        plot(model, table, y).figure.canvas.draw()
    for plot in (plots.plot_formulas, plots.plot_pareto, plots.plot_trace):
        np.ravel(plot(model))[0].figure.canvas.draw()
    plt.close("all")


@pytest.mark.parametrize(
    ("table", "y", "weights", "says"),
    [
        (X, np.where(Y > np.median(Y), 1e308, -1e308) + Y, None, "y has values of size 1.0e.308"),
        (X, Y / np.abs(Y).max() * 1.7e308, None, "y has values of size 1.7e.308, .*; divide"),
        (X / np.abs(X).max() * 1e308, Y, None, "column 'x[0-2]' of X has values of size .*; div"),
        (X, Y, 1e300, "sample_weight sums to .*e.301; weights count rows .*: divide them"),
    ],
)
def test_what_leaves_no_room_is_refused(table, y, weights, says):
    with pytest.raises(ValueError, match=says):
        small().fit(table, y, weights)


def test_a_column_beyond_all_bounds_that_cannot_matter():
    with pytest.warns(DataWarning, match="constant: 'x3'"):
        small().fit(np.column_stack([X, np.full(len(X), 1e308)]), Y)


@pytest.mark.parametrize("factor", [2.0**-900, 1.0, 2.0**900])
def test_the_score_is_that_of_scikit_learn_whatever_the_unit(factor):
    model = small().fit(X, Y * factor)
    rows = slice(3, 20)
    expected = r2_score(Y[rows], model.predict(X[rows]) / factor)
    assert model.score(X[rows], Y[rows] * factor) == expected


def test_constants_that_no_increment_can_show():
    """An increment grows until it shows; where the constant does nothing it has no end."""
    assert (slopes(lambda v: np.zeros(5), np.array([1e306]), np.zeros(5), 1.0) == 0.0).all()


@pytest.mark.slow
@pytest.mark.parametrize(("case", "parameters"), EACH)
def test_extreme_data_can_be_stacked(case, parameters):
    table, y = EXTREME[case]
    model = small(operators="all", chains=3, combine="stack", **parameters).fit(table, y)
    weights = model.chain_weights_
    assert (weights > 0).all()
    assert weights.sum() == pytest.approx(1.0)
    assert model.diagnostics_["stacking_gain"] > -1e-6
    assert np.isfinite(model.predict(table)).all()


def test_three_rows_are_fitted_with_a_warning():
    with pytest.warns(DataWarning, match="3 rows are too few .*; add data"):
        model = small().fit(X[:3], Y[:3])
    assert np.isfinite(model.predict(X[:3])).all()


@pytest.mark.parametrize("unit", [1e-150, 1e-45, 1e-30, 1e30, 1e55, 1e80, 1e150])
def test_units_of_the_columns_do_not_matter(unit):
    """Of all of them at once: also products of columns that are no numbers come to nothing."""
    positive = np.exp(X / 2)
    y = positive[:, 0] * positive[:, 1] + np.random.default_rng(0).normal(0, 0.1, len(X))
    model = small(operators="default", n_terms="auto").fit(positive * unit, y)
    assert model.score(positive * unit, y) > 0.9


@pytest.mark.parametrize(("unit", "factor"), [(1e-300, 1e299), (1e300, 1e-300)])
def test_coefficients_that_are_no_numbers(unit, factor):
    with pytest.raises(ValueError, match=r"coefficients .* too large or too small.*rescale"):
        small(operators=["+"], n_terms=1).fit(X * unit, Y * factor)


@pytest.mark.parametrize("factor", [2.0**-996, 2.0**-100, 2.0**100, 2.0**993])
def test_units_of_y_do_not_matter(factor):
    # Powers of 2 leave all digits as they are; other factors round y, and a rounding error in an
    # optimised constant may change which proposal is accepted. With noise, or else the spread of
    # the draws would be rounding errors.
    y = Y + np.random.default_rng(0).normal(0, 0.3, len(Y))
    plain, scaled = small().fit(X, y), small().fit(X, y * factor)
    (mean, std), (scaled_mean, scaled_std) = (
        model.predict(X, return_std=True) for model in (plain, scaled)
    )
    np.testing.assert_allclose(scaled_mean / factor, mean, rtol=1e-9)
    np.testing.assert_allclose(scaled_std / factor, std, rtol=1e-6)
    assert scaled.formulas_["r2"][0] == pytest.approx(plain.formulas_["r2"][0], abs=1e-9)
