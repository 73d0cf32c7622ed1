"""Figures of many runs as tables: long form for programs, wide form for readers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from .published import BSR, GP, REPLICATIONS


def mean_and_spread(values: Iterable[float | None]) -> dict[str, Any]:
    """Return mean and standard deviation (of a sample) of the values that are finite."""
    given = [np.nan if value is None else float(value) for value in values]
    finite = np.array([value for value in given if np.isfinite(value)])
    return {
        "mean": finite.mean() if len(finite) else np.nan,
        "std": finite.std(ddof=1) if len(finite) > 1 else np.nan,
        "replications": len(given),
        "not_finite": len(given) - len(finite),
    }


def published(figure: tuple[float, float]) -> dict[str, Any]:
    """Return a mean and standard deviation as the paper has them."""
    mean, std = figure
    return {"mean": mean, "std": std, "replications": REPLICATIONS, "not_finite": 0}


def wide(
    table: pd.DataFrame, rows: Sequence[str], columns: str, first: Sequence[str] = (BSR, GP)
) -> str:
    """Return a long table in Markdown, one column for each value of `columns`.

    Parameters
    ----------
    table : DataFrame
        With `mean`, `std`, `replications` and `not_finite`.
    rows : sequence of str
        What tells the lines apart.
    columns : str
        What tells the columns apart; those of `first` come first.
    """
    names = list(dict.fromkeys(table[columns]))
    names = [name for name in first if name in names] + [n for n in names if n not in first]
    lines = [[*rows, *map(str, names)], ["---"] * len(rows) + ["---:"] * len(names)]
    for key, group in table.groupby(list(rows), sort=False):
        cells = {row[columns]: _cell(row) for _, row in group.iterrows()}
        lines.append([*map(str, key), *(cells.get(name, "-") for name in names)])
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _cell(row: pd.Series) -> str:
    text = number(row["mean"])
    if np.isfinite(row["std"]):
        text += f" ± {number(row['std'])}"
    if row["not_finite"]:
        text += f" ({row['not_finite']} of {row['replications']} not finite)"
    return text


def over(replications: int) -> str:
    """Return how many replications a table is about, in words."""
    return f"{replications} replications" if replications > 1 else "one replication"


def number(value: float) -> str:
    """Return a figure with as many digits as a reader wants."""
    if not np.isfinite(value):
        return "-"
    if value == 0:
        return "0"
    if 0.005 <= abs(value) < 1e4:
        return f"{value:.2f}"
    return f"{value:.1e}"
