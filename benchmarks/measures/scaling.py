"""Effective draws a second by the number of cores."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median
from time import perf_counter

import numpy as np

from benchmarks.problems import charge_in_fields, cores
from benchmarks.report import Section, Table, at_least
from symbayes import BayesianSymbolicRegressor

_TARGET = 0.85
_MOST_CORES = 16
# So that there is something to share out; with 32 chains a fit takes a minute on one core.
_CHAINS_A_CORE = 2
_ROWS, _NOISE = 1_000, 0.01
_TUNE, _DRAWS = 1_500, 300


@dataclass(frozen=True)
class Fit:
    """What came out of a fit."""

    draws: float
    """Effective draws of the log-likelihood."""
    sampling: float
    """Seconds of search, settling and drawing."""
    whole: float
    """Seconds of all."""


def measure(quick: bool) -> Section:
    """Fit with 1, 4 and 16 threads; the seed, and so the work, is the same."""
    title = "Effective draws a second, by the number of cores"
    most = min(_MOST_CORES, cores())
    threads = [1, most] if quick else sorted({1, min(4, most), most})
    rounds, chains = 1 if quick else 2, _CHAINS_A_CORE * most
    X, y = charge_in_fields(_ROWS, _NOISE)
    _fit(X, y, chains, threads[-1])  # once for nothing: compiled code is loaded
    fits, beside_others = [], []
    for _ in range(rounds):
        # From many to one, and again, so that a slow moment does not meet one number of cores only.
        fits.append({n: _fit(X, y, chains, n) for n in reversed(threads)})
        with _busy(most - 1):
            beside_others.append(_fit(X, y, chains, 1))
    every = [*beside_others, *(fit for fitted in fits for fit in fitted.values())]
    if len({fit.draws for fit in every}) > 1:
        raise RuntimeError("the draws differ from fit to fit, so that times cannot be compared")

    def share(n: int, part: str, ones: list[Fit]) -> float:
        """Return the part of a linear gain that n cores reach."""
        pairs = zip(ones, fits, strict=True)
        return median(getattr(one, part) / getattr(f[n], part) / n for one, f in pairs)

    alone = [f[1] for f in fits]
    rows = [
        [
            n,
            median(f[n].draws / f[n].sampling for f in fits),
            share(n, "sampling", alone),
            share(n, "whole", alone),
            share(n, "sampling", beside_others) if n == most else None,
        ]
        for n in threads
    ]
    reached = share(most, "sampling", alone) if most == _MOST_CORES else None
    slower = median(b.sampling / a.sampling for a, b in zip(alone, beside_others, strict=True))
    heads = ["of linear", "of linear, whole fit", "of linear, other cores busy"]
    return Section(
        "scaling",
        title,
        [Table(["cores", "effective draws a second", *heads], rows)],
        [
            at_least(
                f"effective draws a second, {_MOST_CORES} cores / one, of linear", _TARGET, reached
            )
        ],
        [
            f"y = x0 (x1 + x2 x3 sin(x4)), {_ROWS:,} rows, noise {_NOISE:.0%}; chains={chains}, "
            f"tune={_TUNE}, draws={_DRAWS}; {fits[0][1].draws:.0f} effective draws in "
            f"{fits[0][1].sampling:.0f} s on one core. Median of {rounds}; the result does not "
            "depend on the number of cores.",
            "Search, settling and drawing count; the whole fit has the checks before and the table "
            "of formulas after, made by one thread, as well.",
            f"A core is slower where others are at work: the fit on one core took {slower:.2f} "
            f"times as long while {most - 1} other processes, which share nothing with it, did "
            "fits of their own. The last column compares with that.",
        ],
    )


@contextlib.contextmanager
def _busy(n: int) -> Iterator[None]:
    """Let other processes do fits of their own meanwhile."""
    program = f"from {__name__} import work_on; work_on()"
    others = [
        subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) for _ in range(n)
    ]
    try:
        for other in others:
            assert other.stdout is not None
            other.stdout.readline()  # it has begun
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()


def work_on() -> None:
    """Fit without end."""
    X, y = charge_in_fields(_ROWS, _NOISE)
    while True:
        print("at work", flush=True)
        _fit(X, y, _CHAINS_A_CORE, 1)


def _fit(X: np.ndarray, y: np.ndarray, chains: int, n_jobs: int) -> Fit:
    model = BayesianSymbolicRegressor(
        chains=chains, tune=_TUNE, draws=_DRAWS, n_jobs=n_jobs, random_state=0
    )
    start = perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y)
    found = model.diagnostics_
    return Fit(found["effective_draws"]["log_likelihood"], found["seconds"], perf_counter() - start)
