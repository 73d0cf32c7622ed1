"""Threads that share out parts of work, and work that waits for other work."""

import threading
from types import SimpleNamespace

import numpy as np
import pytest

from symbayes import TemperedSampler
from symbayes.samplers.run import scheduler
from symbayes.samplers.run.scheduler import Job, NoStart, Scheduler
from symbayes.samplers.run.workers import Workers
from symbayes.samplers.search.library import LibraryCache

from ...fits import X, assert_same, small
from ..test_warm_start import draws_of


def go(work, threads=1, **options):
    """Let threads share out work; return the results."""
    shared = Scheduler(work, **options)
    others = [threading.Thread(target=shared.run) for _ in range(threads - 1)]
    for other in others:
        other.start()
    shared.run()
    for other in others:
        other.join(10.0)
        assert not other.is_alive()
    return shared.results


def parts(n, result=0, place=None):
    for _ in range(n):
        yield place
    return result


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_all_work_is_done(threads):
    assert go([parts(i % 4, i) for i in range(30)], threads) == list(range(30))
    assert go([], threads) == []


def test_work_gets_on_together_and_the_slowest_first(monkeypatch):
    seen, now = [], [0.0]
    monkeypatch.setattr(scheduler, "time", SimpleNamespace(monotonic=lambda: now[0]))

    def work(i, seconds):
        for _ in range(3):
            seen.append(i)
            now[0] += seconds
            yield
        return i

    go([work(0, 0.0), work(1, 0.02), work(2, 0.01)])
    assert seen == [0, 1, 2, 1, 2, 0, 1, 2, 0]


def test_work_ends_where_it_could_and_only_there():
    steps = []

    def work(i):
        for made in (None, 64, None, None, 128):
            steps.append((i, made))
            yield made
        return 200

    assert go([work(0), work(1)], stop=lambda: len(steps) >= 5) == [128, 128]
    assert steps[-1][1] == 128
    assert go([work(0)], stop=lambda: False) == [200]
    assert go([work(0)], stop=lambda: True) == [64]


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_what_has_no_start_is_no_obstacle(threads):
    def lost():
        yield
        raise NoStart

    assert go([lost(), parts(5, 7)], threads) == [None, 7]


def test_jobs_are_ordered_by_what_is_known_of_them():
    some = [Job(1, 0.0, 0, None), Job(0, 0.0, 2, None), Job(0, 0.0, 1, None)]
    some.append(Job(0, -1.0, 3, None))
    assert [job.i for job in sorted(some)] == [3, 1, 2, 0]


class Walker:
    """Stands for a ladder: its state is a number, which orders change."""

    def __init__(self, value):
        self.value = value
        self.output = []

    def carry_out(self, order, libraries, in_parts=False):
        assert isinstance(libraries, LibraryCache)
        if order < 0 and self.value % 5 == 0:
            raise NoStart
        for _ in range(self.value % 3 if in_parts else 0):
            yield
        self.value = (self.value * 31 + order) % 1009
        self.output = [self.value]
        return 1


@pytest.mark.parametrize("n_jobs", [1, 2, 3, 9])
@pytest.mark.parametrize("n", [1, 2, 7, 8])
def test_rounds_lead_to_the_same_in_any_number_of_threads(n_jobs, n):
    expected = None
    for jobs in (1, n_jobs):
        walkers, trace = [Walker(i) for i in range(n)], [[] for _ in range(n)]

        def keep(i, order, walkers=walkers, trace=trace):
            trace[i].append((order, *walkers[i].output))

        with Workers(jobs) as workers:
            for orders in ([3, 4], [5], [6, 7, 8]):
                workers.advance_rounds(walkers, orders, keep)
        found = ([walker.value for walker in walkers], trace)
        assert expected is None or found == expected
        expected = found
    assert all([order for order, _ in one] == [3, 4, 5, 6, 7, 8] for one in trace)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_rounds_without_a_start(n_jobs):
    walkers = [Walker(i) for i in range(1, 7)]
    with Workers(n_jobs) as workers, pytest.raises(NoStart):
        workers.advance_rounds(walkers, [-1, 2], lambda i, order: None)


@pytest.mark.slow
def test_many_chains_do_not_depend_on_the_number_of_threads(monkeypatch):
    """With many chains the search makes several rounds at once."""
    times = set()
    plain = Workers.advance

    def advance(self, ladders, orders, *others):
        times.add(orders[0].times)
        return plain(self, ladders, orders, *others)

    monkeypatch.setattr(Workers, "advance", advance)
    y = X[:, 0] ** 2 + np.sin(3 * X[:, 1]) + np.random.default_rng(3).normal(0, 0.3, len(X))
    one, two, three = (
        small(chains=17, tune=900, draws=70, n_jobs=n, warm_start=True,
              sampler=TemperedSampler(temperatures=3, steps_per_draw=5)).fit(X, y)
        for n in (1, 2, 3)
    )  # fmt: skip
    assert times == {1, 2}
    assert draws_of(one) == draws_of(two) == draws_of(three)
    assert_same(one, two)
