"""Rounds on a Dask cluster.

Dask does again what was on a worker that died, and brings the table to workers that join. What it
does not do is done here: a worker that hangs is left out, a table that is lost with all workers
that had it is sent again, and a cluster that is gone is an error instead of a wait without end.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import CancelledError
from typing import Any

from distributed import Client, Future, KilledWorker, as_completed
from distributed.comm import CommClosedError

from ...inputs.problem import Problem
from .elsewhere import ClusterError, Elsewhere
from .workbench import Bundle, Name, work

# Seconds between two looks at the cluster while nothing comes back.
_SECONDS_A_LOOK = 1.0
# How long a cluster may be without workers, or a client without its scheduler.
_SECONDS_WITHOUT = 60.0
# Sending a table may take so long. Dask itself gives up on silent workers after five minutes.
_SECONDS_TO_SEND = 900.0
# How often in one round the cluster may lose what it was given.
_MOST_LOSSES = 5
_LOST = (CancelledError, CommClosedError, TimeoutError, OSError)


class DaskWorkers(Elsewhere):
    """Carry out rounds on the cluster of a client."""

    def __init__(self, client: Client):
        super().__init__()
        self._client = client
        self._tables: dict[Name, Future] = {}
        self._copies: dict[Name, dict[str, Future]] = {}
        self._done: list[Future] = []
        self._rounds = 0
        self._hanging: set[str] = set()
        self._counted = -math.inf
        self._threads: list[str] = []

    def __exit__(self, *exception: object) -> None:
        self._let_go()

    def _let_go(self) -> None:
        """Forget all futures: workers let go of what nobody has a future of."""
        self._tables.clear()
        self._copies.clear()
        self._done.clear()

    def _at_a_time(self) -> int:
        if time.monotonic() > self._counted + _SECONDS_A_LOOK:
            self._count_threads()
        return len(self._where())

    def _count_threads(self) -> None:
        self._threads = _in_turn(self._client.nthreads())
        self._counted = time.monotonic()

    def _where(self) -> list[str]:
        """Return the address of each thread that can be used, those of a worker far apart."""
        return [address for address in self._threads if address not in self._hanging]

    def _carry_out_all(self, bundles: list[Bundle]) -> list[bytes]:
        answers: dict[int, bytes] = {}
        losses = 0
        while len(answers) < len(bundles):
            left = {i: bundle for i, bundle in enumerate(bundles) if i not in answers}
            try:
                answers |= self._attempt(left)
            except KilledWorker as error:
                raise ClusterError(
                    "several Dask workers died one after the other while they ran the same chains "
                    "(often too little memory); give workers more memory or fewer threads"
                ) from error
            except _LOST as error:
                losses += 1
                if losses == _MOST_LOSSES:
                    raise ClusterError(
                        f"the Dask cluster lost its work {losses} times in the same round "
                        f"({type(error).__name__}); look at the logs of its workers, which may "
                        "have too little memory, and of its scheduler"
                    ) from error
                self._recover()
        return [answers[i] for i in range(len(bundles))]

    def _attempt(self, bundles: Mapping[int, Bundle]) -> dict[int, bytes]:
        """Return the answers to the bundles that ended; the others are with workers that hang."""
        began = last_seen = time.monotonic()
        waiting = {future: i for i, future in self._submit(bundles).items()}
        answers: dict[int, bytes] = {}
        try:
            while waiting:
                try:
                    for future, answer in self._completed(waiting):
                        answers[waiting[future]] = _checked(future, answer)
                        self._note_seconds(bundles[waiting.pop(future)], time.monotonic() - began)
                        self._done.append(future)
                except TimeoutError:  # time for a look at the cluster
                    if not waiting:
                        break
                    now = time.monotonic()
                    last_seen = now if self._workers() else last_seen
                    self._require_workers(now - last_seen)
                    if now - began > self._patience(bundles[i] for i in waiting.values()):
                        self._leave_out(list(waiting))
                        break
            return answers
        finally:
            if waiting:
                with contextlib.suppress(*_LOST):
                    self._client.cancel(list(waiting))

    def _completed(self, futures: Iterable[Future]) -> Iterator[tuple[Future, Any]]:
        return as_completed(
            list(futures), self._client.loop, with_results=True, raise_errors=False,
            timeout=_SECONDS_A_LOOK,
        )  # fmt: skip

    def _submit(self, bundles: Mapping[int, Bundle]) -> dict[int, Future]:
        where = self._where()
        if self._hanging and not where:
            raise ClusterError(
                "all workers of the Dask cluster hang; look at their logs and start others"
            )
        names = [name for bundle in bundles.values() for name in bundle.names]
        for name in set(names) - set(self._tables):
            self._tables[name] = self._send(name, names.count(name) > 1)
        tables = [
            [self._copy(name, where[i % len(where)]) if where else self._tables[name]
             for name in bundle.names]
            for i, bundle in bundles.items()
        ]  # fmt: skip
        # Names that make a group of these tasks alone: in a large group, Dask takes no notice of
        # who has the tables.
        self._rounds += 1
        keys = [(f"symbayes-{self._run}-{self._rounds}", i) for i in bundles]
        futures = self._client.map(_work, list(bundles.values()), tables, key=keys)
        # Only now, since Dask waits a moment between two messages to the scheduler: the one that
        # these are not needed any more would go first.
        self._done = []
        return dict(zip(bundles, futures, strict=True))

    def _copy(self, name: Name, address: str) -> Future:
        """Return the table as a result of a worker's own, which Dask leaves there.

        Of several copies of the same thing it keeps one, after two seconds.
        """
        copies = self._copies.setdefault(name, {})
        if address not in copies:
            copies[address] = self._client.submit(
                _itself, self._tables[name], workers=[address], allow_other_workers=True,
                pure=False,
            )  # fmt: skip
        return copies[address]

    def _send(self, name: Name, broadcast: bool) -> Future:
        where = None
        if self._hanging:
            where = [address for address in self._workers() if address not in self._hanging]

        def scatter() -> Any:
            return self._client.scatter(
                self._problem(name), workers=where, broadcast=broadcast, hash=False,
                asynchronous=True,
            )  # fmt: skip

        try:
            return self._client.sync(scatter, callback_timeout=_SECONDS_TO_SEND)
        except KeyError as error:
            raise CommClosedError(f"worker {error} has gone") from error

    def _workers(self) -> list[str]:
        return list(self._client.nthreads())

    def _require_workers(self, seconds: float) -> None:
        """Raise an error when there has been no worker for too long."""
        if seconds > _SECONDS_WITHOUT:
            raise ClusterError(
                f"the Dask cluster has had no worker for {seconds:.0f} seconds; start workers, and "
                "fit again"
            )

    def _leave_out(self, futures: list[Future]) -> None:
        """Note which workers these tasks, or their results, are with; they are not used again."""
        keys = {future.key for future in futures}
        for address, processing in self._client.processing().items():
            if keys & set(processing):
                self._hanging.add(address)
        for addresses in self._client.who_has(futures).values():
            self._hanging.update(addresses)
        self._let_go()  # some may be with such a worker alone
        self._count_threads()  # others may have come meanwhile

    def _recover(self) -> None:
        """Wait until there are a scheduler and workers again; all tables will be sent anew."""
        self._let_go()
        began = time.monotonic()
        while True:
            with contextlib.suppress(*_LOST):
                if self._client.status == "running" and self._workers():
                    self._count_threads()
                    return
            seconds = time.monotonic() - began
            if self._client.status == "running":
                self._require_workers(seconds)
            elif self._client.status == "closed" or seconds > _SECONDS_WITHOUT:
                raise ClusterError(
                    "the connection to the Dask scheduler is lost; start the cluster again, connect"
                    " a new client, and fit again"
                )
            time.sleep(_SECONDS_A_LOOK)

    def _forget(self, name: Name) -> None:
        self._tables.pop(name, None)
        self._copies.pop(name, None)


def _in_turn(threads: Mapping[str, int]) -> list[str]:
    """Return the address of each thread, first the first of every worker, then the second."""
    most = max(threads.values(), default=0)
    return [address for k in range(most) for address, n in threads.items() if n > k]


def _work(bundle: Bundle, problems: list[Problem]) -> bytes:
    """Carry out a bundle; its problems are kept as long as Dask keeps them in this process."""
    return work(bundle, dict(zip(bundle.names, problems, strict=True)), while_held=True)


def _itself(problem: Problem) -> Problem:
    return problem


def _checked(future: Future, result: Any) -> bytes:
    """Return the answer to a bundle, or raise what happened instead."""
    if future.status == "error":
        _, error, trace = result
        raise error.with_traceback(trace)
    if future.status != "finished":
        raise CancelledError(f"{future.key} is {future.status}")
    return result
