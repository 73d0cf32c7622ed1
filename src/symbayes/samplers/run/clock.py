"""When a run has to stop: its time limit, Ctrl-C, and rounds short enough to notice either."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from ...deadline import Deadline

# A second Ctrl-C this soon after the first is meant for the whole program.
_SECONDS_OF_IMPATIENCE = 2.0
# The largest part of a time limit that is kept back for what comes after sampling.
_MOST_KEPT_BACK = 0.2
# Work that takes this long is done without a look at the clock.
_SECONDS_AT_ONCE, _LEAST_SECONDS = 0.5, 1.0e-5


class Watch:
    """Knows when to stop: at a time limit, or when the user presses Ctrl-C.

    While it is entered, a Ctrl-C is noted and the run ends after the current round with what it
    has; after sampling, formulas that are not polished yet stay as they are. A second one
    interrupts as usual, within two seconds also when another fit has begun in between, as in
    cross-validation.
    """

    _last_interrupt = -np.inf

    def __init__(self, timeout: float | None, started: float | None = None):
        self.started = time.monotonic() if started is None else started
        self.timeout = timeout
        self._kept_back = 0.0
        self.interrupted = False
        #: Whether anything was cut short for that: the run is then not as it would have been.
        self.heeded = False

    def __enter__(self) -> Watch:
        self._in_main = threading.current_thread() is threading.main_thread()
        if self._in_main:
            self._previous = signal.signal(signal.SIGINT, self._on_interrupt)
        return self

    def __exit__(self, *exception: object) -> None:
        if self._in_main:
            # None: a handler that was not installed from Python and cannot be put back.
            signal.signal(signal.SIGINT, self._previous or signal.SIG_DFL)

    def _on_interrupt(self, number: int, frame: Any) -> None:
        now = time.monotonic()
        again = now - Watch._last_interrupt < _SECONDS_OF_IMPATIENCE
        Watch._last_interrupt = now
        if self.interrupted or again:
            raise KeyboardInterrupt
        self.interrupted = True

    @property
    def seconds(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self.started

    @property
    def deadline(self) -> Deadline:
        """When the whole fit has to end."""
        at = np.inf if self.timeout is None else self.started + self.timeout
        return Deadline(at, lambda: self.interrupted)

    def keep_back(self, seconds: float) -> None:
        """Leave that much time to what follows sampling, but only a part of all there is."""
        if self.timeout is not None:
            self._kept_back = min(seconds, _MOST_KEPT_BACK * self.timeout)

    def left(self, share: float = 1.0) -> float:
        """Return how many seconds are left of this share of the time for sampling."""
        if self.timeout is None:
            return np.inf
        return share * (self.timeout - self._kept_back) - self.seconds

    def out_of_time(self, share: float = 1.0) -> bool:
        """Return whether this share of the time for sampling is used up."""
        return self.left(share) <= 0.0

    def is_over(self, share: float = 1.0) -> bool:
        """Return whether the run, or a phase with this share of the time, has to end."""
        return self.interrupted or self.out_of_time(share)

    def should_stop(self, share: float = 1.0) -> bool:
        """Return the same as `is_over`, and note that the caller heeds a Ctrl-C."""
        self.heeded = self.heeded or self.interrupted
        return self.is_over(share)


def run_in_rounds(
    advance: Callable[[int], object],
    total: int,
    watch: Watch,
    progress: Callable[[int], object],
    *,
    first: int = 1,
    most: float = np.inf,
    multiple: int = 1,
    share: float = 1.0,
    finished: Callable[[], bool] = lambda: False,
) -> int:
    """Advance by `total` units, as many at a time as take half a second; return how many were done.

    How many are done at a time has no influence on the result. It is `first` as long as nothing is
    known about how long they take, never above `most`, and above `multiple` a multiple of that, but
    for the last time. It ends early when the share of the time is used up, or all is `finished`.
    """
    done, size = 0, first
    while done < total and not watch.should_stop(share) and not finished():
        n = min(size, total - done)
        if multiple < n < total - done:
            n -= n % multiple
        began = time.monotonic()
        advance(n)
        seconds = max(time.monotonic() - began, _LEAST_SECONDS) / n
        done += n
        size = int(min(most, max(1, _SECONDS_AT_ONCE / seconds)))
        progress(done)
    return done
