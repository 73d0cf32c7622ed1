"""Where the chains of a run are advanced: in threads, or in other processes.

A fit runs in threads unless the user has chosen otherwise: as for scikit-learn by a joblib backend
(`with joblib.parallel_config(backend="dask")`), or with a Dask client of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from typing import Any

from joblib import effective_n_jobs
from joblib.parallel import get_active_backend

from ...inputs.problem import Problem
from ..ladder import Chains
from ..search.library import LibraryCache
from .remote import Executor
from .scheduler import NoStart, Scheduler, Work, never

# Seconds after which Python looks again whether there was a Ctrl-C.
_LONGEST_WAIT = 0.25


class Workers:
    """Advance ladders: in the thread of the caller, in several threads, or by an executor."""

    def __init__(self, n_jobs: int = 1, executor: Executor | None = None):
        self.executor = executor
        self._pool = ThreadPoolExecutor(n_jobs) if n_jobs > 1 else None
        self._n_jobs = n_jobs
        self._libraries = LibraryCache()

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *exception: object) -> None:
        if self.executor is not None:
            self.executor.close()
        if self._pool is not None:
            self._pool.shutdown()

    def advance(
        self,
        ladders: Sequence[Chains],
        orders: Sequence[Any],
        again: int = 0,
        stop: Callable[[], bool] = never,
    ) -> list[int | None]:
        """Let each ladder carry out its order; return the numbers of draws, None for no start.

        When this returns, all ladders have moved on, and their outputs hold their draws. The caller
        is likely to ask for the same `again` more times, from where this leads. When it is time to
        `stop`, orders end early; other processes are not told.
        """
        if self.executor is not None:
            return self.executor.advance(ladders, orders, again)
        # Several ladders per thread stop in between, so that a thread which is done early has
        # something to do.
        in_parts = len(ladders) > self._n_jobs and (self._n_jobs > 1 or stop is not never)
        work = [
            ladder.carry_out(order, self._libraries, in_parts)
            for ladder, order in zip(ladders, orders, strict=True)
        ]
        return self._schedule(work, stop)

    def advance_all(self, ladders: Sequence[Chains], order: Any) -> list[int]:
        """Let all ladders carry out the same order; each has to have a start."""
        done = [n for n in self.advance(ladders, [order] * len(ladders)) if n is not None]
        if len(done) < len(ladders):
            raise NoStart
        return done

    def advance_rounds(
        self,
        ladders: Sequence[Chains],
        orders: Sequence[Any],
        after: Callable[[int, Any], object],
    ) -> None:
        """Let all ladders carry out the same orders, no thread waiting for another in between.

        `after` is called with the number of a ladder and the order that it has carried out.
        """
        if self._pool is None:
            for order in orders:
                self.advance_all(ladders, order)
                for i in range(len(ladders)):
                    after(i, order)
            return
        in_parts = len(ladders) > self._n_jobs

        def work(i: int, ladder: Chains) -> Work:
            made = 0
            for order in orders:
                made += yield from ladder.carry_out(order, self._libraries, in_parts)
                after(i, order)
            return made

        if None in self._schedule([work(i, ladder) for i, ladder in enumerate(ladders)]):
            raise NoStart

    def _schedule(self, work: Sequence[Work], stop: Callable[[], bool] = never) -> list[int | None]:
        scheduler = Scheduler(work, stop)
        if self._pool is None:
            scheduler.run()
            return scheduler.results
        try:
            threads = [self._pool.submit(scheduler.run) for _ in range(self._n_jobs)]
            # When one has found nothing more to do, those that have not begun are not needed.
            # Python may sleep through a Ctrl-C that comes just as it begins to wait.
            while not wait(threads, _LONGEST_WAIT, FIRST_COMPLETED).done:
                pass
            for thread in threads:
                if not thread.cancel():
                    thread.result()
        finally:
            scheduler.stop()  # after a second Ctrl-C
        return scheduler.results

    def prepare_library(self, problem: Problem, stop: Callable[[], bool] = never) -> None:
        """Make the library for a problem in advance, beside other work if there are threads.

        When it is time to `stop`, a part of it is enough.
        """
        self._libraries.stop = stop
        if self._pool is not None:
            self._pool.submit(self._libraries.library_for, problem)

    def forget_library(self) -> None:
        """Let go of the library, which only a search needs."""
        self._libraries.clear()

    def each(self, function: Callable[..., object], *arguments: Iterable[Any]) -> None:
        """Call a function for each of these, in the process of the caller."""
        for _ in (map if self._pool is None else self._pool.map)(function, *arguments):
            pass


def workers_for(n_jobs: int | None, chains: int, client: Any = None) -> Workers:
    """Return workers for a number of chains, where the user wants them to run."""
    if client is not None:
        return _on_dask(client)
    # The preference counts only where the user has chosen no backend.
    backend, _ = get_active_backend(prefer="threads")
    if hasattr(backend, "client"):  # Dask's; within one of its tasks it is joblib that has set it
        return Workers(1) if _in_a_dask_task() else _on_dask(backend.client)
    n_jobs = min(effective_n_jobs(n_jobs), chains)
    if n_jobs == 1 or getattr(backend, "supports_sharedmem", False):
        return Workers(n_jobs)
    from .joblib_executor import JoblibExecutor

    return Workers(executor=JoblibExecutor(n_jobs))


def _in_a_dask_task() -> bool:
    from distributed.utils import thread_state

    return hasattr(thread_state, "execution_state")


def _on_dask(client: Any) -> Workers:
    try:
        from .dask_executor import DaskExecutor
    except ImportError:
        raise ImportError("a fit with client= needs Dask: pip install 'symbayes[dask]'") from None
    check_client(client)
    return Workers(executor=DaskExecutor(client))


def check_client(client: Any) -> None:
    """Complain about what is no client, or one whose connection has ended."""
    if client is None:
        return
    if not hasattr(client, "scatter"):
        hint = f", here Client({client!r})" if isinstance(client, str) else ""
        raise TypeError(f"client is {client!r}; it must be a dask.distributed.Client{hint}")
    if getattr(client, "status", "running") == "closed":
        raise ValueError("client is closed; connect a new dask.distributed.Client to the cluster")
