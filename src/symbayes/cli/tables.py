"""Tables from files and standard input, and which columns of them are what.

CSV and TSV, also packed by gzip, and Parquet; every complaint about files and columns.
"""

from __future__ import annotations

import csv
import gzip
import importlib.util
import io
import math
import re
import sys
import warnings
import zlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pandas as pd

from .. import DataWarning
from ..formula.operators import did_you_mean
from ..inputs.validation import first_lost
from ..storage.atomic import NotAFile, open_file
from .messages import UsageError

#: What stands for standard input.
STANDARD_INPUT = "-"
#: Where a table keeps which of its whole numbers are no longer what was written.
LOST = "lost"
#: What a first column of a text file is called if its name is empty.
UNNAMED = "column 1"
_TABS, _PARQUET, _PACKED = (".tsv", ".tab"), (".parquet", ".pq"), ".gz"
_DELIMITERS = ",;\t"
# What is often taken for a table, and what to do.
_OTHER_KINDS = {
    (".xlsx", ".xlsm", ".xls", ".ods"): "is a spreadsheet; save its sheet as CSV, and name that",
    (".json", ".jsonl", ".ndjson"): (
        "is JSON; turn it into CSV, for example with pandas (read_json, then to_csv), and name that"
    ),
    (".zip", ".bz2", ".xz", ".zst", ".7z"): "is packed; unpack it first, or pack it as .csv.gz",
}
# Pipes that a shell has opened already, as for <(command), so that nobody is waited for.
_OPENED = ("/dev/stdin", "/dev/fd/", "/proc/self/fd/")
# A header is at most about this long; devices may give a line without an end.
_LONGEST_LINE = 2**24
# Characters of another package's words, and names of columns, in a message of ours at most.
_LONGEST_REASON, _MOST_NAMES = 200, 10


class BadTable(ValueError):
    """A file that cannot be read as a table."""


class BadColumns(ValueError):
    """Columns that are not there or not of use."""


@dataclass(frozen=True)
class Training:
    """What a model is fitted to."""

    X: pd.DataFrame
    y: pd.Series
    weights: np.ndarray | None = None
    notes: Sequence[str] = ()
    """What was left out."""
    rows_left_out: int = 0


def source_name(path: str) -> str:
    """Return the name in messages of what a table is read from."""
    return "standard input" if path == STANDARD_INPUT else path


def read_table(path: str) -> pd.DataFrame:
    """Return a table; columns of numbers are float64, all others are as they were read.

    Its `attrs[LOST]` has, for columns in which whole numbers have lost digits, the first of them.

    Parameters
    ----------
    path : str
        A file, or "-" for standard input. Its name tells what it is: Parquet, TSV, or CSV with
        commas, semicolons or tabs, both also with .gz behind it. In text, spaces around names do
        not count.

    Raises
    ------
    BadTable
        If it cannot be read, has no header, or has two columns of one name.
    """
    if path == STANDARD_INPUT:
        if sys.stdin is None:
            raise BadTable("there is no standard input")
        table = _read_text(sys.stdin.buffer, source_name(path), None)
    else:
        table = _read_file(path)
    numbers = {name: _as_numbers(column) for name, column in table.items()}
    result = pd.DataFrame({name: table[name] if x is None else x for name, x in numbers.items()})
    lost = {name: first_lost(table[name]) for name, x in numbers.items() if x is not None}
    result.attrs = {LOST: table.attrs.get(LOST, {}) | {k: v for k, v in lost.items() if v}}
    return result


def _as_numbers(column: pd.Series) -> np.ndarray | None:
    """Return a column as numbers, nan where values are missing; None if it is something else."""
    if pd.api.types.is_numeric_dtype(column):
        return column.to_numpy(dtype=float, na_value=np.nan)
    values = _coerced(column)
    return None if (values.isna() & column.notna()).any() else values.to_numpy(dtype=float)


def first_other(column: pd.Series) -> str:
    """Return the first value of a column that is not a number, and where it is."""
    row = int(np.argmax(_coerced(column).isna() & column.notna()))
    return f"{str(column.iloc[row])[:30]!r} in row {row + 1}"


def _coerced(column: pd.Series) -> pd.Series:
    """Return the values that are numbers, nan for all others."""
    if pd.api.types.is_object_dtype(column) or pd.api.types.is_string_dtype(column):
        return pd.to_numeric(column, errors="coerce")
    return pd.Series(np.nan, index=column.index)


def _read_file(path: str) -> pd.DataFrame:
    name = path.lower().removesuffix(_PACKED)
    packed, suffix = name != path.lower(), Path(name).suffix
    try:
        opened = open(path, "rb") if path.startswith(_OPENED) else open_file(path)  # noqa: SIM115
    except NotAFile:
        raise BadTable(
            f"{path} is a device or a pipe, not a file; name - to read what standard input gives"
        ) from None
    with opened as file:
        for suffixes, advice in _OTHER_KINDS.items():
            if suffix in suffixes:
                raise BadTable(f"{path} {advice}")
        if suffix not in _PARQUET:
            delimiter = "\t" if suffix in _TABS else None
            text: Any = gzip.GzipFile(fileobj=file) if packed else file
            return _read_text(text, path, delimiter)
    if packed:
        raise BadTable(f"{path}: Parquet is packed already; unpack it from .gz first")
    return _read_parquet(path)


def _read_text(file: BinaryIO, source: str, delimiter: str | None) -> pd.DataFrame:
    text = io.TextIOWrapper(file, encoding="utf-8-sig", newline="")
    try:
        first = text.readline(_LONGEST_LINE)
        if len(first) == _LONGEST_LINE:
            raise BadTable(f"{source} has no end of its first line, so it is not a table")
        delimiter = delimiter or _delimiter(first)
        lines = chain([first], iter(text.readline, ""))
        names = next(csv.reader(lines, delimiter=delimiter, skipinitialspace=True), [])
        names = [name.strip() for name in names]
        _check_header(names, source)
        names[0] = names[0] or UNNAMED
        _check_names(names, source)
        table = _read_rows(text, source, delimiter, len(names)).set_axis(names, axis=1)
    except UnicodeDecodeError:
        raise BadTable(f"{source} is not text in UTF-8, which CSV and TSV have to be") from None
    except csv.Error as error:
        raise BadTable(f"{source}: the first line cannot be read as a header: {error}") from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise BadTable(f"{source} cannot be unpacked: {error}; create it again") from None
    finally:
        text.detach()
    return _with_decimal_commas(table) if delimiter == ";" else table


def _delimiter(line: str) -> str:
    """Return what splits the header into the most fields, a comma if nothing does."""
    return max(_DELIMITERS, key=lambda one: len(next(csv.reader([line], delimiter=one), [])))


def _check_header(names: list[str], source: str) -> None:
    if not names:
        raise BadTable(f"{source} has no header; the first line must name the columns")
    if all(map(_is_number, names)):
        raise BadTable(
            f"the first line of {source} has only numbers, so that there seems to be no header; "
            "add a line that names the columns"
        )


def _check_names(names: list[str], source: str) -> None:
    """Complain about columns of one name."""
    repeated = [name for name, n in Counter(names).items() if n > 1]
    if repeated:
        raise BadTable(f"{source} has more than one column named {_some(repeated)}; rename them")


def _is_number(name: str) -> bool:
    try:
        return math.isfinite(float(name))
    except ValueError:
        return False


def _read_rows(text: io.TextIOBase, source: str, delimiter: str, n_columns: int) -> pd.DataFrame:
    """Return what stands below the header."""
    with warnings.catch_warnings():
        # What does not fit under the header would be left out.
        warnings.simplefilter("error", pd.errors.ParserWarning)
        try:
            return pd.read_csv(
                text, sep=delimiter, header=None, names=list(range(n_columns)), index_col=False,
                skipinitialspace=True, low_memory=False,
                # An empty line in a single column is a missing value.
                skip_blank_lines=n_columns > 1,
            )  # fmt: skip
        except pd.errors.ParserWarning:
            raise BadTable(
                f"{source}: row 1 has more fields than the header, which has {n_columns}"
            ) from None
        except pd.errors.ParserError as error:
            fields = re.search(r"Expected \d+ fields in line (\d+), saw (\d+)", str(error))
            if fields is None:
                raise BadTable(f"{source} cannot be read as a table: {error}") from None
            raise BadTable(
                f"{source}: row {fields[1]} has {fields[2]} fields and the header {n_columns}"
            ) from None


def _with_decimal_commas(table: pd.DataFrame) -> pd.DataFrame:
    """Read 1,5 as a number where fields are separated by semicolons, as half the world writes."""
    for name in table:
        if pd.api.types.is_numeric_dtype(table[name]):
            continue
        column = table[name].astype(object)
        values = _as_numbers(column.map(lambda x: x.replace(",", ".") if isinstance(x, str) else x))
        if values is not None:
            table[name] = values
    return table


def _read_parquet(path: str) -> pd.DataFrame:
    if importlib.util.find_spec("pyarrow") is None:
        raise BadTable(
            f"{path}: Parquet needs the package pyarrow; install it (pip install pyarrow), or use "
            "CSV"
        )
    import pyarrow.parquet

    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            content = file.read()
        names, table = content.column_names, content.to_pandas(ignore_metadata=True)
        # With gaps, whole numbers have become doubles already.
        gaps = {name: content.column(i) for i, name in enumerate(names) if name in table}
        table.attrs = {LOST: {
            name: lost for name, column in gaps.items()
            if column.null_count and str(column.type) in ("int64", "uint64")
            and (lost := first_lost(column.drop_null().to_numpy())) is not None
        }}  # fmt: skip
    except Exception as error:  # of any kind: parts of a damaged file end in JSON, text and dates
        what = " ".join(str(error).split())[:_LONGEST_REASON]
        raise BadTable(
            f"{path} is damaged or not Parquet ({what}); create it again, or use CSV"
        ) from None
    _check_names(names, path)
    return table


def training(
    table: pd.DataFrame,
    source: str,
    target: str | None,
    features: Sequence[str] | None,
    weights: str | None,
    drop_missing: bool,
) -> Training:
    """Return features, target and weights of a table, without what is of no use.

    Without `features`, these are all other columns of numbers. No `target` is a mistake, and the
    answer to it names the columns; so are missing values, unless `drop_missing` leaves those rows
    out.
    """
    if target is None:
        raise UsageError(
            f"--target is missing: name the column to explain; {source} has {_some(table.columns)}"
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
    _refuse_infinite(table[used], source)
    if not drop_missing:
        advice = "fill them in, or leave those rows out with --drop-missing"
        _refuse(table[used].isna(), source, "missing values", advice)
    missing = table[used].isna().any(axis=1).to_numpy()
    if missing.any():
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
    _refuse(rows.isna(), source, "missing values", "fill them in, or remove those rows")
    _refuse_infinite(rows, source)
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
            f"{source} has no column {_some(absent)}{hint}, which {who} asks for; it has "
            f"{_some(table.columns)}"
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
        some = _some(text, lambda name: f"{name!r} ({first_other(table[name])})")
        notes.append(f"left out what is not made of numbers: {some}")
    if empty:
        notes.append(f"left out what is empty: {_some(empty)}")
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


def _refuse_infinite(rows: pd.DataFrame, source: str) -> None:
    infinite = rows.isin([np.inf, -np.inf])
    _refuse(infinite, source, "infinite values", "correct them, or remove those rows")


def _refuse(found: pd.DataFrame, source: str, what: str, advice: str) -> None:
    """Complain about values where `found` is true; rows count from 1, without the header."""
    rows, counts = found.any(axis=1).to_numpy(), found.sum()
    if rows.any():
        columns = _some(counts.index[counts > 0], lambda name: f"{name!r} ({counts[name]})")
        raise BadColumns(
            f"{source} has {what} in {_count(int(rows.sum()), 'row')} of {len(rows)} (the first is "
            f"row {int(np.argmax(rows)) + 1}), columns {columns}; {advice}"
        )


def _some(names: Sequence[str], words: Callable[[str], str] = repr) -> str:
    """Return the first names in words, and how many more there are."""
    more = len(names) - _MOST_NAMES
    return ", ".join(map(words, names[:_MOST_NAMES])) + (f" and {more} more" if more > 0 else "")


def _count(n: int, what: str) -> str:
    return f"{n} {what}" + ("" if n == 1 else "s")
