"""Runs that the experiments share: each made and stored once, in any order, on any core."""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import joblib
import pandas as pd

from .. import __version__
from ..kernels import units
from . import DEFAULT, METHODS, PAPER, POPULATIONS
from .records import Record, Records


@dataclass(frozen=True)
class Effort:
    """How much work the experiments are."""

    replications: int  # of each simulated task
    trees: int  # proposed by the paper's sampler
    generations: int  # of genetic programming
    noisy_replications: int  # of each task and noise level
    memory_replications: int
    signals: int  # independent runs on the index
    signal_trees: int  # proposed by each of these
    draws: int  # per chain of the default sampler
    tune: int | None = None  # draws of its search at most; None is its default

    def repeated(self, times: int) -> Effort:
        """Return the same with this many replications of everything."""
        names = ("replications", "noisy_replications", "memory_replications", "signals")
        return replace(self, **dict.fromkeys(names, times))


#: What the paper did, where it says so.
FULL = Effort(
    replications=50, trees=100_000, generations=200, noisy_replications=5, memory_replications=1,
    signals=200, signal_trees=10_000, draws=1000,
)  # fmt: skip
#: A few minutes on two cores. Our search is as long as always: a shorter one misses formulas.
QUICK = Effort(
    replications=1, trees=10_000, generations=10, noisy_replications=1, memory_replications=1,
    signals=20, signal_trees=2_000, draws=200,
)  # fmt: skip


class Job(NamedTuple):
    """What distinguishes a run from all others."""

    kind: str  # of work, see the experiments
    method: str
    task: str
    replication: int
    seed: int
    terms: int = 0  # additive components; 0 leaves them to the method
    noise: float = 0.0
    size: str = ""  # how much work it is; results of different sizes are different results
    version: str = __version__


#: Jobs, and the function that does each.
Runs = dict[Job, Callable[[Job], Record]]


class Setting(NamedTuple):
    """What the user asked for."""

    effort: Effort
    seed: int
    methods: tuple[str, ...]
    tasks: tuple[str, ...]
    prices: Path | None  # for the index study; without them a generated series is used

    def size(self, method: str) -> str:
        """Return how much work a run is."""
        effort = self.effort
        tune = "" if effort.tune is None else f", {effort.tune} of tuning"
        sizes = {PAPER: f"{effort.trees} trees", DEFAULT: f"{effort.draws} draws{tune}"}
        return sizes.get(method, f"{effort.generations} generations")


class Section(NamedTuple):
    """What an experiment found."""

    text: str  # Markdown, without a heading
    tables: dict[str, pd.DataFrame]  # in long form, by name of the file
    figure: Any = None  # of Matplotlib
    headline: str = ""  # what the first line of the report has to say


@dataclass(frozen=True)
class Experiment:
    """One table or figure: what its runs say, and which runs, some of them shared with others."""

    summarise: Callable[[list[Record], Setting], Section]
    work: Callable[..., Record]
    kind: str = "simulation"
    replications: Callable[[Effort], int] = lambda effort: effort.replications
    methods: tuple[str, ...] = METHODS
    terms: tuple[int, ...] = (0,)
    noises: tuple[float, ...] = (0.0,)

    def runs(self, setting: Setting) -> Runs:
        """Return the runs that it needs."""
        seed, work = setting.seed, partial(self.work, setting=setting)
        return {
            Job(self.kind, method, task, i, seed, k, noise, setting.size(method)): work
            for i in range(self.replications(setting.effort))
            for noise in self.noises
            for task in setting.tasks
            for method in setting.methods
            if method in self.methods
            for k in self.terms
        }


def run_all(
    runs: Runs, records: Records, n_jobs: int, tell: Callable[[str, int, int], None]
) -> None:
    """Make the runs that are not in the records yet, and store each as soon as it is done.

    A run depends on nothing but its job, so that the records do not depend on the order, on the
    number of processes, or on having been stopped in between.
    """
    missing = [job for job in runs if job not in records]
    genetic = any(job.method in POPULATIONS for job in missing)
    if genetic and importlib.util.find_spec("gplearn") is None:
        raise ImportError(
            "genetic programming needs gplearn: pip install gplearn, or leave it out (--methods)"
        )
    done = len(runs) - len(missing)
    tell("runs", done, len(runs))
    if not missing:
        return
    # Compile here, once, and not in each process.
    for sampler in ("paper", "tempered"):
        units.load(sampler)
    parallel = joblib.Parallel(
        n_jobs=n_jobs if len(missing) > 1 else 1, return_as="generator_unordered", batch_size=1
    )
    for record in parallel(joblib.delayed(_timed)(job, runs[job]) for job in missing):
        records.append(record)
        done += 1
        tell("runs", done, len(runs))


def _timed(job: Job, work: Callable[[Job], Record]) -> Record:
    start = time.perf_counter()
    result = work(job)
    return {**job._asdict(), "seconds": time.perf_counter() - start, **result}
