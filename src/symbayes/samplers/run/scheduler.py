"""Threads that share out work: each takes the next part of whichever chain has come least far."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Any

from ..search.library import LibraryCache


class NoStart(RuntimeError):
    """No formula could be found that has a finite value on all rows."""


#: Work stops by itself now and then. It says where it has to go on (None), and where it could end
#: (the number of its draws so far). What it returns is the number of its draws.
Work = Generator["int | None", None, int]


@dataclass(order=True)
class Job:
    """A piece of work that is not at its end.

    All jobs have about as much to do and get on together. Those that have taken longest are slow:
    of those that got equally far they come first, so that nobody has to wait for them at the end.
    """

    parts: int
    """How many parts are done."""
    seconds: float
    """Minus the seconds that it has taken so far."""
    i: int
    work: Work = field(compare=False)


def never() -> bool:
    """Return that there is no reason to stop."""
    return False


class Scheduler:
    """Pieces of work, and in `results` what they have returned; None for those without a start.

    Where `stop` returns true, work ends as soon as it could.
    """

    def __init__(self, work: Sequence[Work], stop: Callable[[], bool] = never):
        self.results: list[int | None] = [None] * len(work)
        self._should_stop = stop
        # Read and changed only by the thread that holds `_change`. A job is ready, or a thread
        # works on it, or it has ended.
        self._change = threading.Condition()
        self._ready = [Job(0, 0.0, i, one) for i, one in enumerate(work)]  # a heap
        self._at_work = 0
        self._stopped = False

    def run(self) -> None:
        """Do parts of jobs until all have ended; any number of threads may call this."""
        while (job := self._begin()) is not None:
            goes_on = False
            try:
                goes_on = self._do_part(job)
            except BaseException:
                self.stop()
                raise
            finally:
                with self._change:
                    self._at_work -= 1
                    if goes_on:
                        heappush(self._ready, job)
                    self._change.notify_all()

    def stop(self) -> None:
        """Let threads end after the parts they are at."""
        with self._change:
            self._stopped = True
            self._change.notify_all()

    def _begin(self) -> Job | None:
        """Return the next job, as soon as there is one; None if there will be none any more."""
        with self._change:
            while not (self._ready or self._stopped or self._at_work == 0):
                self._change.wait()
            if self._stopped or not self._ready:
                return None
            self._at_work += 1
            return heappop(self._ready)

    def _do_part(self, job: Job) -> bool:
        """Do one part of a job; return whether there is more of it."""
        began = time.monotonic()
        try:
            n_draws = next(job.work)
        except StopIteration as end:
            self.results[job.i] = end.value
            return False
        except NoStart:
            return False
        job.parts += 1
        job.seconds -= time.monotonic() - began
        if n_draws is not None and self._should_stop():
            self.results[job.i] = n_draws
            job.work.close()
            return False
        return True


def carry_out(ladder: Any, order: Any, libraries: LibraryCache) -> int | None:
    """Let a ladder carry out an order; return the number of draws, None for no start."""
    scheduler = Scheduler([ladder.carry_out(order, libraries)])
    scheduler.run()
    return scheduler.results[0]
