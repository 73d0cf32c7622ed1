"""Whatever threads hand over to each other arrives, at whichever moment another one comes first."""

import itertools
import signal
import threading
import time

import pytest
from benchmarks.checks import scheduler

from symbayes.samplers.run.clock import Watch
from symbayes.samplers.run.workers import Workers

# Trials per kind; `python -m benchmarks.checks.scheduler` makes any number of them.
TRIALS, MANY_TRIALS = 40, 400


@pytest.mark.parametrize("kind", scheduler.KINDS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize(
    "seeds", [range(TRIALS), pytest.param(range(TRIALS, MANY_TRIALS), marks=pytest.mark.slow)],
    ids=["some", "many"],
)  # fmt: skip
def test_nothing_is_lost_between_threads(kind, seeds):
    assert [scheduler.trial(kind, seed) for seed in seeds] == [""] * len(seeds)


def test_trials_fail_where_something_is_lost():
    def other(rng, n_jobs):
        return n_jobs

    def failing(rng, n_jobs):
        return 1 // (n_jobs == 1)

    assert scheduler.trial(other, 0) == "other: another result than in one thread"
    assert scheduler.trial(failing, 0).startswith("failing: ZeroDivisionError")


def ctrl_c():
    signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)


class Pressing:
    """Work that presses Ctrl-C after some parts, and then has no end unless it is told to stop."""

    def __init__(self, parts):
        self.parts = parts
        self.ended = False

    def carry_out(self, order, libraries, in_parts=False):
        try:
            for i in itertools.count(1):
                if i == self.parts:
                    ctrl_c()
                yield i
        finally:
            self.ended = True


@pytest.mark.parametrize("n_jobs", [1, 2, 3])
@pytest.mark.parametrize("seed", range(30))
def test_ctrl_c_at_any_moment(n_jobs, seed, monkeypatch):
    """The first one ends work where it could; the second reaches the caller, and threads end."""
    monkeypatch.setattr(Watch, "_last_interrupt", -float("inf"))
    before, threads = signal.getsignal(signal.SIGINT), set(threading.enumerate())
    walkers = [Pressing(1 + seed % 7), *(Pressing(0) for _ in range(seed % 4))]
    with scheduler.sleepy_lines(seed) if seed % 2 else scheduler.quick_changes():
        with Watch(None) as watch, Workers(n_jobs) as workers:
            made = workers.advance(walkers, walkers, stop=watch.is_over)
            assert watch.interrupted
            assert all(made)
            assert all(walker.ended for walker in walkers)
        again = [Pressing(1 + seed % 5), *(Pressing(0) for _ in range(seed % 4))]
        with pytest.raises(KeyboardInterrupt), watch, Workers(n_jobs) as workers:
            workers.advance(again, again)
    # A thread that was being started when Ctrl-C came is not waited for; it ends by itself.
    deadline = time.monotonic() + 10.0
    while set(threading.enumerate()) - threads:
        assert time.monotonic() < deadline
        time.sleep(0.001)
    assert signal.getsignal(signal.SIGINT) is before
