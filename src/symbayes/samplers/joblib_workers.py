"""Rounds on the workers of a joblib backend: processes of this machine, or what Ray offers.

The table is written to a file once, which processes of the same machine map into their memory, so
that they share it. A process that cannot see the file gets the table itself, once.
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import time
from concurrent.futures import BrokenExecutor
from pathlib import Path

import joblib
from joblib.externals.loky.process_executor import ShutdownExecutorError

from ..problem import Problem
from .elsewhere import ClusterError, Elsewhere, Name, Result, Task, is_known, work

# How often a round is begun anew after a process has died or hung.
_MOST_ATTEMPTS = 4
_LOST = (BrokenExecutor, ShutdownExecutorError, TimeoutError)


class JoblibWorkers(Elsewhere):
    """Carry out rounds on the joblib backend that is active where this is made."""

    def __init__(self, n_jobs: int):
        super().__init__()
        self._n_jobs = n_jobs
        self._folder = Path(tempfile.mkdtemp(prefix="symbayes-"))
        self._written: set[Name] = set()
        self._parallel = self._start()

    def __exit__(self, *exception: object) -> None:
        self._parallel.__exit__(None, None, None)
        # Where a process still has a file open that cannot be removed, it stays.
        shutil.rmtree(self._folder, ignore_errors=True)

    def _start(self) -> joblib.Parallel:
        return joblib.Parallel(self._n_jobs, batch_size=1, pre_dispatch="all").__enter__()

    def _carry_out_all(self, tasks: list[Task]) -> list[Result]:
        names = {task.name for task in tasks}
        for attempt in range(1, _MOST_ATTEMPTS + 1):
            began = time.monotonic()
            self._parallel.timeout = self._patience(names)
            try:
                results = self._round(tasks)
            except _LOST as error:
                if attempt == _MOST_ATTEMPTS:
                    raise ClusterError(
                        f"worker processes died or hung {attempt} times in the same round "
                        f"({type(error).__name__}); look for what ends them (often too little "
                        "memory), or use fewer with n_jobs"
                    ) from error
                self._parallel = self._start()
                continue
            self._note_seconds(names, time.monotonic() - began)
            return results
        raise AssertionError("not reached")

    def _round(self, tasks: list[Task]) -> list[Result]:
        calls = (joblib.delayed(_open_and_work)(task, self._file(task.name)) for task in tasks)
        results: list[Result | None] = list(self._parallel(calls))
        unseen = [i for i, result in enumerate(results) if result is None]
        if unseen:
            again = (joblib.delayed(work)(tasks[i], self._problem(tasks[i].name)) for i in unseen)
            for i, result in zip(unseen, self._parallel(again), strict=True):
                results[i] = result
        return [result for result in results if result is not None]

    def _file(self, name: Name) -> Path:
        path = self._folder / f"{name.number}.joblib"
        if name not in self._written:
            joblib.dump(self._problem(name), path)
            self._written.add(name)
        return path

    def _forget(self, name: Name) -> None:
        if name in self._written:
            with contextlib.suppress(OSError):  # some systems keep a file that is in use
                self._file(name).unlink()
            self._written.remove(name)


def _open_and_work(task: Task, path: Path) -> Result | None:
    """Carry out a task; return None if this process can see neither problem nor file."""
    if is_known(task.name):
        return work(task)
    try:
        # Copied where it is written to, which it never is: pages are shared with all others.
        problem: Problem = joblib.load(path, mmap_mode="c")
    except FileNotFoundError:
        return None
    return work(task, problem)
