"""Runs that the experiments share: each made once, kept at once, in any order, on any core."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import joblib
import pandas as pd

from .. import __version__
from ..kernels import units
from . import DEFAULT, EXPERIMENTS, PAPER
from .records import Record, Records


@dataclass(frozen=True)
class Effort:
    """How much work the experiments are."""

    replications: int
    """Of each simulated task."""
    trees: int
    """Proposed by the paper's sampler."""
    generations: int
    """Of genetic programming."""
    noisy_replications: int
    """Of each task and noise level."""
    memory_replications: int
    signals: int
    """Independent runs on the index."""
    signal_trees: int
    draws: int
    """Per chain of the default sampler."""
    tune: int | None = None
    """Draws of its search at most; None is its default."""

    def repeated(self, times: int) -> Effort:
        """Return the same with this many replications of everything."""
        return replace(
            self,
            replications=times,
            noisy_replications=times,
            memory_replications=times,
            signals=times,
        )


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


@dataclass(frozen=True)
class Job:
    """What makes two runs the same run."""

    kind: str
    """Of work, see the experiments."""
    method: str
    task: str
    replication: int
    seed: int
    terms: int = 0
    """Additive components; 0 leaves them to the method."""
    noise: float = 0.0
    size: str = ""
    """How much work it is; results of different sizes are different results."""
    version: str = ""


Work = Callable[[Job], Record]
KEY = tuple(one.name for one in fields(Job))


@dataclass(frozen=True)
class Setting:
    """What the user asked for."""

    effort: Effort
    seed: int
    methods: tuple[str, ...]
    tasks: tuple[str, ...]
    prices: Path | None = None
    """The index study's table; without one a generated series is used."""

    def job(self, kind: str, method: str, task: str, replication: int, **more: Any) -> Job:
        """Return a run of this size, seed and version."""
        effort = self.effort
        if method == PAPER:
            size = f"{effort.signal_trees if kind == 'signals' else effort.trees} trees"
        elif method == DEFAULT:
            tune = "" if effort.tune is None else f", {effort.tune} of tuning"
            size = f"{effort.draws} draws{tune}"
        else:
            size = f"{effort.generations} generations"
        return Job(
            kind, method, task, replication, self.seed, size=size, version=__version__, **more
        )


@dataclass(frozen=True)
class Section:
    """What an experiment found."""

    text: str
    """Markdown, without a heading."""
    tables: dict[str, pd.DataFrame]
    """Long form, by name of the file."""
    figures: dict[str, Any] = field(default_factory=dict)
    """Matplotlib figures, by name of the file."""
    headline: str = ""
    """What the first line of the report has to say."""


class Experiment(ABC):
    """One table or figure of the paper."""

    name: str

    @property
    def title(self) -> str:
        return EXPERIMENTS[self.name]

    @abstractmethod
    def jobs(self, setting: Setting) -> list[tuple[Job, Work]]:
        """Return the runs it needs; those of other experiments are shared."""

    @abstractmethod
    def summarise(self, records: list[Record], setting: Setting) -> Section:
        """Return what its runs say."""


def run_all(
    jobs: Iterable[tuple[Job, Work]],
    records: Records,
    n_jobs: int,
    tell: Callable[[int, int], None],
) -> None:
    """Make the runs that are not in the records yet, and keep each as soon as it is done.

    A run depends on nothing but its job, so that the records do not depend on the order, on the
    number of processes, or on having been stopped in between.
    """
    by_key = {records.key_of(asdict(job)): (job, work) for job, work in jobs}
    missing = [entry for key, entry in by_key.items() if key not in records]
    done = len(by_key) - len(missing)
    tell(done, len(by_key))
    if not missing:
        return
    # Compile here, once, and not in each process.
    for sampler in ("paper", "tempered"):
        units.load(sampler)
    parallel = joblib.Parallel(
        n_jobs=n_jobs if len(missing) > 1 else 1, return_as="generator_unordered", batch_size=1
    )
    for job, result in parallel(joblib.delayed(_run)(job, work) for job, work in missing):
        records.append({**asdict(job), **result})
        done += 1
        tell(done, len(by_key))


def _run(job: Job, work: Work) -> tuple[Job, Record]:
    start = time.perf_counter()
    result = work(job)
    return job, {"seconds": time.perf_counter() - start, **result}


def select(records: Records, jobs: Sequence[Job]) -> list[Record]:
    """Return the records of these jobs, in their order, those not made yet left out."""
    keys = [records.key_of(asdict(job)) for job in jobs]
    return [records[key] for key in keys if key in records]
