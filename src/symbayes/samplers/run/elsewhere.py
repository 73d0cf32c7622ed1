"""Rounds that are carried out in other processes: what is sent to whom, and what comes back."""

from __future__ import annotations

import heapq
import math
import pickle
import uuid
from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ...inputs.problem import Problem
from ..ladder_state import same_state
from .running import Traveller, Workers
from .turns import never
from .workbench import Bundle, Name, Result, Task

# A task that takes so many times as long as any other of its problem, and so many seconds at least,
# counts as hanging.
_PATIENCE, _LEAST_PATIENCE = 20.0, 120.0
# Less, and more, than any task takes.
_NO_TIME, _LONG = 1.0e-9, 1.0e9
# Where rounds are short, some are done at once, so that the way there and back is worth it. They
# are in vain where the caller changes something in between.
_SECONDS_A_BUNDLE = 0.25


class ClusterError(RuntimeError):
    """The processes that a fit was to run on are lost."""


class Elsewhere(Workers):
    """Carry out rounds in other processes; between them everything is where `fit` was called."""

    def __init__(self) -> None:
        super().__init__(1)
        self._run = uuid.uuid4().hex
        self._names: dict[int, tuple[Name, Problem]] = {}
        self._count = 0
        self._seconds: dict[Name, float] = {}
        self._last: list[float] = []
        # Rounds that were done ahead, and what is to be asked for if they are wanted.
        self._ahead: deque[list[Result]] = deque()
        self._foreseen: list[Task] = []

    def advance(
        self,
        ladders: Sequence[Traveller],
        orders: Sequence[Any],
        again: int = 0,
        stop: Callable[[], bool] = never,
    ) -> list[int | None]:
        """Let each ladder carry out its order; return the numbers of draws, None for no start.

        Nobody tells other processes to stop.
        """
        tasks = [
            Task(self._name(ladder.problem), type(ladder), ladder.state(), order)
            for ladder, order in zip(ladders, orders, strict=True)
        ]
        if not self._is_foreseen(tasks):
            self._ahead = self._carry_out(tasks, again)
        results = self._ahead.popleft()
        self._foreseen = [
            task._replace(state=result.state) for task, result in zip(tasks, results, strict=True)
        ]
        for ladder, result in zip(ladders, results, strict=True):
            ladder.restore(result.state)
            ladder.receive(result.kept)
        self._forget_all_but({task.name for task in tasks})
        return [result.done for result in results]

    def _is_foreseen(self, tasks: list[Task]) -> bool:
        """Return whether the next round was done ahead, from just these states."""
        return (
            len(self._ahead) > 0
            and len(tasks) == len(self._foreseen)
            and all(map(_same_task, tasks, self._foreseen))
        )

    def _carry_out(self, tasks: list[Task], again: int) -> deque[list[Result]]:
        """Return what became of all tasks, and of the same tasks again as far as that was done."""
        n = min(len(tasks), max(1, self._at_a_time()))
        if len(self._last) != len(tasks):
            self._last = [_LONG] * len(tasks)
        shares = shared_out(self._last, n)
        longest = max(sum(self._last[i] for i in share) for share in shares)
        rounds = 1 + min(again, int(_SECONDS_A_BUNDLE / max(longest, _NO_TIME)))
        bundles = [_bundle([tasks[i] for i in share], rounds) for share in shares]
        results: list[list[Result]] = [[] for _ in tasks]
        for share, answer in zip(shares, self._carry_out_all(bundles), strict=True):
            for i, result in zip(share, pickle.loads(answer), strict=True):
                results[i] = result
        # The next round of a ladder will take about as long as this one.
        self._last = [sum(one.seconds for one in every) / len(every) for every in results]
        return deque(list(one) for one in zip(*results, strict=False))

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
        """Return how long to wait for bundles; without end as long as nothing has come back."""
        names = {name for bundle in bundles for name in bundle.names}
        longest = max(self._seconds.get(name) or self._estimate(name) for name in names)
        return max(_LEAST_PATIENCE, _PATIENCE * longest)

    def _estimate(self, name: Name) -> float:
        """Return seconds for a problem that is new, from others and their numbers of rows."""
        n = self._rows(name)
        known = [s * max(1.0, n / self._rows(other)) for other, s in self._seconds.items()]
        return max(known, default=math.inf)

    def _rows(self, name: Name) -> int:
        return len(self._problem(name).data.y)


def shared_out(seconds: Sequence[float], n: int) -> list[list[int]]:
    """Return which tasks make up each of n bundles that take about equally long, none empty."""
    shares: list[list[int]] = [[] for _ in range(n)]
    loads = [(0.0, k) for k in range(n)]
    for i in sorted(range(len(seconds)), key=lambda i: -seconds[i]):
        load, k = heapq.heappop(loads)
        shares[k].append(i)
        heapq.heappush(loads, (load + max(seconds[i], _NO_TIME), k))
    return shares


def _bundle(tasks: list[Task], rounds: int) -> Bundle:
    return Bundle(tuple({task.name: None for task in tasks}), pickle.dumps(tasks), rounds)


def _same_task(first: Task, second: Task) -> bool:
    same = first._replace(state=None) == second._replace(state=None)
    return same and same_state(first.state, second.state)
