"""Rounds on a Dask cluster.

Dask does again what was on a worker that died, and brings the table to workers that join. What it
does not do is done here: a worker that hangs is left out, a table that is lost with all workers
that had it is sent again, and a cluster that is gone is an error instead of a wait without end.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping
from concurrent.futures import CancelledError

from distributed import Client, Future, KilledWorker, wait
from distributed.comm import CommClosedError

from .elsewhere import ClusterError, Elsewhere, Name, Result, Task, work_while_held

# Seconds between two looks at the cluster while nothing comes back.
_SECONDS_A_LOOK = 1.0
# How long a cluster may be without workers, or a client without its scheduler.
_SECONDS_WITHOUT = 60.0
# How often in one round the cluster may lose what it was given.
_MOST_LOSSES = 5
_LOST = (CancelledError, CommClosedError, TimeoutError, OSError)


class DaskWorkers(Elsewhere):
    """Carry out rounds on the cluster of a client."""

    def __init__(self, client: Client):
        super().__init__()
        self._client = client
        self._tables: dict[Name, Future] = {}
        self._hanging: set[str] = set()

    def __exit__(self, *exception: object) -> None:
        self._tables.clear()  # workers let go of what nobody has a future of

    def _carry_out_all(self, tasks: list[Task]) -> list[Result]:
        results: dict[int, Result] = {}
        losses = 0
        while len(results) < len(tasks):
            left = {i: task for i, task in enumerate(tasks) if i not in results}
            try:
                results |= self._attempt(left)
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
                        f"({type(error).__name__}); look at the logs of its scheduler"
                    ) from error
                self._recover()
        return [results[i] for i in range(len(tasks))]

    def _attempt(self, tasks: Mapping[int, Task]) -> dict[int, Result]:
        """Return the results of the tasks that ended; the others are with workers that hang."""
        began = time.monotonic()
        futures = self._submit(tasks)
        last_seen = began
        waiting = set(futures)
        try:
            while waiting:
                with contextlib.suppress(TimeoutError):
                    wait([futures[i] for i in waiting], _SECONDS_A_LOOK, "FIRST_COMPLETED")
                ended = {i for i in waiting if futures[i].status != "pending"}
                waiting -= ended
                now = time.monotonic()
                if ended:
                    self._note_seconds({tasks[i].name for i in ended}, now - began)
                elif waiting:
                    last_seen = now if self._workers() else last_seen
                    self._check(now - last_seen)
                    patience = self._patience({tasks[i].name for i in waiting})
                    if patience is not None and now - began > patience:
                        break
            patience = self._patience({task.name for task in tasks.values()})
            results = {
                i: future.result(timeout=patience)
                for i, future in futures.items()
                if i not in waiting
            }
            if waiting:
                self._leave_out({futures[i].key for i in waiting})
            return results
        finally:
            if waiting:
                with contextlib.suppress(*_LOST):
                    self._client.cancel([futures[i] for i in waiting])

    def _submit(self, tasks: Mapping[int, Task]) -> dict[int, Future]:
        where = None
        if self._hanging:
            where = [address for address in self._workers() if address not in self._hanging]
            if not where:
                raise ClusterError(
                    "all workers of the Dask cluster hang; look at their logs and start others"
                )
        names = [task.name for task in tasks.values()]
        for name in set(names) - set(self._tables):
            self._tables[name] = self._client.scatter(
                self._problem(name), workers=where, broadcast=names.count(name) > 1, hash=False
            )
        return {
            i: self._client.submit(
                work_while_held, task, self._tables[task.name], workers=where, pure=False
            )
            for i, task in tasks.items()
        }

    def _workers(self) -> list[str]:
        return list(self._client.nthreads())

    def _check(self, seconds: float) -> None:
        """Raise an error when there has been no worker for too long."""
        if seconds > _SECONDS_WITHOUT:
            raise ClusterError(
                f"the Dask cluster has had no worker for {seconds:.0f} seconds; start workers, and "
                "fit again"
            )

    def _leave_out(self, keys: set[str]) -> None:
        """Note which workers these tasks are with, and do not use them any more."""
        for address, processing in self._client.processing().items():
            if keys & set(processing):
                self._hanging.add(address)

    def _recover(self) -> None:
        """Wait until the scheduler can be reached again; all tables will be sent anew."""
        self._tables.clear()
        began = time.monotonic()
        while self._client.status != "running":
            if self._client.status == "closed" or time.monotonic() - began > _SECONDS_WITHOUT:
                raise ClusterError(
                    "the connection to the Dask scheduler is lost; start the cluster again, connect"
                    " a new client, and fit again"
                )
            time.sleep(_SECONDS_A_LOOK)

    def _forget(self, name: Name) -> None:
        self._tables.pop(name, None)
