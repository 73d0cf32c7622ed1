"""Running chains side by side: threads, time limit, Ctrl-C, progress."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

# A round should take about so long: short enough to stop at once, long enough to cost nothing.
_SECONDS_A_ROUND = 0.2

Progress = Callable[[str, int, int], None]


class Watch:
    """Knows when to stop: at a time limit, or when the user presses Ctrl-C.

    While it is entered, the first Ctrl-C is noted and the run ends after the current round with
    what it has; a second one interrupts as usual.
    """

    def __init__(self, timeout: float | None, started: float | None = None):
        self.started = time.monotonic() if started is None else started
        self.timeout = timeout
        self.interrupted = False
        self._previous: Any = None
        self._installed = False

    def __enter__(self) -> Watch:
        if threading.current_thread() is threading.main_thread():
            self._previous = signal.signal(signal.SIGINT, self._on_interrupt)
            self._installed = True
        return self

    def __exit__(self, *exception: object) -> None:
        if self._installed:
            # None: a handler that was not installed from Python and cannot be put back.
            signal.signal(signal.SIGINT, self._previous or signal.SIG_DFL)

    def _on_interrupt(self, number: int, frame: Any) -> None:
        if self.interrupted:
            raise KeyboardInterrupt
        self.interrupted = True

    @property
    def seconds(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self.started

    def out_of_time(self, share: float = 1.0) -> bool:
        """Return whether this share of the time limit is used up."""
        return self.timeout is not None and self.seconds >= share * self.timeout

    def should_stop(self, share: float = 1.0) -> bool:
        """Return whether the run, or a phase with this share of the time, has to end."""
        return self.interrupted or self.out_of_time(share)


class Workers:
    """A pool of threads; with one worker everything runs in the caller's thread."""

    def __init__(self, n_jobs: int):
        self._pool = ThreadPoolExecutor(n_jobs) if n_jobs > 1 else None

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *exception: object) -> None:
        if self._pool is not None:
            self._pool.shutdown()

    def map(self, function: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
        """Return the results in order; all calls have ended when this returns."""
        if self._pool is None:
            return [function(item) for item in items]
        futures = [self._pool.submit(function, item) for item in items]
        return [future.result() for future in futures]


def _call(advance: Callable[[Any, int], Any], n: int, chain: Any) -> Any:
    return advance(chain, n)


def run_rounds(
    chains: list[Any],
    advance: Callable[[Any, int], Any],
    total: int,
    workers: Workers,
    watch: Watch,
    share: float,
    progress: Callable[[int], None],
    largest_round: int,
    finished: Callable[[Any], bool] = lambda chain: False,
) -> int:
    """Advance all chains by `total` units in rounds; return how many were done.

    It ends early when all chains are `finished`. The length of a round adapts to the time it
    takes. It has no influence on the result.
    """
    done, size = 0, 1
    while done < total and not watch.should_stop(share) and not all(map(finished, chains)):
        n = min(size, total - done)
        before = time.monotonic()
        workers.map(partial(_call, advance, n), chains)
        elapsed = max(time.monotonic() - before, 1e-6)
        done += n
        progress(done)
        size = int(min(largest_round, 2 * size, max(1, n * _SECONDS_A_ROUND / elapsed)))
    return done
