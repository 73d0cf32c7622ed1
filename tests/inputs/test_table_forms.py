"""Every form of a table gives the same model, and none is modified."""

import numpy as np
import pandas as pd
import pytest

from .test_validation import RNG, X, Y, quick


def memory_mapped(folder, name, values):
    np.save(folder / f"{name}.npy", values)
    return np.load(folder / f"{name}.npy", mmap_mode="r")


def read_only(values):
    values = values.copy()
    values.setflags(write=False)
    return values


FORMS = {
    "float32": lambda values, folder, name: values.astype(np.float32),
    "F-ordered": lambda values, folder, name: np.asfortranarray(values),
    "read-only": lambda values, folder, name: read_only(values),
    "strided": lambda values, folder, name: np.repeat(values, 2, axis=0)[::2],
    "reversed": lambda values, folder, name: values[::-1].copy()[::-1],
    "memory-mapped": lambda values, folder, name: memory_mapped(folder, name, values),
    "list": lambda values, folder, name: values.tolist(),
    "object": lambda values, folder, name: values.astype(object),
    "big-endian": lambda values, folder, name: values.astype(">f8"),
    "frame": lambda values, folder, name: (
        pd.DataFrame(values) if values.ndim == 2 else pd.Series(values)
    ),
    "nullable frame": lambda values, folder, name: (
        pd.DataFrame(values).astype("Float64")
        if values.ndim == 2
        else pd.Series(values, dtype="Float64")
    ),
}


@pytest.fixture(scope="module")
def reference():
    y = Y.astype(np.float32).astype(float)
    model = quick().fit(X, y)
    return y, model.formulas_, model.predict(X)


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_a_table_gives_the_same(form, reference, tmp_path):
    y, formulas, predictions = reference
    table = FORMS[form](X, tmp_path, "X")
    response = FORMS[form](y, tmp_path, "y")
    model = quick().fit(table, response)
    pd.testing.assert_frame_equal(model.formulas_, formulas, check_exact=True)
    np.testing.assert_array_equal(model.predict(table), predictions)


@pytest.mark.filterwarnings("ignore:y has only two values")
@pytest.mark.parametrize("dtype", [np.int8, np.int64, np.uint16, bool])
def test_whole_numbers_and_truth_values(dtype):
    whole = RNG.integers(0, 2 if dtype is bool else 100, (30, 3)).astype(dtype)
    y = whole[:, 0] if dtype is bool else whole[:, 0] + whole[:, 1].astype(np.int64)
    first = quick().fit(whole, y)
    second = quick().fit(whole.astype(float), y.astype(float))
    pd.testing.assert_frame_equal(first.formulas_, second.formulas_, check_exact=True)
    np.testing.assert_array_equal(first.predict(whole), second.predict(whole.astype(float)))


@pytest.mark.parametrize("order", ["C", "F"])
def test_input_is_not_modified_nor_kept(order):
    table, y, weights = np.array(X, order=order), Y.copy(), np.ones(30)
    weights[3] = 0.0
    kept = weights.copy()
    model = quick().fit(table, y, sample_weight=weights)
    before = model.predict(table)
    np.testing.assert_array_equal(table, X)
    np.testing.assert_array_equal(y, Y)
    np.testing.assert_array_equal(weights, kept)
    new_rows = table.copy(order=order)
    table[:], y[:], weights[:] = 0.0, 0.0, 0.0
    np.testing.assert_array_equal(model.predict(new_rows), before)
    np.testing.assert_array_equal(new_rows, X)
