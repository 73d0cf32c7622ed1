"""Columns of any type: what is not a number is refused, what loses digits is told."""

from __future__ import annotations

import re
from datetime import date, timedelta
from typing import Any

import numpy as np
import pandas as pd

_DATES = "{} contains dates or time spans; turn them into numbers, for example days since a start"


# All whole numbers up to here are doubles; of those beyond, most are not.
_LARGEST_WHOLE = 2**53


def refuse_text(values: Any, what: str) -> None:
    """Complain about text and other things that are not numbers, before NumPy does it less well."""
    if _is_frame(values):
        columns = _columns(values)
    elif isinstance(values, list | tuple):
        columns = _split(_as_array(values), what)
    else:
        columns = _split(values, what)
    for name, column in columns:
        array = np.asarray(column)
        where = _where(name, what)
        if array.dtype.kind == "c":
            raise ValueError(
                f"Complex data not supported: {where} is complex; pass real and imaginary parts as "
                "two columns"
            )
        if array.dtype.kind in "US":
            raise ValueError(
                f"{where} contains text ({str(array.ravel()[0])[:30]!r}); encode it as numbers, or "
                "leave it out"
            )
        if array.dtype.kind in "mM":
            raise TypeError(_DATES.format(where))
        if array.dtype.kind == "O":
            _refuse_objects(array, where)


def lost_digits(values: Any, what: str) -> list[str]:
    """Return a sentence for each column with whole numbers that are not the same as doubles.

    Examples
    --------
    >>> import numpy as np
    >>> from symbayes.inputs.column_types import lost_digits
    >>> lost_digits(np.array([[1, 2**53 + 1], [2, 2**60]]), "X")
    ["column 'x1' of X has 9007199254740993, which becomes 9007199254740992"]
    """
    if _is_frame(values):
        columns = _columns(values)
    else:
        array = _as_array(values) if isinstance(values, list | tuple) else values
        if not hasattr(array, "dtype") or not _may_lose_digits(array):
            return []
        columns = [("", array)]
        if what == "X" and array.ndim == 2:
            columns = [(f"x{i}", array[:, i]) for i in range(array.shape[1])]
    return [
        f"{_where(name, what)} has {lost}, which becomes {float(lost):.0f}"
        for name, column in columns
        if (lost := first_lost(column)) is not None
    ]


def first_lost(column: Any) -> int | None:
    """Return the first whole number of a column that is not the same as a double."""
    if not _may_lose_digits(column):
        return None
    if isinstance(column, pd.Series):
        column = column.dropna()
    array = np.asarray(column)
    if array.dtype.kind not in "iu":
        return next((value for value in map(_whole, array.ravel()) if not _is_double(value)), None)
    large = array[(array > _LARGEST_WHOLE) | (array < -_LARGEST_WHOLE)]
    changed = large[~_are_doubles(large)]
    return int(changed[0]) if len(changed) else None


def _may_lose_digits(values: Any) -> bool:
    """Return whether it is worth a closer look: by type first, then by the extremes."""
    kind = getattr(values.dtype, "kind", "")
    if kind not in ("i", "u"):
        return kind == "O"
    if values.dtype.itemsize < 8 or values.size == 0:
        return False
    low, high = values.min(), values.max()
    return low is not pd.NA and bool(low < -_LARGEST_WHOLE or high > _LARGEST_WHOLE)


def _are_doubles(whole: np.ndarray) -> np.ndarray:
    values = whole.astype(np.float64)
    with np.errstate(invalid="ignore"):  # the largest become one more than there is
        back = values.astype(whole.dtype)
    return (back == whole) & (values < float(np.iinfo(whole.dtype).max))


def _whole(value: Any) -> int:
    """Return a whole number as it is, be it text, and 0 for anything else."""
    if isinstance(value, str) and re.fullmatch(r"\s*[-+]?[0-9]{1,300}\s*", value):
        return int(value)
    return int(value) if isinstance(value, int | np.integer) else 0


def _is_double(value: int) -> bool:
    return abs(value) <= _LARGEST_WHOLE or int(float(value)) == value


def _is_frame(values: Any) -> bool:
    return hasattr(values, "columns") and hasattr(values, "iloc")


def _columns(frame: Any) -> list[tuple[str, Any]]:
    return [(str(name), frame.iloc[:, i]) for i, name in enumerate(frame.columns)]


def _where(name: str, what: str) -> str:
    return f"column {name!r} of {what}" if name else what


def _as_array(values: list | tuple) -> np.ndarray:
    try:
        return np.asarray(values)
    except ValueError:
        return np.asarray(values, dtype=object)


def _split(values: Any, what: str) -> list[tuple[str, Any]]:
    dtype = getattr(values, "dtype", None)
    if getattr(dtype, "kind", "f") not in "OUScmM":
        return []
    if what == "X" and getattr(values, "ndim", 0) == 2:
        return [(f"x{i}", values[:, i]) for i in range(values.shape[1])]
    return [("", values)]


def _refuse_objects(array: np.ndarray, where: str) -> None:
    """An object array is fine as long as it holds numbers only."""
    for value in array.ravel():
        if isinstance(value, complex | np.complexfloating):
            raise ValueError(f"Complex data not supported: {where} is complex")
        if isinstance(value, str | bytes):
            raise ValueError(
                f"{where} contains text ({str(value)[:30]!r}); encode it as numbers, or leave it "
                "out"
            )
        if value is None or value is pd.NA or value is pd.NaT:
            continue  # becomes NaN, and is counted as such
        if isinstance(value, date | timedelta):
            raise TypeError(_DATES.format(where))
        try:
            float(value)
        except OverflowError:
            raise ValueError(
                f"{where} contains a number that is too large to compute with "
                f"({str(value)[:30]}...); divide it by a factor, or leave it out"
            ) from None
        except (TypeError, ValueError):
            raise TypeError(
                "argument must be a string or a number: "
                f"{where} holds an object of type {type(value).__name__}; convert it to float"
            ) from None
