"""Clusters that fail: workers that are killed, hang or join, schedulers that are restarted.

On real processes. The run ends with the same draws, or with an error that says what happened.
"""

import os
import signal
import socket
import subprocess
import sys
import threading
import time

import joblib
import pytest

from symbayes import BayesianSymbolicRegressor, ClusterError, SamplingWarning
from symbayes.samplers.run import joblib_executor, remote
from symbayes.samplers.run.clock import Watch
from symbayes.samplers.run.joblib_executor import JoblibExecutor
from symbayes.samplers.run.workers import Workers
from symbayes.show import progress
from symbayes.storage import archive, checkpoint

from ...fits import NOISY, X, small
from .test_clusters import assert_same_trace, sample

distributed = pytest.importorskip("distributed", reason="needs Dask")
from symbayes.samplers.run import dask_executor  # noqa: E402
from symbayes.samplers.run.dask_executor import DaskExecutor  # noqa: E402

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def expected():
    return sample(Workers(1))


class Cluster:
    """A scheduler and workers, each a process of its own; nobody starts them again."""

    def __init__(self, n_workers):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.address = f"tcp://127.0.0.1:{self.port}"
        self.workers = []
        self.scheduler = self.start_scheduler()
        for _ in range(n_workers):
            self.start_worker()

    def _start(self, command, *options):
        program = [sys.executable, "-m", f"distributed.cli.{command}", *options]
        return subprocess.Popen(program, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def start_scheduler(self):
        self.scheduler = self._start(
            "dask_scheduler", "--host", "127.0.0.1", "--port", str(self.port), "--no-dashboard"
        )
        return self.scheduler

    def start_worker(self):
        self.workers.append(
            self._start(
                "dask_worker", self.address, "--no-nanny", "--nthreads", "1", "--no-dashboard"
            )
        )

    def close(self):
        for process in (*self.workers, self.scheduler):
            process.kill()
            process.wait()


@pytest.fixture
def cluster():
    made = []

    def start(n_workers):
        made.append(Cluster(n_workers))
        client = distributed.Client(made[0].address, timeout=60)
        client.wait_for_workers(n_workers, timeout=120)
        made.append(client)
        return made[0], client

    yield start
    if len(made) > 1:
        made[1].close(timeout=1)
    if made:
        made[0].close()


class Disturbed(DaskExecutor):
    """Does something to the cluster in the middle of a round, by default of the search."""

    def __init__(self, client, disturb, when=2):
        super().__init__(client)
        self._disturb, self._when, self.submitted = disturb, when, 0

    def _submit(self, batches, problems):
        futures = super()._submit(batches, problems)
        self.submitted += 1
        if self.submitted == self._when:
            self._disturb()
        return futures


def sample_on(executor, **options):
    return sample(Workers(executor=executor), **options)


@pytest.mark.parametrize("when", [2, 6, 10])
def test_a_worker_is_killed_in_the_middle_of_a_round(cluster, expected, when):
    processes, client = cluster(2)
    executor = Disturbed(client, processes.workers[0].kill, when)
    assert_same_trace(expected, sample_on(executor))
    assert executor.submitted > when
    assert len(client.nthreads()) == 1


def test_all_workers_but_one_are_killed(cluster, expected):
    processes, client = cluster(3)

    def disturb():
        for process in processes.workers[1:]:
            process.kill()

    assert_same_trace(expected, sample_on(Disturbed(client, disturb)))


def test_all_workers_are_killed_and_others_come(cluster, expected):
    """The table is lost with them, and sent again."""
    processes, client = cluster(2)

    def disturb():
        for process in list(processes.workers):
            process.kill()
            processes.start_worker()

    assert_same_trace(expected, sample_on(Disturbed(client, disturb)))


def test_all_workers_are_killed_for_good(cluster, monkeypatch):
    monkeypatch.setattr(dask_executor, "_SECONDS_WITHOUT", 10.0)
    processes, client = cluster(2)

    def disturb():
        for process in processes.workers:
            process.kill()

    with pytest.raises(ClusterError, match=r"no worker for \d+ seconds; start workers"):
        sample_on(Disturbed(client, disturb))


@pytest.mark.parametrize("phase", ["search", "drawing"])
def test_a_run_goes_on_from_its_checkpoint(cluster, monkeypatch, tmp_path, phase):
    """All workers are killed for good; the run goes on without a cluster, to the same draws."""
    monkeypatch.setattr(dask_executor, "_SECONDS_WITHOUT", 10.0)
    monkeypatch.setattr(checkpoint, "SECONDS_BETWEEN", 0.0)
    monkeypatch.setattr(progress, "SECONDS_PER_REPORT", 0.0)
    monkeypatch.setattr(progress, "_LEAST_REST", 0.0)
    processes, client = cluster(2)

    def disturb(status):
        if status.phase == phase and status.done >= status.total // 2:
            for process in processes.workers:
                process.kill()

    options = {"chains": 2, "tune": 1000, "draws": 200, "warm_start": True}
    path = tmp_path / "run.checkpoint"
    message = (
        r"no worker for \d+ seconds; .*; Bayesian.*resume\('.*run\.checkpoint', X, y\) continues"
    )
    with pytest.raises(ClusterError, match=message):
        small(**options, progress=disturb).fit(X, NOISY, client=client, checkpoint=path)
    point = archive.read_archive(path, "checkpoint", 1)[0]["point"]
    assert (point["search"] is not None) == (phase == "search")
    resumed = BayesianSymbolicRegressor.resume(path, X, NOISY)
    whole = small(**options).fit(X, NOISY)
    assert_same_trace(whole.result_.run.trace, resumed.result_.run.trace)


def test_a_worker_hangs(cluster, expected, monkeypatch):
    monkeypatch.setattr(remote, "_LEAST_PATIENCE", 10.0)
    monkeypatch.setattr(remote, "_PATIENCE", 2.0)
    processes, client = cluster(2)
    stopped = processes.workers[0]
    executor = Disturbed(client, lambda: os.kill(stopped.pid, signal.SIGSTOP))
    assert_same_trace(expected, sample_on(executor))
    assert len(executor._hanging) == 1


def test_all_workers_hang(cluster, monkeypatch):
    monkeypatch.setattr(remote, "_LEAST_PATIENCE", 10.0)
    monkeypatch.setattr(remote, "_PATIENCE", 2.0)
    processes, client = cluster(1)
    stopped = processes.workers[0]
    with pytest.raises(ClusterError, match="all workers of the Dask cluster hang"):
        sample_on(Disturbed(client, lambda: os.kill(stopped.pid, signal.SIGSTOP)))


def test_all_workers_hang_and_another_comes(cluster, expected, monkeypatch):
    monkeypatch.setattr(remote, "_LEAST_PATIENCE", 10.0)
    monkeypatch.setattr(remote, "_PATIENCE", 2.0)
    processes, client = cluster(1)
    stopped = processes.workers[0]

    def disturb():
        os.kill(stopped.pid, signal.SIGSTOP)
        processes.start_worker()

    executor = Disturbed(client, disturb)
    assert_same_trace(expected, sample_on(executor))
    assert len(executor._hanging) == 1


def _has_worked():
    return bool(remote._memory._run)


def test_a_worker_is_added_half_way(cluster, expected):
    processes, client = cluster(1)

    def disturb():
        processes.start_worker()
        client.wait_for_workers(2, timeout=60)
        time.sleep(1.1 * dask_executor._SECONDS_PER_LOOK)  # until the workers are counted again

    assert_same_trace(expected, sample_on(Disturbed(client, disturb)))
    assert list(client.run(_has_worked).values()) == [True, True]


def test_the_scheduler_is_restarted(cluster, expected):
    processes, client = cluster(2)

    def disturb():
        processes.scheduler.kill()
        processes.scheduler.wait()
        processes.start_scheduler()
        for _ in range(2):  # the old workers end with their scheduler
            processes.start_worker()

    executor = Disturbed(client, disturb)
    assert_same_trace(expected, sample_on(executor))
    assert executor.submitted > 2


def test_the_scheduler_is_gone(cluster, monkeypatch):
    monkeypatch.setattr(dask_executor, "_SECONDS_WITHOUT", 5.0)
    processes, client = cluster(1)
    with pytest.raises(ClusterError, match="connection to the Dask scheduler is lost"):
        sample_on(Disturbed(client, processes.scheduler.kill))


def test_a_task_that_ends_every_worker(cluster, monkeypatch):
    _, client = cluster(5)
    monkeypatch.setattr(dask_executor, "_run_batch", _end_the_process)
    monkeypatch.setattr(dask_executor, "_MOST_LOSSES", 3)  # before none of them is left
    # The table may be lost with them, which Dask reports in another way.
    with pytest.raises(ClusterError, match=r"several Dask workers died|lost its work 3 times"):
        sample_on(DaskExecutor(client), chains=1)


def _end_the_process(batch, problems):
    os.kill(os.getpid(), signal.SIGKILL)


def test_ctrl_c_and_timeout_on_dask(cluster):
    _, client = cluster(2)
    timer = threading.Timer(3.0, os.kill, [os.getpid(), signal.SIGINT])
    timer.start()
    try:
        with pytest.warns(SamplingWarning, match=r"interrupted: .* draws made so far"):
            model = small(chains=2, tune=10**8, draws=10**8).fit(X, NOISY, client=client)
    finally:
        timer.join()
    assert model.diagnostics_["interrupted"]
    with pytest.warns(SamplingWarning, match="timeout"):
        model = small(chains=2, tune=10**8, timeout=2.0).fit(X, NOISY, client=client)
    assert model.diagnostics_["timed_out"]


# Processes of joblib.


class DisturbedProcesses(JoblibExecutor):
    def __init__(self, n_jobs, disturb, when=6):
        super().__init__(n_jobs)
        self._disturb, self._when, self.rounds = disturb, when, 0

    def _attempt(self, batches, problems):
        self.rounds += 1
        if self.rounds == self._when:
            threading.Timer(0.01, self._disturb, [self._pids()]).start()
        return super()._attempt(batches, problems)

    def _pids(self):
        return list(self._parallel._backend._workers._processes)


@pytest.mark.parametrize("which", [slice(1), slice(None)], ids=["one", "all"])
def test_processes_are_killed_in_the_middle_of_a_round(which, expected):
    def disturb(pids):
        for pid in pids[which]:
            os.kill(pid, signal.SIGKILL)

    with joblib.parallel_config("loky"):
        executor = DisturbedProcesses(2, disturb)
    assert_same_trace(expected, sample_on(executor))


def test_processes_hang(expected, monkeypatch):
    monkeypatch.setattr(remote, "_LEAST_PATIENCE", 10.0)
    monkeypatch.setattr(remote, "_PATIENCE", 2.0)

    def disturb(pids):
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)

    with joblib.parallel_config("loky"):
        executor = DisturbedProcesses(2, disturb)
    assert_same_trace(expected, sample_on(executor))


def test_processes_that_always_end(monkeypatch):
    monkeypatch.setattr(joblib_executor, "_open_and_run", _end_the_process)
    with joblib.parallel_config("loky"):
        executor = JoblibExecutor(2)
    with pytest.raises(ClusterError, match="died or hung 4 times in the same round"):
        sample_on(executor)


def test_a_watch_that_has_run_out():
    with joblib.parallel_config("loky"):
        executor = JoblibExecutor(2)
    trace = sample_on(executor, watch=Watch(1.0, started=-1e9))
    assert trace.timed_out
    assert [len(chain) for chain in trace.chains] == [1] * 4
