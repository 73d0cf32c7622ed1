"""Which columns are what, what is left out, and every complaint about them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from symbayes import DataWarning
from symbayes.cli.messages import UsageError
from symbayes.cli.tables import BadTable, new_rows, training

TABLE = pd.DataFrame(
    {
        "Alpha": [1.0, 2, 3, 4],
        "beta": [1.0, np.nan, 3, 4],
        "city": ["Rome", "Oslo", "Bern", "Kyiv"],
        "empty": [np.nan] * 4,
        "w": [1.0, 1, 1, 2],
        "y": [1.0, 2, np.nan, 5],
    }
)


def take(target="y", features=("Alpha",), weights=None, drop_missing=True, table=TABLE):
    return training(table, "t.csv", target, features, weights, drop_missing)


def test_all_columns_of_numbers_are_features():
    data = take(features=None)
    assert list(data.X) == ["Alpha", "beta", "w"]
    assert data.y.name == "y"
    assert data.weights is None
    assert data.rows_left_out == 2
    np.testing.assert_array_equal(data.X["Alpha"], [1, 4])
    np.testing.assert_array_equal(data.y, [1, 5])
    assert data.notes == [
        "left out what is not made of numbers: 'city' ('Rome' in row 1)",
        "left out what is empty: 'empty'",
        "left out 2 rows with missing values",
    ]


def test_a_typing_error_costs_no_column_in_silence():
    mass = [*np.arange(30.0).astype(str), "n/a?"]
    table = pd.DataFrame({"mass": mass, "other": 1.0, "y": np.arange(31.0)})
    with pytest.warns(DataWarning, match="'mass' is left out, though all but 1 value are numbers"):
        data = take(features=None, table=table)
    assert list(data.X) == ["other"]


@pytest.mark.parametrize("start", [0, 1])
def test_an_index_without_a_name_is_no_feature(start):
    rows = TABLE[["Alpha", "w"]]
    counted = pd.concat([pd.Series(np.arange(4.0) + start, name="column 1"), rows], axis=1)
    data = take(target="w", features=None, table=counted)
    assert list(data.X) == ["Alpha"]
    assert data.notes == ["left out the first column, which has no name and counts the rows"]
    # Unless it is asked for, or is something else.
    assert list(take(target="w", features=["column 1"], table=counted).X) == ["column 1"]
    other = counted.assign(**{"column 1": [0.0, 1, 2, 4]})
    assert list(take(target="w", features=None, table=other).X) == ["column 1", "Alpha"]
    behind = counted[["Alpha", "column 1", "w"]]
    assert list(take(target="w", features=None, table=behind).X) == ["Alpha", "column 1"]


def test_named_columns_in_their_order():
    data = take(features=["w", "Alpha"], drop_missing=True)
    assert list(data.X) == ["w", "Alpha"]
    assert data.notes == ["left out 1 row with missing values"]


def test_weights_are_no_feature():
    data = take(features=None, weights="w")
    assert list(data.X) == ["Alpha", "beta"]
    np.testing.assert_array_equal(data.weights, [1, 2])


def test_gaps_in_columns_that_are_not_used_do_not_matter():
    assert take(target="w", drop_missing=False).rows_left_out == 0


def test_many_columns_are_not_all_told():
    wide = pd.DataFrame({f"t{i}": ["x"] for i in range(12)} | {"a": [1.0], "y": [2.0]})
    (note,) = take(features=None, table=wide).notes
    assert note.endswith("'t9' ('x' in row 1) and 2 more")
    with pytest.raises(BadTable, match=r"it has 't0', .*, 't9' and 4 more$"):
        take(target="z", table=wide)


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ({"target": None}, UsageError, r"--target is missing: .*; t.csv has 'Alpha', 'beta', "),
        ({"target": "Y"}, BadTable, r"no column 'Y' \(did you mean 'y'\?\), which --target asks"),
        ({"target": "zzz"}, BadTable, r"no column 'zzz', which --target asks for; it has 'Al"),
        ({"target": "city"}, BadTable, r"'city' of t.csv is not made of numbers \('Rome' in"),
        ({"weights": "v"}, BadTable, "no column 'v'.*--weights asks for"),
        ({"weights": "city"}, BadTable, "'city' of t.csv is not made of numbers"),
        ({"weights": "y"}, UsageError, "'y' can be only one of --target, --weights and"),
        ({"features": ["alpha"]}, BadTable, r"no column 'alpha' \(did you mean 'Alpha'\?\)"),
        ({"features": ["p", "q"]}, BadTable, "no column 'p', 'q', which --features asks for"),
        ({"features": ["city"]}, BadTable, "not made of numbers.*leave it out"),
        ({"features": ["y"]}, UsageError, "'y' can be only one of --target"),
        ({"features": ["w", "w"]}, UsageError, "'w' can be only .* once"),
        (
            {"features": ["beta"], "drop_missing": False},
            BadTable,
            r"missing values in 2 rows of 4 \(the first is row 2\), columns 'beta' \(1\), 'y' "
            r"\(1\); .* --drop-missing",
        ),
        (
            {"table": TABLE.assign(w=[1, np.inf, 2, -np.inf]), "features": ["w"]},
            BadTable,
            r"infinite values in 2 rows of 4 \(the first is row 2\), columns 'w' \(2\); correct",
        ),
        ({"features": ["empty"]}, BadTable, "t.csv has no rows without missing values"),
        ({"table": TABLE[:0]}, BadTable, "t.csv has no rows below its header"),
        (
            {"features": None, "table": TABLE[["city", "y"]]},
            BadTable,
            "no column of numbers besides the target; left out what is not made of numbers: 'city'",
        ),
        (
            {"features": None, "weights": "w", "table": TABLE[["w", "y"]]},
            BadTable,
            "no column of numbers besides target and weights$",
        ),
    ],
)
def test_complaints(options, kind, message):
    with pytest.raises(kind, match=message):
        take(**options)


def test_new_rows_have_what_the_model_needs_in_its_order():
    assert list(new_rows(TABLE, "t.csv", ["w", "Alpha"])) == ["w", "Alpha"]


def test_names_of_a_model_that_are_read_as_others():
    table = TABLE.rename(columns={"beta": "column 1"})[["Alpha", "column 1"]].fillna(2.0)
    assert list(new_rows(table, "t.csv", ["Alpha ", ""])) == ["Alpha ", ""]


@pytest.mark.parametrize(
    ("needed", "message"),
    [
        (["w", "Beta"], r"no column 'Beta' \(did you mean 'beta'\?\), which the model asks for"),
        (["w", "city"], "'city' of t.csv is not made of numbers"),
        (["beta"], r"missing values in 1 row of 4 \(the first is row 2\).*remove those rows"),
    ],
)
def test_complaints_about_new_rows(needed, message):
    with pytest.raises(BadTable, match=message):
        new_rows(TABLE, "t.csv", needed)
