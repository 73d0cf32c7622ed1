"""`symbayes fit`: formulas for a table."""

from __future__ import annotations

import argparse
import os
import secrets
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .. import BayesianSymbolicRegressor, Formula
from ..storage.atomic import previous_of
from ..storage.checkpoint import NoCheckpoint, refuse_existing
from .messages import UsageError, say
from .output import answer_text, check_destination, deliver, facts, print_files, to_json
from .tables import STANDARD_INPUT, Training, read_table, source_name, training

#: What a checkpoint notes of a call, so that `symbayes resume` can finish it: files, and others.
NOTED_FILES = ("file", "out", "report")
NOTED_OPTIONS = ("target", "features", "weights", "drop_missing", "json", "quiet")


class Regressor(BayesianSymbolicRegressor):
    """The estimator of a command: its answer tells the verdict, its checkpoints note the call."""

    _shows_verdict = False

    def noting(self, call: dict[str, Any]) -> Regressor:
        """Let checkpoints tell of which call they are."""
        self._origin = call
        return self


def run(options: argparse.Namespace) -> int:
    """Fit a model, write it, and print its formulas."""
    if options.checkpoint is not None:
        _check_checkpoint(options.checkpoint, options.file)
    check_destinations(options)
    data = read_training(options)
    _check_formulas(options, list(data.X.columns))
    model = Regressor(
        operators=options.operators,
        n_terms=options.terms,
        known_terms=options.known,
        initial_formulas=options.initial,
        noise_prior=options.noise,
        draws=options.draws,
        tune=options.tune,
        chains=options.chains,
        combine=options.combine,
        model_selection=options.select,
        timeout=options.time,
        n_jobs=options.jobs,
        # A seed that can be told makes every run one that can be repeated.
        random_state=secrets.randbelow(2**32) if options.seed is None else options.seed,
        progress=not options.quiet,
    )
    return answer(fitted(model.noting(_call(options)), data, options.checkpoint), data, options)


def check_destinations(options: argparse.Namespace) -> None:
    """Complain now about files that could not be written later."""
    taken = [] if options.file == STANDARD_INPUT else [options.file]
    if options.checkpoint is not None:
        taken += [options.checkpoint, previous_of(options.checkpoint)]
    for option in ("out", "report"):
        path = getattr(options, option)
        if path is not None:
            check_destination(f"--{option}", path, taken)
            taken.append(path)


def read_training(options: argparse.Namespace) -> Training:
    """Return what a model is fitted to, and say what was left out."""
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


def answer(model: BayesianSymbolicRegressor, data: Training, options: argparse.Namespace) -> int:
    """Write a fitted model, and print its formulas; return the exit status."""

    def show(written: dict[str, str | None]) -> None:
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

    return deliver(model, options.out, options.report, show)


def fitted(
    model: Regressor, data: Training, checkpoint: str | None = None
) -> BayesianSymbolicRegressor:
    """Return a model after its fit."""
    with stopping(checkpoint):
        model.fit(data.X, data.y, data.weights, checkpoint=checkpoint)
    # What is saved is not bound to the terminal it was made in.
    return model.set_params(progress=False)


@contextmanager
def stopping(checkpoint: str | None) -> Iterator[None]:
    """Say what is left of a fit that a second Ctrl-C has ended; the first one ends it early."""
    try:
        yield
    except KeyboardInterrupt:
        left = "there was nothing to save" if checkpoint is None else (
            f"symbayes resume {shlex.quote(checkpoint)} continues from its checkpoint"
        )  # fmt: skip
        raise KeyboardInterrupt(f"stopped; {left}") from None


def _check_checkpoint(path: str, data: str) -> None:
    try:
        refuse_existing(path)
    except NoCheckpoint:
        raise UsageError(
            f"--checkpoint {path} would replace a file that is no checkpoint; name another one"
        ) from None
    except FileExistsError:
        raise UsageError(
            f"--checkpoint {path} would replace the checkpoint of another run; resume that one by "
            f"symbayes resume {shlex.quote(path)}, remove it (and {path}.previous), or name "
            "another file"
        ) from None
    check_destination("--checkpoint", path, [] if data == STANDARD_INPUT else [data])


def _call(options: argparse.Namespace) -> dict[str, Any]:
    """Return what it takes to resume this call from any folder."""
    noted = {name: getattr(options, name) for name in NOTED_OPTIONS}
    for name in NOTED_FILES:
        path = getattr(options, name)
        noted[name] = path if path in (None, STANDARD_INPUT) else os.path.abspath(path)
    return noted


def _check_formulas(options: argparse.Namespace, names: list[str]) -> None:
    for option in ("known", "initial"):
        for text in getattr(options, option) or []:
            try:
                Formula(text, names)
            except ValueError as error:
                raise ValueError(f"--{option}: {error}") from None
