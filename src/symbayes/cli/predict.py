"""`symbayes predict`: values for new rows."""

from __future__ import annotations

import argparse

import pandas as pd

from .. import load
from ..storage.atomic import replacing
from .messages import UsageError
from .output import check_destinations
from .tables import new_rows, read_table, source_name


def predict(options: argparse.Namespace) -> int:
    """Predict, and write a table with a row for each row."""
    if options.std and options.kind == "mean":
        raise UsageError("--std is that of an observation and does not go with --kind mean")
    check_destinations([options.model, options.file], out=options.out)
    model = load(options.model)
    rows = new_rows(read_table(options.file), source_name(options.file), model.result_.names)
    if rows.empty:  # an answer to nothing, where the library would complain
        answers = pd.DataFrame(columns=["prediction", "lower", "upper", *["std"] * options.std])
    else:
        # A model fitted to columns without names takes none.
        X = rows if hasattr(model, "feature_names_in_") else rows.to_numpy()
        mean, *std = model.predict(X, return_std=True) if options.std else [model.predict(X)]
        lower, upper = model.predict_interval(X, level=options.level, kind=options.kind)
        answers = pd.DataFrame({"prediction": mean, "lower": lower, "upper": upper})
        if std:
            answers["std"] = std[0]
    text = answers.to_csv(index=False, lineterminator="\n")
    if options.out is None:
        print(text, end="")
        return 0
    with replacing(options.out) as file:
        file.write(text.encode("utf-8"))
    print(options.out)
    return 0
