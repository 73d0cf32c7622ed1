"""What a second core brings: the same fit by one thread and by two."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from statistics import median
from time import perf_counter

import numpy as np

from benchmarks.chains import metered
from benchmarks.problems import charge_in_fields, cores
from benchmarks.report import Section, Table, at_least
from symbayes import BayesianSymbolicRegressor

_TARGET = 1.8
_ROWS, _NOISE = 1_000, 0.01
_TUNE, _DRAWS = 400, 100
_FIGURE = "proposals per second, two cores / one"


@dataclass(frozen=True)
class Fit:
    """How long a fit took."""

    proposals: int
    sampling: float
    """Seconds of search, settling and drawing."""
    whole: float
    """Seconds of all: checks before and the table of formulas after as well."""


def measure(quick: bool) -> Section:
    """Fit alternately with one thread and with two; the seed, and so the work, is the same."""
    title = "Two cores against one"
    if cores() < 2:
        note = "Not measured: there is only one core to run on."
        return Section("cores", title, [], [at_least(_FIGURE, _TARGET, None)], [note])
    rounds = 3 if quick else 7
    X, y = charge_in_fields(_ROWS, _NOISE)
    _fit(X, y, 2)  # once for nothing: compiled code is loaded
    fits = [(_fit(X, y, 1), _fit(X, y, 2)) for _ in range(rounds)]
    if len({fit.proposals for pair in fits for fit in pair}) > 1:
        raise RuntimeError("the work differs from fit to fit, so that times cannot be compared")
    rows = [
        [
            label,
            median(one.proposals / _seconds(one, part) for one, _ in fits),
            median(two.proposals / _seconds(two, part) for _, two in fits),
            median(_ratio(pair, part) for pair in fits),
            min(_ratio(pair, part) for pair in fits),
            max(_ratio(pair, part) for pair in fits),
        ]
        for label, part in (("search and sampling", "sampling"), ("the whole fit", "whole"))
    ]
    seconds = median(one.whole for one, _ in fits)
    return Section(
        "cores",
        title,
        [Table(["proposals per second", "one core", "two cores", "ratio", "least", "most"], rows)],
        [at_least(_FIGURE, _TARGET, median(_ratio(pair, "sampling") for pair in fits))],
        [
            f"y = x0 (x1 + x2 x3 sin(x4)), Feynman's I.12.11, columns uniform on [1, 5], {_ROWS:,} "
            f"rows, noise {_NOISE:.0%} of the rms of y; defaults but for tune={_TUNE} and "
            f"draws={_DRAWS}: {fits[0][0].proposals:,} proposals in {seconds:.1f} s on one core.",
            "n_jobs=1 and n_jobs=2 alternately with the same seed; the result does not depend on "
            f"n_jobs, and all {2 * rounds} fits did the same work. Median of {rounds} pairs.",
            "The table of formulas, at the end of the fit, is made by one thread. Other work on "
            "the machine lowers the ratio.",
        ],
    )


def _fit(X: np.ndarray, y: np.ndarray, n_jobs: int) -> Fit:
    model = BayesianSymbolicRegressor(tune=_TUNE, draws=_DRAWS, n_jobs=n_jobs, random_state=0)
    start = perf_counter()
    with metered() as meter, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y)
    return Fit(meter.proposals, model.diagnostics_["seconds"], perf_counter() - start)


def _seconds(fit: Fit, part: str) -> float:
    return fit.whole if part == "whole" else fit.sampling


def _ratio(pair: tuple[Fit, Fit], part: str) -> float:
    one, two = pair
    return _seconds(one, part) / _seconds(two, part)
