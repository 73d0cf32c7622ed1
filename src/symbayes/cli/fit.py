"""`symbayes fit`: formulas for a table."""

from __future__ import annotations

import argparse
import os
import secrets
import shlex
from collections.abc import Callable
from typing import Any

from .. import BayesianSymbolicRegressor, Formula
from ..storage.atomic import previous_of
from ..storage.checkpoint import NoCheckpoint, refuse_existing
from .answer_text import answer_text
from .columns import Training, training
from .delivery import deliver
from .destinations import check_destination
from .facts import facts, to_json
from .messages import UsageError, say
from .reading import STANDARD_INPUT, read_table, source_name

# What is noted in a checkpoint, so that its run can be gone on with: files, and other options.
_FILES, _OTHERS = ("file", "out", "report"), (
    "target", "features", "weights", "drop_missing", "json", "quiet",
)  # fmt: skip


def run(options: argparse.Namespace) -> int:
    """Fit a model, write it, and print its formulas."""
    if options.checkpoint is not None:
        _check_checkpoint(options.checkpoint, options.file)
    check_destinations(options)
    data = read_training(options)
    _check_formulas(options, list(data.X.columns))
    # A seed that can be told makes every run one that can be repeated.
    seed = secrets.randbelow(2**32) if options.seed is None else options.seed
    model = _estimator(options, seed)
    model._origin = _origin(options)
    return answer(fitted(model, data, options.checkpoint), data, options)


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
            print(to_json(facts(model) | _particulars(options, data) | written))
            return
        print(answer_text(model))
        print(f"seconds: {model.diagnostics_['seconds']:.1f}")
        print(f"seed: {model.random_state}")
        for what, path in written.items():
            if path is not None:
                print(f"{what}: {path}")

    return deliver(model, options.out, options.report, show)


def fitted(
    model: BayesianSymbolicRegressor, data: Training, checkpoint: str | None = None
) -> BayesianSymbolicRegressor:
    """Return a model after its fit."""
    return finished(
        model,
        lambda: model.fit(data.X, data.y, data.weights, checkpoint=checkpoint),
        checkpoint,
    )


def finished(
    model: BayesianSymbolicRegressor, fit: Callable[[], object], checkpoint: str | None
) -> BayesianSymbolicRegressor:
    """Return a model after it was fitted; Ctrl-C ends that early, and a second one for good."""
    model._says_verdict = False  # the answer does
    try:
        fit()
    except KeyboardInterrupt:
        left = "there was nothing to save" if checkpoint is None else (
            f"symbayes resume {shlex.quote(checkpoint)} goes on from its checkpoint"
        )  # fmt: skip
        raise KeyboardInterrupt(f"stopped; {left}") from None
    # What is saved is not bound to the terminal it was made in.
    return model.set_params(progress=False)


def _check_checkpoint(path: str, data: str) -> None:
    try:
        refuse_existing(path)
    except NoCheckpoint:
        raise UsageError(
            f"--checkpoint {path} would replace a file that is no checkpoint; name another one"
        ) from None
    except FileExistsError:
        raise UsageError(
            f"--checkpoint {path} would replace the checkpoint of another run; go on with that one "
            f"by symbayes resume {shlex.quote(path)}, remove it (and {path}.previous), or name "
            "another file"
        ) from None
    check_destination("--checkpoint", path, [] if data == STANDARD_INPUT else [data])


def _origin(options: argparse.Namespace) -> dict[str, Any]:
    """Return what it takes to go on with this call, from any folder."""
    noted = {name: getattr(options, name) for name in _OTHERS}
    for name in _FILES:
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


def _estimator(options: argparse.Namespace, seed: int) -> BayesianSymbolicRegressor:
    return BayesianSymbolicRegressor(
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
        random_state=seed,
        progress=not options.quiet,
    )


def _particulars(options: argparse.Namespace, data: Training) -> dict[str, Any]:
    """Return what a model does not know about its data."""
    return {
        "data": source_name(options.file),
        "target": options.target,
        "weights": options.weights,
        "rows_left_out": data.rows_left_out,
    }
