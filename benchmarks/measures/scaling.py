"""Effective draws per second by the number of cores."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from statistics import median
from time import perf_counter

import numpy as np

from benchmarks.problems import charge_in_fields, cores
from benchmarks.report import Section, Table, at_least
from symbayes import BayesianSymbolicRegressor

_TARGET = 0.85
_MOST_CORES = 16
# So that there is something to share out.
_CHAINS_PER_CORE = 2
_ROWS, _NOISE = 1_000, 0.01
# With 32 chains a fit takes two minutes on one core. The default call takes longer.
_TUNE, _DRAWS = 3_000, 600
# Fits on all cores, which are short; on fewer there is one.
_REPEATS = 3
# Passes of an empty loop, for a second.
_PASSES = 40_000_000


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
    title = "Effective draws per second, by the number of cores"
    most = min(_MOST_CORES, cores())
    threads = [1, most] if quick else sorted({1, min(4, most), most})
    chains = _CHAINS_PER_CORE * most
    X, y = charge_in_fields(_ROWS, _NOISE)
    _fit(X, y, 1, 1)  # once for nothing: compiled code is loaded
    fits: dict[int, list[Fit]] = {}
    for n in reversed(threads):
        repeats = _REPEATS if n == most and not quick else 1
        fits[n] = [_fit(X, y, chains, n) for _ in range(repeats)]
    loop = _empty_loop()
    with _busy(most - 1):
        loop_beside_others = _empty_loop()
        beside_others = _fit(X, y, chains, 1)
    if len({fit.draws for fit in [beside_others, *chain.from_iterable(fits.values())]}) > 1:
        raise RuntimeError("the draws differ from fit to fit, so that times cannot be compared")
    (alone,) = fits[1]

    def share(n: int, part: str, one: Fit) -> float:
        """Return the part of a linear gain that n cores reach."""
        return getattr(one, part) / median(getattr(fit, part) for fit in fits[n]) / n

    rows = [
        [
            n,
            median(fit.draws / fit.sampling for fit in fits[n]),
            share(n, "sampling", alone),
            share(n, "whole", alone),
            share(n, "sampling", beside_others) if n == most else None,
        ]
        for n in threads
    ]
    reached = share(most, "sampling", alone) if most == _MOST_CORES else None
    slower = beside_others.sampling / alone.sampling
    heads = ["of linear", "of linear, whole fit", "of linear, other cores busy"]
    return Section(
        "scaling",
        title,
        [Table(["cores", "effective draws per second", *heads], rows)],
        [
            at_least(
                f"effective draws per second, {_MOST_CORES} cores / one, of linear",
                _TARGET,
                reached,
            )
        ],
        [
            f"y = x0 (x1 + x2 x3 sin(x4)), {_ROWS:,} rows, noise {_NOISE:.0%}; chains={chains}, "
            f"tune={_TUNE}, draws={_DRAWS}; {alone.draws:.0f} effective draws in "
            f"{alone.sampling:.0f} s on one core; one fit each, on {most} cores the median of "
            f"{1 if quick else _REPEATS}. The result does not depend on the number of cores.",
            "Search, settling and drawing count; the whole fit has the checks before and the table "
            "of formulas after, made by one thread, as well.",
            f"A core is slower where others are at work: the fit on one core took {slower:.2f} "
            f"times as long while {most - 1} other processes, which share nothing with it, did "
            f"fits of their own, and an empty loop {loop_beside_others / loop:.2f} times. So "
            f"{1.0 / slower:.2f} of linear is the most that this machine allows even for unrelated "
            "processes; the last column is the share of that which is reached.",
        ],
    )


@contextlib.contextmanager
def _busy(n: int) -> Iterator[None]:
    """Keep other processes busy with their own fits meanwhile."""
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


def _empty_loop() -> float:
    """Return the seconds of a loop that needs nothing but a core."""
    start = perf_counter()
    for _ in range(_PASSES):
        pass
    return perf_counter() - start


def work_on() -> None:
    """Fit without end."""
    X, y = charge_in_fields(_ROWS, _NOISE)
    while True:
        print("at work", flush=True)
        _fit(X, y, _CHAINS_PER_CORE, 1)


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
