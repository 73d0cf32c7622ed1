"""The default sampler around its loop: warm-up, ladders left behind, when drawing ends."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from symbayes import PaperSampler, TemperedSampler
from symbayes.formula.trees import split_terms
from symbayes.inputs.prior import NoisePrior, TermsPrior, TreePrior
from symbayes.inputs.sampler_settings import most_draws
from symbayes.inputs.validation import Table
from symbayes.samplers import tempered
from symbayes.samplers.ladder import Replicas
from symbayes.samplers.run import clock
from symbayes.samplers.run.clock import Watch
from symbayes.samplers.run.context import RunContext
from symbayes.samplers.run.workers import Workers
from symbayes.samplers.tempered import Phases, _begin_at, _catch_up, round_length
from symbayes.samplers.trace import Trace

from ..fits import NOISY, X, small
from ..problems import problem, table, tree

SMALL = TemperedSampler(temperatures=3, hottest=0.2, steps_per_draw=10, search=False)
# On the table of these tests y is about x0 * x1.
GOOD, FAIR, BAD = [tree("*", 0, 1)], [tree("*", 1, 0), tree(0)], [tree("sin", 0)]


def target(n_rows=60, **options):
    return problem(
        table(n_rows), {"*": 1.0, "sin": 1.0, "+": 1.0}, TermsPrior(3, 0.5),
        TreePrior(max_nodes=7), NoisePrior(1.0, 1e-6), **options,
    )  # fmt: skip


def sample(settings=SMALL, tune=20, draws=10, chains=2, watch=None, report=lambda *_: None, **made):
    with Workers(1) as workers:
        return tempered.sample(
            settings, target(**made), tune=tune, draws=draws, guesses=[],
            seeds=np.random.SeedSequence(0).spawn(chains),
            run=RunContext(workers, watch or Watch(None), report),
        )  # fmt: skip


def ladders(*states, powers=(1.0, 0.5)):
    """Ladders on one problem, each with its coldest replica in a given state."""
    made = target()
    result = []
    for i, state in enumerate(states):
        ladder = Replicas(made, np.random.SeedSequence(i), np.array(powers))
        ladder.put(state)
        ladder.run(1, 1, 0)
        result.append(ladder)
    return result


def as_lists(trees):
    return [t.tolist() for t in trees]


def test_powers():
    settings = TemperedSampler(temperatures=5, hottest=0.01)
    np.testing.assert_allclose(settings.powers(100), np.geomspace(1, 0.01, 5))
    assert TemperedSampler(temperatures=1).powers(100).tolist() == [1.0]
    for n in (2, 100, 10**6):
        power = TemperedSampler().powers(n)
        assert power[0] == 1.0
        assert np.all(np.diff(power) < 0)
        assert power[-1] <= 0.5
    # The hottest posterior is about the same whatever the number of rows.
    hot = [n * TemperedSampler().powers(n)[-1] for n in (100, 10**4)]
    assert hot[0] == pytest.approx(hot[1])


def test_ladders_left_behind_take_the_best_state():
    runs = ladders(BAD, GOOD, FAIR)
    best, near = runs[1].log_likelihood, runs[2].log_likelihood
    assert runs[0].log_likelihood < best - 20  # hopeless
    assert abs(near - best) < 5  # not hopeless
    random = [run.chains.rng.copy() for run in runs]
    assert _catch_up(runs, [run.score for run in runs], 10.0)
    assert [as_lists(run.trees()) for run in runs] == [as_lists(s) for s in (GOOD, GOOD, FAIR)]
    assert runs[0].log_likelihood == pytest.approx(best)
    assert not _catch_up(runs, [run.score for run in runs], 10.0)  # now nobody is behind
    for run, state in zip(runs, random, strict=True):
        np.testing.assert_array_equal(run.chains.rng, state)  # its own random numbers


def test_ladders_begin_where_their_searches_ended():
    found = ladders(BAD, GOOD, FAIR)
    fresh = ladders([], [], [])
    _begin_at(
        fresh,
        SimpleNamespace(
            trees=GOOD,
            ladders=found,
            starts=[GOOD, FAIR, FAIR],
        ),
        Workers(1),
    )
    assert [as_lists(run.trees()) for run in fresh] == [as_lists(s) for s in (GOOD, FAIR, FAIR)]
    # Hotter replicas go on from where they were, or from the start if that is far better.
    for run, source, start in zip(fresh, found, (GOOD, FAIR, FAIR), strict=True):
        hot, other = run.ladder.replica[1], source.ladder.replica[1]
        assert as_lists(run.trees(hot)) in (as_lists(source.trees(other)), as_lists(start))


BEGUN = Trace(chains=[], weights=[], counts=np.zeros((1, 3, 1)), seconds=0.0)


class Recorder:
    """Stands for a ladder: notes what it is asked to do."""

    score = 0.0
    problem = target()

    def __init__(self):
        self.calls = []

    def optimise(self, share):
        self.calls.append(("share", share))

    def carry_out(self, order, libraries, in_parts=False):
        self.calls.append(("run", order.n_draws))
        yield from ()
        return order.n_draws

    def adapt(self):
        self.calls.append(("adapt",))

    def forget(self):
        self.calls.append(("forget",))


@pytest.mark.parametrize("search", [False, True])
@pytest.mark.parametrize("total", [1, 7, 100, 321])
def test_settling(total, search, monkeypatch):
    monkeypatch.setattr(tempered, "_catch_up", lambda *_: False)
    ladder = Recorder()
    settings = TemperedSampler(search=search, teleport=False)
    with Workers(1) as workers:
        run = RunContext(workers, Watch(None))
        done = Phases(settings, [ladder], BEGUN, run).settle(total)
    assert done == sum(call[1] for call in ladder.calls if call[0] == "run") == total
    # The temperatures were adapted, and then frozen; nothing inexact is left on.
    assert ("adapt",) in ladder.calls
    assert ladder.calls[-2:] == [("share", 0.0), ("forget",)]
    shares = [call[1] for call in ladder.calls if call[0] == "share"]
    assert any(share > 0 for share in shares) == search
    last_run = max(i for i, call in enumerate(ladder.calls) if call[0] == "run")
    if total >= 7:  # then the last runs are exact
        assert [c for c in ladder.calls[:last_run] if c[0] == "share"][-1] == ("share", 0.0)


def test_settling_lists_what_was_visited():
    """Ladders teleport while drawing, and what they may teleport to is part of the state."""
    trace = sample(replace(SMALL, search=True), tune=400)
    assert len(trace.state.listed) > 5
    assert not trace.state.visited
    for ladder in trace.state.ladders:
        tried, listed, taken = ladder.own["teleports"].sum(axis=0)
        assert tried >= listed >= taken > 0
    for other in (replace(SMALL, search=True, teleport=False), SMALL):
        without = sample(other, tune=400)
        assert not without.state.listed
    assert not any(ladder.own["teleports"].any() for ladder in without.state.ladders)


def test_settling_ends_when_it_has_to():
    ladder = Recorder()
    with Workers(1) as workers:
        run = RunContext(workers, Watch(1.0, started=-1e9))
        done = Phases(SMALL, [ladder], BEGUN, run).settle(100)
    assert done == 0
    assert ladder.calls[-2:] == [("share", 0.0), ("forget",)]


def test_rounds_of_large_tables_are_short():
    # They depend on the rows alone, never on the clock.
    lengths = [round_length(n) for n in (10, 5_000, 10_000, 100_000, 10**7)]
    assert lengths == [64, 64, 32, 3, 1]


def test_drawing_is_exact_or_refused(monkeypatch):
    """Draws that are kept while constants are optimised would not be of the posterior."""
    seen, settle = [], Phases.settle

    def note(phases, *rest):
        settle(phases, *rest)
        seen.extend(ladder.optimised for ladder in phases.ladders)

    monkeypatch.setattr(Phases, "settle", note)
    sample(replace(SMALL, search=True), tune=5)
    assert seen == [0.0, 0.0]

    def forget(phases, *rest):
        settle(phases, *rest)
        phases.ladders[1].optimise(0.1)

    monkeypatch.setattr(Phases, "settle", forget)
    with pytest.raises(RuntimeError, match="would not be of the posterior"):
        sample()


def test_a_run_has_its_draws_and_its_record():
    seen = []
    trace = sample(report=seen.append)
    assert [len(chain) for chain in trace.chains] == [10, 10]
    assert [weights.tolist() for weights in trace.weights] == [[1.0] * 10] * 2
    assert trace.warmed_up
    assert [trace.interrupted, trace.timed_out, trace.settled] == [False] * 3
    assert [status.phase for status in seen if status.ended] == ["settling", "drawing"]
    assert {status.phase for status in seen} == {"settling", "drawing"}
    assert (seen[-1].done, seen[-1].total, seen[-1].ended) == (10, 10, True)
    assert len(trace.ladders) == 2
    for record in trace.ladders:
        assert record.power[0] == 1.0
        assert record.power[-1] == pytest.approx(0.2)
        assert record.swap_rate.shape == (2,)
        assert np.all((record.swap_rate > 0) & (record.swap_rate <= 1))
        assert record.round_trips >= 0


def test_chains_are_independent_and_seeded():
    first, second = (sample(draws=200) for _ in range(2))
    for one, two in zip(first.chains, second.chains, strict=True):
        np.testing.assert_array_equal(one.numbers, two.numbers)
    assert not np.array_equal(first.chains[0].numbers, first.chains[1].numbers)


def test_drawing_ends_when_the_draws_agree(monkeypatch):
    looks = []

    def enough(traces, *_):
        looks.append(len(traces[0]))
        return len(looks) == 2

    monkeypatch.setattr(tempered, "settled", enough)
    trace = sample(draws=10_000, tune=0)
    assert trace.settled
    assert not trace.timed_out
    assert len(trace.chains[0]) == len(trace.chains[1]) == looks[-1] < 10_000
    assert len(looks) == 2


def test_a_fit_with_a_time_limit_draws_as_long_as_it_may():
    """Unless the user says how many draws there may be."""
    limits = {
        (sampler, draws, timeout): most_draws(sampler, draws, timeout)
        for sampler in (TemperedSampler(), PaperSampler())
        for draws in (None, 7)
        for timeout in (None, 60.0)
    }
    assert {most for (_, draws, _), most in limits.items() if draws == 7} == {7}
    assert limits[TemperedSampler(), None, 60.0] > 100 * limits[TemperedSampler(), None, None]
    assert limits[PaperSampler(), None, 60.0] == limits[PaperSampler(), None, None]


def test_looks_come_after_the_same_draws_wherever_a_run_was_resumed():
    def looks(done):
        while done < 20_000:
            done += tempered.draws_per_look(done) - done % tempered.draws_per_look(done)
            yield done

    whole = list(looks(0))
    assert whole[:3] == [128, 256, 384]
    assert len(whole) < 100  # each costs more, the more draws there are
    for start in range(0, 20_000, 37):
        assert list(looks(start)) == [look for look in whole if look > start]


def test_draws_of_an_easy_problem_agree_before_the_last():
    trace = sample(
        TemperedSampler(temperatures=3, steps_per_draw=50, search=False), tune=100, draws=3_000,
        chains=4, n_rows=20,
    )  # fmt: skip
    assert trace.settled
    assert 100 <= len(trace.chains[0]) < 3_000


def test_warm_up_starts_again_when_a_ladder_turns_out_to_be_far_behind(monkeypatch):
    looks = []

    def behind(ladders, scores, nats):
        looks.append(nats)
        return looks.count(nats) <= 2 and nats == tempered._FAR_BEHIND

    monkeypatch.setattr(tempered, "_catch_up", behind)
    monkeypatch.setattr(tempered, "_DRAWS_PER_LOOK", 10)
    trace = sample(draws=10, tune=10)
    assert looks.count(tempered._FAR_BEHIND) == 3
    assert looks.count(tempered.NEAR) == 3  # settled anew each time
    assert trace.restarts == 2
    assert trace.warmed_up
    assert [len(chain) for chain in trace.chains] == [10, 10]
    # It comes to an end even if that never changes.
    monkeypatch.setattr(tempered, "_catch_up", lambda *_: True)
    trace = sample(draws=10, tune=0)
    assert trace.restarts == tempered._MOST_RESTARTS
    assert [len(chain) for chain in trace.chains] == [10, 10]


def test_ladders_are_compared_by_the_mean_of_some_of_their_last_draws(monkeypatch):
    seen = []
    monkeypatch.setattr(
        tempered, "_catch_up", lambda ladders, scores, nats: seen.append((nats, scores))
    )
    monkeypatch.setattr(tempered, "_DRAWS_PER_LOOK", 64)
    trace = sample(draws=128, tune=0)
    looks = [scores for nats, scores in seen if nats == tempered._FAR_BEHIND]
    assert len(looks) == 2
    for chain, score in zip(trace.chains, looks[-1], strict=True):
        scores = [
            likelihood + target().log_prior(split_terms(nodes, terms))
            for nodes, terms, likelihood in zip(
                chain.nodes[64::16],
                chain.n_terms[64::16],
                chain.log_likelihood[64::16],
                strict=True,
            )
        ]
        assert score == pytest.approx(np.mean(scores))


def test_out_of_time_before_the_first_draw():
    trace = sample(watch=Watch(1.0, started=-1e9))
    assert [len(chain) for chain in trace.chains] == [1, 1]
    assert trace.timed_out
    assert not trace.warmed_up


def test_costly_draws_are_fewer(monkeypatch):
    monkeypatch.setattr(tempered, "mean_cost", lambda ladders: 4.0)
    monkeypatch.setattr(tempered, "settled", lambda *_: False)
    trace = sample(draws=1024)
    assert [len(chain) for chain in trace.chains] == [256, 256]
    assert not trace.timed_out
    assert trace.warmed_up


def test_costly_warm_up_is_not_gone_through_again(monkeypatch):
    monkeypatch.setattr(tempered, "_catch_up", lambda *_: True)
    monkeypatch.setattr(tempered, "settled", lambda *_: False)
    assert sample(draws=300).restarts == tempered._MOST_RESTARTS
    monkeypatch.setattr(tempered, "mean_cost", lambda ladders: 2.0)
    assert sample(draws=300).restarts == 0


def test_time_that_ran_out_in_warm_up_is_told():
    class Hasty(Watch):
        """Leaves no time for anything but the draws."""

        def should_stop(self, share=1.0):
            return share < 1.0

    trace = sample(draws=10, watch=Hasty(None))
    assert [len(chain) for chain in trace.chains] == [10, 10]
    assert not trace.warmed_up
    assert trace.timed_out


def test_a_search_that_is_cut_short_is_not_a_warm_up_that_is():
    class Hasty(Watch):
        """Leaves no time for the search, and enough for the rest."""

        def should_stop(self, share=1.0):
            return share <= tempered._SEARCH_SHARE

    sampler = TemperedSampler(temperatures=3, steps_per_draw=5)
    trace = sample(sampler, tune=20, draws=10, watch=Hasty(None))
    assert trace.search_cut
    assert trace.warmed_up
    assert trace.timed_out
    whole = sample(sampler, tune=20, draws=10)
    assert not whole.search_cut
    assert not whole.timed_out


def test_time_that_ran_out_before_the_last_draw_is_told(monkeypatch):
    monkeypatch.setattr(tempered, "LARGEST_ROUND", 4)
    monkeypatch.setattr(clock, "_SECONDS_AT_ONCE", 1e-9)  # one at a time
    watch = Watch(None)

    def report(status):
        if status.phase == "drawing" and status.done >= 8:
            watch.timeout = 0.0

    trace = sample(draws=100, watch=watch, report=report)
    assert [len(chain) for chain in trace.chains] == [8, 8]
    assert trace.timed_out


def test_an_interrupt_while_drawing_keeps_what_there_is(monkeypatch):
    monkeypatch.setattr(tempered, "LARGEST_ROUND", 4)
    monkeypatch.setattr(clock, "_SECONDS_AT_ONCE", 1e-9)  # one at a time
    watch = Watch(None)

    def report(status):
        watch.interrupted = status.phase == "drawing" and status.done >= 8

    trace = sample(draws=1_000, watch=watch, report=report)
    assert [len(chain) for chain in trace.chains] == [8, 8]
    assert trace.interrupted
    assert trace.warmed_up
    assert not trace.timed_out


def test_search_ends_at_an_exact_formula_and_is_carried_on():
    X = np.random.default_rng(5).uniform(0.5, 2, (50, 2))
    y = np.sqrt(X[:, 0] ** 2 + X[:, 1])
    rows = Table(np.asfortranarray(X), y, np.ones(50), np.arange(2))
    made = problem(
        rows, dict.fromkeys(["+", "*", "sqrt", "square", "lt"], 1.0), TermsPrior(2, 0.5),
        TreePrior(), NoisePrior(),
    )  # fmt: skip
    seen = []
    with Workers(1) as workers:
        trace = tempered.sample(
            TemperedSampler(temperatures=4), made, tune=2_000, draws=20, guesses=[],
            seeds=np.random.SeedSequence(1).spawn(2),
            run=RunContext(workers, Watch(None), seen.append),
        )  # fmt: skip
    searched = max(status.done for status in seen if status.phase == "search")
    assert searched < 2_000
    assert trace.warmed_up
    for chain in trace.chains:
        assert chain.rss[-1] < 1e-10 * 50


def test_memory_of_a_long_run_is_bounded(monkeypatch):
    """Ten times as many draws, and no more are kept; the same again, whatever the cores."""
    monkeypatch.setattr(tempered, "_most_kept", lambda n: 100)
    monkeypatch.setattr(tempered, "settled", lambda *_: False)
    found = {}
    for draws, jobs, kept in ((150, 1, 75), (1500, 1, 93), (1500, 2, 93)):
        model = small(chains=2, draws=draws, n_jobs=jobs, operators=["+", "square"]).fit(X, NOISY)
        found[draws, jobs] = model.diagnostics_
        assert [len(chain.state) for chain in model.result_.posterior.draws] == [kept] * 2
    assert found[150, 1]["thinning"] == 2
    assert found[1500, 1]["thinning"] == 16
    for one, two in zip(*(found[1500, jobs]["log_likelihood"] for jobs in (1, 2)), strict=True):
        np.testing.assert_array_equal(one, two)
    # The shorter run is the beginning of the longer one.
    np.testing.assert_array_equal(
        found[150, 1]["log_likelihood"][0][7::8], found[1500, 1]["log_likelihood"][0][:9]
    )
    assert np.isfinite([*found[1500, 1]["r_hat"].values()]).all()
    assert max(found[1500, 1]["effective_draws"].values()) <= 2 * 93 * np.log10(2 * 93)


def test_how_many_draws_are_kept():
    assert [tempered._most_kept(n) for n in (1, 4, 8, 16, 1000)] == [10_000] * 3 + [5_000, 1000]
    assert all(tempered._most_kept(n) % 2 == 0 for n in range(1, 200))
