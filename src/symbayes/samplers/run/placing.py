"""Where a fit runs: in threads, unless the user has said otherwise.

Who wants it elsewhere says so as for scikit-learn, by a joblib backend
(`with joblib.parallel_config(backend="dask")`), or hands over a Dask client.
"""

from __future__ import annotations

from typing import Any

from joblib import effective_n_jobs
from joblib.parallel import get_active_backend

from .running import Workers


def workers_for(n_jobs: int | None, chains: int, client: Any = None) -> Workers:
    """Return what carries out the rounds of so many chains."""
    if client is not None:
        return _on_dask(client)
    # The preference counts only where the user has chosen no backend.
    backend, _ = get_active_backend(prefer="threads")
    if hasattr(backend, "client"):  # Dask's; in one of its tasks it is joblib that has set it
        return Workers(1) if _in_a_task() else _on_dask(backend.client)
    n_jobs = min(effective_n_jobs(n_jobs), chains)
    if n_jobs == 1 or getattr(backend, "supports_sharedmem", False):
        return Workers(n_jobs)
    from .joblib_workers import JoblibWorkers

    return JoblibWorkers(n_jobs)


def _in_a_task() -> bool:
    """Return whether this is called by a task that a Dask worker carries out."""
    from distributed.utils import thread_state

    return hasattr(thread_state, "execution_state")


def _on_dask(client: Any) -> Workers:
    try:
        from .dask_workers import DaskWorkers
    except ImportError:
        raise ImportError("a fit with client= needs Dask: pip install 'symbayes[dask]'") from None
    check_client(client)
    return DaskWorkers(client)


def check_client(client: Any) -> None:
    """Complain about what is no client, or one whose connection has ended."""
    if client is None:
        return
    if not hasattr(client, "scatter"):
        hint = f", here Client({client!r})" if isinstance(client, str) else ""
        raise TypeError(f"client is {client!r}; it must be a dask.distributed.Client{hint}")
    if getattr(client, "status", "running") == "closed":
        raise ValueError("client is closed; connect a new dask.distributed.Client to the cluster")
