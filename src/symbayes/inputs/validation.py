"""From what a user passes to owned float64 arrays; every complaint a user can get about data."""

from __future__ import annotations

import hashlib
import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils.validation import column_or_1d, validate_data

from ..cautions import DataWarning, Remedy
from ..formula.checks import repeated
from ..kernels.chain import zeros
from ..kernels.evaluate import padded

FEWEST_ROWS = 3
# Fewer rows than these get a warning.
_FEW_ROWS = 8
#: Tables with more rows are read in blocks, and spared arrays that are not needed.
LARGE = 100_000
# Below this, floating-point numbers lose their digits.
_SMALLEST_SPREAD = 1.0e-305
# Beyond this, there is no room for sums, differences and intervals.
_LARGEST = 1.0e303
# With more rows, the rounding errors of a log-likelihood are as large as what decides.
_MOST_WEIGHT = 1.0e15
# All whole numbers up to here are doubles; of those beyond, most are not.
_LARGEST_WHOLE = 2**53
# Kinds of NumPy types that are not numbers, or may hold what is not.
_NOT_NUMBERS = "OUScmM"
# Columns that a message names, at most.
_MOST_NAMES = 5


@dataclass(frozen=True)
class Table:
    """Validated training data. Arrays belong to the library, but for `X` where it says so."""

    X: np.ndarray
    """All columns the user passed. Where some of them cannot matter, this is the user's own array,
    so that it is not copied for their sake."""
    y: np.ndarray
    weights: np.ndarray
    """Row weights, all positive: rows of weight zero are gone."""
    used: np.ndarray
    """Indices of the columns that may occur in formulas."""
    position: np.ndarray | None = None
    """Numbers of the rows in the user's table; None counts them from 0."""
    padded: np.ndarray | None = None
    """The columns in use as the kernels want them, one per row, with the padding; where all are in
    use, `X` is a view of it. So a large table is copied only once."""

    def sample(self, most: int) -> Table:
        """Return at most `most` of the rows, at random but always the same ones."""
        rows = some_of(len(self.y), most)
        X = np.array(self.X[rows], dtype=np.float64, order="C")
        return Table(X, self.y[rows], self.weights[rows], self.used, self.row_numbers[rows])

    @property
    def columns(self) -> np.ndarray:
        """The columns in use, one per row."""
        if self.padded is None:
            return self.X[:, self.used].T
        return self.padded[:, : len(self.y)]

    @property
    def row_numbers(self) -> np.ndarray:
        """Where each row stands in the user's table, from 0."""
        return np.arange(len(self.y)) if self.position is None else self.position


def some_of(n: int, most: int) -> np.ndarray:
    """Return at most `most` of the numbers below n, at random but always the same ones."""
    return (
        np.sort(np.random.default_rng(n).choice(n, most, replace=False))
        if n > most
        else np.arange(n)
    )


def column_name(estimator: Any, i: int) -> str:
    """Return the name of column i in messages and formulas."""
    names = getattr(estimator, "feature_names_in_", None)
    return f"x{i}" if names is None else str(names[i])


def feature_names(estimator: Any) -> list[str]:
    """Return the names of all columns."""
    return [column_name(estimator, i) for i in range(estimator.n_features_in_)]


def check_table(estimator: Any, X: Any, y: Any, sample_weight: Any) -> Table:
    """Validate training data, and record names and number of the columns on the estimator."""
    _refuse_repeated_names(X)
    lost = [*check_numbers(X, "X"), *check_numbers(y, "y")]
    _refuse_not_finite_y(y)
    _tell_lost_digits(lost)
    # What float64 can hold stays what it is: a column becomes float64 when it is copied.
    is_plain = isinstance(X, np.ndarray) and X.dtype.kind in "biuf" and X.dtype.itemsize <= 8
    dtype = "numeric" if is_plain else [np.float64, np.float32]
    with np.errstate(all="ignore"):  # sums of very large values overflow in there
        X, y = validate_data(estimator, X, y, dtype=dtype, ensure_all_finite=False, y_numeric=True)
    _refuse_not_finite(estimator, X)
    weights = _check_weights(sample_weight, len(y))
    keep = weights > 0
    rows: Any = slice(None)
    if not keep.all():
        rows, y, weights = keep, y[keep], weights[keep]
    y = np.array(y, dtype=np.float64)
    if len(y) < FEWEST_ROWS:
        found = _count(len(y), "row") + ("" if keep.all() else " of positive weight")
        raise ValueError(
            f"Found {found} (n_samples={len(y)}) while a minimum of {FEWEST_ROWS} is required; "
            "add data"
        )
    if (y == y[0]).all():
        raise ValueError(
            f"y is constant (every value is {y[0]:g}), so there is nothing to explain; check that "
            "it is the right column"
        )
    _refuse_too_large("y", y)
    if np.ptp(y / 2) < _SMALLEST_SPREAD:
        raise ValueError(
            f"y varies by only {np.ptp(y):.1g}, which is too little to compute with; multiply it "
            "by a factor"
        )
    if len(y) < _FEW_ROWS:
        _warn(
            f"{_count(len(y), 'row')} are too few to tell formulas apart: some fit by chance, so "
            "do not trust their probabilities; add data, or ",
            Remedy.TELL_NOISE,
        )
    elif ((y == y.min()) | (y == y.max())).all():
        _warn(
            f"y has only two values, {y.min():g} and {y.max():g}, and the noise is taken to be "
            "normal: this is no classifier, so do not trust what it says about such a y; use one, "
            "such as logistic regression, or a y that was measured"
        )
    used = _usable_columns(estimator, X, rows)
    columns = padded_columns(X, used, len(y), rows)
    whole = len(used) == X.shape[1]
    X = columns[:, : len(y)].T if whole else X[rows]
    position = None if keep.all() else np.flatnonzero(keep)
    return Table(X, y, weights, used, position, columns)


def padded_columns(
    X: np.ndarray, used: np.ndarray, n_rows: int, rows: slice | np.ndarray = slice(None)
) -> np.ndarray:
    """Return some columns of a table, one per row, padded with copies of their first value.

    `rows` says which rows to take, `n_rows` how many those are.
    """
    columns = zeros((len(used), padded(n_rows)))
    for column, i in zip(columns, used, strict=True):
        column[:n_rows] = X[rows, i]
        column[n_rows:] = column[0]
    return columns


def check_new_rows(estimator: Any, X: Any) -> np.ndarray:
    """Validate rows to predict on; numbers of single precision stay so, to spare a copy."""
    _tell_lost_digits(check_numbers(X, "X"))
    with np.errstate(all="ignore"):
        X = validate_data(
            estimator, X, dtype=[np.float64, np.float32], ensure_all_finite=False, reset=False
        )
    _refuse_not_finite(estimator, X)
    return X


def check_new_target(y: Any, n_rows: int) -> np.ndarray:
    """Validate observations to compare predictions with."""
    check_numbers(y, "y")
    _refuse_not_finite_y(y)
    values = column_or_1d(y, dtype=np.float64, input_name="y")
    if len(values) != n_rows:
        raise ValueError(
            f"y has {_count(len(values), 'value')} and X has {_count(n_rows, 'row')}; there must "
            "be one value per row"
        )
    return values


def target_name(y: Any) -> str:
    """Return the name of the target, as plots and reports call it."""
    name = getattr(y, "name", None)
    return name if isinstance(name, str) and name else "y"


def _warn(message: str, *remedy: Remedy, stacklevel: int = 5) -> None:
    warnings.warn(DataWarning(message, *remedy), stacklevel=stacklevel)


def _count(n: int, what: str) -> str:
    return f"{n} {what}" + ("" if n == 1 else "s")


def _list(parts: Sequence[str], separator: str = ", ") -> str:
    more = len(parts) - _MOST_NAMES
    return separator.join(parts[:_MOST_NAMES]) + (f" and {more} more" if more > 0 else "")


def _not_finite(values: np.ndarray) -> str:
    """Return how many values are NaN and how many are infinite, in words."""
    counts = (int(np.isnan(values).sum()), "NaN value"), (int(np.isinf(values).sum()), "inf value")
    return " and ".join(_count(n, what) for n, what in counts if n)


def _refuse_not_finite(estimator: Any, X: np.ndarray) -> None:
    parts = [
        f"{_not_finite(X[:, i])} in column {column_name(estimator, i)!r}"
        for i in range(X.shape[1])
        if not np.isfinite(X[:, i]).all()
    ]
    if parts:
        raise ValueError(
            f"Input X contains {_list(parts)}; drop or impute those rows "
            "(NaN and inf have no place in a formula)"
        )


def _refuse_too_large(what: str, values: np.ndarray) -> None:
    if (largest := float(max(values.max(), -values.min()))) > _LARGEST:
        raise ValueError(
            f"{what} has values of size {largest:.1e}, which is too large to compute with; divide "
            "it by a factor"
        )


def _tell_lost_digits(lost: list[str]) -> None:
    if lost:
        _warn(
            f"{_list(lost, '; ')}: beyond 2**53, numbers here have only some 16 digits; subtract a "
            "constant, or leave out what only identifies rows",
            stacklevel=6,
        )


def _refuse_not_finite_y(y: Any) -> None:
    """Say how many rows of y are not finite, and which; leave other complaints to scikit-learn."""
    try:
        values = np.asarray(y, dtype=np.float64)
    except (TypeError, ValueError):
        return
    if values.ndim == 2 and values.shape[1] > 1:
        raise ValueError(
            f"y should be a 1d array, got an array of shape {values.shape} instead: one model "
            "explains one column; sklearn.multioutput.MultiOutputRegressor(BayesianSymbolic"
            "Regressor(...)) fits one for each"
        )
    if values.ndim == 2:
        values = values.ravel()
    bad = ~np.isfinite(values)
    if y is not None and values.ndim == 1 and bad.any():
        raise ValueError(
            f"Input y contains {_not_finite(values[bad])} (the first is in row "
            f"{int(np.argmax(bad))}); drop or impute those rows"
        )


def _refuse_repeated_names(X: Any) -> None:
    if twice := repeated(getattr(X, "columns", [])):
        raise ValueError(
            f"X has more than one column named {_list(twice)}, so a formula could not tell them "
            "apart; rename them"
        )


def _check_weights(sample_weight: Any, n_rows: int) -> np.ndarray:
    if sample_weight is None:
        ones = np.broadcast_to(1.0, n_rows)  # one number, whatever the number of rows
        # Linear algebra rounds differently with such an array, so small tables get a real one.
        return ones if n_rows > LARGE else np.array(ones)
    check_numbers(sample_weight, "sample_weight")
    try:
        weights = np.array(sample_weight, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(
            "sample_weight must be an array with one number per row, not "
            f"{type(sample_weight).__name__}"
        ) from None
    if weights.ndim == 0:
        weights = np.full(n_rows, float(weights))
    if weights.ndim != 1:
        raise ValueError(
            f"sample_weight has {weights.ndim} dimensions; Sample weights must be 1D array or "
            "scalar"
        )
    if len(weights) != n_rows:
        raise ValueError(
            f"sample_weight.shape == {weights.shape}, expected {(n_rows,)}: one weight per row"
        )
    bad = ~np.isfinite(weights)
    if bad.any():
        raise ValueError(
            f"sample_weight contains {_not_finite(weights[bad])}; give those rows weight 0 to "
            "leave them out"
        )
    if (weights < 0).any():
        raise ValueError(
            f"sample_weight contains {_count(int((weights < 0).sum()), 'negative value')} (the "
            f"first is row {int(np.argmax(weights < 0))}); weights count rows and cannot be "
            "negative"
        )
    with np.errstate(over="ignore"):
        total = weights.sum()
    if total == 0:
        raise ValueError("sample_weight sums to zero; at least three rows need a positive weight")
    if FEWEST_ROWS <= total <= _MOST_WEIGHT:
        return weights
    raise ValueError(
        f"sample_weight sums to {total:.3g}; weights count rows (a weight of 2 is the row twice), "
        f"and must sum to at least {FEWEST_ROWS}, and to at most {_MOST_WEIGHT:g} or else rounding "
        f"errors decide: {'multiply' if total < FEWEST_ROWS else 'divide'} them by a factor"
    )


def _usable_columns(estimator: Any, X: np.ndarray, rows: slice | np.ndarray) -> np.ndarray:
    """Return the columns that vary and are not copies on the rows; warn about the others."""
    seen: dict[bytes, str] = {}
    used, constant, copies = [], [], []
    for i in range(X.shape[1]):
        name = repr(column_name(estimator, i))
        column = X[rows, i] + 0.0  # which makes -0.0 the same as 0.0
        if (column == column[0]).all():
            constant.append(name)
            continue
        _refuse_too_large(f"column {name} of X", column)
        first = seen.setdefault(hashlib.sha256(column.tobytes()).digest(), name)
        if first == name:
            used.append(i)
        else:
            copies.append(f"{name} (the same as {first})")
    if not used:
        raise ValueError(
            "X has no column that varies (every feature is constant), so no formula can explain y; "
            "check the table"
        )
    left_out = {"constant": constant, "duplicate": copies}
    parts = [f"{why}: {_list(names)}" for why, names in left_out.items() if names]
    if parts:
        _warn(f"Columns that cannot matter are left out: {'; '.join(parts)}", stacklevel=6)
    return np.array(used)


def check_numbers(values: Any, what: str) -> list[str]:
    """Complain about text and other things that are not numbers, before NumPy does it less well.

    Returns a sentence for each column with whole numbers that are not the same as doubles.

    Examples
    --------
    >>> import numpy as np
    >>> from symbayes.inputs.validation import check_numbers
    >>> check_numbers(np.array([[1, 2**53 + 1], [2, 2**60]]), "X")
    ["column 'x1' of X has 9007199254740993, which becomes 9007199254740992"]
    """
    sentences = []
    for where, column in _columns(values, what):
        array = np.asarray(column)
        if array.dtype.kind in _NOT_NUMBERS:
            for value in array.ravel():
                _refuse_value(value, where)
        if (lost := first_lost(column)) is not None:
            sentences.append(f"{where} has {lost}, which becomes {float(lost):.0f}")
    return sentences


def _refuse_value(value: Any, where: str) -> None:
    if isinstance(value, complex | np.complexfloating):
        raise ValueError(
            f"Complex data not supported: {where} is complex; pass real and imaginary parts as two "
            "columns"
        )
    if isinstance(value, str | bytes):
        raise ValueError(
            f"{where} contains text ({str(value)[:30]!r}); encode it as numbers, or leave it out"
        )
    if value is None or value is pd.NA or value is pd.NaT:
        return  # becomes NaN, and is counted as such
    if isinstance(value, date | timedelta | np.datetime64 | np.timedelta64):
        raise TypeError(
            f"{where} contains dates or time spans; turn them into numbers, for example days since "
            "a start"
        )
    try:
        float(value)
    except OverflowError:
        raise ValueError(
            f"{where} contains a number that is too large to compute with ({str(value)[:30]}...); "
            "divide it by a factor, or leave it out"
        ) from None
    except (TypeError, ValueError):
        raise TypeError(
            f"argument must be a string or a number: {where} holds an object of type "
            f"{type(value).__name__}; convert it to float"
        ) from None


def first_lost(column: Any) -> int | None:
    """Return the first whole number of a column that is not the same as a double."""
    if not _may_lose_digits(column):
        return None
    array = np.asarray(column.dropna() if isinstance(column, pd.Series) else column)
    if array.dtype.kind not in "iu":
        whole = map(_whole, array.ravel())
        return next((n for n in whole if abs(n) > _LARGEST_WHOLE and int(float(n)) != n), None)
    large = array[(array > _LARGEST_WHOLE) | (array < -_LARGEST_WHOLE)]
    # What is left without its factors of two has to fit into the digits of a double.
    lost = large[np.abs(large // (large & -large)) > _LARGEST_WHOLE]
    return int(lost[0]) if len(lost) else None


def _may_lose_digits(values: Any) -> bool:
    """Return whether it is worth a closer look: by type first, then by the extremes."""
    kind = getattr(values.dtype, "kind", "")
    if kind not in ("i", "u"):
        return kind == "O"
    if values.dtype.itemsize < 8 or values.size == 0:
        return False
    low, high = values.min(), values.max()
    return low is not pd.NA and bool(low < -_LARGEST_WHOLE or high > _LARGEST_WHOLE)


def _whole(value: Any) -> int:
    """Return a whole number as it is, even from text, and 0 for anything else."""
    if isinstance(value, str) and re.fullmatch(r"\s*[-+]?[0-9]{1,300}\s*", value):
        return int(value)
    return int(value) if isinstance(value, int | np.integer) else 0


def _columns(values: Any, what: str) -> list[tuple[str, Any]]:
    """Return the columns of a table, each after the words for it; none of plain numbers."""
    if hasattr(values, "columns") and hasattr(values, "iloc"):
        return [
            (f"column {str(name)!r} of {what}", values.iloc[:, i])
            for i, name in enumerate(values.columns)
        ]
    if isinstance(values, list | tuple):
        try:
            values = np.asarray(values)
        except ValueError:
            values = np.asarray(values, dtype=object)
    kind = getattr(getattr(values, "dtype", None), "kind", "O")
    if not hasattr(values, "dtype") or not (kind in _NOT_NUMBERS or _may_lose_digits(values)):
        return []
    if what == "X" and getattr(values, "ndim", 0) == 2:
        return [(f"column 'x{i}' of X", values[:, i]) for i in range(values.shape[1])]
    return [(what, values)]
