"""`symbayes resume`: finishes a fit that was stopped."""

from __future__ import annotations

import argparse
import os
import warnings
from typing import Any

from .. import SamplingWarning
from ..storage.checkpoint import read_checkpoint
from .fit import (
    NOTED_FILES,
    NOTED_OPTIONS,
    Regressor,
    answer,
    check_destinations,
    read_training,
    stopping,
)
from .messages import UsageError, say
from .tables import STANDARD_INPUT


def run(options: argparse.Namespace) -> int:
    """Resume a fit from its checkpoint, write the model, and print its formulas."""
    with warnings.catch_warnings():
        # It is read again to be resumed, and what is wrong with it is told then.
        warnings.simplefilter("ignore", SamplingWarning)
        stored = read_checkpoint(options.checkpoint, Regressor)
    noted = _noted_call(options, stored.origin)
    check_destinations(noted)
    data = read_training(noted)
    if not noted.quiet:
        seconds = f"{stored.seconds:.0f} s"
        say(
            f"the run was finished after {seconds}" if stored.finished
            else f"resuming a run that has taken {seconds} so far"
        )  # fmt: skip
    with stopping(options.checkpoint):
        model = Regressor.resume(
            options.checkpoint, data.X, data.y, data.weights,
            n_jobs=options.jobs, progress=not noted.quiet,
        )  # fmt: skip
    return answer(model.set_params(progress=False), data, noted)


def _noted_call(options: argparse.Namespace, call: Any) -> argparse.Namespace:
    """Return the options of the fit, in part replaced by those of this call."""
    if call is None:
        raise UsageError(
            f"the run of {options.checkpoint} was begun in Python; resume it there: "
            f"BayesianSymbolicRegressor.resume({options.checkpoint!r}, X, y)"
        )
    if not _is_call(call):
        raise ValueError(f"{options.checkpoint} does not tell where its run comes from")
    noted = argparse.Namespace(**call, checkpoint=options.checkpoint)
    for name in (*NOTED_FILES, "json", "quiet"):
        if getattr(options, name) is not None:
            setattr(noted, name, getattr(options, name))
    again = f"symbayes resume {options.checkpoint} FILE"
    if options.file is None and noted.file == STANDARD_INPUT:
        raise UsageError(
            f"the table came from standard input, which cannot be read again; name a file: {again}"
        )
    if options.file is None and not os.path.exists(noted.file):
        raise ValueError(f"{noted.file} is no longer there; say where the table is: {again}")
    return noted


def _is_call(call: dict[str, Any]) -> bool:
    """Return whether what a file says is what `symbayes fit` notes."""
    if call.keys() != {*NOTED_FILES, *NOTED_OPTIONS} or not isinstance(call["file"], str):
        return False
    features = [] if call["features"] is None else call["features"]
    names = [call[name] for name in (*NOTED_FILES, "target", "weights")]
    return (
        isinstance(features, list)
        and all(isinstance(name, str) for name in features)
        and all(isinstance(name, str | None) for name in names)
        and all(isinstance(call[name], bool) for name in ("drop_missing", "json", "quiet"))
    )
