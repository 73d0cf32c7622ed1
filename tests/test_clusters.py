"""The same draws wherever they are made: in threads, in processes, on a Dask cluster."""

import contextlib
import subprocess
import sys
from types import SimpleNamespace

import joblib
import numpy as np
import pytest

from symbayes import PaperSampler, TemperedSampler
from symbayes.prior import TermsPrior
from symbayes.samplers.elsewhere import shared_out
from symbayes.samplers.joblib_workers import JoblibWorkers
from symbayes.samplers.placing import workers_for
from symbayes.samplers.running import Watch, Workers

from .fits import EXACT, NOISY, X, assert_same, small
from .problems import problem, table
from .test_ladder_state import assert_same_draws

distributed = pytest.importorskip("distributed", reason="needs Dask")
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")

SAMPLERS = {
    "tempered": TemperedSampler(temperatures=4, steps_per_draw=20),
    "paper": PaperSampler(max_trees=6_000),
}


def target(name="tempered"):
    operators = dict.fromkeys(["+", "*", "sin", "exp", "lt"], 1.0)
    return problem(
        table(60, 2), operators, 2 if name == "paper" else TermsPrior(3, 0.5), learn=True
    )


def sample(workers, name="tempered", chains=4, draws=150, watch=None):
    with workers:
        return SAMPLERS[name].sample(
            target(name), tune=1_200, draws=draws, guesses=[], workers=workers,
            seeds=np.random.SeedSequence(1).spawn(chains), watch=watch or Watch(None),
            progress=lambda status: None,
        )  # fmt: skip


def assert_same_trace(first, second):
    for one, two in zip(first.chains, second.chains, strict=True):
        assert_same_draws(one, two)
    np.testing.assert_array_equal(first.counts, second.counts)
    np.testing.assert_array_equal(first.search_counts, second.search_counts)
    assert len(first.search) == len(second.search)


@pytest.fixture(scope="module")
def expected():
    return {name: sample(Workers(1), name) for name in SAMPLERS}


def local_cluster(n_workers=2):
    return distributed.LocalCluster(
        n_workers=n_workers, threads_per_worker=1, processes=True, dashboard_address=None,
        silence_logs=50,
    )  # fmt: skip


@pytest.fixture(scope="module")
def client():
    with local_cluster() as cluster, distributed.Client(cluster) as client:
        yield client


def on_dask(client):
    from symbayes.samplers.dask_workers import DaskWorkers

    return DaskWorkers(client)


@contextlib.contextmanager
def on_loky(n_jobs=2):
    with joblib.parallel_config("loky"):
        yield JoblibWorkers(n_jobs)


# The same result.


@pytest.mark.slow
@pytest.mark.parametrize("name", SAMPLERS)
def test_the_same_draws_in_threads_processes_and_on_dask(name, expected, client):
    assert_same_trace(expected[name], sample(Workers(2), name))
    assert_same_trace(expected[name], sample(on_dask(client), name))
    with on_loky() as workers:
        assert_same_trace(expected[name], sample(workers, name))


@pytest.mark.slow
def test_the_same_model_wherever_it_is_fitted(client):
    options = {"chains": 3, "tune": 600}
    here = small(**options).fit(X, NOISY)
    assert_same(here, small(**options).fit(X, NOISY, client=client))
    with joblib.parallel_config(backend="dask"):
        assert_same(here, small(**options).fit(X, NOISY))
    with joblib.parallel_config(backend="loky"):
        assert_same(here, small(n_jobs=2, **options).fit(X, NOISY))
    exact = small(**options).fit(X, EXACT, client=client)
    assert_same(exact, small(**options).fit(X, EXACT))


# Where a fit runs.


def test_threads_unless_the_user_chooses_a_backend():
    assert type(workers_for(2, 4)) is Workers
    with joblib.parallel_config(n_jobs=2):
        assert type(workers_for(None, 4)) is Workers
    with joblib.parallel_config("threading"):
        assert type(workers_for(2, 4)) is Workers
    with joblib.parallel_config("loky"):
        assert type(workers_for(1, 4)) is Workers
        with workers_for(2, 4) as workers:
            assert isinstance(workers, JoblibWorkers)


def test_a_client_that_is_closed(tmp_path):
    """It is said before anything is written."""

    class Closed:
        status = "closed"

        def scatter(self):
            raise AssertionError

    path = tmp_path / "run"
    with pytest.raises(ValueError, match=r"client is closed; connect a new dask"):
        small().fit(X, NOISY, client=Closed(), checkpoint=path)
    assert not path.exists()


def test_a_client_that_is_none():
    with pytest.raises(TypeError, match=r"client is 'tcp://localhost:8786'; it must be a dask"):
        small().fit(X, NOISY, client="tcp://localhost:8786")


def test_without_dask(monkeypatch):
    monkeypatch.setitem(sys.modules, "symbayes.samplers.dask_workers", None)
    with pytest.raises(ImportError, match=r"pip install 'symbayes\[dask\]'"):
        small().fit(X, NOISY, client=SimpleNamespace(scatter=None))


def test_dask_is_not_imported_before_it_is_needed():
    program = (
        "import sys, symbayes; symbayes.BayesianSymbolicRegressor, symbayes.ClusterError;"
        "import symbayes.samplers.placing;"
        "sys.exit('distributed' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


@pytest.mark.slow
def test_within_a_task_of_dask_one_thread_is_used(client):
    assert client.submit(_kind_of_workers).result() == "Workers"


def _kind_of_workers():
    with joblib.parallel_config(backend="dask"):
        return type(workers_for(-1, 4)).__name__


# What is sent.


@pytest.mark.slow
def test_the_table_travels_once(client, monkeypatch):
    sent = []
    scatter = client.scatter

    def note(problem, **options):
        sent.append(len(problem.data.y))
        return scatter(problem, **options)

    monkeypatch.setattr(client, "scatter", note)
    made = problem(table(1000, 2), {"+": 1.0, "*": 1.0, "lt": 1.0}, 2)
    with on_dask(client) as workers:
        TemperedSampler(temperatures=3).sample(
            made, tune=800, draws=300, guesses=[], workers=workers,
            seeds=np.random.SeedSequence(1).spawn(3), watch=Watch(None), progress=lambda _: None,
        )  # fmt: skip
    assert sent.count(1000) == 1


@pytest.mark.slow
def test_processes_that_cannot_see_the_file_get_the_table(expected, monkeypatch):
    """As on the other machines of a Ray cluster."""
    monkeypatch.setattr(JoblibWorkers, "_file", lambda self, name: self._folder / "elsewhere")
    with on_loky() as workers:
        assert_same_trace(expected["tempered"], sample(workers))


@pytest.mark.slow
def test_files_are_removed():
    with on_loky() as workers:
        folder = workers._folder
        sample(workers, draws=20)
    assert not folder.exists()


@pytest.mark.parametrize("n", [1, 2, 3, 7])
@pytest.mark.parametrize("seconds", [[1.0] * 7, [0.0] * 7, [5.0, 1.0, 1.0, 1.0, 1.0, 1.0, 4.0]])
def test_bundles_take_about_equally_long(seconds, n):
    shares = shared_out(seconds, n)
    assert sorted(i for share in shares for i in share) == list(range(7))
    assert all(shares)
    loads = [sum(seconds[i] for i in share) for share in shares]
    assert max(loads) <= max(*seconds, sum(seconds) / n + 1.0)
