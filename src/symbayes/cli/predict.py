"""`symbayes predict`: values for new rows."""

from __future__ import annotations

import argparse
import sys
from typing import Any

import pandas as pd

from .. import load
from ..storage.atomic import replacing
from .messages import UsageError
from .output import check_destination
from .tables import STANDARD_INPUT, new_rows, read_table, source_name


def run(options: argparse.Namespace) -> int:
    """Predict, and write a table with a row for each row."""
    if options.std and options.kind == "mean":
        raise UsageError("--std is that of an observation and does not go with --kind mean")
    if options.out is not None:
        read = [path for path in (options.model, options.file) if path != STANDARD_INPUT]
        check_destination("--out", options.out, read)
    model = load(options.model)
    rows = new_rows(read_table(options.file), source_name(options.file), model.result_.names)
    answers = _predictions(model, rows, options.level, options.kind, options.std)
    if options.out is None:
        answers.to_csv(sys.stdout, index=False, lineterminator="\n")
        return 0
    with replacing(options.out) as file:
        file.write(answers.to_csv(index=False, lineterminator="\n").encode("utf-8"))
    print(options.out)
    return 0


def _predictions(
    model: Any, rows: pd.DataFrame, level: float, kind: str, std: bool
) -> pd.DataFrame:
    """Return a table of predictions, with an interval and, if asked for, a standard deviation."""
    if rows.empty:  # an answer to nothing, where the library would complain
        names = ["prediction", "lower", "upper", *(["std"] if std else [])]
        return pd.DataFrame(columns=names)
    # A model fitted to columns without names takes none.
    X = rows if hasattr(model, "feature_names_in_") else rows.to_numpy()
    mean, *deviation = model.predict(X, return_std=True) if std else (model.predict(X),)
    lower, upper = model.predict_interval(X, level=level, kind=kind)
    answers = {"prediction": mean, "lower": lower, "upper": upper}
    return pd.DataFrame(answers | ({"std": deviation[0]} if std else {}))
