"""From what a user passes to owned float64 arrays; every complaint a user can get about data."""

from __future__ import annotations

import hashlib
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import column_or_1d, validate_data

from ..kernels.chain import zeros
from ..kernels.evaluate import padded
from .column_types import lost_digits, refuse_text

FEWEST_ROWS = 3
# Fewer rows than these get a warning.
_FEW_ROWS = 8
#: Tables with more rows are gone through in blocks, and spared arrays that are not needed.
LARGE = 100_000
# Below this, floating-point numbers lose their digits.
_SMALLEST_SPREAD = 1.0e-305
# Beyond this, there is no room for sums, differences and intervals.
_LARGEST = 1.0e303
# With more rows, the rounding errors of a log-likelihood are as large as what decides.
_MOST_WEIGHT = 1.0e15


class DataWarning(UserWarning):
    """Something in the data was left out or looks unintended."""


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
    """The columns in use as the kernels want them, one a row, with the padding; where all are in
    use, `X` is a view of it. So a large table is copied only once."""

    def sample(self, most: int) -> Table:
        """Return at most so many of the rows, at random but always the same ones."""
        n = len(self.y)
        rows: Any = slice(None)
        if n > most:
            rows = np.sort(np.random.default_rng(n).choice(n, most, replace=False))
        position = self.row_numbers[rows]
        weights = np.array(self.weights[rows])
        X = np.array(self.X[rows], dtype=np.float64, order="C")
        return Table(X, self.y[rows], weights, self.used, position)

    @property
    def columns(self) -> np.ndarray:
        """The columns in use, one a row."""
        if self.padded is None:
            return self.X[:, self.used].T
        return self.padded[:, : len(self.y)]

    @property
    def row_numbers(self) -> np.ndarray:
        """Where each row stands in the user's table, from 0."""
        return np.arange(len(self.y)) if self.position is None else self.position


def column_name(estimator: Any, i: int) -> str:
    """Return how messages and formulas call column i."""
    names = getattr(estimator, "feature_names_in_", None)
    return f"x{i}" if names is None else str(names[i])


def feature_names(estimator: Any) -> list[str]:
    """Return the names of all columns."""
    return [column_name(estimator, i) for i in range(estimator.n_features_in_)]


def check_table(estimator: Any, X: Any, y: Any, sample_weight: Any) -> Table:
    """Validate training data, and record names and number of the columns on the estimator."""
    _refuse_repeated_names(X)
    refuse_text(X, "X")
    refuse_text(y, "y")
    _refuse_not_finite_y(y)
    _tell_lost_digits([*lost_digits(X, "X"), *lost_digits(y, "y")])
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
        rows = _count(len(y), "row") + ("" if keep.all() else " of positive weight")
        raise ValueError(
            f"Found {rows} (n_samples={len(y)}) while a minimum of {FEWEST_ROWS} is required; "
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
        warnings.warn(
            f"{_count(len(y), 'row')} are too few to tell formulas apart: some fit by chance, so "
            "do not trust their probabilities; add data, or say how noisy it is (noise_prior)",
            DataWarning,
            stacklevel=4,
        )
    elif ((y == y.min()) | (y == y.max())).all():
        warnings.warn(
            f"y has only two values, {y.min():g} and {y.max():g}, and the noise is taken to be "
            "normal: this is no classifier, and what it says of such a y is not to be trusted; use "
            "one, such as logistic regression, or a y that was measured",
            DataWarning,
            stacklevel=4,
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
    """Return some columns of a table, one a row, with copies of the first value behind them.

    Of the rows, those that `rows` says, which are `n_rows`.
    """
    columns = zeros((len(used), padded(n_rows)))
    for column, i in zip(columns, used, strict=True):
        column[:n_rows] = X[rows, i]
        column[n_rows:] = column[0]
    return columns


def check_new_rows(estimator: Any, X: Any) -> np.ndarray:
    """Validate rows to predict on; numbers of single precision stay so, to spare a copy."""
    refuse_text(X, "X")
    _tell_lost_digits(lost_digits(X, "X"))
    with np.errstate(all="ignore"):
        X = validate_data(
            estimator, X, dtype=[np.float64, np.float32], ensure_all_finite=False, reset=False
        )
    _refuse_not_finite(estimator, X)
    return X


def check_new_target(y: Any, n_rows: int) -> np.ndarray:
    """Validate observations to compare predictions with."""
    refuse_text(y, "y")
    _refuse_not_finite_y(y)
    values = column_or_1d(y, dtype=np.float64, input_name="y")
    if len(values) != n_rows:
        raise ValueError(
            f"y has {_count(len(values), 'value')} and X has {_count(n_rows, 'row')}; there must "
            "be one value a row"
        )
    return values


def target_name(y: Any) -> str:
    """Return the name of the target, as plots and reports call it."""
    name = getattr(y, "name", None)
    return name if isinstance(name, str) and name else "y"


def _count(n: int, what: str) -> str:
    return f"{n} {what}" + ("" if n == 1 else "s")


def _what(values: np.ndarray) -> str:
    n_nan, n_inf = int(np.isnan(values).sum()), int(np.isinf(values).sum())
    parts = []
    if n_nan:
        parts.append(_count(n_nan, "NaN value"))
    if n_inf:
        parts.append(_count(n_inf, "inf value"))
    return " and ".join(parts)


def _refuse_not_finite(estimator: Any, X: np.ndarray) -> None:
    columns = [i for i in range(X.shape[1]) if not np.isfinite(X[:, i]).all()]
    if not columns:
        return
    parts = [
        f"{_what(X[~np.isfinite(X[:, i]), i])} in column {column_name(estimator, i)!r}"
        for i in columns[:5]
    ]
    if len(columns) > 5:
        parts.append(f"more in {_count(len(columns) - 5, 'other column')}")
    raise ValueError(
        f"Input X contains {', '.join(parts)}; drop or impute those rows "
        "(NaN and inf have no place in a formula)"
    )


def _refuse_too_large(what: str, values: np.ndarray) -> None:
    largest = float(max(values.max(), -values.min()))
    if largest > _LARGEST:
        raise ValueError(
            f"{what} has values of size {largest:.1e}, which is too large to compute with; divide "
            "it by a factor"
        )


def _tell_lost_digits(lost: list[str]) -> None:
    if lost:
        more = f"; and {_count(len(lost) - 5, 'more column')}" if len(lost) > 5 else ""
        warnings.warn(
            f"{'; '.join(lost[:5])}{more}: beyond 2**53, numbers here have only some 16 digits; "
            "subtract a constant, or leave out what only identifies rows",
            DataWarning,
            stacklevel=5,
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
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    bad = ~np.isfinite(values)
    if y is None or values.ndim != 1 or not bad.any():
        return
    raise ValueError(
        f"Input y contains {_what(values[bad])} (the first is in row {int(np.argmax(bad))}); drop "
        "or impute those rows"
    )


def _refuse_repeated_names(X: Any) -> None:
    names = [str(name) for name in getattr(X, "columns", [])]
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise ValueError(
            f"X has more than one column named {', '.join(map(repr, repeated[:5]))}, so a formula "
            "could not tell them apart; rename them"
        )


def _check_weights(sample_weight: Any, n_rows: int) -> np.ndarray:
    if sample_weight is None:
        ones = np.broadcast_to(1.0, n_rows)  # one number, whatever the number of rows
        # Linear algebra rounds differently with such an array, so small tables get a real one.
        return ones if n_rows > LARGE else np.array(ones)
    refuse_text(sample_weight, "sample_weight")
    try:
        weights = np.array(sample_weight, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(
            "sample_weight must be an array with one number a row, not "
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
            f"sample_weight.shape == {weights.shape}, expected {(n_rows,)}: one weight a row"
        )
    bad = ~np.isfinite(weights)
    if bad.any():
        raise ValueError(
            f"sample_weight contains {_what(weights[bad])}; give those rows weight 0 to leave them "
            "out"
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
    if total > _MOST_WEIGHT:
        raise ValueError(
            f"sample_weight sums to {total:.3g}; weights count rows (a weight of 2 is the row "
            f"twice), and with more than {_MOST_WEIGHT:g} of them rounding errors decide: divide "
            "them by a factor"
        )
    if total < FEWEST_ROWS:
        raise ValueError(
            f"sample_weight sums to {total:.3g}; weights count rows (a weight of 2 is the row "
            f"twice), so they must sum to at least {FEWEST_ROWS}: multiply them by a factor"
        )
    return weights


def _usable_columns(estimator: Any, X: np.ndarray, rows: slice | np.ndarray) -> np.ndarray:
    """Return the columns that vary and are not repeated on the rows; warn about the others."""
    seen: dict[bytes, int] = {}
    used, constant, repeated = [], [], []
    for i in range(X.shape[1]):
        column = X[rows, i] + 0.0  # which makes -0.0 the same as 0.0
        if (column == column[0]).all():
            constant.append(i)
            continue
        _refuse_too_large(f"column {column_name(estimator, i)!r} of X", column)
        first = seen.setdefault(hashlib.sha256(column.tobytes()).digest(), i)
        if first == i:
            used.append(i)
        else:
            repeated.append((i, first))
    parts = []
    if constant:
        names = ", ".join(repr(column_name(estimator, i)) for i in constant[:5])
        more = f" and {len(constant) - 5} more" if len(constant) > 5 else ""
        parts.append(f"constant: {names}{more}")
    if repeated:
        names = ", ".join(
            f"{column_name(estimator, i)!r} (the same as {column_name(estimator, j)!r})"
            for i, j in repeated[:5]
        )
        more = f" and {len(repeated) - 5} more" if len(repeated) > 5 else ""
        parts.append(f"duplicate: {names}{more}")
    if not used:
        raise ValueError(
            "X has no column that varies (every feature is constant), so no formula can explain y; "
            "check the table"
        )
    if parts:
        warnings.warn(
            f"Columns that cannot matter are left out: {'; '.join(parts)}",
            DataWarning,
            stacklevel=5,
        )
    return np.array(used)
