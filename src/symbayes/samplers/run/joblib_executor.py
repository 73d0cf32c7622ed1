"""Batches on the workers of a joblib backend: processes of this machine, or what Ray offers.

The table is written to a file once, which processes of the same machine map into their memory, so
that they share it. A process that cannot see the file gets the table itself, once.
"""

from __future__ import annotations

import contextlib
import math
import multiprocessing
import shutil
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import BrokenExecutor
from pathlib import Path

import joblib
from joblib.externals.loky.process_executor import ShutdownExecutorError

from ...inputs.problem import Problem
from .remote import Batch, ClusterError, Executor, ProblemKey, Problems, run_batch, unknown

# How often batches are begun anew after a process has died or hung.
_MOST_ATTEMPTS = 4
# The time limit of joblib raises an error of its own kind.
_LOST = (BrokenExecutor, ShutdownExecutorError, TimeoutError, multiprocessing.TimeoutError)


class JoblibExecutor(Executor):
    """The joblib backend that is active where this is made."""

    def __init__(self, n_jobs: int):
        super().__init__()
        self._n_jobs = n_jobs
        self._folder = Path(tempfile.mkdtemp(prefix="symbayes-"))
        self._parallel = self._start()

    def _start(self) -> joblib.Parallel:
        return joblib.Parallel(self._n_jobs, batch_size=1, pre_dispatch="all").__enter__()

    def close(self) -> None:
        self._parallel.__exit__(None, None, None)
        # A file that a process still has open may not be removable: then it stays.
        shutil.rmtree(self._folder, ignore_errors=True)

    def slots(self) -> int:
        return self._n_jobs

    def run(self, batches: Sequence[Batch], problems: Problems) -> list[bytes]:
        for attempt in range(1, _MOST_ATTEMPTS + 1):  # all anew if a process dies or hangs
            began, patience = time.monotonic(), self._patience(batches)
            self._parallel.timeout = None if math.isinf(patience) else patience
            try:
                answers = self._attempt(batches, problems)
            except _LOST as error:
                if attempt == _MOST_ATTEMPTS:
                    raise ClusterError(
                        f"worker processes died or hung {attempt} times in the same round "
                        f"({type(error).__name__}); look for what ends them (often too little "
                        "memory), or use fewer with n_jobs"
                    ) from error
                self._parallel = self._start()
            else:
                break
        for batch in batches:
            self._note_seconds(batch, time.monotonic() - began)
        return answers

    def _attempt(self, batches: Sequence[Batch], problems: Problems) -> list[bytes]:
        answers: list[bytes | None] = list(self._parallel(
            joblib.delayed(_open_and_run)(batch, [self._file(k, problems[k]) for k in batch.keys])
            for batch in batches
        ))  # fmt: skip
        unseen = [i for i, answer in enumerate(answers) if answer is None]
        given = (
            joblib.delayed(run_batch)(batches[i], {k: problems[k] for k in batches[i].keys})
            for i in unseen
        )
        for i, answer in zip(unseen, self._parallel(given) if unseen else (), strict=True):
            answers[i] = answer
        return [answer for answer in answers if answer is not None]

    def _file(self, key: ProblemKey, problem: Problem) -> Path:
        path = self._path(key)
        if not path.exists():
            joblib.dump(problem, path)
        return path

    def _path(self, key: ProblemKey) -> Path:
        return self._folder / f"{key.number}.joblib"

    def forget(self, key: ProblemKey) -> None:
        super().forget(key)
        with contextlib.suppress(OSError):  # some systems keep a file that is in use
            self._path(key).unlink()


def _open_and_run(batch: Batch, paths: list[Path]) -> bytes | None:
    """Carry out a batch; return None if this process cannot see the files of what it lacks."""
    path_of = dict(zip(batch.keys, paths, strict=True))
    try:
        # Copied where it is written to, which it never is: pages are shared with all others.
        problems = {key: joblib.load(path_of[key], mmap_mode="c") for key in unknown(batch.keys)}
    except FileNotFoundError:
        return None
    return run_batch(batch, problems)
