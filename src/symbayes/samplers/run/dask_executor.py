"""Batches on a Dask cluster.

Dask does again what was on a worker that died, and brings the table to workers that join. What it
does not do is done here: a worker that hangs is left out, a table that is lost with all workers
that had it is sent again, and a cluster that is gone is an error instead of a wait without end.
"""

from __future__ import annotations

import contextlib
import math
import time
import uuid
from collections.abc import Mapping, Sequence
from concurrent.futures import CancelledError
from functools import partial
from typing import Any

from distributed import Client, Future, KilledWorker, as_completed
from distributed.comm import CommClosedError

from ...inputs.problem import Problem
from .remote import Batch, ClusterError, Executor, ProblemKey, Problems, run_batch

# Seconds between two looks at the cluster while nothing comes back.
_SECONDS_PER_LOOK = 1.0
# How long a cluster may be without workers, or a client without its scheduler.
_SECONDS_WITHOUT = 60.0
# How long sending a table may take. Dask itself gives up on silent workers after five minutes.
_SECONDS_TO_SEND = 900.0
# How often in one round the cluster may lose what it was given.
_MOST_LOSSES = 5
_LOST = (CancelledError, CommClosedError, TimeoutError, OSError)


class DaskExecutor(Executor):
    """The cluster of a client."""

    def __init__(self, client: Client):
        super().__init__()
        self._client = client
        self._name = f"symbayes-{uuid.uuid4().hex}"
        self._submissions = 0
        # Futures keep what is on the cluster there: tables, with copies by worker, and answers
        # that were fetched already.
        self._tables: dict[ProblemKey, tuple[Future, dict[str, Future]]] = {}
        self._fetched: list[Future] = []
        # Addresses of workers: those that hang, and one for each thread, when they were counted.
        self._hanging: set[str] = set()
        self._threads: list[str] = []
        self._counted = -math.inf

    def close(self) -> None:
        # Workers drop what nobody has a future of.
        self._tables.clear()
        self._fetched.clear()

    def forget(self, key: ProblemKey) -> None:
        super().forget(key)
        self._tables.pop(key, None)

    def slots(self) -> int:
        if time.monotonic() > self._counted + _SECONDS_PER_LOOK:
            self._count_threads()
        return len(self._threads)

    def _count_threads(self) -> None:
        """Note the address of each usable thread: the first of every worker, then the second."""
        threads = {a: n for a, n in self._client.nthreads().items() if a not in self._hanging}
        most = max(threads.values(), default=0)
        self._threads = [address for k in range(most) for address, n in threads.items() if n > k]
        self._counted = time.monotonic()

    def run(self, batches: Sequence[Batch], problems: Problems) -> list[bytes]:
        answers: dict[int, bytes] = {}
        losses = 0
        while len(answers) < len(batches):
            left = {i: batch for i, batch in enumerate(batches) if i not in answers}
            try:
                answers |= self._attempt(left, problems)
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
        return [answers[i] for i in range(len(batches))]

    def _attempt(self, batches: Mapping[int, Batch], problems: Problems) -> dict[int, bytes]:
        """Return the answers to the batches that ended; the others are with workers that hang."""
        began = last_seen = time.monotonic()
        waiting = {future: i for i, future in self._submit(batches, problems).items()}
        answers: dict[int, bytes] = {}
        try:
            while waiting:
                try:
                    for future, answer in as_completed(
                        list(waiting), self._client.loop, with_results=True, raise_errors=False,
                        timeout=_SECONDS_PER_LOOK,
                    ):  # fmt: skip
                        answers[waiting[future]] = _checked(future, answer)
                        self._note_seconds(batches[waiting.pop(future)], time.monotonic() - began)
                        self._fetched.append(future)
                except TimeoutError:  # time for a look at the cluster
                    if not waiting:
                        break
                    now = time.monotonic()
                    last_seen = now if self._client.nthreads() else last_seen
                    _require_workers(now - last_seen)
                    if now - began > self._patience(batches[i] for i in waiting.values()):
                        self._leave_out(list(waiting))
                        break
            return answers
        finally:
            if waiting:
                with contextlib.suppress(*_LOST):
                    self._client.cancel(list(waiting))

    def _submit(self, batches: Mapping[int, Batch], problems: Problems) -> dict[int, Future]:
        threads = self._threads
        if self._hanging and not threads:
            raise ClusterError(
                "all workers of the Dask cluster hang; look at their logs and start others"
            )
        keys = [key for batch in batches.values() for key in batch.keys]
        for key in set(keys) - set(self._tables):
            self._tables[key] = self._send(problems[key], keys.count(key) > 1), {}
        tables = [
            [self._copy(key, threads[i % len(threads)]) if threads else self._tables[key][0]
             for key in batch.keys]
            for i, batch in batches.items()
        ]  # fmt: skip
        # Names that make a group of these tasks alone: in a large group, Dask takes no notice of
        # which worker has the tables.
        self._submissions += 1
        names = [(f"{self._name}-{self._submissions}", i) for i in batches]
        futures = self._client.map(_run_batch, list(batches.values()), tables, key=names)
        # Only now, since Dask waits a moment between two messages to the scheduler: the one that
        # these are not needed any more would go first.
        self._fetched = []
        return dict(zip(batches, futures, strict=True))

    def _copy(self, key: ProblemKey, address: str) -> Future:
        """Return the table as a result of a worker's own, which Dask leaves there.

        Of several copies of the same thing it keeps one, after two seconds.
        """
        table, copies = self._tables[key]
        if address not in copies:
            copies[address] = self._client.submit(
                _itself, table, workers=[address], allow_other_workers=True, pure=False
            )
        return copies[address]

    def _send(self, problem: Problem, broadcast: bool) -> Future:
        where = sorted(set(self._client.nthreads()) - self._hanging) if self._hanging else None
        scatter = partial(
            self._client.scatter, problem, workers=where, broadcast=broadcast, hash=False,
            asynchronous=True,
        )  # fmt: skip
        try:
            return self._client.sync(scatter, callback_timeout=_SECONDS_TO_SEND)
        except KeyError as error:
            raise CommClosedError(f"worker {error} has gone") from error

    def _leave_out(self, futures: list[Future]) -> None:
        """Note which workers these tasks, or their results, are with; they are not used again."""
        keys = {future.key for future in futures}
        at_work = self._client.processing().items()
        self._hanging.update(address for address, tasks in at_work if keys & set(tasks))
        for addresses in self._client.who_has(futures).values():
            self._hanging.update(addresses)
        self.close()  # some futures may be with such a worker alone
        self._count_threads()  # others may have come meanwhile

    def _recover(self) -> None:
        """Wait until there are a scheduler and workers again; all tables will be sent anew."""
        self.close()
        began = time.monotonic()
        while True:
            with contextlib.suppress(*_LOST):
                if self._client.status == "running" and self._client.nthreads():
                    self._count_threads()
                    return
            seconds = time.monotonic() - began
            if self._client.status == "running":
                _require_workers(seconds)
            elif self._client.status == "closed" or seconds > _SECONDS_WITHOUT:
                raise ClusterError(
                    "the connection to the Dask scheduler is lost; start the cluster again, connect"
                    " a new client, and fit again"
                )
            time.sleep(_SECONDS_PER_LOOK)


def _require_workers(seconds: float) -> None:
    """Raise an error when there has been no worker for too long."""
    if seconds > _SECONDS_WITHOUT:
        raise ClusterError(
            f"the Dask cluster has had no worker for {seconds:.0f} seconds; start workers, and "
            "fit again"
        )


def _run_batch(batch: Batch, problems: list[Problem]) -> bytes:
    """Carry out a batch; its problems are kept as long as Dask keeps them in this process."""
    return run_batch(batch, dict(zip(batch.keys, problems, strict=True)), while_held=True)


def _itself(problem: Problem) -> Problem:
    return problem


def _checked(future: Future, result: Any) -> bytes:
    """Return the answer to a batch, or raise what happened instead."""
    if future.status == "error":
        _, error, trace = result
        raise error.with_traceback(trace)
    if future.status != "finished":
        raise CancelledError(f"{future.key} is {future.status}")
    return result
