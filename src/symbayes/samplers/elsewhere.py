"""Rounds that are carried out in other processes: what is sent, and what happens there.

A task is a pure function of what is sent, so that one which got lost can be done again, anywhere.
The table is sent once to each process; with every round go only the small states of the ladders.
"""

from __future__ import annotations

import contextlib
import heapq
import math
import pickle
import signal
import threading
import time
import uuid
import weakref
from abc import abstractmethod
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import ThreadpoolController

from ..kernels.likelihood import Data
from ..problem import Problem
from .library import Shelf
from .running import Traveller, Workers, carry_out

# Problems that a process keeps: those of a search, besides the table itself.
_MOST_KEPT = 16
# A task that takes so many times as long as any other of its problem, and so many seconds at least,
# counts as hanging.
_PATIENCE, _LEAST_PATIENCE = 20.0, 120.0
# Less than any task takes.
_NO_TIME = 1.0e-9


class ClusterError(RuntimeError):
    """The processes that a fit was to run on are lost."""


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


class Elsewhere(Workers):
    """Carry out rounds in other processes; between them everything is where `fit` was called."""

    def __init__(self) -> None:
        super().__init__(1)
        self._run = uuid.uuid4().hex
        self._names: dict[int, tuple[Name, Problem]] = {}
        self._count = 0
        self._seconds: dict[Name, float] = {}
        self._last: list[float] = []

    def advance(self, ladders: Sequence[Traveller], orders: Sequence[Any]) -> list[int | None]:
        """Let each ladder carry out its order; return the numbers of draws, None for no start."""
        tasks = [
            Task(self._name(ladder.problem), type(ladder), ladder.state(), order)
            for ladder, order in zip(ladders, orders, strict=True)
        ]
        n = min(len(tasks), max(1, self._at_a_time()))
        if len(self._last) != len(tasks):
            self._last = [1.0] * len(tasks)
        shares = shared_out(self._last, n)
        answers = self._carry_out_all([_bundle([tasks[i] for i in share]) for share in shares])
        results: list[Any] = [None] * len(tasks)
        for share, answer in zip(shares, answers, strict=True):
            for i, result in zip(share, pickle.loads(answer), strict=True):
                results[i] = result
        # The next round of a ladder will take about as long as this one.
        self._last = [result.seconds for result in results]
        for ladder, result in zip(ladders, results, strict=True):
            ladder.restore(result.state)
            ladder.receive(result.kept)
        self._forget_all_but({task.name for task in tasks})
        return [result.done for result in results]

    @abstractmethod
    def _at_a_time(self) -> int:
        """Return how many bundles can be worked on at the same time."""

    @abstractmethod
    def _carry_out_all(self, bundles: list[Bundle]) -> list[bytes]:
        """Return what `work` answers to the bundles, in their order."""

    @abstractmethod
    def _forget(self, name: Name) -> None:
        """Let go of what was done to send a problem."""

    def _name(self, problem: Problem) -> Name:
        if id(problem) not in self._names:
            self._count += 1
            # The problem itself is kept as well, so that its id is not given to another.
            self._names[id(problem)] = (Name(self._run, self._count), problem)
        return self._names[id(problem)][0]

    def _problem(self, name: Name) -> Problem:
        return next(problem for known, problem in self._names.values() if known == name)

    def _forget_all_but(self, used: set[Name]) -> None:
        for key, (name, _) in list(self._names.items()):
            if name not in used:
                del self._names[key]
                self._seconds.pop(name, None)
                self._forget(name)

    def _note_seconds(self, bundle: Bundle, seconds: float) -> None:
        for name in bundle.names:
            self._seconds[name] = max(seconds, self._seconds.get(name, 0.0))

    def _patience(self, bundles: Iterable[Bundle]) -> float:
        """Return how long to wait for bundles; without end if nobody knows their problems yet."""
        names = {name for bundle in bundles for name in bundle.names}
        longest = max(self._seconds.get(name, math.inf) for name in names)
        return max(_LEAST_PATIENCE, _PATIENCE * longest)


def shared_out(seconds: Sequence[float], n: int) -> list[list[int]]:
    """Return which tasks make up each of n bundles that take about equally long, none empty."""
    shares: list[list[int]] = [[] for _ in range(n)]
    loads = [(0.0, k) for k in range(n)]
    for i in sorted(range(len(seconds)), key=lambda i: -seconds[i]):
        load, k = heapq.heappop(loads)
        shares[k].append(i)
        heapq.heappush(loads, (load + max(seconds[i], _NO_TIME), k))
    return shares


def _bundle(tasks: list[Task]) -> Bundle:
    return Bundle(tuple({task.name: None for task in tasks}), pickle.dumps(tasks))


# In the other process.


@dataclass
class _Kept:
    """A problem, with ladders that are not at work."""

    problem: Problem
    idle: list[Traveller] = field(default_factory=list)


class _Bench:
    """What a process keeps from task to task, for one run at a time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._run = ""
        self._kept: OrderedDict[Name, _Kept] = OrderedDict()
        self.shelf = Shelf()

    def get(self, name: Name) -> _Kept | None:
        with self._lock:
            if name in self._kept:
                self._kept.move_to_end(name)
            return self._kept.get(name)

    def put(self, name: Name, problem: Problem) -> None:
        with self._lock:
            if name.run != self._run:
                self._run, self.shelf = name.run, Shelf()
                self._kept.clear()
            if name not in self._kept:
                self._kept[name] = _Kept(_writeable(problem))
            while len(self._kept) > _MOST_KEPT:
                self._kept.popitem(last=False)

    def drop(self, name: Name) -> None:
        with self._lock:
            self._kept.pop(name, None)


_bench = _Bench()
_controllers: list[ThreadpoolController] = []


def unknown(names: Iterable[Name]) -> list[Name]:
    """Return the problems that this process does not have."""
    return [name for name in names if _bench.get(name) is None]


def work(bundle: Bundle, problems: Mapping[Name, Problem]) -> bytes:
    """Carry out tasks in this process; `problems` are those that it may not have yet."""
    for name, problem in problems.items():
        _bench.put(name, problem)
    with _undisturbed():
        return pickle.dumps([_work(task) for task in pickle.loads(bundle.tasks)])


def work_while_held(bundle: Bundle, problems: list[Problem]) -> bytes:
    """Carry out tasks; keep their problems only as long as somebody else in this process does."""
    given = dict(zip(bundle.names, problems, strict=True))
    for name in unknown(bundle.names):
        weakref.finalize(given[name], _bench.drop, name).atexit = False
    return work(bundle, given)


def _work(task: Task) -> Result:
    kept = _bench.get(task.name)
    assert kept is not None
    try:
        ladder = kept.idle.pop()
    except IndexError:
        ladder = task.kind.blank(kept.problem, task.state)
    began = time.thread_time()
    ladder.restore(task.state)
    done = carry_out(ladder, task.order, _bench.shelf)
    draws = ladder.kept(task.order, done or 0)
    result = Result(done, ladder.state(), draws, time.thread_time() - began)
    kept.idle.append(ladder)
    return result


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
