"""Warm-up of the default sampler: new starts, and chains that are left behind."""

from types import SimpleNamespace

import numpy as np
import pytest

from symbayes.kernels.chain import LOG_LIKELIHOOD, NUMBERS
from symbayes.samplers.collapsed import CollapsedSampler, _Run, _warm_up
from symbayes.samplers.running import Watch, Workers

STATE = ("nodes", "columns", "gram", "dots", "slots")


def chain_at(log_likelihood, mark, started=True):
    """A chain in name only: its state is filled with a mark."""
    chain = SimpleNamespace(
        n_terms=np.array([1 if started else -1]),
        numbers=np.full(NUMBERS, float(log_likelihood)),
        rng=np.array([mark]),
        **{name: np.full(3, float(mark)) for name in STATE},
    )
    return _Run(chain, SimpleNamespace(scales=np.full(2, float(mark))), None, None, None)


def warm_up(runs, advance=lambda run, n: None, tune=8, starts=4, watch=None):
    problem = SimpleNamespace(terms=3)
    with Workers(1) as workers:
        _warm_up(
            problem, runs, advance, CollapsedSampler(starts=starts), tune, workers,
            watch or Watch(None), lambda *report: None,
        )  # fmt: skip


def marks(runs):
    for run in runs:
        assert len({*(getattr(run.chain, name)[0] for name in STATE), run.prior.scales[0]}) == 1
    return [run.chain.nodes[0] for run in runs]


def test_hopeless_chains_take_the_best_state_but_not_its_random_numbers():
    runs = [chain_at(-1000, 1), chain_at(0, 2), chain_at(-29, 3), chain_at(-31, 4)]
    warm_up(runs, starts=1)
    assert marks(runs) == [2, 2, 3, 2]
    assert [run.log_likelihood for run in runs] == [0, 0, -29, 0]
    assert [run.chain.rng[0] for run in runs] == [1, 2, 3, 4]


def test_hopeless_chains_begin_anew_in_between():
    runs = [chain_at(-1000, 1), chain_at(0, 2)]
    seen = []

    def advance(run, n):
        seen.append(int(run.chain.n_terms[0]))
        run.chain.n_terms[0] = 1

    warm_up(runs, advance, tune=4, starts=4)
    assert seen[0::2] == [1, -4, -4, -4]  # -1 - K asks for a start with K terms
    assert seen[1::2] == [1, 1, 1, 1]
    assert marks(runs) == [2, 2]


def test_chains_that_never_started_take_the_best_state():
    runs = [chain_at(1e9, 1, started=False), chain_at(0, 2)]
    warm_up(runs, watch=Watch(1.0, started=-1e9))
    assert marks(runs) == [2, 2]
    assert runs[0].chain.n_terms[0] == 1


def test_nothing_to_take_over_when_no_chain_started():
    runs = [chain_at(0, 1, started=False), chain_at(0, 2, started=False)]
    warm_up(runs, tune=0)
    assert marks(runs) == [1, 2]


@pytest.mark.parametrize("stop_at", [1, 3])
def test_an_interrupt_ends_warm_up_with_no_new_start(stop_at):
    runs = [chain_at(-1000, 1), chain_at(0, 2)]
    watch = Watch(None)
    rounds = []

    def advance(run, n):
        run.chain.n_terms[0] = 1
        run.chain.numbers[LOG_LIKELIHOOD] = 0 if run is runs[1] else -1000
        rounds.append(n)
        watch.interrupted = len(rounds) >= 2 * stop_at

    warm_up(runs, advance, tune=400, starts=8, watch=watch)
    assert len(rounds) == 2 * stop_at
    assert marks(runs) == [2, 2]
    assert [run.chain.n_terms[0] for run in runs] == [1, 1]


@pytest.mark.parametrize("tune", [1, 3, 8, 100])
def test_all_of_warm_up_is_run(tune):
    runs, done = [chain_at(0, 1)], []
    warm_up(runs, lambda run, n: done.append(n), tune=tune, starts=8)
    assert sum(done) == tune
