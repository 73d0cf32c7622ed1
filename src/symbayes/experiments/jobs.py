"""Runs that the experiments share: each made once, kept at once, in any order, on any core."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

import joblib

from ..kernels import units
from .records import Record, Records

Work = Callable[["Job"], Record]


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


KEY = tuple(field.name for field in fields(Job))


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


def select(records: Records, jobs: Sequence[Job]) -> list[dict[str, Any]]:
    """Return the records of these jobs, in their order, those not made yet left out."""
    keys = [records.key_of(asdict(job)) for job in jobs]
    return [records[key] for key in keys if key in records]
