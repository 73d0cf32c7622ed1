"""Large tables are copied once at most, whatever form they come in, and no other number changes."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pandas as pd
import pytest

from symbayes import BayesianSymbolicRegressor
from symbayes.inputs.validation import check_table

# Large enough that all else is small beside it, and with values that single precision holds.
N_ROWS, N_COLUMNS = 120_000, 60
RNG = np.random.default_rng(3)
VALUES = RNG.integers(256, 1024, (N_ROWS, N_COLUMNS)) / 256.0
Y = VALUES[:, 0] * VALUES[:, 1] + 0.1 * RNG.normal(size=N_ROWS)
SIZE = N_ROWS * N_COLUMNS * 8
# Arrays as long as a column, that a fit needs beside the table, and what does not grow with it.
BESIDE = 8 * 8 * N_ROWS + 16_000_000


def read_only(values):
    values = values.copy()
    values.setflags(write=False)
    return values


def memory_mapped(values, folder):
    np.save(folder / "X.npy", values)
    return np.load(folder / "X.npy", mmap_mode="r")


FORMS = {
    "plain": lambda folder: VALUES.copy(),
    "F-ordered": lambda folder: np.asfortranarray(VALUES),
    "float32": lambda folder: VALUES.astype(np.float32),
    "F-ordered float32": lambda folder: np.asfortranarray(VALUES.astype(np.float32)),
    "read-only": lambda folder: read_only(VALUES),
    "memory-mapped": lambda folder: memory_mapped(VALUES, folder),
    "memory-mapped float32": lambda folder: memory_mapped(VALUES.astype(np.float32), folder),
    "every other column": lambda folder: np.repeat(VALUES, 2, axis=1)[:, ::2],
    "big-endian": lambda folder: VALUES.astype(">f8"),
    "frame": lambda folder: pd.DataFrame(VALUES.copy()),
    "float32 frame": lambda folder: pd.DataFrame(VALUES.astype(np.float32)),
}
# These become float64 as a whole for a prediction, which is their one copy.
CONVERTED = ("big-endian",)


def small(**kwargs):
    return BayesianSymbolicRegressor(
        ["+", "*"], draws=2, tune=4, chains=1, n_jobs=1, random_state=0, **kwargs
    )


def peak_of(work):
    """Return the result of some work, and the most memory it had taken at any time."""
    tracemalloc.start()
    try:
        return work(), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.fixture(scope="module")
def reference():
    model = small().fit(VALUES, Y)
    return model.formulas_, model.predict(VALUES)


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_a_large_table_is_copied_once(form, reference, tmp_path):
    formulas, predictions = reference
    table = FORMS[form](tmp_path)
    model, peak = peak_of(lambda: small().fit(table, Y))
    assert SIZE < peak < SIZE + BESIDE
    predicted, peak = peak_of(lambda: model.predict(table))
    # Rows are brought into order some at a time.
    assert peak < (SIZE if form in CONVERTED else 0) + BESIDE
    pd.testing.assert_frame_equal(model.formulas_, formulas, check_exact=True)
    np.testing.assert_array_equal(predicted, predictions)
    np.testing.assert_array_equal(np.asarray(table), VALUES)


@pytest.mark.parametrize("form", FORMS)
def test_validation_makes_the_only_copy(form, tmp_path):
    table = FORMS[form](tmp_path)
    checked, peak = peak_of(lambda: check_table(small(), table, Y, None))
    assert peak < SIZE + 6 * 8 * N_ROWS + 1_000_000
    assert not np.shares_memory(checked.columns, np.asarray(table))
    np.testing.assert_array_equal(checked.columns.T, VALUES)


@pytest.mark.parametrize("dtype", [np.int16, np.int64, np.float16, bool])
def test_numbers_of_other_types_are_copied_once(dtype):
    table = (VALUES * 100 % 7 if dtype is not bool else VALUES > 2).astype(dtype)
    checked, peak = peak_of(lambda: check_table(small(), table, Y, None))
    assert peak < SIZE + 6 * 8 * N_ROWS + 1_000_000
    np.testing.assert_array_equal(checked.X, table.astype(float))


@pytest.mark.filterwarnings("ignore:Columns that cannot matter")
def test_what_is_left_out_costs_nothing():
    """Neither columns that are constant or repeated, nor rows without weight."""
    table = VALUES.copy()
    table[:, 5] = 1.0
    table[:, 7] = table[:, 9]
    checked, peak = peak_of(lambda: check_table(small(), table, Y, None))
    assert peak < SIZE + 6 * 8 * N_ROWS
    used = [i for i in range(N_COLUMNS) if i not in (5, 9)]
    assert checked.used.tolist() == used
    np.testing.assert_array_equal(checked.columns.T, table[:, used])
    np.testing.assert_array_equal(checked.sample(100).X, table[checked.sample(100).row_numbers])
    weights = np.arange(N_ROWS) % 3.0
    checked, peak = peak_of(lambda: check_table(small(), VALUES, Y, weights))
    assert peak < 2 * SIZE / 3 + 12 * 8 * N_ROWS
    np.testing.assert_array_equal(checked.X, VALUES[weights > 0])
