"""Threads, time limits and Ctrl-C, without any sampling."""

import contextlib
import signal
import threading
import time

import numpy as np
import pytest

from symbayes.samplers.run.clock import Watch, run_in_rounds
from symbayes.samplers.run.scheduler import NoStart
from symbayes.samplers.run.workers import Workers


class Counter:
    """Stands for a chain: notes what it was asked to do."""

    def __init__(self):
        self.rounds = []

    def advance(self, n):
        self.rounds.append(n)

    @property
    def total(self):
        return sum(self.rounds)


def run(chain, total, watch=None, largest=64, **options):
    return run_in_rounds(
        chain.advance, total, watch or Watch(None), lambda n: None, most=largest, **options
    )


@pytest.mark.parametrize("total", [0, 1, 7, 1000])
def test_rounds_add_up(total):
    chain = Counter()
    assert run(chain, total) == chain.total == total
    assert all(0 < n <= 64 for n in chain.rounds)


def test_progress_is_told_after_each_round():
    seen = []
    run_in_rounds(Counter().advance, 50, Watch(None), seen.append, most=8)
    assert seen == sorted(seen)
    assert seen[-1] == 50


def test_nothing_runs_when_time_is_up():
    chain = Counter()
    watch = Watch(10.0, started=-1e9)
    assert watch.should_stop()
    assert run(chain, 5, watch) == 0
    assert chain.rounds == []


def test_some_time_is_kept_back_for_what_follows_sampling():
    """As much as it is likely to take, but a fifth of the time at most."""
    for timeout, kept in ((10.0, 2.0), (1000.0, 5.0)):
        watch = Watch(timeout)
        watch.keep_back(5.0)
        watch.started = time.monotonic() - timeout + 0.9 * kept
        assert watch.out_of_time()
        assert not watch.deadline.cut_short()
        assert not watch.deadline.over()
        watch.started = time.monotonic() - timeout + 1.1 * kept
        assert not watch.out_of_time()
        assert watch.left() == pytest.approx(0.1 * kept, abs=0.05)
        watch.started = time.monotonic() - timeout
        assert watch.deadline.cut_short()
        assert watch.deadline.over()
    endless = Watch(None, started=-1e9)
    endless.keep_back(5.0)
    assert not endless.deadline.cut_short()
    assert endless.left() == np.inf
    assert not endless.deadline.is_set


def test_an_interrupt_ends_after_the_round():
    watch = Watch(None)

    class Interrupted(Counter):
        def advance(self, n):
            super().advance(n)
            watch.interrupted = True

    chain = Interrupted()
    assert run(chain, 100, watch, largest=8) == chain.total == 1


def test_what_is_finished_ends_the_rounds():
    chain = Counter()
    done = run(chain, 10_000, largest=4, finished=lambda: chain.total >= 10)
    assert 10 <= done < 20
    assert chain.total == done


def test_share_of_the_time_limit():
    watch = Watch(100.0)
    assert not watch.out_of_time()
    watch.started -= 60.0
    assert watch.out_of_time(0.5)
    assert not watch.out_of_time(0.7)
    assert not Watch(None, started=-1e9).out_of_time()


def test_first_interrupt_is_noted_second_one_raises():
    before = signal.getsignal(signal.SIGINT)
    with Watch(None) as watch:
        signal.raise_signal(signal.SIGINT)
        assert watch.interrupted
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before


def test_handler_is_restored_after_an_error():
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(ZeroDivisionError), Watch(None):
        raise ZeroDivisionError
    assert signal.getsignal(signal.SIGINT) is before


def test_watch_leaves_signals_alone_in_other_threads():
    before = signal.getsignal(signal.SIGINT)
    seen = []

    def work():
        with Watch(None):
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [before]


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_workers_keep_the_order_and_pass_errors_on(n_jobs):
    class Divider:
        def carry_out(self, order, libraries, in_parts=False):
            if in_parts:
                yield
            if order == 13:
                raise NoStart
            return 100 // order

    orders = list(range(1, 20))
    expected = [None if n == 13 else 100 // n for n in orders]
    with Workers(n_jobs) as workers:
        assert workers.advance([Divider()] * 19, orders) == expected
        assert workers.advance_all([Divider()] * 3, 5) == [20] * 3
        with pytest.raises(NoStart):
            workers.advance_all([Divider()] * 3, 13)
        with pytest.raises(ZeroDivisionError):
            workers.advance([Divider()] * 3, [1, 0, 2])


def test_threads_take_turns_with_what_is_left():
    """One piece of work is long: whoever is done goes on with the parts of the others."""
    where = [set() for _ in range(3)]
    both = threading.Barrier(2)

    class Ladder:
        def carry_out(self, order, libraries, in_parts=False):
            assert in_parts
            for _ in range(20):
                with contextlib.suppress(threading.BrokenBarrierError):
                    both.wait(0.02)  # two threads at a time, as long as there are two
                where[order].add(threading.get_ident())
                yield
            return order

    with Workers(2) as workers:
        assert workers.advance([Ladder() for _ in where], [0, 1, 2]) == [0, 1, 2]
    assert len(set.union(*where)) == 2
    assert any(len(threads) == 2 for threads in where)


def test_a_round_does_not_wait_for_what_is_prepared_meanwhile():
    ended = threading.Event()

    class Slow:
        def library_for(self, problem):
            assert ended.wait(10.0)

        def clear(self):
            pass

    class Ladder:
        def carry_out(self, order, libraries, in_parts=False):
            yield
            return order

    with Workers(2) as workers:
        workers._libraries = Slow()
        workers.prepare_library(None)
        assert workers.advance([Ladder() for _ in range(5)], range(5)) == list(range(5))
        assert not ended.is_set()
        ended.set()


def test_after_an_error_the_others_stop():
    parts = []

    class Ladder:
        def carry_out(self, order, libraries, in_parts=False):
            for i in range(1000):
                if order == 0 and i == 3:
                    raise ZeroDivisionError
                parts.append(order)
                time.sleep(0.001)
                yield
            return order

    with Workers(2) as workers, pytest.raises(ZeroDivisionError):
        workers.advance([Ladder() for _ in range(3)], [0, 1, 2])
    assert len(parts) < 1000


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_each_goes_through_all_and_passes_errors_on(n_jobs):
    seen = []
    with Workers(n_jobs) as workers:
        workers.each(lambda a, b: seen.append(a + b), range(5), range(5))
        with pytest.raises(ZeroDivisionError):
            workers.each(lambda a: 1 // a, [1, 0])
    assert sorted(seen) == [0, 2, 4, 6, 8]


def test_a_second_interrupt_soon_after_reaches_the_program():
    """In a loop of fits, as in cross-validation, two of them stop the loop and not one fit."""
    with Watch(None) as first:
        signal.raise_signal(signal.SIGINT)
    assert first.interrupted
    with Watch(None) as second, pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
    assert not second.interrupted


def test_a_second_interrupt_much_later_is_a_first_one(monkeypatch):
    with Watch(None):
        signal.raise_signal(signal.SIGINT)
    monkeypatch.setattr(Watch, "_last_interrupt", Watch._last_interrupt - 10.0)
    with Watch(None) as later:
        signal.raise_signal(signal.SIGINT)
    assert later.interrupted
