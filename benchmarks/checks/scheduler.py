"""Hand work over between threads at the worst moments, many times, and count what gets lost.

    python -m benchmarks.checks.scheduler --trials 3000

The work is fake and takes no time, so that threads do little but hand over. In one half of the
trials they change places every microsecond; in the other a thread may fall asleep before any line
of the modules that hand work over. Every trial has to end as it does in one thread.
"""

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import random
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import starmap
from types import SimpleNamespace
from typing import Any

import numpy as np

from symbayes.samplers.run import scheduler, workers
from symbayes.samplers.run.scheduler import NoStart, Work
from symbayes.samplers.run.workers import Workers
from symbayes.samplers.search import library
from symbayes.samplers.search.library import LibraryCache

_SWITCH_INTERVAL = 1.0e-6
# Modules before whose lines a thread may fall asleep, how often it does, and for how long at most:
# long enough for all others to overtake it.
_HANDING_OVER = {module.__file__ for module in (library, scheduler, workers)}
_ASLEEP, _LONGEST_SLEEP = 0.03, 3.0e-4
# A trial takes milliseconds; one that takes this many seconds hangs, and the stacks are shown.
_HANGS = 60.0
_ROUNDS = 3


class Trouble(Exception):
    """An error on purpose, in the middle of some work."""


@dataclass(frozen=True)
class Order:
    """What a walker is to do."""

    parts: int
    times: int = 1
    asks: bool = False
    """Whether it asks for the library."""
    raises: type[Exception] | None = None


class Walker:
    """Stands for a ladder: a number that is changed by all that it goes through, in its order."""

    def __init__(self, value: int, problem: Any = None):
        self.value = value
        self.problem = problem
        self.at_work = False

    def carry_out(self, order: Order, libraries: LibraryCache, in_parts: bool = False) -> Work:
        """Do what is asked for; return how often, or raise what the order says."""
        for i in range(1, order.times + 1):
            for _ in range(order.parts):
                self._step(order, libraries)
                if in_parts:
                    yield None
            if i < order.times:
                yield i
        if order.raises is not None:
            raise order.raises
        return order.times

    def _step(self, order: Order, libraries: LibraryCache) -> None:
        assert not self.at_work, "two threads carry out the same work"
        self.at_work, before = True, self.value
        if order.asks:
            libraries.library_for(self.problem)
        time.sleep(0)  # others may go first
        self.value, self.at_work = (31 * before + order.times) % 1_000_003, False


def rounds(rng: random.Random, n_jobs: int) -> Any:
    """Walkers carry out orders, of which some have no start."""
    walkers, seen = _walkers(rng), []
    with Workers(n_jobs) as workers:
        for _ in range(_ROUNDS):
            orders = [_order(rng, raises=rng.choice([None, None, None, NoStart])) for _ in walkers]
            seen.append((workers.advance(walkers, orders), _told(walkers)))
    return seen


def several_rounds(rng: random.Random, n_jobs: int) -> Any:
    """Walkers carry out several orders without waiting for one another."""
    walkers, seen = _walkers(rng), []
    notes: list[list[tuple[int, int]]] = [[] for _ in walkers]
    with Workers(n_jobs) as workers:
        for _ in range(_ROUNDS):
            orders = [_order(rng) for _ in range(rng.randint(1, 4))]
            workers.advance_rounds(
                walkers, orders, lambda i, order: notes[i].append((walkers[i].value, order.parts))
            )
            seen.append(_told(walkers))
    return seen, notes


def lost_on_the_way(rng: random.Random, n_jobs: int) -> Any:
    """One walker has no start: it is said so, and nobody waits for it for good."""
    walkers = _walkers(rng, fewest=2)
    lost = rng.randrange(len(walkers))

    class Lost(Walker):
        def _step(self, order: Order, libraries: LibraryCache) -> None:
            raise NoStart

    walkers[lost] = Lost(0)
    orders = [_order(rng) for _ in range(2)]
    with Workers(n_jobs) as workers:
        return _raised(lambda: workers.advance_rounds(walkers, orders, lambda i, order: None))


def stopped(rng: random.Random, n_jobs: int) -> Any:
    """Work is to end where it could, at some moment; whatever was done of it is counted."""
    walkers, calls = _walkers(rng), rng.randint(0, 10)
    before = [walker.value for walker in walkers]
    asked = iter(range(calls))
    orders = [_order(rng) for _ in walkers]
    with Workers(n_jobs) as workers:
        made = workers.advance(walkers, orders, stop=lambda: next(asked, None) is None)
    for value, walker, order, times in zip(before, walkers, orders, made, strict=True):
        for _ in range(order.parts * (times or 0)):
            value = (31 * value + order.times) % 1_000_003
        assert times, "nothing is left of some work"
        assert walker.value == value, "work went on where it had ended"


def failing(rng: random.Random, n_jobs: int) -> Any:
    """An error in one thread reaches the caller, and the others end; then all is as before."""
    walkers = _walkers(rng)
    orders = [_order(rng) for _ in walkers]
    orders[rng.randrange(len(orders))] = _order(rng, raises=Trouble)
    with Workers(n_jobs) as workers:
        error = _raised(lambda: workers.advance(walkers, orders))
        others = _walkers(rng)
        return error, workers.advance(others, [_order(rng) for _ in others]), _told(others)


def failing_afterwards(rng: random.Random, n_jobs: int) -> Any:
    """An error in what comes after an order reaches the caller."""
    walkers = _walkers(rng)
    bad = rng.randrange(len(walkers))

    def after(i: int, order: Order) -> None:
        if i == bad:
            raise Trouble

    with Workers(n_jobs) as workers:
        return _raised(lambda: workers.advance_rounds(walkers, [_order(rng)], after))


def library_beside(rng: random.Random, n_jobs: int) -> Any:
    """A library is made beside other work that asks for it, and let go of while it is made."""
    problems = [_problem(k) for k in range(2)]
    seen = []
    with Workers(n_jobs) as workers:
        for _ in range(_ROUNDS):
            problem = rng.choice(problems)
            walkers = _walkers(rng, problem=problem)
            workers.prepare_library(problem)
            if rng.random() < 0.3:
                workers.forget_library()
            made = workers.advance(walkers, [_order(rng, asks=True) for _ in walkers])
            found = workers._libraries.library_for(problem)
            seen.append((made, _told(walkers), found.best_for(np.arange(5.0)).tobytes()))
    return seen


def each(rng: random.Random, n_jobs: int) -> Any:
    """A function is called once for each of several things; its errors reach the caller."""
    n, bad = rng.randint(1, 12), rng.randint(0, 20)
    called: list[int] = []
    with Workers(n_jobs) as workers:
        workers.each(lambda i, j: called.append(i + j), range(n), range(n))
        error = _raised(lambda: workers.each(lambda i: i // (i - bad), range(n)))
    return sorted(called), error


KINDS = (
    rounds, several_rounds, lost_on_the_way, stopped, failing, failing_afterwards, library_beside,
    each,
)  # fmt: skip


def trial(kind: Callable[[random.Random, int], Any], seed: int) -> str:
    """Return what went wrong in one trial; nothing if it ended as it does in one thread."""
    n_jobs = 2 + seed % 3
    expected = kind(random.Random(seed), 1)
    faulthandler.dump_traceback_later(_HANGS, exit=True, file=sys.__stderr__)
    try:
        with quick_changes() if seed % 2 else sleepy_lines(seed):
            found = kind(random.Random(seed), n_jobs)
    except Exception as error:
        return f"{kind.__name__}: {type(error).__name__} {error}".rstrip()
    finally:
        faulthandler.cancel_dump_traceback_later()
    return "" if found == expected else f"{kind.__name__}: another result than in one thread"


@contextlib.contextmanager
def quick_changes() -> Iterator[None]:
    """Let threads change places all the time."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(_SWITCH_INTERVAL)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


@contextlib.contextmanager
def sleepy_lines(seed: int) -> Iterator[None]:
    """Let threads that begin meanwhile, and this one, fall asleep before some lines."""
    rng = random.Random(seed)

    def on_line(frame: Any, event: str, argument: Any) -> Any:
        if event == "line" and rng.random() < _ASLEEP:
            time.sleep(_LONGEST_SLEEP * rng.random())
        return on_line

    def on_call(frame: Any, event: str, argument: Any) -> Any:
        return on_line if frame.f_code.co_filename in _HANDING_OVER else None

    before, of_threads = sys.gettrace(), threading.gettrace()
    threading.settrace(on_call)
    sys.settrace(on_call)
    try:
        yield
    finally:
        sys.settrace(before)
        threading.settrace(of_threads)  # type: ignore[arg-type]


def _walkers(rng: random.Random, fewest: int = 1, problem: Any = None) -> list[Walker]:
    return [Walker(i, problem) for i in range(rng.randint(fewest, 9))]


def _order(rng: random.Random, **options: Any) -> Order:
    return Order(rng.randint(1, 3), rng.randint(1, 3), **options)


def _told(walkers: list[Walker]) -> list[int]:
    """Return where walkers are, who all have to rest by now, as where progress is told."""
    assert not any(walker.at_work for walker in walkers), "a thread is still at work"
    return [walker.value for walker in walkers]


def _problem(k: int) -> Any:
    """Return what a library needs to know, of a table of five rows and two columns."""
    data = SimpleNamespace(x=np.arange(10.0) ** (1 + k), y=np.zeros(5), root_weight=np.ones(5))
    return SimpleNamespace(
        data=data, operator_weights={"+": 1.0}, feature_weights=np.ones(2), most_terms=1
    )


def _raised(call: Callable[[], object]) -> str:
    """Return the kind of error on purpose that a call ends with."""
    try:
        call()
    except (NoStart, Trouble, ZeroDivisionError) as error:
        return type(error).__name__
    return ""


def main() -> None:
    """Make some trials, and say how many of them lost something."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--trials", type=int, default=3000)
    trials = parser.parse_args().trials
    began = time.monotonic()
    seeds = ((KINDS[i % len(KINDS)], i // len(KINDS)) for i in range(trials))
    wrong = Counter(filter(None, starmap(trial, seeds)))
    seconds = time.monotonic() - began
    print(f"{wrong.total()} of {trials} trials lost work, in {seconds:.0f} s")
    for what, times in wrong.most_common():
        print(f"{times:6d}  {what}")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
