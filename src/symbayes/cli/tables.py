"""Tables from files and standard input, and which columns of them are what.

CSV and TSV, also packed by gzip, and Parquet; every complaint about files and columns.
"""

from __future__ import annotations

import csv
import gzip
import importlib.util
import io
import re
import sys
import warnings
import zlib
from collections.abc import Callable, Sequence
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

#: What a first column of a text file is called if its name is empty.
UNNAMED = "column 1"
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
# A column with a smaller share of values that are no numbers has typing errors, and is no text.
_STRAY = 0.1


class BadTable(ValueError):
    """A file that cannot be read as a table, or columns that are not there or not of use."""


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
    return "standard input" if path == "-" else path


def read_table(path: str) -> pd.DataFrame:
    """Return a table as it was read from a file, or from "-", standard input.

    The name of a file tells what it is: Parquet, TSV, or CSV with commas, semicolons or tabs, both
    also with .gz behind it. In text, spaces around names do not count.
    """
    if path == "-":
        if sys.stdin is None:
            raise BadTable("there is no standard input")
        return _read_text(sys.stdin.buffer, source_name(path), None)
    name = path.lower().removesuffix(".gz")
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
        if suffix not in (".parquet", ".pq"):
            text: Any = gzip.GzipFile(fileobj=file) if packed else file
            return _read_text(text, path, "\t" if suffix in (".tsv", ".tab") else None)
        if packed:
            raise BadTable(f"{path}: Parquet is packed already; unpack it from .gz first")
        return _read_parquet(file, path)


def _read_text(file: Any, source: str, delimiter: str | None) -> pd.DataFrame:
    text = io.TextIOWrapper(file, encoding="utf-8-sig", newline="")
    names: list[str] = []
    try:
        first = text.readline(_LONGEST_LINE)
        if len(first) == _LONGEST_LINE:
            raise BadTable(f"{source} has no end of its first line, so it is not a table")
        # What splits the header into the most fields, a comma if nothing does.
        delimiter = delimiter or max(
            ",;\t", key=lambda one: len(next(csv.reader([first], delimiter=one), []))
        )
        lines = chain([first], iter(text.readline, ""))
        header = next(csv.reader(lines, delimiter=delimiter, skipinitialspace=True), [])
        names = [name.strip() for name in header]
        if not names:
            raise BadTable(f"{source} has no header; the first line must name the columns")
        if np.isfinite(numbers(pd.Series(names, dtype=object))).all():
            raise BadTable(
                f"the first line of {source} has only numbers, so that there seems to be no "
                "header; add a line that names the columns"
            )
        names[0] = names[0] or UNNAMED
        _check_names(names, source)
        with warnings.catch_warnings():
            # What does not fit under the header would be left out.
            warnings.simplefilter("error", pd.errors.ParserWarning)
            table = pd.read_csv(
                text, sep=delimiter, header=None, names=list(range(len(names))), index_col=False,
                skipinitialspace=True, low_memory=False,
                # As half the world writes numbers; those with a point are recognised later.
                decimal="," if delimiter == ";" else ".",
                # An empty line in a single column is a missing value.
                skip_blank_lines=len(names) > 1,
            )  # fmt: skip
        return table.set_axis(names, axis=1)
    except UnicodeDecodeError:
        reason = "is not text in UTF-8, which CSV and TSV have to be"
    except csv.Error as error:
        reason = f"has a first line that cannot be read as a header: {error}"
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        reason = f"cannot be unpacked: {error}; create it again"
    except pd.errors.ParserWarning:
        reason = f"has more fields in row 1 than in its header, which has {len(names)}"
    except pd.errors.ParserError as error:
        fields = re.search(r"Expected \d+ fields in line (\d+), saw (\d+)", str(error))
        reason = f"cannot be read as a table: {error}" if fields is None else (
            f"has {fields[2]} fields in row {fields[1]} and {len(names)} in its header"
        )  # fmt: skip
    finally:
        text.detach()
    raise BadTable(f"{source} {reason}")


def _check_names(names: list[str], source: str) -> None:
    """Complain about columns of one name."""
    index = pd.Index(names)
    if index.has_duplicates:
        repeated = _some(index[index.duplicated()].unique())
        raise BadTable(f"{source} has more than one column named {repeated}; rename them")


def _read_parquet(file: BinaryIO, path: str) -> pd.DataFrame:
    if importlib.util.find_spec("pyarrow") is None:
        raise BadTable(
            f"{path}: Parquet needs the package pyarrow; install it (pip install pyarrow), or use "
            "CSV"
        )
    import pyarrow.parquet

    try:
        content = pyarrow.parquet.ParquetFile(file).read()
        # Doubles would not hold all whole numbers of columns with gaps.
        table = content.to_pandas(ignore_metadata=True, integer_object_nulls=True)
    except Exception as error:  # of any kind: parts of a damaged file end in JSON, text and dates
        what = " ".join(str(error).split())[:_LONGEST_REASON]
        raise BadTable(
            f"{path} is damaged or not Parquet ({what}); create it again, or use CSV"
        ) from None
    _check_names(content.column_names, path)
    return table


def numbers(column: pd.Series) -> pd.Series:
    """Return the values of a column that are numbers, as float64; nan for all others."""
    if column.dtype.kind == "O":
        column = pd.to_numeric(column.astype(object), errors="coerce")
    elif not pd.api.types.is_numeric_dtype(column):
        return pd.Series(np.nan, column.index)
    return pd.Series(column.to_numpy(dtype=float, na_value=np.nan), column.index)


def _others(column: pd.Series) -> pd.Series:
    """Return which values of a column are there and are no numbers."""
    return numbers(column).isna() & column.notna()


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
    others = [target] if weights is None else [target, weights]
    named = pd.Index([*others, *(features or ())])
    if named.has_duplicates:
        raise UsageError(
            f"{_some(named[named.duplicated()].unique())} can be only one of --target, --weights "
            "and --features, and only once"
        )
    _check_there(table, source, [target], "--target")
    _check_there(table, source, others[1:], "--weights")
    notes: list[str] = []
    if features is None:
        besides = "the target" if weights is None else "target and weights"
        features, notes = _usable(table.drop(columns=others), source, besides)
    _check_there(table, source, features, "--features")
    advice = "fill them in, or leave those rows out with --drop-missing"
    rows = _columns(table, source, [*features, *others], None if drop_missing else advice)
    complete = rows.dropna(ignore_index=True)
    left_out = len(rows) - len(complete)
    if left_out:
        notes.append(f"left out {_count(left_out, 'row')} with missing values")
    if complete.empty:
        which = "rows without missing values" if len(table) else "rows below its header"
        raise BadTable(f"{source} has no {which}")
    counts = None if weights is None else complete[weights].to_numpy()
    return Training(complete[list(features)], complete[target], counts, notes, left_out)


def new_rows(table: pd.DataFrame, source: str, features: Sequence[str]) -> pd.DataFrame:
    """Return the columns a model needs, in its order; complain about all that is missing."""
    # A model that was not fitted here may have names that are read as others.
    as_read = {name.strip() or UNNAMED: name for name in features if name not in table.columns}
    table = table.rename(columns={name: as_read[name] for name in table if name in as_read})
    _check_there(table, source, features, "the model")
    return _columns(table, source, features, "fill them in, or remove those rows")


def _check_there(table: pd.DataFrame, source: str, names: Sequence[str], who: str) -> None:
    absent = [name for name in names if name not in table.columns]
    if absent:
        hint = did_you_mean(absent[0], table.columns) if len(absent) == 1 else ""
        raise BadTable(
            f"{source} has no column {_some(absent)}{hint}, which {who} asks for; it has "
            f"{_some(table.columns)}"
        )


def _columns(
    table: pd.DataFrame, source: str, names: Sequence[str], if_missing: str | None
) -> pd.DataFrame:
    """Return columns as float64; complain about what is no number, is infinite, or is missing.

    `if_missing` is the advice for missing values, None where they may be.
    """
    rows = pd.DataFrame({name: numbers(table[name]) for name in names})
    for name in names:
        if (rows[name].isna() & table[name].notna()).any():
            raise BadTable(
                f"column {name!r} of {source} is not made of numbers ({first_other(table[name])}); "
                "encode it as numbers, or leave it out"
            )
        lost = first_lost(table[name])
        if lost is not None:
            warnings.warn(
                f"column {name!r} of {source} has {lost}, which becomes {lost:.0f}: beyond 2**53, "
                "numbers here have only some 16 digits; subtract a constant, or leave it out if it "
                "only identifies rows",
                DataWarning,
                stacklevel=2,
            )
    for found, what, advice in (
        (rows.isin([np.inf, -np.inf]), "infinite", "correct them, or remove those rows"),
        (rows.isna(), "missing", if_missing),
    ):
        bad, counts = found.any(axis=1).to_numpy(), found.sum()
        if bad.any() and advice is not None:
            columns = [f"{name!r} ({n})" for name, n in counts.items() if n]
            raise BadTable(
                f"{source} has {what} values in {_count(int(bad.sum()), 'row')} of {len(bad)} (the "
                f"first is row {int(np.argmax(bad)) + 1}), columns {_some(columns, str)}; {advice}"
            )
    return rows


def first_other(column: pd.Series) -> str:
    """Return the first value of a column that is not a number, and where it is."""
    row = int(np.argmax(_others(column)))
    return f"{str(column.iloc[row])[:30]!r} in row {row + 1}"


def _usable(table: pd.DataFrame, source: str, besides: str) -> tuple[list[str], list[str]]:
    """Return the columns of numbers, and notes on the others."""
    notes = []
    if len(table.columns) and table.columns[0] == UNNAMED:
        start = numbers(table[UNNAMED]) - np.arange(len(table))
        # Written along with a table by some programs, pandas among them.
        if (start == 0).all() or (start == 1).all():
            notes.append("left out the first column, which has no name and counts the rows")
            table = table.drop(columns=UNNAMED)
    text = [name for name in table if _others(table[name]).any()]
    empty = [name for name in table if len(table) and table[name].isna().all()]
    for name in text:
        others = _others(table[name])
        if others.sum() <= _STRAY * len(table):
            warnings.warn(
                f"column {name!r} is left out, though all but {_count(int(others.sum()), 'value')} "
                f"are numbers: {first_other(table[name])}; correct that, or remove the row",
                DataWarning,
                stacklevel=2,
            )
    if text:
        some = _some(text, lambda name: f"{name!r} ({first_other(table[name])})")
        notes.append(f"left out what is not made of numbers: {some}")
    if empty:
        notes.append(f"left out what is empty: {_some(empty)}")
    usable = [name for name in table if name not in text and name not in empty]
    if not usable:
        said = "; ".join([f"{source} has no column of numbers besides {besides}", *notes])
        raise BadTable(said)
    return usable, notes


def _some(names: Sequence[str], words: Callable[[str], str] = repr) -> str:
    """Return the first names in words, and how many more there are."""
    more = len(names) - _MOST_NAMES
    return ", ".join(map(words, names[:_MOST_NAMES])) + (f" and {more} more" if more > 0 else "")


def _count(n: int, what: str) -> str:
    return f"{n} {what}" + ("" if n == 1 else "s")
