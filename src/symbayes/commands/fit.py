"""`symbayes fit`: formulas for a table."""

from __future__ import annotations

import argparse
import secrets
from typing import Any

from .. import BayesianSymbolicRegressor, Formula
from .answer_text import answer_text
from .columns import Training, training
from .delivery import deliver
from .destinations import check_destination
from .facts import facts, to_json
from .messages import say
from .reading import STANDARD_INPUT, read_table, source_name


def run(options: argparse.Namespace) -> int:
    """Fit a model, write it, and print its formulas."""
    _check_destinations(options)
    data = training(
        read_table(options.file),
        source_name(options.file),
        options.target,
        options.features,
        options.weights,
        options.drop_missing,
    )
    _check_formulas(options, list(data.X.columns))
    if not options.quiet:
        for note in data.notes:
            say(f"note: {note}")
    # A seed that can be told makes every run one that can be repeated.
    seed = secrets.randbelow(2**32) if options.seed is None else options.seed
    model = fitted(_estimator(options, seed), data)

    def show(written: dict[str, str | None]) -> None:
        if options.json:
            print(to_json(facts(model) | _particulars(options, data) | written))
            return
        print(answer_text(model))
        print(f"seconds: {model.diagnostics_['seconds']:.1f}")
        print(f"seed: {seed}")
        for what, path in written.items():
            if path is not None:
                print(f"{what}: {path}")

    return deliver(model, options.out, options.report, show)


def fitted(model: BayesianSymbolicRegressor, data: Training) -> BayesianSymbolicRegressor:
    """Return a model after its fit; Ctrl-C ends it early, and a second one for good."""
    model._says_verdict = False  # the answer does
    try:
        model.fit(data.X, data.y, data.weights)
    except KeyboardInterrupt:
        raise KeyboardInterrupt("stopped; there was nothing to save") from None
    # What is saved is not bound to the terminal it was made in.
    return model.set_params(progress=False)


def _check_destinations(options: argparse.Namespace) -> None:
    read = [] if options.file == STANDARD_INPUT else [options.file]
    if options.out is not None:
        check_destination("--out", options.out, read)
    if options.report is not None:
        check_destination("--report", options.report, [*read, *filter(None, [options.out])])


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
