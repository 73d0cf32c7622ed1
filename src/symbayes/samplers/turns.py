"""Work of which threads take parts in turn, so that those which are done early have more to do."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from queue import PriorityQueue


class NoStart(RuntimeError):
    """No formula could be found that has a finite value on all rows."""


class Meeting:
    """Where two pieces of work wait for each other, and do something together.

    Parameters
    ----------
    action : callable
        What is done by the one that comes last, while the other rests.
    """

    def __init__(self, action: Callable[[], object]):
        self._action = action
        self._first: list[Turn] = []
        self._lock = threading.Lock()

    def join(self, turn: Turn) -> list[Turn]:
        """Come to it; return who goes on: nobody as long as one is missing, else both."""
        with self._lock:
            self._first.append(turn)
            if len(self._first) == 1:
                return []
        self._action()
        return self._first


#: Work stops by itself now and then. It says where it has to go on (None), where it could end with
#: so many draws, and where it waits for somebody.
Work = Generator["int | Meeting | None", None, int]


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
    work: Work | None = field(compare=False)
    """None tells a thread to end."""


def never() -> bool:
    """Return that there is no reason to stop."""
    return False


class Turns:
    """Pieces of work, and what becomes of them.

    Parameters
    ----------
    work : sequence of generators
        What they return are the results; of one that has no start it is None.
    threads : int
        How many threads take turns.
    stop : callable
        Whether work is to end where it could.
    """

    def __init__(self, work: Sequence[Work], threads: int = 1, stop: Callable[[], bool] = never):
        self.results: list[int | None] = [None] * len(work)
        self._threads, self._should_stop = threads, stop
        self._queue: PriorityQueue[Turn] = PriorityQueue()
        self._lock = threading.Lock()
        self._going_on, self._stopped = len(work), False
        for i, one in enumerate(work):
            self._queue.put(Turn(0, 0.0, i, one))
        if not work:
            self.stop()

    def take(self) -> None:
        """Take turns until all work has ended."""
        while not self._stopped and (turn := self._queue.get()).work is not None:
            try:
                self._go_on(turn, turn.work)
            except BaseException:
                self.stop()
                raise

    def stop(self) -> None:
        """Let threads end after the parts they are at."""
        self._stopped = True
        for _ in range(self._threads):
            self._queue.put(Turn(-1, 0.0, -1, None))

    def _go_on(self, turn: Turn, work: Work) -> None:
        next_turns: list[Turn] = []
        began = time.monotonic()
        try:
            place = next(work)
            turn.number += 1
            turn.seconds -= time.monotonic() - began
        except StopIteration as end:
            self.results[turn.i] = end.value
        except NoStart:
            pass
        else:
            if isinstance(place, Meeting):
                next_turns = place.join(turn)
            elif place is not None and self._should_stop():
                self.results[turn.i] = place
                work.close()
            else:
                next_turns = [turn]
        for one in next_turns:
            self._queue.put(one)
        with self._lock:
            self._going_on += len(next_turns) - 1
            if self._going_on == 0:  # those who wait for somebody who has ended wait in vain
                self.stop()
