"""Effective draws a second by the number of cores."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from statistics import median
from time import perf_counter

import numpy as np

from benchmarks.problems import charge_in_fields, cores
from benchmarks.report import Section, Table, at_least
from symbayes import BayesianSymbolicRegressor

_TARGET = 0.85
_MOST_CORES = 16
# So that there is something to share out; with 32 chains a fit takes minutes on one core.
_CHAINS_A_CORE = 2
_ROWS, _NOISE = 1_000, 0.01


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
    """Fit with 1, 2, 4, ... threads; the seed, and so the work, is the same."""
    title = "Effective draws a second, by the number of cores"
    most = min(_MOST_CORES, cores())
    threads = [1, most] if quick else [n for n in (1, 2, 4, 8, 16) if n <= most]
    rounds, chains = 1 if quick else 2, _CHAINS_A_CORE * most
    X, y = charge_in_fields(_ROWS, _NOISE)
    _fit(X, y, chains, threads[-1])  # once for nothing: compiled code is loaded
    # From many to one, and again, so that a slow moment does not meet one number of cores only.
    fits = [{n: _fit(X, y, chains, n) for n in reversed(threads)} for _ in range(rounds)]
    if len({fit.draws for fitted in fits for fit in fitted.values()}) > 1:
        raise RuntimeError("the draws differ from fit to fit, so that times cannot be compared")

    def share(n: int, part: str) -> float:
        """Return the part of a linear gain that n cores reach."""
        return median(getattr(f[1], part) / getattr(f[n], part) / n for f in fits)

    rows = [
        [
            n,
            median(f[n].draws / f[n].sampling for f in fits),
            share(n, "sampling"),
            share(n, "whole"),
        ]
        for n in threads
    ]
    reached = share(most, "sampling") if most == _MOST_CORES else None
    return Section(
        "scaling",
        title,
        [Table(["cores", "effective draws a second", "of linear", "of linear, whole fit"], rows)],
        [
            at_least(
                f"effective draws a second, {_MOST_CORES} cores / one, of linear", _TARGET, reached
            )
        ],
        [
            f"y = x0 (x1 + x2 x3 sin(x4)), {_ROWS:,} rows, noise {_NOISE:.0%}; all "
            f"defaults but for chains={chains}; {fits[0][1].draws:.0f} effective draws in "
            f"{fits[0][1].sampling:.0f} s on one core. Median of {rounds}; the result does not "
            "depend on the number of cores.",
            "Search, settling and drawing count; the whole fit has the checks before and the table "
            "of formulas after, made by one thread, as well.",
        ],
    )


def _fit(X: np.ndarray, y: np.ndarray, chains: int, n_jobs: int) -> Fit:
    model = BayesianSymbolicRegressor(chains=chains, n_jobs=n_jobs, random_state=0)
    start = perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y)
    found = model.diagnostics_
    return Fit(found["effective_draws"]["log_likelihood"], found["seconds"], perf_counter() - start)
