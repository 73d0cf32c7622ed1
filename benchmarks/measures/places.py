"""What it costs to run chains in other processes, beside threads on the same machine."""

from __future__ import annotations

import contextlib
import os
import warnings
from collections.abc import Callable, Iterator
from statistics import median

import joblib
import numpy as np

from benchmarks.problems import charge_in_fields
from benchmarks.report import Section, Table, at_most
from symbayes import BayesianSymbolicRegressor

_TARGET = 1.15
_ROWS, _NOISE = 1_000, 0.01
_TUNE, _DRAWS, _JOBS = 1_600, 400, 2


def measure(quick: bool) -> Section:
    """Fit in turn in threads, in processes and on Dask; the seed, and so the work, is the same."""
    rounds = 3 if quick else 7
    X, y = charge_in_fields(_ROWS, _NOISE)
    with _dask() as client:
        places: dict[str, Callable[[], float]] = {
            "threads": lambda: _fit(X, y),
            "processes (loky)": lambda: _fit(X, y, "loky"),
        }
        if client is not None:
            places["Dask, two workers"] = lambda: _fit(X, y, client=client)
        for fit in places.values():
            fit()  # once for nothing: compiled code is loaded in every process
        seconds = [{place: fit() for place, fit in places.items()} for _ in range(rounds)]
    rows = [
        [
            place,
            median(times[place] for times in seconds),
            *(
                f([times[place] / times["threads"] for times in seconds])
                for f in (median, min, max)
            ),
        ]
        for place in places
    ]
    targets = [
        at_most(f"seconds, {row[0]} / threads", _TARGET, row[2]) for row in rows if row[2] != 1.0
    ]
    return Section(
        "places",
        "Processes and Dask against threads",
        [Table(["where", "seconds", "ratio", "least", "most"], rows)],
        targets,
        [
            f"y = x0 (x1 + x2 x3 sin(x4)), {_ROWS:,} rows, noise {_NOISE:.0%}; four chains, "
            f"tune={_TUNE}, draws={_DRAWS}. Seconds of search, settling and drawing, by {_JOBS} "
            f"threads, {_JOBS} processes, and {_JOBS} Dask workers on this machine, in turn; "
            f"median of {rounds}; all fits make the same draws.",
            f"The calling process and the scheduler of Dask share {os.cpu_count()} cores with the "
            "workers. Other work on the machine raises the ratios: a round waits for the slowest.",
        ],
    )


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


def _fit(X: np.ndarray, y: np.ndarray, backend: str = "threading", client: object = None) -> float:
    model = BayesianSymbolicRegressor(tune=_TUNE, draws=_DRAWS, n_jobs=_JOBS, random_state=0)
    with joblib.parallel_config(backend=backend), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y, client=client)
    return float(model.diagnostics_["seconds"])
