"""What it costs to run chains in other processes instead of threads on the same machine."""

from __future__ import annotations

import contextlib
import os
import warnings
from collections.abc import Iterator, Mapping
from statistics import median
from typing import Any

import joblib
import numpy as np

from benchmarks.problems import charge_in_fields
from benchmarks.report import Section, Table, at_most
from symbayes import BayesianSymbolicRegressor

_TARGET = 1.15
_SHORT = {"tune": 1_600, "draws": 400}
_ROWS, _NOISE, _JOBS = 1_000, 0.01, 2
# The target is about the default call; of a short one, sending the table is a larger part.
_CALLS: dict[str, dict[str, Any]] = {"default": {}, "tune=1600, draws=400": _SHORT}


def measure(quick: bool) -> Section:
    """Fit in turn in threads, in processes and on Dask; the seed, and so the work, is the same."""
    rounds = 3 if quick else 7
    X, y = charge_in_fields(_ROWS, _NOISE)
    with _dask() as client:
        places: dict[str, dict[str, Any]] = {
            "threads": {},
            "processes (loky)": {"backend": "loky"},
        }
        if client is not None:
            places["Dask, two workers"] = {"client": client}
        for place in places.values():
            _fit(X, y, _SHORT, **place)  # once for nothing: code is loaded in every process
        seconds = {
            call: [
                {name: _fit(X, y, options, **place) for name, place in places.items()}
                for _ in range(rounds)
            ]
            for call, options in _CALLS.items()
        }
    rows = [
        [call, place, *_compared(times, place)]
        for call, times in seconds.items()
        for place in places
    ]
    targets = [
        at_most(f"seconds, {place} / threads", _TARGET, _compared(seconds["default"], place)[1])
        for place in places
        if place != "threads"
    ]
    return Section(
        "places",
        "Processes and Dask against threads",
        [Table(["call", "where", "seconds", "ratio", "least", "most"], rows)],
        targets,
        [
            f"y = x0 (x1 + x2 x3 sin(x4)), {_ROWS:,} rows, noise {_NOISE:.0%}; four chains. "
            f"Seconds of search, settling and drawing, by {_JOBS} threads, {_JOBS} processes, and "
            f"{_JOBS} Dask workers on this machine, alternately, {rounds} times: median; then "
            "median, least and most of the ratios to the threads of the same round. All fits make "
            "the same draws. The targets are about the default call.",
            f"The calling process and the scheduler of Dask share {os.cpu_count()} cores with the "
            "workers. Other work on the machine raises the ratios: a round waits for the slowest.",
        ],
    )


def _compared(seconds: list[dict[str, float]], place: str) -> list[float]:
    """Return median seconds, and median, least and most of the ratios to threads."""
    ratios = [times[place] / times["threads"] for times in seconds]
    return [median(times[place] for times in seconds), median(ratios), min(ratios), max(ratios)]


@contextlib.contextmanager
def _dask() -> Iterator[object | None]:
    try:
        from distributed import Client
    except ImportError:
        yield None
        return
    with Client(
        n_workers=_JOBS, threads_per_worker=1, dashboard_address=None, silence_logs=50
    ) as client:
        yield client


def _fit(
    X: np.ndarray,
    y: np.ndarray,
    options: Mapping[str, Any],
    backend: str = "threading",
    client: object = None,
) -> float:
    model = BayesianSymbolicRegressor(n_jobs=_JOBS, random_state=0, **options)
    with joblib.parallel_config(backend=backend), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y, client=client)
    return float(model.diagnostics_["seconds"])
