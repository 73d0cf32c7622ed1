"""Whole numbers that a double cannot hold: told with the name of their column, and only they."""

import datetime
import warnings
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from symbayes import DataWarning
from symbayes.inputs.validation import check_numbers, first_lost

from .test_validation import X, Y, quick

ODD = 2**53 + 1
N = len(Y)


def column(values, dtype):
    """A column that begins with some values, and has small whole numbers below."""
    return pd.Series([*values, *range(N - len(values))], dtype=dtype)


LOST = {
    "int64": column([ODD], "int64"),
    "negative": column([-ODD], "int64"),
    "largest int64": column([2**63 - 1], "int64"),
    "uint64": column([2**63 + 1], "uint64"),
    "largest uint64": column([2**64 - 1], "uint64"),
    "Int64": column([ODD, None], "Int64").fillna(0),
    "UInt64": column([2**64 - 1], "UInt64"),
    "object": column([ODD], object),
    "object beyond 64 bits": column([2**70 + 1], object),
    "category": column([ODD], "category"),
}
KEPT = {
    "small": column([1], "int64"),
    "limit": column([2**53, -(2**53)], "int64"),
    "powers of two": column([2**60, -(2**63)], "int64"),
    "large power of two": column([2**63], "uint64"),
    "Int64": column([2**60], "Int64"),
    "object": column([2**70, 1.5, Decimal("0.5"), np.float32(2), True], object),
    "float": column([float(2**60)], "float64"),
    "int32": column([2**31 - 1], "int32"),
    "bool": pd.Series(np.arange(N) % 2 == 0),
}


@pytest.mark.parametrize("case", LOST)
def test_lost_digits_are_told_with_the_column(case):
    values = LOST[case]
    first = int(values.iloc[0])
    assert first_lost(values) == first
    says = f"'id' of X has {first}, which becomes {float(first):.0f}: beyond 2.*subtract a constant"
    with pytest.warns(DataWarning, match=says) as told:
        model = quick().fit(pd.DataFrame({"a": X[:, 0], "id": values}), Y)
    (warned,) = (one for one in told if one.category is DataWarning)
    assert warned.filename == __file__
    with pytest.warns(DataWarning, match=says):
        model.predict(pd.DataFrame({"a": X[:, 0], "id": values}))


@pytest.mark.parametrize("case", KEPT)
def test_what_stays_the_same_is_not_told(case):
    assert first_lost(KEPT[case]) is None
    quick().fit(pd.DataFrame({"a": X[:, 0], "n": KEPT[case]}), Y)  # warnings are errors


def test_in_arrays_lists_and_y():
    table = np.column_stack([np.arange(N), LOST["int64"]])
    for values in (table, np.asfortranarray(table), table.astype(object), table.tolist()):
        assert check_numbers(values, "X") == [
            f"column 'x1' of X has {ODD}, which becomes {2**53}"
        ]  # fmt: skip
    for y in (LOST["int64"], LOST["int64"].to_numpy(), LOST["int64"].tolist()):
        with pytest.warns(DataWarning, match=f"^y has {ODD}, which becomes {2**53}: beyond"):
            quick().fit(X, y)
    assert check_numbers(table[:, :1], "X") == check_numbers(table[:0], "X") == []
    assert check_numbers(pd.DataFrame({"a": pd.array([None], dtype="Int64")}), "X") == []


def test_many_columns_are_one_warning():
    table = pd.DataFrame({f"c{i}": LOST["int64"] + 2 * i for i in range(8)})
    with pytest.warns(DataWarning, match=r"'c4' of X has .* and 3 more: beyond") as told:
        quick().fit(table, Y)
    assert sum(one.category is DataWarning for one in told) == 1


@pytest.mark.parametrize("seed", range(5))
def test_told_are_exactly_those_that_change(seed):
    """Whole numbers of all sizes, by Python's exact arithmetic."""
    rng = np.random.default_rng(seed)
    for dtype, bits in (("int64", 63), ("uint64", 64)):
        for _ in range(300):
            value = int(rng.integers(2**32)) << 32 | int(rng.integers(2**32))
            value >>= int(rng.integers(64 - bits, 64))
            value &= ~((1 << int(rng.integers(0, 40))) - 1)
            if dtype == "int64" and rng.random() < 0.5:
                value = -value
            lost = first_lost(np.array([7, value, 7], dtype=dtype))
            assert lost == (None if int(float(value)) == value else value)


def test_numbers_that_are_none_as_doubles():
    table = X.astype(object)
    table[3, 1] = 10**400
    with pytest.raises(ValueError, match=r"column 'x1' of X contains a number .* too large"):
        quick().fit(table, Y)


def test_other_objects_are_refused_as_before():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(TypeError, match="contains dates"):
            quick().fit(pd.DataFrame({"d": [datetime.date(2020, 1, 1)] * N, "n": LOST["int64"]}), Y)
