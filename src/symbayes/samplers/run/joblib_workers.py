"""Rounds on the workers of a joblib backend: processes of this machine, or what Ray offers.

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
from concurrent.futures import BrokenExecutor
from pathlib import Path

import joblib
from joblib.externals.loky.process_executor import ShutdownExecutorError

from .elsewhere import ClusterError, Elsewhere
from .workbench import Bundle, Name, unknown, work

# How often a round is begun anew after a process has died or hung.
_MOST_ATTEMPTS = 4
# The time limit of joblib raises an error of its own kind.
_LOST = (BrokenExecutor, ShutdownExecutorError, TimeoutError, multiprocessing.TimeoutError)


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

    def _at_a_time(self) -> int:
        return self._n_jobs

    def _carry_out_all(self, bundles: list[Bundle]) -> list[bytes]:
        for attempt in range(1, _MOST_ATTEMPTS + 1):
            began = time.monotonic()
            patience = self._patience(bundles)
            self._parallel.timeout = None if math.isinf(patience) else patience
            try:
                answers = self._round(bundles)
            except _LOST as error:
                if attempt == _MOST_ATTEMPTS:
                    raise ClusterError(
                        f"worker processes died or hung {attempt} times in the same round "
                        f"({type(error).__name__}); look for what ends them (often too little "
                        "memory), or use fewer with n_jobs"
                    ) from error
                self._parallel = self._start()
                continue
            for bundle in bundles:
                self._note_seconds(bundle, time.monotonic() - began)
            return answers
        raise AssertionError("not reached")

    def _round(self, bundles: list[Bundle]) -> list[bytes]:
        calls = (
            joblib.delayed(_open_and_work)(bundle, [self._file(name) for name in bundle.names])
            for bundle in bundles
        )
        answers: list[bytes | None] = list(self._parallel(calls))
        unseen = [i for i, answer in enumerate(answers) if answer is None]
        if unseen:
            again = (
                joblib.delayed(work)(bundles[i], {n: self._problem(n) for n in bundles[i].names})
                for i in unseen
            )
            for i, answer in zip(unseen, self._parallel(again), strict=True):
                answers[i] = answer
        return [answer for answer in answers if answer is not None]

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


def _open_and_work(bundle: Bundle, paths: list[Path]) -> bytes | None:
    """Carry out a bundle; return None if this process cannot see the files of what it lacks."""
    missing = set(unknown(bundle.names))
    try:
        # Copied where it is written to, which it never is: pages are shared with all others.
        problems = {
            name: joblib.load(path, mmap_mode="c")
            for name, path in zip(bundle.names, paths, strict=True)
            if name in missing
        }
    except FileNotFoundError:
        return None
    return work(bundle, problems)
