"""`symbayes resume`: a fit that was stopped goes on."""

from __future__ import annotations

import argparse
import os
from typing import Any

from .. import BayesianSymbolicRegressor
from ..storage.checkpoint import LoadedCheckpoint, read_checkpoint
from .fit import answer, check_destinations, finished, read_training
from .messages import UsageError, say
from .reading import STANDARD_INPUT

_NAMES = ("target", "weights")
_PATHS = ("file", "out", "report")
_FLAGS = ("drop_missing", "json", "quiet")


def run(options: argparse.Namespace) -> int:
    """Go on with a fit from its checkpoint, write the model, and print its formulas."""
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
            else f"going on with a run that has taken {seconds} so far"
        )  # fmt: skip
    finished(model, lambda: model._go_on(stored, data.X, data.y, data.weights), options.checkpoint)
    return answer(model, data, noted)


def _with_origin(options: argparse.Namespace, stored: LoadedCheckpoint) -> argparse.Namespace:
    """Return the options of the fit, in part replaced by those of this call."""
    origin = stored.origin
    if origin is None:
        raise UsageError(
            f"the run of {options.checkpoint} was begun in Python, and goes on there: "
            f"BayesianSymbolicRegressor.resume({options.checkpoint!r}, X, y)"
        )
    if not _is_origin(origin):
        raise ValueError(f"{options.checkpoint} does not tell where its run comes from")
    noted = argparse.Namespace(**origin, checkpoint=options.checkpoint)
    for name in (*_PATHS, "json", "quiet"):
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
    features = origin.get("features")
    return (
        origin.keys() == {*_NAMES, *_PATHS, *_FLAGS, "features"}
        and all(isinstance(origin[name], str | None) for name in (*_NAMES, *_PATHS))
        and all(isinstance(origin[name], bool) for name in _FLAGS)
        and (features is None or (isinstance(features, list) and all(
            isinstance(name, str) for name in features
        )))
        and isinstance(origin["file"], str)
    )  # fmt: skip
