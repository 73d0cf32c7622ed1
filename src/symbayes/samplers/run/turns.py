"""Work of which threads take parts in turn, so that those which are done early have more to do."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush


class NoStart(RuntimeError):
    """No formula could be found that has a finite value on all rows."""


#: Work stops by itself now and then. It says where it has to go on (None), and where it could end
#: (the number of its draws so far).
Work = Generator["int | None", None, int]


@dataclass(order=True)
class Turn:
    """A piece of work that could go on.

    All have about as much to do and get on together. Those that have taken longest are slow: of
    those that got equally far they come first, so that nobody has to wait for them at the end.
    """

    number: int
    """How often it has gone on."""
    seconds: float
    """Minus the seconds that it has taken so far."""
    i: int
    work: Work = field(compare=False)


def never() -> bool:
    """Return that there is no reason to stop."""
    return False


class Turns:
    """Pieces of work, and what becomes of them.

    Parameters
    ----------
    work : sequence of generators
        What they return are the results; of one that has no start it is None.
    stop : callable
        Whether work is to end where it could.
    """

    def __init__(self, work: Sequence[Work], stop: Callable[[], bool] = never):
        self.results: list[int | None] = [None] * len(work)
        self._should_stop = stop
        # Read and changed only by who holds `_change`. A turn is ready, or a thread is at it, or
        # it has ended.
        self._change = threading.Condition()
        self._ready = [Turn(0, 0.0, i, one) for i, one in enumerate(work)]  # a heap
        self._at_work = 0
        self._stopped = False

    def take(self) -> None:
        """Take turns until all work has ended; any number of threads may do so."""
        while (turn := self._begin()) is not None:
            goes_on = False
            try:
                goes_on = self._go_on(turn)
            except BaseException:
                self.stop()
                raise
            finally:
                self._end(turn, goes_on)

    def stop(self) -> None:
        """Let threads end after the parts they are at."""
        with self._change:
            self._stopped = True
            self._change.notify_all()

    def _begin(self) -> Turn | None:
        """Return the next turn, as soon as there is one; None if there will be none any more."""
        with self._change:
            while not (self._ready or self._stopped or self._at_work == 0):
                self._change.wait()
            if self._stopped or not self._ready:
                return None
            self._at_work += 1
            return heappop(self._ready)

    def _end(self, turn: Turn, goes_on: bool) -> None:
        """Note that a turn is over, and whether its work goes on."""
        with self._change:
            self._at_work -= 1
            if goes_on:
                heappush(self._ready, turn)
            self._change.notify_all()

    def _go_on(self, turn: Turn) -> bool:
        """Let work go on by one part; return whether there is more of it."""
        began = time.monotonic()
        try:
            place = next(turn.work)
        except StopIteration as end:
            self.results[turn.i] = end.value
            return False
        except NoStart:
            return False
        turn.number += 1
        turn.seconds -= time.monotonic() - began
        if place is not None and self._should_stop():
            self.results[turn.i] = place
            turn.work.close()
            return False
        return True
