"""Which columns of a table are what: features, target, weights; every complaint about them."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from .. import DataWarning
from ..formula.operators import did_you_mean
from .messages import UsageError
from .reading import LOST, UNNAMED, first_other

# Names in a message at most.
_MOST_NAMES = 10


class BadColumns(ValueError):
    """Columns that are not there or not of use."""


@dataclass(frozen=True)
class Training:
    """What a model is fitted to."""

    X: pd.DataFrame
    y: pd.Series
    weights: np.ndarray | None
    notes: list[str]
    """What was left out."""
    rows_left_out: int


def training(
    table: pd.DataFrame,
    source: str,
    target: str | None,
    features: Sequence[str] | None,
    weights: str | None,
    drop_missing: bool,
) -> Training:
    """Return features, target and weights of a table, without what is of no use.

    Parameters
    ----------
    table : DataFrame
        As `read_table` returns it.
    source : str
        How messages call it.
    target : str or None
        None is a mistake, and the answer to it tells the columns.
    features : sequence of str or None
        None for all columns of numbers.
    weights : str or None
    drop_missing : bool
        Whether rows with missing values are left out or a mistake.
    """
    if target is None:
        raise UsageError(
            f"--target is missing: name the column to explain; {source} has {_list(table)}"
        )
    for option, name in (("--target", target), ("--weights", weights)):
        if name is not None:
            _check_there(table, source, [name], option)
            _check_numbers(table, source, [name])
    if weights == target:
        raise UsageError(f"--weights and --target both are {target!r}")
    others = [name for name in (target, weights) if name is not None]
    notes: list[str] = []
    if features is None:
        besides = "the target" if weights is None else "target and weights"
        features, notes = _usable(table.drop(columns=others), source, besides)
    else:
        _check_features(table, source, features, others)
    used = [*features, *others]
    _tell_lost_digits(table.attrs.get(LOST, {}), source, used)
    _check_finite(table[used], source)
    missing = table[used].isna().any(axis=1).to_numpy()
    if missing.any():
        if not drop_missing:
            where = _where(table[used].isna(), source, "missing values")
            raise BadColumns(f"{where}; fill them in, or leave those rows out with --drop-missing")
        notes.append(f"left out {_count(int(missing.sum()), 'row')} with missing values")
    rows = table.loc[~missing, used].reset_index(drop=True)
    if rows.empty:
        which = "rows without missing values" if len(table) else "rows below its header"
        raise BadColumns(f"{source} has no {which}")
    return Training(
        rows[list(features)],
        rows[target],
        None if weights is None else rows[weights].to_numpy(),
        notes,
        int(missing.sum()),
    )


def new_rows(table: pd.DataFrame, source: str, features: Sequence[str]) -> pd.DataFrame:
    """Return the columns a model needs, in its order; complain about all that is missing."""
    lost = table.attrs.get(LOST, {})
    # A model that was not fitted here may have names that are read as others.
    as_read = {name.strip() or UNNAMED: name for name in features if name not in table.columns}
    table = table.rename(columns={name: as_read[name] for name in table if name in as_read})
    _check_there(table, source, features, "the model")
    _check_numbers(table, source, features)
    _tell_lost_digits(lost, source, features)
    rows = table[list(features)]
    if rows.isna().any(axis=None):
        where = _where(rows.isna(), source, "missing values")
        raise BadColumns(f"{where}; fill them in, or remove those rows")
    _check_finite(rows, source)
    return rows


def _tell_lost_digits(lost: Mapping[str, int], source: str, names: Sequence[str]) -> None:
    for name in names:
        if name in lost:
            warnings.warn(
                f"column {name!r} of {source} has {lost[name]}, which becomes {lost[name]:.0f}: "
                "beyond 2**53, numbers here have only some 16 digits; subtract a constant, or "
                "leave it out if it only identifies rows",
                DataWarning,
                stacklevel=2,
            )


def _check_there(table: pd.DataFrame, source: str, names: Sequence[str], who: str) -> None:
    absent = [name for name in names if name not in table.columns]
    if absent:
        hint = did_you_mean(absent[0], table.columns) if len(absent) == 1 else ""
        raise BadColumns(
            f"{source} has no column {', '.join(map(repr, absent[:_MOST_NAMES]))}{hint}, which "
            f"{who} asks for; it has {_list(table)}"
        )


def _check_numbers(table: pd.DataFrame, source: str, names: Sequence[str]) -> None:
    for name in names:
        if table[name].dtype != float:
            raise BadColumns(
                f"column {name!r} of {source} is not made of numbers ({first_other(table[name])}); "
                "encode it as numbers, or leave it out"
            )


def _check_features(
    table: pd.DataFrame, source: str, features: Sequence[str], others: Sequence[str]
) -> None:
    _check_there(table, source, features, "--features")
    for name in features:
        if name in others:
            raise UsageError(f"--features has {name!r}, which is the target or the weights")
        if list(features).count(name) > 1:
            raise UsageError(f"--features has {name!r} more than once")
    _check_numbers(table, source, features)


def _usable(table: pd.DataFrame, source: str, besides: str) -> tuple[list[str], list[str]]:
    """Return the columns of numbers, and notes on the others."""
    notes = []
    if _begins_with_an_index(table):
        # Written along with a table by some programs, pandas among them.
        notes.append("left out the first column, which has no name and counts the rows")
        table = table.drop(columns=UNNAMED)
    text = [name for name in table if table[name].dtype != float]
    empty = [name for name in table if name not in text and len(table) and table[name].isna().all()]
    if text:
        examples = [f"{name!r} ({first_other(table[name])})" for name in text[:_MOST_NAMES]]
        notes.append(f"left out what is not made of numbers: {_join(examples, len(text))}")
    if empty:
        names = [repr(name) for name in empty[:_MOST_NAMES]]
        notes.append(f"left out what is empty: {_join(names, len(empty))}")
    usable = [name for name in table if name not in text and name not in empty]
    if not usable:
        raise BadColumns(
            f"{source} has no column of numbers besides {besides}"
            + (f"; {'; '.join(notes)}" if notes else "")
        )
    return usable, notes


def _begins_with_an_index(table: pd.DataFrame) -> bool:
    """Return whether the first column has no name and is 0, 1, 2, ... or 1, 2, 3, ..."""
    if len(table.columns) == 0 or table.columns[0] != UNNAMED or table[UNNAMED].dtype != float:
        return False
    values, counted = table[UNNAMED].to_numpy(), np.arange(len(table))
    return bool((values == counted).all() or (values == counted + 1).all())


def _check_finite(rows: pd.DataFrame, source: str) -> None:
    infinite = rows.isin([np.inf, -np.inf])
    if infinite.any(axis=None):
        where = _where(infinite, source, "infinite values")
        raise BadColumns(f"{where}; correct them, or remove those rows")


def _where(found: pd.DataFrame, source: str, what: str) -> str:
    """Return how often something was found, and where; rows count from 1, without the header."""
    rows, counts = found.any(axis=1).to_numpy(), found.sum()
    columns = [f"{name!r} ({n})" for name, n in counts[counts > 0].items()]
    return (
        f"{source} has {what} in {_count(int(rows.sum()), 'row')} of {len(rows)} (the first is row "
        f"{int(np.argmax(rows)) + 1}), columns {_join(columns[:_MOST_NAMES], len(columns))}"
    )


def _list(table: pd.DataFrame) -> str:
    return _join([repr(name) for name in table.columns[:_MOST_NAMES]], len(table.columns))


def _join(parts: Sequence[str], n: int) -> str:
    return ", ".join(parts) + (f" and {n - len(parts)} more" if n > len(parts) else "")


def _count(n: int, what: str) -> str:
    return f"{n} {what}" + ("" if n == 1 else "s")
