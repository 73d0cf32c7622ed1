"""Running chains side by side: threads, time limit, Ctrl-C, progress."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from ...deadline import Deadline
from ...inputs.problem import Problem
from ..search.library import LibraryCache
from .turns import NoStart, Turns, Work, never

# A round should take about so long: short enough to stop at once, long enough to cost nothing.
_SECONDS_A_ROUND = 0.2
# A second Ctrl-C so soon after the first is meant for the whole program.
_SECONDS_OF_IMPATIENCE = 2.0
# Seconds after which Python looks again whether there was a Ctrl-C.
_LONGEST_WAIT = 0.25
# Part of a time limit that is kept back for what comes after sampling, at most.
_MOST_KEPT_BACK = 0.2


@dataclass(frozen=True)
class Look:
    """What there is to see of a run at one moment."""

    trees: list[np.ndarray]
    """The terms of the leading state."""
    proposals: int
    """Proposals made so far, by all chains together."""
    swap_rate: float | None = None
    """Share of swaps between neighbouring temperatures that were accepted, where there are any."""


@dataclass(frozen=True)
class Status:
    """How far a phase has come."""

    phase: str
    done: int
    total: int
    look: Callable[[], Look]
    """Takes time, so it is called only for what is shown, and at once: states move on."""
    ended: bool = False
    """Whether this is the last report of its phase."""


Report = Callable[[Status], None]


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

    def out_of_time(self, share: float = 1.0) -> bool:
        """Return whether this share of the time for sampling is used up."""
        return self.left(share) <= 0.0

    def left(self, share: float = 1.0) -> float:
        """Return how many seconds are left of this share of the time for sampling."""
        if self.timeout is None:
            return np.inf
        return share * (self.timeout - self._kept_back) - self.seconds

    def keep_back(self, seconds: float) -> None:
        """Leave that much time to what follows sampling, but only a part of all there is."""
        if self.timeout is not None:
            self._kept_back = min(seconds, _MOST_KEPT_BACK * self.timeout)

    @property
    def deadline(self) -> Deadline:
        """When the whole fit has to end."""
        return Deadline() if self.timeout is None else Deadline(self.started + self.timeout)

    def over(self) -> bool:
        """Return whether what follows sampling has to be cut short as well."""
        return self.interrupted or self.deadline.over()

    def is_over(self, share: float = 1.0) -> bool:
        """Return whether the run, or a phase with this share of the time, has to end."""
        return self.interrupted or self.out_of_time(share)

    def should_stop(self, share: float = 1.0) -> bool:
        """Return the same, and take it that who asks for it stops then."""
        self.heeded = self.heeded or self.interrupted
        return self.is_over(share)


class Traveller(Protocol):
    """What workers advance: a ladder, or a chain of the paper's sampler."""

    problem: Any

    @classmethod
    def blank(cls, problem: Any, state: Any) -> Traveller:
        """Return one that a state of this size can be restored to."""

    def carry_out(self, order: Any, shelf: LibraryCache, in_parts: bool = False) -> Work:
        """Do what a round asks for; return the number of draws, or raise NoStart.

        In parts it stops more often. After every stop it may go on in another thread.
        """

    def state(self) -> Any:
        """Return all that has to be known to go on elsewhere with the same draws."""

    def restore(self, state: Any) -> None:
        """Go on from a state of another one on the same problem."""

    def kept(self, order: Any, n_draws: int) -> tuple[np.ndarray, ...]:
        """Return the draws of a round, as they are sent."""

    def receive(self, kept: tuple[np.ndarray, ...]) -> None:
        """Take the draws of a round that was carried out elsewhere."""


class Workers:
    """Carry out rounds in threads; with one worker all of it in the caller's thread."""

    def __init__(self, n_jobs: int):
        self._pool = ThreadPoolExecutor(n_jobs) if n_jobs > 1 else None
        self._n_jobs = n_jobs
        self._shelf = LibraryCache()

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *exception: object) -> None:
        if self._pool is not None:
            self._pool.shutdown()

    def advance(
        self,
        ladders: Sequence[Traveller],
        orders: Sequence[Any],
        again: int = 0,
        stop: Callable[[], bool] = never,
    ) -> list[int | None]:
        """Let each ladder carry out its order; return the numbers of draws, None for no start.

        When this returns, all ladders have gone on, and their outputs hold their draws. So many
        times more the caller is likely to ask for the same. Orders may end early to `stop`.
        """
        # Ladders take turns, so that threads which are done early have something to do.
        in_parts = len(ladders) > self._n_jobs and (self._n_jobs > 1 or stop is not never)
        pairs = zip(ladders, orders, strict=True)
        work = [ladder.carry_out(order, self._shelf, in_parts) for ladder, order in pairs]
        return self._take_turns(work, stop)

    def advance_rounds(
        self,
        ladders: Sequence[Traveller],
        orders: Sequence[Any],
        after: Callable[[int, Any], object],
    ) -> None:
        """Let all ladders carry out the same orders; each has to have a start.

        `after` is called with the number of a ladder and the order that it has carried out. No
        ladder waits for another one.
        """
        if self._pool is None:
            for order in orders:
                advance_all(self, ladders, order)
                for i in range(len(ladders)):
                    after(i, order)
            return
        in_parts = len(ladders) > self._n_jobs

        def work(i: int, ladder: Traveller) -> Work:
            made = 0
            for order in orders:
                made += yield from ladder.carry_out(order, self._shelf, in_parts)
                after(i, order)
            return made

        if None in self._take_turns([work(i, ladder) for i, ladder in enumerate(ladders)]):
            raise NoStart

    def _take_turns(
        self, work: Sequence[Work], stop: Callable[[], bool] = never
    ) -> list[int | None]:
        turns = Turns(work, stop)
        if self._pool is None:
            turns.take()
            return turns.results
        try:
            threads = [self._pool.submit(turns.take) for _ in range(self._n_jobs)]
            # When one has found nothing more to do, those that have not begun are not needed.
            # Python may sleep through a Ctrl-C that comes just as it begins to wait.
            while not wait(threads, _LONGEST_WAIT, FIRST_COMPLETED).done:
                pass
            for thread in threads:
                if not thread.cancel():
                    thread.result()
        finally:
            turns.stop()  # after a second Ctrl-C
        return turns.results

    def prepare(self, problem: Problem, stop: Callable[[], bool] = never) -> None:
        """Make what orders for a problem may need, beside other work if there are threads.

        When it is time to `stop`, a part of it is enough.
        """
        self._shelf.stop = stop
        if self._pool is not None:
            self._pool.submit(self._shelf.library_for, problem)

    def forget(self) -> None:
        """Let go of what orders of a search needed."""
        self._shelf.clear()

    def each(self, function: Callable[..., object], *arguments: Iterable[Any]) -> None:
        """Call a function for each of these, in the process of the caller."""
        for _ in (map if self._pool is None else self._pool.map)(function, *arguments):
            pass


def carry_out(ladder: Traveller, order: Any, shelf: LibraryCache) -> int | None:
    """Let a ladder carry out an order; return the number of draws, None for no start."""
    turns = Turns([ladder.carry_out(order, shelf)])
    turns.take()
    return turns.results[0]


def advance_all(workers: Workers, ladders: Sequence[Traveller], order: Any) -> list[int]:
    """Let all ladders carry out the same order; each has to have a start."""
    done = [n for n in workers.advance(ladders, [order] * len(ladders)) if n is not None]
    if len(done) < len(ladders):
        raise NoStart
    return done


def run_rounds(
    advance: Callable[[int], object],
    total: int,
    watch: Watch,
    share: float,
    progress: Callable[[int], None],
    largest_round: int,
    finished: Callable[[], bool] = lambda: False,
) -> int:
    """Advance by `total` units in rounds; return how many were done.

    It ends early when all is `finished`. The length of a round adapts to the time it takes. It
    has no influence on the result.
    """
    done, size = 0, 1
    while done < total and not watch.should_stop(share) and not finished():
        n = min(size, total - done)
        before = time.monotonic()
        advance(n)
        elapsed = max(time.monotonic() - before, 1e-6)
        done += n
        progress(done)
        size = int(min(largest_round, 2 * size, max(1, n * _SECONDS_A_ROUND / elapsed)))
    return done
