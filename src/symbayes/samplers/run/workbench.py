"""What happens in another process: rounds of ladders that were sent there.

A task is a pure function of what is sent, so that one which got lost can be done again, anywhere.
The table is sent once to each process; with every round go only the small states of the ladders.
"""

from __future__ import annotations

import contextlib
import pickle
import signal
import threading
import time
import weakref
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import ThreadpoolController

from ...inputs.problem import Problem
from ...kernels.likelihood import Data
from ..search.library import LibraryCache
from .running import Traveller, carry_out

# Problems that a process keeps: those of a search, besides the table itself.
_MOST_KEPT = 16


class Name(NamedTuple):
    """The name of a problem, in all processes."""

    run: str
    number: int


class Task(NamedTuple):
    """Let a ladder in this state carry out an order."""

    name: Name
    kind: type[Traveller]
    state: Any
    order: Any


class Result(NamedTuple):
    """What became of a task."""

    done: int | None
    """The number of draws; None where there was no start."""
    state: Any
    kept: tuple[np.ndarray, ...]
    seconds: float


class Bundle(NamedTuple):
    """Tasks that one worker does one after the other, packed: fewer and larger parcels are less
    work for those who carry them.
    """

    names: tuple[Name, ...]
    """The problems that are needed, each once."""
    tasks: bytes
    rounds: int
    """How often each task is done, every time from where the one before has led."""


@dataclass
class _Kept:
    """A problem, with ladders that are not at work."""

    problem: Problem
    idle: list[Traveller] = field(default_factory=list)


class _Bench:
    """What a process keeps from task to task, for one run at a time."""

    def __init__(self) -> None:
        # Problems may be dropped at any moment, also by a thread that has it.
        self._lock = threading.RLock()
        self._run = ""
        self._kept: OrderedDict[Name, _Kept] = OrderedDict()
        self.shelf = LibraryCache()

    def has(self, name: Name) -> bool:
        return name in self._kept

    def get(self, name: Name) -> _Kept:
        with self._lock:
            self._kept.move_to_end(name)
            return self._kept[name]

    def put(self, name: Name, problem: Problem, while_held: bool) -> _Kept:
        """Keep a problem if it is not there yet, perhaps only until nobody else holds it."""
        with self._lock:
            if name.run != self._run:
                self._run, self.shelf = name.run, LibraryCache()
                self._kept.clear()
            if name not in self._kept:
                if while_held:
                    weakref.finalize(problem, self._drop, name).atexit = False
                self._kept[name] = _Kept(_writeable(problem))
            kept = self._kept[name]
            while len(self._kept) > _MOST_KEPT:
                self._kept.popitem(last=False)
            return kept

    def _drop(self, name: Name) -> None:
        with self._lock:
            self._kept.pop(name, None)


_bench = _Bench()
_controllers: list[ThreadpoolController] = []


def unknown(names: Iterable[Name]) -> list[Name]:
    """Return the problems that this process does not have."""
    return [name for name in names if not _bench.has(name)]


def work(bundle: Bundle, problems: Mapping[Name, Problem], while_held: bool = False) -> bytes:
    """Carry out tasks in this process; `problems` are those that it may not have yet.

    They are kept for later bundles, or only as long as somebody else in this process holds them.
    """
    # Held here as well: they may be dropped while this runs, or make room for others.
    kept = {name: _bench.get(name) for name in bundle.names if name not in problems}
    kept |= {name: _bench.put(name, problems[name], while_held) for name in problems}
    with _undisturbed():
        tasks = pickle.loads(bundle.tasks)
        return pickle.dumps([_work(task, kept[task.name], bundle.rounds) for task in tasks])


def _work(task: Task, kept: _Kept, rounds: int) -> list[Result]:
    try:
        ladder = kept.idle.pop()
    except IndexError:
        ladder = task.kind.blank(kept.problem, task.state)
    ladder.restore(task.state)
    results: list[Result] = []
    while len(results) < rounds and not (results and results[-1].done is None):
        began = time.thread_time()
        done = carry_out(ladder, task.order, _bench.shelf)
        draws = ladder.kept(task.order, done or 0)
        results.append(Result(done, ladder.state(), draws, time.thread_time() - began))
    kept.idle.append(ladder)
    return results


@contextlib.contextmanager
def _undisturbed() -> Iterator[None]:
    """Keep Ctrl-C for the process that `fit` was called in, and linear algebra to one thread."""
    if not _controllers:
        _controllers.append(ThreadpoolController())
    in_main = threading.current_thread() is threading.main_thread()
    previous = signal.signal(signal.SIGINT, signal.SIG_IGN) if in_main else None
    try:
        with _controllers[0].limit(limits=1, user_api="blas"):
            yield
    finally:
        if in_main:
            signal.signal(signal.SIGINT, previous or signal.SIG_DFL)


def _writeable(problem: Problem) -> Problem:
    """Return a problem with arrays as the kernels were compiled for: plain, and writeable."""
    part = None if problem.part is None else _plain(problem.part)
    return replace(problem, data=_plain(problem.data), part=part)


def _plain(data: Data) -> Data:
    def plain(value: Any) -> Any:
        if not isinstance(value, np.ndarray):
            return value
        return np.require(np.asarray(value), None, ["C", "A", "W"])

    return Data(*map(plain, data))
