"""Bad input is answered before any work starts; odd input is dealt with, and never modified."""

import datetime
import re

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.multioutput import MultiOutputRegressor

from symbayes import (
    BayesianSymbolicRegressor,
    DataWarning,
    TemperedSampler,
    TermsPrior,
    TreePrior,
)
from symbayes.inputs.validation import check_table
from symbayes.kernels import units

RNG = np.random.default_rng(40)
# Exact in float32 as well, so that both give the same table.
X = RNG.integers(-2000, 2000, (30, 3)) / 1024
Y = 3 * X[:, 0] ** 2 + 2


def small(**options):
    options = {"draws": 20, "tune": 40, "chains": 1, "random_state": 0} | options
    return BayesianSymbolicRegressor(**options)


def quick(**options):
    """A fit for tests that ask only what becomes of the table."""
    sampler = TemperedSampler(temperatures=2, steps_per_draw=10, search=False)
    return small(operators=["+", "*", "square"], sampler=sampler, **options)


@pytest.fixture
def no_work(monkeypatch):
    """Anything that would compile or sample fails."""

    def fail(*arguments):
        raise AssertionError("work has started")

    monkeypatch.setattr(units, "load", fail)
    monkeypatch.setattr(units, "load_evaluate", fail)


def test_work_would_be_noticed(no_work):
    with pytest.raises(AssertionError, match="work has started"):
        small().fit(X, Y)


def changed(table, row, column, value):
    table = table.astype(type(value)) if isinstance(value, complex) else table.copy()
    table[row, column] = value
    return table


def frame(**columns):
    return pd.DataFrame({"a": X[:, 0], "b": X[:, 1]} | columns)


TEXT = ["red", "blue", "red"] * 10
DATES = pd.date_range("2020-01-01", periods=30)
NULLABLE = pd.array([1.5, None, None] + [2.0] * 27, dtype="Float64")

BAD_X = {
    "nan": (changed(X, [1, 2, 5], 1, np.nan), ValueError, "X contains 3 NaN values in column 'x1'"),
    "one nan": (changed(X, 4, 0, np.nan), ValueError, "X contains 1 NaN value in column 'x0'; dr"),
    "inf": (changed(X, [3, 4], 2, -np.inf), ValueError, "X contains 2 inf values in column 'x2'"),
    "named nan": (frame(age=[np.nan] + [1.0] * 29), ValueError, "1 NaN value in column 'age'"),
    "None": (changed(X.astype(object), 4, 0, None), ValueError, "1 NaN value in column 'x0'"),
    "nullable": (frame(age=NULLABLE), ValueError, "2 NaN values in column 'age'; drop or impute"),
    "nullable int": (
        frame(n=pd.array([1, None, 2] * 10, dtype="Int64")), ValueError,
        "10 NaN values in column 'n'",
    ),
    "nullable bool": (
        frame(n=pd.array([True, None, False] * 10, dtype="boolean")), ValueError,
        "10 NaN values in column 'n'",
    ),
    "text": (frame(colour=TEXT), ValueError, "column 'colour' of X contains text .'red'.; encode"),
    "object text": (frame(colour=np.array(TEXT, object)), ValueError, "'colour' of X contains te"),
    "category": (frame(colour=pd.Categorical(TEXT)), ValueError, "'colour' of X contains te"),
    "str array": (X.astype(str), ValueError, "column 'x0' of X contains text"),
    "mixed array": (changed(X.astype(object), 4, 1, "n/a"), ValueError, "column 'x1'.*text .'n/a'"),
    "text in list": ([["a", 1.0], ["b", 2.0], ["c", 3.0]] * 10, ValueError, "'x0' of X contains"),
    "dates": (frame(day=DATES), TypeError, "column 'day' of X contains dates.*days since a start"),
    "zoned dates": (frame(day=DATES.tz_localize("UTC")), TypeError, "'day' of X contains dates"),
    "time spans": (frame(day=DATES - DATES[0]), TypeError, "'day' of X contains dates"),
    "date objects": (
        frame(day=[datetime.date(2020, 1, 1)] * 30), TypeError, "column 'day' of X contains dates",
    ),
    "complex": (changed(X, 0, 0, 1j), ValueError, "Complex data.*X is complex; pass real and imag"),
    "dicts": (changed(X.astype(object), 0, 2, {}), TypeError, "column 'x2' of X holds.*type dict"),
    "1-D": (X[:, 0], ValueError, "Expected 2D array, got 1D array"),
    "3-D": (X[:, :, None], ValueError, "dim 3"),
    "scalar": (3.0, ValueError, "Expected 2D array, got scalar"),
    "ragged": ([[1.0], [1.0, 2.0]] * 15, (ValueError, TypeError), "X"),
    "no columns": (np.empty((30, 0)), ValueError, r"0 feature\(s\)"),
    "no rows": (np.empty((0, 3)), ValueError, r"0 sample\(s\)"),
    "lengths": (X[:20], ValueError, "inconsistent numbers of samples.*20, 30"),
    "sparse": (scipy.sparse.csr_array(X), TypeError, "Sparse data was passed for X"),
    "all constant": (np.ones((30, 2)), ValueError, "X has no column that varies"),
    "same names": (
        pd.DataFrame(X, columns=["a", "b", "a"]), ValueError,
        "more than one column named 'a'|unique column names.*\n- 'a'",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD_X)
def test_bad_X(no_work, case):
    table, error, says = BAD_X[case]
    with pytest.raises(error, match=says):
        small().fit(table, Y)


def with_value(value):
    y = Y.astype(object if isinstance(value, str | dict) else type(value))
    y[3] = value
    return y


BAD_Y = {
    "nan": (with_value(np.nan), ValueError, "y contains 1 NaN value .the first is in row 3.; drop"),
    "inf": (with_value(-np.inf), ValueError, "y contains 1 inf value .the first is in row 3"),
    "nan and inf": (
        np.concatenate([Y[:28], [np.inf, np.nan]]), ValueError,
        "y contains 1 NaN value and 1 inf value .the first is in row 28",
    ),
    "nullable": (pd.Series(NULLABLE), ValueError, "y contains 2 NaN values .the first is in row 1"),
    "constant": (np.full(30, 2.5), ValueError, "y is constant .every value is 2.5.*right column"),
    "large constant": (np.full(30, 1e308), ValueError, "y is constant"),
    "tiny": (X[:, 0] * 1e-310, ValueError, "y varies by only .*multiply it by a factor"),
    "text": (TEXT, ValueError, "y contains text .'red'.; encode"),
    "text object": (with_value("n/a"), ValueError, "y contains text .'n/a'"),
    "category": (pd.Series(pd.Categorical(TEXT)), ValueError, "y contains text"),
    "dates": (DATES, TypeError, "y contains dates"),
    "complex": (with_value(1j), ValueError, "y is complex"),
    "dicts": (with_value({}), TypeError, "y holds an object of type dict"),
    "2-D": (np.column_stack([Y, Y]), ValueError, "y should be a 1d array.*MultiOutputRegressor"),
    "frame": (frame(a=Y, b=Y), ValueError, r"array of shape \(30, 2\).*MultiOutputRegressor"),
    "list of lists": ([[1.0, 2.0]] * 30, ValueError, r"shape \(30, 2\) .*MultiOutputRegressor"),
    "2-D nan": (np.full((30, 2), np.nan), ValueError, "y should be a 1d array.*MultiOutputRegr"),
    "length": (Y[:20], ValueError, "inconsistent numbers of samples.*30, 20"),
    "None": (None, ValueError, "requires y to be passed"),
}  # fmt: skip


def test_what_the_message_about_several_columns_names_works():
    several = np.column_stack([Y, 2 * X[:, 1]])
    model = MultiOutputRegressor(small()).fit(X, several)
    assert model.predict(X).shape == several.shape
    with pytest.raises(ValueError, match="MultiOutputRegressor"):
        small().fit(X, Y).score(X, several)


@pytest.mark.parametrize("case", BAD_Y)
def test_bad_y(no_work, case):
    y, error, says = BAD_Y[case]
    with pytest.raises(error, match=says):
        small().fit(X, y)


def test_named_column_of_y(no_work):
    with pytest.raises(ValueError, match="column 'price' of y contains text"):
        small().fit(X, pd.DataFrame({"price": TEXT}))


@pytest.mark.parametrize("n_rows", [1, 2])
def test_too_few_rows(no_work, n_rows):
    with pytest.raises(ValueError, match=f"{n_rows} row.*minimum of 3 is required; add data"):
        small().fit(X[:n_rows], Y[:n_rows])


def test_one_row_repeated(no_work):
    with pytest.raises(ValueError, match="y is constant"):
        small().fit(np.repeat(X[:1], 1000, axis=0), np.repeat(Y[:1], 1000))


def weights_with(value):
    weights = np.ones(30)
    weights[[4, 7]] = value
    return weights


BAD_WEIGHTS = {
    "negative": (weights_with(-1), ValueError, "2 negative values .the first is row 4"),
    "zero": (np.zeros(30), ValueError, "sample_weight sums to zero"),
    "nan": (weights_with(np.nan), ValueError, "sample_weight contains 2 NaN values"),
    "inf": (weights_with(np.inf), ValueError, "sample_weight contains 2 inf values"),
    "overflow": (np.full(30, 1e308), ValueError, "sums to inf; weights count rows.*divide"),
    "large": (np.full(30, 1e300), ValueError, "sums to 3e.301; weights count rows.*divide"),
    "small": (np.full(30, 1 / 30), ValueError, "sums to 1; weights count rows.*multiply"),
    "length": (np.ones(29), ValueError, r"sample_weight.shape == .29,., expected .30,."),
    "2-D": (np.ones((30, 1)), ValueError, "sample_weight has 2 dimensions"),
    "few rows": (np.r_[5, 5, np.zeros(28)], ValueError, "2 rows of positive weight"),
    "text": (TEXT, ValueError, "sample_weight contains text"),
    "str": ("balanced", (TypeError, ValueError), "sample_weight"),
    "dict": ({1: 2}, TypeError, "sample_weight must be an array with one number per row, not dict"),
}


@pytest.mark.parametrize("case", BAD_WEIGHTS)
def test_bad_weights(no_work, case):
    weights, error, says = BAD_WEIGHTS[case]
    with pytest.raises(error, match=says):
        small().fit(X, Y, sample_weight=weights)


BAD_PARAMETERS = [
    ({"operators": ["+", "sinus"]}, ValueError, "'sinus' is not an operator"),
    ({"operators": []}, ValueError, "operators is empty"),
    ({"operators": 3}, TypeError, "operators must be"),
    (
        {"operators": ["+"], "tree_prior": TreePrior(max_nodes=2)}, ValueError,
        "no tree can be built.*at least 3 nodes and tree_prior.max_nodes is 2; raise max_nodes",
    ),
    ({"tree_prior": {"alpha": 0.5}}, TypeError, "tree_prior must be a TreePrior.*not dict"),
    ({"noise_prior": True}, TypeError, "noise_prior must be .small., a number .* not bool"),
    ({"n_terms": 0}, ValueError, "n_terms is 0"),
    ({"n_terms": 2.0}, TypeError, "n_terms must be"),
    ({"n_terms": "two"}, ValueError, "n_terms='two'"),
    ({"n_terms": True}, TypeError, "n_terms must be"),
    ({"n_terms": 30}, ValueError, "n_terms is 30 and there are 30 rows.*at most 29"),
    ({"n_terms": TermsPrior(), "sampler": "paper"}, ValueError, "set n_terms to an integer"),
    ({"sampler": "gibbs"}, ValueError, "sampler='gibbs'; it must be one of 'tempered', 'paper'"),
    ({"sampler": None}, TypeError, "sampler must be 'tempered'.*not NoneType"),
    ({"tolerance": 0.5}, ValueError, "tolerance is 0.5; it must be from 0 to 0.05, such as 0.005"),
    ({"tolerance": np.nan}, ValueError, "tolerance is nan"),
    ({"tolerance": "small"}, TypeError, "tolerance must be a number"),
    ({"hyperparameters": "guess"}, ValueError, "hyperparameters='guess'; it must be one"),
    ({"model_selection": "best"}, ValueError, "model_selection='best'; it must be one of"),
    ({"draws": 0}, ValueError, "draws is 0; it must be at least 1"),
    ({"draws": 10.0}, TypeError, "draws must be an integer, not float"),
    ({"draws": True}, TypeError, "draws must be an integer, not bool"),
    ({"tune": -1}, ValueError, "tune is -1; it must be at least 0"),
    ({"tune": "10"}, TypeError, "tune must be an integer, not str"),
    ({"chains": 0}, ValueError, "chains is 0; it must be at least 1"),
    ({"chains": None}, TypeError, "chains must be an integer, not NoneType"),
    ({"timeout": 0}, ValueError, "timeout is 0; it must be above 0 seconds, or None"),
    ({"timeout": -2.5}, ValueError, "timeout is -2.5"),
    ({"timeout": np.nan}, ValueError, "timeout is nan"),
    ({"timeout": "1 min"}, TypeError, "timeout must be a number of seconds or None, not str"),
    ({"timeout": True}, TypeError, "timeout must be a number of seconds"),
    ({"n_jobs": 0}, ValueError, "n_jobs is 0; use 1 for one core or -1 for all"),
    ({"n_jobs": 1.5}, TypeError, "n_jobs must be an integer or None, not float"),
    ({"n_jobs": "all"}, TypeError, "n_jobs must be an integer or None, not str"),
    ({"random_state": "seed"}, ValueError, "random_state is 'seed'; it must be an integer"),
    ({"random_state": -1}, ValueError, "random_state is -1; it must be an integer from 0"),
    ({"progress": "yes"}, TypeError, "progress must be True, False or a function .* not 'yes'"),
    ({"progress": 1}, TypeError, "progress must be True, False or a function of one argument"),
    ({"progress": lambda: None}, TypeError, "cannot be called with one .*: too many positional"),
    ({"progress": lambda a, b: None}, TypeError, "cannot be called with .* argument: 'b'"),
    ({"feature_weights": {"age": 1}}, ValueError, "no column 'age'; the columns are 'x0', 'x1'"),
    ({"feature_weights": {3: 1}}, ValueError, "no column 3; X has 3 columns"),
    ({"feature_weights": {-1: 1}}, ValueError, "no column -1"),
    ({"feature_weights": {True: 1}}, TypeError, "a column is a name or a position"),
    ({"feature_weights": [1, 2]}, ValueError, "has 2 entries and X has 3 columns"),
    ({"feature_weights": [1, -2, 1]}, ValueError, "weight of 'x1' is -2"),
    ({"feature_weights": [1, np.nan, 1]}, ValueError, "weight of 'x1' is nan"),
    ({"feature_weights": [0, 0, 0]}, ValueError, "feature_weights must have a positive.*sum"),
    ({"feature_weights": [1, "2", 1]}, TypeError, "weight of 'x1' must be a number, not str"),
    ({"feature_weights": {"x0": True}}, TypeError, "weight of 'x0' must be a number, not bool"),
    ({"feature_weights": "x0"}, TypeError, "feature_weights must be a sequence"),
    ({"feature_weights": {0.5, 1.0, 2.0}}, TypeError, "feature_weights must be a sequence.*set"),
    ({"feature_weights": 1.0}, TypeError, "feature_weights must be a sequence"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("parameters", "error", "says"),
    BAD_PARAMETERS,
    ids=lambda value: re.sub(r"\W+|0x\w+", "-", str(value)) if isinstance(value, dict) else "",
)
def test_bad_parameters(no_work, parameters, error, says):
    with pytest.raises(error, match=says):
        small(**parameters).fit(X, Y)


def test_all_weight_on_a_constant_column(no_work):
    table = np.column_stack([X[:, 0], np.ones(30)])
    with (
        pytest.warns(DataWarning, match="constant: 'x1'"),
        pytest.raises(ValueError, match="over the columns that vary"),
    ):
        small(feature_weights=[0, 1]).fit(table, Y)


def test_new_rows_are_checked():
    model = small().fit(frame(), Y)
    with pytest.raises(ValueError, match="1 NaN value in column 'b'"):
        model.predict(frame(b=[np.nan] + [0.0] * 29))
    with pytest.raises(ValueError, match="column 'a' of X contains text"):
        model.predict(frame(a=TEXT))
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame().rename(columns={"a": "z"}))
    with (
        pytest.warns(UserWarning, match="feature names"),
        pytest.raises(ValueError, match="3 feat"),
    ):
        model.predict(X)


def test_constant_and_duplicate_columns_are_named_and_left_out():
    table = pd.DataFrame({"one": 1.0, "a": X[:, 0], "again": X[:, 0], "b": X[:, 1]})
    with pytest.warns(DataWarning) as caught:
        model = small(draws=50).fit(table, Y)
    (warned,) = (one for one in caught if one.category is DataWarning)
    assert warned.filename == __file__
    message = str(warned.message)
    assert "constant: 'one'" in message
    assert "duplicate: 'again' (the same as 'a')" in message
    used = {name for formula in model.formula_objects_ for name in formula.features}
    assert "a" in used
    assert used <= {"a", "b"}
    np.testing.assert_allclose(model.predict(table), Y, rtol=1e-6)


@pytest.mark.parametrize("order", ["C", "F"])
def test_the_table_belongs_to_the_library(order):
    table, y, weights = np.array(X, order=order), Y.copy(), np.ones(30)
    own = check_table(small(), table, y, weights)
    assert not np.shares_memory(own.X, table)
    assert not np.shares_memory(own.y, y)
    assert not np.shares_memory(own.weights, weights)


def test_many_constant_columns_make_a_short_message():
    table = np.column_stack([X[:, 0], np.zeros((30, 20))])
    with pytest.warns(DataWarning, match="'x5' and 15 more$"):
        check_table(small(), table, Y, None)


def test_a_target_of_two_values_is_warned_of():
    two = np.where(Y > np.median(Y), 3.0, -1.0)
    with pytest.warns(DataWarning, match="only two values, -1 and 3, .* no classifier") as caught:
        small(draws=2, tune=2).fit(X, two)
    assert caught[0].filename == __file__
    # Not of three, and nothing more where the rows are too few for anything.
    check_table(small(), X, np.where(X[:, 0] > 0, two, 0.0), None)
    with pytest.warns(DataWarning, match="too few") as caught:
        check_table(small(), X[:7], [0, 1, 0, 1, 1, 0, 1], None)
    assert len(caught) == 1


def test_a_column_that_varies_in_rows_without_weight_is_constant():
    table = X.copy()
    table[:, 2] = 0.0
    table[0, 2] = 1.0
    weights = np.ones(30)
    weights[0] = 0.0
    with pytest.warns(DataWarning, match="constant: 'x2'"):
        used = check_table(small(), table, Y, weights)
    assert used.used.tolist() == [0, 1]
    assert len(used.y) == 29
