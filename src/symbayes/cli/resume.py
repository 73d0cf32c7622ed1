"""`symbayes resume`: finishes a fit that was stopped."""

from __future__ import annotations

import argparse
import os
from typing import Any

from .. import BayesianSymbolicRegressor
from ..storage.checkpoint import Stored, read_checkpoint
from .fit import NOTED_FILES, NOTED_OPTIONS, answer, check_destinations, finished, read_training
from .messages import UsageError, say
from .tables import STANDARD_INPUT


def run(options: argparse.Namespace) -> int:
    """Resume a fit from its checkpoint, write the model, and print its formulas."""
    stored = read_checkpoint(options.checkpoint, BayesianSymbolicRegressor)
    noted = _with_origin(options, stored)
    check_destinations(noted)
    data = read_training(noted)
    parameters = stored.parameters | {"progress": not noted.quiet}
    if options.jobs is not None:
        parameters["n_jobs"] = options.jobs
    model = BayesianSymbolicRegressor(**parameters)
    if not noted.quiet:
        seconds = f"{stored.seconds:.0f} s"
        say(
            f"the run was finished after {seconds}" if stored.finished
            else f"resuming a run that has taken {seconds} so far"
        )  # fmt: skip
    finished(model, lambda: model._resume(stored, data.X, data.y, data.weights), options.checkpoint)
    return answer(model, data, noted)


def _with_origin(options: argparse.Namespace, stored: Stored) -> argparse.Namespace:
    """Return the options of the fit, in part replaced by those of this call."""
    origin = stored.origin
    if origin is None:
        raise UsageError(
            f"the run of {options.checkpoint} was begun in Python; resume it there: "
            f"BayesianSymbolicRegressor.resume({options.checkpoint!r}, X, y)"
        )
    if not _is_origin(origin):
        raise ValueError(f"{options.checkpoint} does not tell where its run comes from")
    noted = argparse.Namespace(**origin, checkpoint=options.checkpoint)
    for name in (*NOTED_FILES, "json", "quiet"):
        if getattr(options, name) is not None:
            setattr(noted, name, getattr(options, name))
    again = f"symbayes resume {options.checkpoint} FILE"
    if options.file is None and noted.file == STANDARD_INPUT:
        raise UsageError(
            f"the table came from standard input, which cannot be read again; name a file: {again}"
        )
    if options.file is None and not os.path.exists(noted.file):
        raise ValueError(f"{noted.file} is not there any more; tell where the table is: {again}")
    return noted


def _is_origin(origin: dict[str, Any]) -> bool:
    """Return whether what a file says is what `symbayes fit` notes."""
    if origin.keys() != {*NOTED_FILES, *NOTED_OPTIONS} or not isinstance(origin["file"], str):
        return False
    features = [] if origin["features"] is None else origin["features"]
    names = [origin[name] for name in (*NOTED_FILES, "target", "weights")]
    return (
        isinstance(features, list)
        and all(isinstance(name, str) for name in features)
        and all(isinstance(name, str | None) for name in names)
        and all(isinstance(origin[name], bool) for name in ("drop_missing", "json", "quiet"))
    )
