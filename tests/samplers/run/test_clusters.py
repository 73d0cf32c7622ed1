"""The same draws wherever they are made: in threads, in processes, on a Dask cluster."""

import contextlib
import gc
import pickle
import subprocess
import sys
import time
from types import SimpleNamespace

import joblib
import numpy as np
import pytest

from symbayes import PaperSampler, TemperedSampler
from symbayes.inputs.prior import TermsPrior
from symbayes.samplers.ladder import Replicas, Round, same_state
from symbayes.samplers.run import remote
from symbayes.samplers.run.clock import Watch
from symbayes.samplers.run.context import RunContext
from symbayes.samplers.run.joblib_executor import JoblibExecutor
from symbayes.samplers.run.remote import Batch, Executor, ProblemKey, RoundRequest, share_out
from symbayes.samplers.run.scheduler import carry_out
from symbayes.samplers.run.workers import Workers, workers_for
from symbayes.samplers.sampling import sample as sample_with
from symbayes.samplers.search.library import LibraryCache

from ...fits import EXACT, NOISY, X, assert_same, small
from ...problems import problem, table, tree
from ..test_states import assert_same_draws

distributed = pytest.importorskip("distributed", reason="needs Dask")
from symbayes.samplers.run import dask_executor  # noqa: E402

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
        return sample_with(
            SAMPLERS[name], target(name), tune=1_200, draws=draws, guesses=[],
            seeds=np.random.SeedSequence(1).spawn(chains),
            run=RunContext(workers, watch or Watch(None)),
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
        n_workers=n_workers, threads_per_worker=1, processes=True, dashboard_address=":0",
        silence_logs=50,
    )  # fmt: skip


@pytest.fixture(scope="module")
def client():
    with local_cluster() as cluster, distributed.Client(cluster) as client:
        yield client


def on_dask(client):
    return Workers(executor=dask_executor.DaskExecutor(client))


@contextlib.contextmanager
def on_loky(n_jobs=2):
    with joblib.parallel_config("loky"):
        yield Workers(executor=JoblibExecutor(n_jobs))


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


@pytest.mark.slow
def test_the_same_model_of_many_chains(client):
    """Of so many, the search looks after several rounds only."""
    sampler = TemperedSampler(temperatures=3, steps_per_draw=5)
    options = {"chains": 17, "tune": 900, "sampler": sampler}
    here = small(n_jobs=2, **options).fit(X, NOISY)
    assert_same(here, small(**options).fit(X, NOISY, client=client))
    with joblib.parallel_config(backend="loky"):
        assert_same(here, small(n_jobs=2, **options).fit(X, NOISY))


# Where a fit runs.


def test_threads_unless_the_user_chooses_a_backend():
    assert workers_for(2, 4).executor is None
    with joblib.parallel_config(n_jobs=2):
        assert workers_for(None, 4).executor is None
    with joblib.parallel_config("threading"):
        assert workers_for(2, 4).executor is None
    with joblib.parallel_config("loky"):
        assert workers_for(1, 4).executor is None
        with workers_for(2, 4) as workers:
            assert isinstance(workers.executor, JoblibExecutor)


def test_an_address_in_place_of_a_client():
    hint = r"""must be a dask.distributed.Client, here Client\('tcp://head:8786'\)"""
    with pytest.raises(TypeError, match=hint):
        small().fit(X, NOISY, client="tcp://head:8786")
    with pytest.raises(TypeError, match=r"client is 3; it must be a dask.distributed.Client$"):
        small().fit(X, NOISY, client=3)


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
    monkeypatch.setitem(sys.modules, "symbayes.samplers.run.dask_executor", None)
    with pytest.raises(ImportError, match=r"pip install 'symbayes\[dask\]'"):
        small().fit(X, NOISY, client=SimpleNamespace(scatter=None))


def test_dask_is_not_imported_before_it_is_needed():
    program = (
        "import sys, symbayes; symbayes.BayesianSymbolicRegressor, symbayes.ClusterError;"
        "import symbayes.samplers.run.workers;"
        "sys.exit('distributed' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


@pytest.mark.slow
def test_within_a_task_of_dask_one_thread_is_used(client):
    assert client.submit(_executor).result() is None


def _executor():
    with joblib.parallel_config(backend="dask"):
        return workers_for(-1, 4).executor


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
        sample_with(
            TemperedSampler(temperatures=3), made, tune=800, draws=300, guesses=[],
            seeds=np.random.SeedSequence(1).spawn(3), run=RunContext(workers, Watch(None)),
        )  # fmt: skip
    assert sent.count(1000) == 1


def _where(batch, problems):
    return id(problems[0]), distributed.get_worker().address


@pytest.mark.slow
def test_dask_leaves_each_worker_its_copy_and_its_work(client, monkeypatch):
    """Of copies of one thing it keeps only one after two seconds, with all the work."""
    monkeypatch.setattr(dask_executor, "_run_batch", _where)
    made = target()
    with on_dask(client) as workers:
        key, executor = ProblemKey("here", 1, 60), workers.executor
        batches = [Batch((key,), b"", 1)] * executor.slots()
        before = executor.run(batches, {key: made})
        assert len({address for _, address in before}) == 2
        client.amm.run_once()
        client.run(lambda dask_worker: None)  # by now they have heard of it
        for _ in range(3):
            assert executor.run(batches, {key: made}) == before


@pytest.mark.slow
def test_workers_keep_a_table_no_longer_than_they_are_asked_to(client):
    def kept():
        gc.collect()
        return len(remote._memory._kept)

    workers = on_dask(client)
    sample(workers, draws=20)
    time.sleep(0.5)  # until they have heard of it
    assert list(client.run(kept).values()) == [0, 0]


def test_a_batch_of_more_problems_than_are_kept(monkeypatch):
    """They are not dropped before the batch is done."""
    monkeypatch.setattr(remote, "_memory", remote._Memory())
    problems = [target() for _ in range(remote._MOST_KEPT + 3)]
    names = [ProblemKey("here", i, 60) for i in range(len(problems))]
    ladders = [Replicas(made, np.random.SeedSequence(2), np.ones(2)) for made in problems]
    requests = [
        RoundRequest(name, name, Replicas, ladder.state(), Round(5, 2))
        for name, ladder in zip(names, ladders, strict=True)
    ]
    given = dict(zip(names, problems, strict=True))
    answer = remote.run_batch(Batch(tuple(names), pickle.dumps(requests), 1), given)
    assert [result.done for (result,) in pickle.loads(answer)] == [2] * len(names)
    assert len(remote._memory._kept) == remote._MOST_KEPT


def test_a_problem_that_is_let_go_of_while_it_is_worked_on(monkeypatch):
    """Dask may do that where it had two copies of it."""
    monkeypatch.setattr(remote, "_memory", remote._Memory())
    held, name = [target()], ProblemKey("here", 1, 60)
    remote._memory.put(name, held[0], while_held=True)

    def let_go(ladder, order, libraries):
        held.clear()
        gc.collect()
        assert remote.unknown([name]) == [name]
        return carry_out(ladder, order, libraries)

    monkeypatch.setattr(remote, "carry_out", let_go)
    copy = target()
    state = Replicas(copy, np.random.SeedSequence(2), np.ones(2)).state()
    requests = pickle.dumps([RoundRequest(name, name, Replicas, state, Round(5, 2))] * 2)
    answer = remote.run_batch(Batch((name,), requests, 1), {name: copy}, while_held=True)
    assert [result.done for (result,) in pickle.loads(answer)] == [2, 2]


class InThisProcess(Executor):
    """Does what is sent at once, and counts how often something was."""

    def __init__(self, seconds):
        super().__init__()
        self.sent, self._seconds_each = [], seconds

    def slots(self):
        return 2

    def run(self, batches, problems):
        self.sent.append([batch.rounds for batch in batches])
        answers = []
        for batch in batches:
            given = {key: problems[key] for key in batch.keys}
            results = pickle.loads(remote.run_batch(batch, given))
            timed = [[r._replace(seconds=self._seconds_each) for r in every] for every in results]
            answers.append(pickle.dumps(timed))
        return answers

    def close(self):
        pass


def three_ladders():
    made = target()
    return [Replicas(made, seed, np.ones(2)) for seed in np.random.SeedSequence(5).spawn(3)]


def test_short_rounds_are_done_ahead():
    executor, here, there = InThisProcess(0.05), three_ladders(), three_ladders()
    workers = Workers(executor=executor)
    for left in range(9, -1, -1):
        for ladder in here:
            carry_out(ladder, Round(5, 2), LibraryCache())
        assert workers.advance(there, [Round(5, 2)] * 3, again=left) == [2, 2, 2]
        assert all(map(same_state, *([x.state() for x in every] for every in (here, there))))
    # Two ladders of one worker take 0.1 s, of 0.25 s at most.
    assert executor.sent == [[1, 1], [3, 3], [3, 3], [3, 3]]


def test_long_rounds_are_not():
    executor, ladders = InThisProcess(0.2), three_ladders()
    workers = Workers(executor=executor)
    for left in (2, 1, 0):
        workers.advance(ladders, [Round(5, 2)] * 3, again=left)
    assert executor.sent == [[1, 1]] * 3


@pytest.mark.parametrize("change", ["state", "order", "ladder", "fewer"])
def test_what_was_done_ahead_is_left_when_something_else_is_asked_for(change):
    executor, here, there = InThisProcess(0.01), three_ladders(), three_ladders()
    workers = Workers(executor=executor)
    orders = [Round(5, 2)] * 3

    def both(orders):
        made = workers.advance(there, orders, again=20)
        for ladder, order, n in zip(here, orders, made, strict=True):
            assert carry_out(ladder, order, LibraryCache()) == n
        assert all(map(same_state, *([x.state() for x in every] for every in (here, there))))

    for _ in range(3):
        both(orders)
    assert len(executor.sent) == 2
    if change == "state":
        here[1].put([tree(0)])
        there[1].put([tree(0)])
    elif change == "order":
        orders = [Round(5, 2), Round(5, 3), Round(5, 2)]
    elif change == "ladder":
        for ladders in (here, there):
            ladders[0], ladders[2] = ladders[2], ladders[0]
    else:
        del here[2], there[2], orders[2]
    both(orders)
    assert len(executor.sent) == 3
    both(orders)


def test_a_ladder_without_a_start_ends_what_is_done_ahead(monkeypatch):
    def none_for_three(ladder, order, libraries):
        return None if order.n_draws == 3 else carry_out(ladder, order, libraries)

    monkeypatch.setattr(remote, "carry_out", none_for_three)
    executor, ladders = InThisProcess(0.01), three_ladders()
    workers = Workers(executor=executor)
    orders = [Round(5, 2), Round(5, 3), Round(5, 2)]
    for _ in range(3):
        assert workers.advance(ladders, orders, again=5) == [2, None, 2]
    assert len(executor.sent) == 3


@pytest.mark.slow
def test_processes_that_cannot_see_the_file_get_the_table(expected, monkeypatch):
    """As on the other machines of a Ray cluster."""
    monkeypatch.setattr(JoblibExecutor, "_file", lambda self, *_: self._folder / "elsewhere")
    with on_loky() as workers:
        assert_same_trace(expected["tempered"], sample(workers))


@pytest.mark.slow
def test_files_are_removed():
    with on_loky() as workers:
        folder = workers.executor._folder
        sample(workers, draws=20)
    assert not folder.exists()


@pytest.mark.parametrize("n", [1, 2, 3, 7])
@pytest.mark.parametrize("seconds", [[1.0] * 7, [0.0] * 7, [5.0, 1.0, 1.0, 1.0, 1.0, 1.0, 4.0]])
def test_batches_take_about_equally_long(seconds, n):
    shares = share_out(seconds, n)
    assert sorted(i for share in shares for i in share) == list(range(7))
    assert all(shares)
    loads = [sum(seconds[i] for i in share) for share in shares]
    assert max(loads) <= max(*seconds, sum(seconds) / n + 1.0)
