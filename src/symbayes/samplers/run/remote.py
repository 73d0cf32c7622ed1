"""Orders that are carried out in other processes: what is sent, and what is done with it there.

What comes back depends on nothing but what is sent, so that a request which got lost can be done
again, anywhere. The problem with its table is sent once to each process; with every round go only
the small states of the ladders. Between two rounds everything is where `fit` was called.
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
from abc import ABC, abstractmethod
from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import ThreadpoolController

from ...inputs.problem import Problem
from ...kernels.chain import Data
from ...kernels.teleport import Catalogue
from ..ladder import Chains, same_state
from ..search.library import LibraryCache
from ..trace import LadderState
from .scheduler import carry_out

# A batch that takes this many times as long as any other of its problem, and at least this many
# seconds, counts as hanging.
_PATIENCE, _LEAST_PATIENCE = 20.0, 120.0
# Less, and more, than any request takes.
_NO_TIME, _LONG = 1.0e-9, 1.0e9
# Short rounds are done several at once, for up to this many seconds, so that the way there and back
# is worth it. They are in vain where the caller changes something in between.
_SECONDS_AHEAD = 0.25
# Problems that a process keeps: those of a search, besides the table itself.
_MOST_KEPT = 16


class ClusterError(RuntimeError):
    """The processes that a fit was to run on are lost."""


class ProblemKey(NamedTuple):
    """What a problem is known by, in all processes."""

    run: str
    number: int
    n_rows: int


Problems = Mapping[ProblemKey, Problem]


class RoundRequest(NamedTuple):
    """Let a ladder in this state carry out an order."""

    key: ProblemKey
    listed: ProblemKey
    """What the list of the problem is known by; the same as `key` where it has none."""
    kind: type[Chains]
    state: LadderState
    order: Any


class RoundResult(NamedTuple):
    """What became of a request."""

    done: int | None
    """The number of draws; None where there was no start."""
    state: LadderState
    draws: tuple[np.ndarray, ...]
    seconds: float


class Batch(NamedTuple):
    """Requests for one process, one after the other; fewer and larger messages cost less."""

    keys: tuple[ProblemKey, ...]
    """The problems that are needed, each once."""
    requests: bytes
    """Pickled."""
    rounds: int
    """How often each request is done, every time from where the one before has led."""


# In the process of the caller.


class Executor(ABC):
    """Other processes, to which the states of ladders are sent to carry out orders."""

    def __init__(self) -> None:
        self._run_id = uuid.uuid4().hex
        # By the id of a problem, which is kept so that its id is not given to another.
        self._sent: dict[int, tuple[ProblemKey, Problem]] = {}
        self._known: dict[int, Problem] = {}
        self._count = 0
        # The longest that a batch of a problem has taken, and what each request took at last.
        self._seconds: dict[ProblemKey, float] = {}
        self._last_seconds: list[float] = []
        # Rounds that were done ahead, and the requests that they are the answers to.
        self._ahead: deque[list[RoundResult]] = deque()
        self._expected: list[RoundRequest] = []

    @abstractmethod
    def slots(self) -> int:
        """Return how many batches can be carried out at the same time."""

    @abstractmethod
    def run(self, batches: Sequence[Batch], problems: Problems) -> list[bytes]:
        """Return what `run_batch` answers to each batch; what is lost on the way is done again."""

    @abstractmethod
    def close(self) -> None:
        """Let go of everything."""

    def forget(self, key: ProblemKey) -> None:
        """Let go of what was done to send a problem."""
        self._seconds.pop(key, None)

    def advance(
        self, ladders: Sequence[Chains], orders: Sequence[Any], again: int
    ) -> list[int | None]:
        """Do what `Workers.advance` promises."""
        requests = [
            RoundRequest(*self._keys(ladder.problem), type(ladder), ladder.state(), order)
            for ladder, order in zip(ladders, orders, strict=True)
        ]
        foreseen = len(requests) == len(self._expected)
        if not (self._ahead and foreseen and all(map(_is_same, requests, self._expected))):
            self._ahead = self._carry_out(requests, again)
        results = self._ahead.popleft()
        self._expected = []
        for ladder, request, result in zip(ladders, requests, results, strict=True):
            ladder.restore(result.state)
            ladder.receive_draws(request.order, result.done or 0, result.draws)
            self._expected.append(request._replace(state=result.state))
        used = {key for request in requests for key in (request.key, request.listed)}
        for i, (key, _) in list(self._sent.items()):
            if key not in used:
                del self._sent[i], self._known[i]
                self.forget(key)
        return [result.done for result in results]

    def _keys(self, problem: Problem) -> tuple[ProblemKey, ProblemKey]:
        """Return the keys of a problem and of its list, which travels without the table."""
        plain = problem.plain or problem
        return self._key(plain, plain), self._key(problem, _without_table(problem))

    def _key(self, problem: Problem, sent: Problem) -> ProblemKey:
        if id(problem) not in self._sent:
            self._count += 1
            key = ProblemKey(self._run_id, self._count, len(problem.data.y))
            self._sent[id(problem)], self._known[id(problem)] = (key, sent), problem
        return self._sent[id(problem)][0]

    def _carry_out(self, requests: list[RoundRequest], again: int) -> deque[list[RoundResult]]:
        """Return the results of all requests, and of rounds after them as far as they were done."""
        if len(self._last_seconds) != len(requests):
            self._last_seconds = [_LONG] * len(requests)
        seconds = self._last_seconds
        groups = share_out(seconds, min(len(requests), max(1, self.slots())))
        longest = max(sum(seconds[i] for i in group) for group in groups)
        rounds = 1 + min(again, int(_SECONDS_AHEAD / max(longest, _NO_TIME)))
        batches = []
        for group in groups:
            some = [requests[i] for i in group]
            keys = tuple({key: None for one in some for key in (one.key, one.listed)})
            batches.append(Batch(keys, pickle.dumps(some), rounds))
        results: list[list[RoundResult]] = [[] for _ in requests]
        answers = self.run(batches, dict(self._sent.values()))
        for group, answer in zip(groups, answers, strict=True):
            for i, result in zip(group, pickle.loads(answer), strict=True):
                results[i] = result
        # The next round of a ladder will take about as long as this one.
        self._last_seconds = [sum(one.seconds for one in every) / len(every) for every in results]
        return deque(map(list, zip(*results, strict=False)))

    def _note_seconds(self, batch: Batch, seconds: float) -> None:
        for key in batch.keys:
            self._seconds[key] = max(seconds, self._seconds.get(key, 0.0))

    def _patience(self, batches: Iterable[Batch]) -> float:
        """Return how long to wait for batches; without end as long as nothing has come back."""
        longest = 0.0
        for key in {key for batch in batches for key in batch.keys}:
            # Of a new problem, others and their numbers of rows tell.
            known = (s * max(1.0, key.n_rows / one.n_rows) for one, s in self._seconds.items())
            longest = max(longest, self._seconds.get(key) or max(known, default=math.inf))
        return max(_LEAST_PATIENCE, _PATIENCE * longest)


def share_out(seconds: Sequence[float], n: int) -> list[list[int]]:
    """Return which requests make up each of n batches that take about equally long, none empty."""
    groups: list[list[int]] = [[] for _ in range(n)]
    loads = [(0.0, k) for k in range(n)]
    for i in sorted(range(len(seconds)), key=lambda i: -seconds[i]):
        load, k = heapq.heappop(loads)
        groups[k].append(i)
        heapq.heappush(loads, (load + max(seconds[i], _NO_TIME), k))
    return groups


def _without_table(problem: Problem) -> Problem:
    """Return what is sent of a problem with a list: the list; of one without, all of it."""
    if problem.plain is None:
        return problem
    none = np.empty(0)
    data = problem.data._replace(x=none, y=none, root_weight=none, known=none)
    return replace(problem, data=data, part=None, plain=None)


def _is_same(one: RoundRequest, two: RoundRequest) -> bool:
    same = one[:3] == two[:3] and one.order == two.order
    return same and same_state(one.state, two.state)


# In another process.


class _Kept(NamedTuple):
    """A problem, with ladders that are not at work."""

    problem: Problem
    idle: list[Chains]


class _Memory:
    """What a process keeps from batch to batch, for one run at a time."""

    def __init__(self) -> None:
        # Problems may be dropped at any moment, also by a thread that has it.
        self._lock = threading.RLock()
        self._run = ""
        self._kept: OrderedDict[ProblemKey, _Kept] = OrderedDict()
        self.libraries = LibraryCache()

    def __contains__(self, key: ProblemKey) -> bool:
        return key in self._kept

    def get(self, key: ProblemKey) -> _Kept:
        with self._lock:
            self._kept.move_to_end(key)
            return self._kept[key]

    def put(self, key: ProblemKey, problem: Problem, while_held: bool) -> _Kept:
        """Keep a problem if it is not there yet, perhaps only until nobody else holds it."""
        with self._lock:
            if key.run != self._run:
                self._run, self.libraries = key.run, LibraryCache()
                self._kept.clear()
            if key not in self._kept:
                if while_held:
                    weakref.finalize(problem, self._drop, key).atexit = False
                self._kept[key] = _Kept(_writeable(problem), [])
            kept = self._kept[key]
            while len(self._kept) > _MOST_KEPT:
                self._kept.popitem(last=False)
            return kept

    def _drop(self, key: ProblemKey) -> None:
        with self._lock:
            self._kept.pop(key, None)


_memory = _Memory()


def unknown(keys: Iterable[ProblemKey]) -> list[ProblemKey]:
    """Return the problems that this process does not have."""
    return [key for key in keys if key not in _memory]


def run_batch(batch: Batch, problems: Problems, while_held: bool = False) -> bytes:
    """Carry out requests in this process; `problems` are those that it may not have yet.

    They are kept for later batches, or only as long as somebody else in this process holds them.
    """
    # Held here as well: they may be dropped while this runs, or make room for others.
    kept = {key: _memory.get(key) for key in batch.keys if key not in problems}
    kept |= {key: _memory.put(key, problems[key], while_held) for key in problems}
    with _undisturbed():
        requests = pickle.loads(batch.requests)
        return pickle.dumps(
            [_run_request(one, kept[one.key], kept[one.listed], batch.rounds) for one in requests]
        )


def _run_request(
    request: RoundRequest, kept: _Kept, listed: _Kept, rounds: int
) -> list[RoundResult]:
    try:
        ladder = listed.idle.pop()
    except IndexError:
        problem = replace(kept.problem, catalogue=listed.problem.catalogue)
        ladder = request.kind.blank(problem, request.state)
    ladder.restore(request.state)
    results: list[RoundResult] = []
    while len(results) < rounds and not (results and results[-1].done is None):
        began = time.thread_time()
        done = carry_out(ladder, request.order, _memory.libraries)
        draws = ladder.packed_draws(request.order, done or 0)
        results.append(RoundResult(done, ladder.state(), draws, time.thread_time() - began))
    listed.idle.append(ladder)
    return results


@contextlib.contextmanager
def _undisturbed() -> Iterator[None]:
    """Keep Ctrl-C for the process that `fit` was called in, and linear algebra to one thread."""
    in_main = threading.current_thread() is threading.main_thread()
    previous = signal.signal(signal.SIGINT, signal.SIG_IGN) if in_main else None
    try:
        with _threadpools().limit(limits=1, user_api="blas"):
            yield
    finally:
        if in_main:
            signal.signal(signal.SIGINT, previous or signal.SIG_DFL)


_threadpools = cache(ThreadpoolController)  # finding them takes a while


def _writeable(problem: Problem) -> Problem:
    """Return a problem with arrays as the kernels were compiled for: plain, and writeable."""

    def plain(value: Any) -> Any:
        is_array = isinstance(value, np.ndarray)
        return np.require(np.asarray(value), None, ["C", "A", "W"]) if is_array else value

    part = None if problem.part is None else Data(*map(plain, problem.part))
    listed = None if problem.catalogue is None else Catalogue(*map(plain, problem.catalogue))
    data = Data(*map(plain, problem.data))
    return replace(problem, data=data, part=part, catalogue=listed)
