"""`symbayes fit` and `symbayes resume`: formulas for a table."""

from __future__ import annotations

import argparse
import os
import secrets
import shlex
import warnings
from collections.abc import Callable
from typing import Any

from .. import BayesianSymbolicRegressor, SamplingWarning
from ..show.display import Display
from ..storage.atomic import previous_of
from ..storage.checkpoint import NoCheckpoint, read_checkpoint, refuse_existing
from .messages import UsageError, say
from .output import answer_text, check_destinations, deliver, facts, print_files, to_json
from .tables import Training, read_table, source_name, training

# What a checkpoint notes of a call, so that `symbayes resume` can finish it.
_FILES: dict[str, Any] = {"file": str, "out": str | None, "report": str | None}
_NOTED: dict[str, Any] = _FILES | {
    "target": str | None, "features": list | None, "weights": str | None,
    "drop_missing": bool, "json": bool, "quiet": bool,
}  # fmt: skip


def fit(options: argparse.Namespace) -> int:
    """Fit a model, write it, and print its formulas."""
    if options.checkpoint is not None:
        _refuse_existing(options.checkpoint)
        check_destinations([options.file], checkpoint=options.checkpoint)
    data = _prepared(options)
    if options.random_state is None:
        # A seed that can be told makes every run one that can be repeated.
        options.random_state = secrets.randbelow(2**32)
    parameters = BayesianSymbolicRegressor().get_params()
    given = {name: x for name, x in vars(options).items() if name in parameters}

    def run() -> BayesianSymbolicRegressor:
        # The answer tells the verdict, and not the display as in Python.
        with Display(not options.quiet) as display:
            model = BayesianSymbolicRegressor(**given, progress=not options.quiet and display)
            path = options.checkpoint
            note = None if path is None else _call(options)
            return model.fit(data.X, data.y, data.weights, checkpoint=path, note=note)

    return _answer(run, data, options)


def resume(options: argparse.Namespace) -> int:
    """Resume a fit from its checkpoint, write the model, and print its formulas."""
    with warnings.catch_warnings():
        # It is read again to be resumed, and what is wrong with it is told then.
        warnings.simplefilter("ignore", SamplingWarning)
        stored = read_checkpoint(options.checkpoint, BayesianSymbolicRegressor)
    noted = _noted_call(options, stored.origin)
    data = _prepared(noted)
    if not noted.quiet:
        seconds = f"{stored.seconds:.0f} s"
        say(
            f"the run was finished after {seconds}" if stored.finished
            else f"resuming a run that has taken {seconds} so far"
        )  # fmt: skip

    def run() -> BayesianSymbolicRegressor:
        with Display(not noted.quiet) as display:
            return BayesianSymbolicRegressor.resume(
                options.checkpoint, data.X, data.y, data.weights,
                n_jobs=options.n_jobs, progress=not noted.quiet and display,
            )  # fmt: skip

    return _answer(run, data, noted)


def _prepared(options: argparse.Namespace) -> Training:
    """Return what a model is fitted to; complain beforehand about files that it could not write."""
    taken = [options.file]
    if options.checkpoint is not None:
        taken += [options.checkpoint, previous_of(options.checkpoint)]
    check_destinations(taken, out=options.out, report=options.report)
    data = training(
        read_table(options.file),
        source_name(options.file),
        options.target,
        options.features,
        options.weights,
        options.drop_missing,
    )
    if not options.quiet:
        for note in data.notes:
            say(f"note: {note}")
    return data


def _answer(
    run: Callable[[], BayesianSymbolicRegressor], data: Training, options: argparse.Namespace
) -> int:
    def show(model: Any, written: dict[str, str | None]) -> None:
        if options.json:
            # What a model does not know about its data.
            particulars = {
                "data": source_name(options.file),
                "target": options.target,
                "weights": options.weights,
                "rows_left_out": data.rows_left_out,
            }
            print(to_json(facts(model) | particulars | written))
            return
        print(answer_text(model))
        print(f"seconds: {model.diagnostics_['seconds']:.1f}")
        print(f"seed: {model.random_state}")
        print_files(written)

    return deliver(run, show, options.out, options.report, options.checkpoint)


def _refuse_existing(path: str) -> None:
    """Complain about a file that a new checkpoint would replace."""
    try:
        refuse_existing(path)
    except FileExistsError as error:
        what = "a file that is no checkpoint; name another one"
        if not isinstance(error, NoCheckpoint):
            what = (
                f"the checkpoint of another run; resume that one by symbayes resume "
                f"{shlex.quote(path)}, remove it (and {path}.previous), or name another file"
            )
        raise UsageError(f"--checkpoint {path} would replace {what}") from None


def _call(options: argparse.Namespace) -> dict[str, Any]:
    """Return what it takes to resume this call from any folder."""
    noted = {name: getattr(options, name) for name in _NOTED}
    paths = {
        name: os.path.abspath(noted[name]) for name in _FILES if noted[name] not in (None, "-")
    }
    return noted | paths


def _noted_call(options: argparse.Namespace, call: Any) -> argparse.Namespace:
    """Return the options of the fit, in part replaced by those of this call."""
    if call is None or call.keys() != _NOTED.keys():
        raise UsageError(
            f"the run of {options.checkpoint} was begun in Python; resume it there: "
            f"BayesianSymbolicRegressor.resume({options.checkpoint!r}, X, y)"
        )
    if not all(isinstance(call[name], kind) for name, kind in _NOTED.items()) or not all(
        isinstance(name, str) for name in call["features"] or ()
    ):
        raise ValueError(f"{options.checkpoint} does not tell where its run comes from")
    given = {name: x for name, x in vars(options).items() if name in _NOTED and x is not None}
    noted = argparse.Namespace(**call | given, checkpoint=options.checkpoint)
    again = f"symbayes resume {options.checkpoint} FILE"
    if noted.file == "-" and options.file is None:
        raise UsageError(
            f"the table came from standard input, which cannot be read again; name a file: {again}"
        )
    if not os.path.exists(noted.file) and options.file is None:
        raise ValueError(f"{noted.file} is no longer there; say where the table is: {again}")
    return noted
