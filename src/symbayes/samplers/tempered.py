"""The default sampler: parallel tempering, coefficients and noise integrated out.

Three phases. The search (`search/`) finds good states by any means. Settling runs on all rows,
first with optimised constants, then with exact moves only, and adapts the temperatures until all
pairs of neighbours swap equally often. Drawing keeps everything frozen and uses exact moves only;
it ends early when the draws agree. Where a chain comes upon something far better only then, warm-up
was not over, and both are repeated from there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from ..formula.trees import split_terms
from ..inputs.problem import Problem
from ..inputs.sampler_settings import TemperedSampler
from ..kernels.chain import PROPOSED
from ..kernels.moves.choice import N_MOVES
from ..kernels.tree import NODE
from .catalogue import StateList, VisitedRows, misses, with_catalogue
from .convergence import settled
from .exactness import exact_rss
from .front import merged
from .ladder import LARGEST_ROUND, Replicas, Round, mean_cost
from .run.clock import run_in_rounds
from .run.context import Look, RunContext, Status
from .run.workers import Workers
from .search.search import NEAR, OPTIMISED, Search, SearchResult
from .trace import ChainTrace, DrawingState, RunState, SearchState, Trace

# Shares of the time limit after which search and settling end, and nothing is thrown away any more.
_SEARCH_SHARE, _SETTLE_SHARE, _RESTART_SHARE = 0.65, 0.75, 0.6
# Draws per ladder for settling, as a part of `tune`, and the most; fewer where the fit is exact.
_SETTLE_PART, _MOST_SETTLING, _EXACT_SETTLING = 0.1, 320, 80
# How often the temperatures are adapted while settling.
_ADAPTATIONS = 4
# After these numbers of draws it is asked whether the list of known states is too short: the
# log-likelihood still rises by this many nats (and half of its spread), or one ladder is in a
# listed state this part as often as another.
_DRAWS_PER_QUESTION, _RISE, _HARDLY_EVER = (256, 512, 1024, 2048, 4096), 1.0, 0.2
# Parts of settling at most: further ones are added as long as the coldest state is in the list of
# known states more rarely than this.
_MOST_PARTS, _ENOUGH_LISTED = 11, 0.4
# Rows up to which rounds have their full length.
_ROWS_FOR_FULL_ROUNDS = 5000
# Draws that a run with a time limit begins with, as long as it is not known how long they take.
_FIRST_DRAWS = 4
# Draws between two looks at whether there are enough; how many there are when looks become rarer
# with every doubling; and of how many draws one tells how far a chain is.
_DRAWS_PER_LOOK, _MANY_DRAWS, _DRAWS_PER_SCORE = 128, 2048, 4
# The most draws that are kept: in all, per ladder, and per ladder where there are very many. More
# would take memory; with 10,000 independent ones the error of a probability is 0.005 at most.
_MOST_KEPT, _MOST_KEPT_PER_LADDER, _FEWEST_KEPT = 80_000, 10_000, 1000
# While drawing, a ladder this many nats behind on average shows that warm-up was not over: it is
# repeated, at most this many times. Not where a draw costs more than this, in units of an ordinary
# one: that would take minutes.
_FAR_BEHIND, _MOST_RESTARTS, _MOST_COST_OF_RESTARTS = 25.0, 3, 1.5


def sample(
    settings: TemperedSampler,
    problem: Problem,
    *,
    tune: int,
    draws: int,
    guesses: list[list[np.ndarray]],
    seeds: list[np.random.SeedSequence],
    run: RunContext,
    before: RunState | None = None,
) -> Trace:
    """Run one ladder per seed, from the guesses or from `before`; return their draws."""
    problem = settings.in_stages(problem)
    before = before or RunState()
    if before.trace is None:
        settling: tuple[int, int] | None = (0, 0)
        ladders, begun = _search(settings, problem, tune, guesses, seeds, run, before.search)
    else:
        settling = before.settling
        if before.trace.state.exact:
            problem = problem.with_any_terms()
        problem = with_catalogue(problem, before.trace.state.listed)
        ladders = [Replicas.restored(problem, state) for state in before.trace.state.ladders]
        # The earlier trace stays as it is.
        begun = replace(before.trace, chains=[chain.copy() for chain in before.trace.chains])
    most = _EXACT_SETTLING if begun.state.exact else _MOST_SETTLING
    n_settle = min(most, int(np.ceil(_SETTLE_PART * tune)))
    phases = Phases(settings, ladders, begun, run)
    if settling is not None:
        phases.settle(n_settle, settling)
    while (trace := phases.draw(draws)) is None:
        phases.settle(n_settle)
    cut = (trace.search_cut or not trace.warmed_up) and not trace.interrupted
    return replace(trace, timed_out=trace.timed_out or cut)


def _search(
    settings: TemperedSampler,
    problem: Problem,
    tune: int,
    guesses: list[list[np.ndarray]],
    seeds: list[np.random.SeedSequence],
    run: RunContext,
    before: SearchState | None,
) -> tuple[list[Replicas], Trace]:
    """Return ladders at the states that a search has found, and a trace without draws."""
    ladders = [Replicas(problem, seed, settings.powers(problem.data.n)) for seed in seeds]
    for i, ladder in enumerate(ladders if guesses else ()):
        for replica in range(settings.temperatures):
            ladder.put(guesses[i % len(guesses)], replica)
    begun = Trace(
        chains=_new_chains(len(ladders)),
        weights=[],
        counts=np.zeros((len(ladders), 3, N_MOVES), np.int64),
        seconds=0.0,
    )
    if not settings.search or tune == 0:
        return ladders, begun
    search = Search(
        problem, settings.powers, [seed.spawn(1)[0] for seed in seeds], settings.steps_per_draw,
        run.watch.left(_SEARCH_SHARE),
    )  # fmt: skip
    if before is None:
        search.begin_at(guesses)
    else:
        search.restore(before)
    found = search.run(tune, run, _SEARCH_SHARE)
    run.workers.forget_library()
    if found.exact and problem.with_any_terms() is not problem:
        # What fits to all digits is believed, whatever it looks like.
        problem = problem.with_any_terms()
        powers = settings.powers(problem.data.n)
        ladders = [Replicas(problem, seed.spawn(1)[0], powers) for seed in seeds]
    _begin_at(ladders, found, run.workers)
    met = StateList(problem)
    if settings.teleport and not found.exact:
        met.add_met([*found.ends, *found.met.states()])
    return ladders, replace(
        begun,
        search_cut=not found.finished,
        search=search.best.history,
        search_agreed=found.agreed,
        search_counts=search.counts(),
        search_met=found.met,
        state=DrawingState([], made=0, exact=found.exact, visited=met.visited),
    )


def _begin_at(ladders: list[Replicas], found: SearchResult, workers: Workers) -> None:
    """Start the ladders where the search ended, each with the temperatures of one of its own."""

    def begin(ladder: Replicas, searched: Replicas, trees: list[np.ndarray]) -> None:
        ladder.take_over(searched)
        if found.trees:
            ladder.put(trees)
            ladder.spread(trees, NEAR)

    workers.each(begin, ladders, found.ladders, found.starts)


def _new_chains(n_ladders: int) -> list[ChainTrace]:
    return [ChainTrace(most=_most_kept(n_ladders)) for _ in range(n_ladders)]


def _most_kept(n_ladders: int) -> int:
    """Return the most draws of a ladder that are kept, an even number."""
    return max(_FEWEST_KEPT, min(_MOST_KEPT_PER_LADDER, _MOST_KEPT // n_ladders // 2 * 2))


@dataclass
class Phases:
    """The phases of a run after its search; `begun` is what was made before the present one."""

    settings: TemperedSampler
    ladders: list[Replicas]
    begun: Trace
    run: RunContext
    met: StateList | None = None
    """What was visited while settling, and what was listed of it."""

    def settle(self, total: int, place: tuple[int, int] = (0, 0)) -> int:
        """Bring the ladders to the posterior on all rows, and adapt their temperatures.

        It begins at a `place`: parts of settling that are over, and draws made in the next. Return
        how many of `total` draws were made in all.
        """
        ladders, watch, steps = self.ladders, self.run.watch, self.settings.steps_per_draw
        share = 1.0 if self.begun.restarts else _SETTLE_SHARE
        first, made = place
        state = self.begun.state
        # Without a search nobody has looked elsewhere: a list of what lies near one start would
        # only make chains agree on that.
        lists = self.settings.teleport and self.begun.search_counts is not None and not state.exact
        self.met = met = StateList(ladders[0].problem, state.visited, state.listed)

        def until(i: int) -> int:
            """Return how many draws there are before the i-th part."""
            part = -(-total // (_ADAPTATIONS + 1))
            return min(i * part, total) + max(0, i - _ADAPTATIONS - 1) * part

        def advance(rounds: list[int]) -> None:
            for n in rounds:
                run.workers.advance_all(ladders, Round(steps, n, every=is_noted))
                for ladder in ladders if is_noted else ():
                    met.add(ladder.visited(n))

        def after(more: int) -> None:
            self.tell("settling", done + more, max(total, until(i + 1)))
            place = i, done + more - until(i)
            run.offer_state(lambda: RunState(self.paused(visited=met.visited), place))

        run, i, done = self.run, first, until(first) + made
        lists_too_little = False
        while i in (first, *range(_ADAPTATIONS + 1)) or (i < _MOST_PARTS and lists_too_little):
            for ladder in ladders:
                # Constants are optimised at first: on all rows they are others than on a part.
                ladder.optimise(OPTIMISED if i == 0 and self.settings.search else 0.0)
            is_noted = lists and i > 0
            done += self.in_rounds(advance, until(i + 1) - done, after, share)
            if watch.should_stop(share):
                break
            if i == 0:
                _catch_up(ladders, [ladder.score for ladder in ladders], NEAR)
            elif is_noted:
                met.add_met(_met_by(ladders))
                lists_too_little = 0.0 < _share_listed(ladders) < _ENOUGH_LISTED
                # Of all ladders, whose temperatures are about the same.
                powers = np.mean([ladder.ladder.power for ladder in ladders], axis=0)
                problem = met.make(powers, partial(watch.out_of_time, share))
                for ladder in ladders:
                    ladder.list_states(problem)
            for ladder in ladders:
                ladder.adapt()
            i += 1
        for ladder in ladders:
            ladder.optimise(0.0)
            ladder.forget()
        if total > 0:
            self.tell("settling", done, done, ended=True)
        self.begun = replace(
            self.begun,
            warmed_up=self.begun.warmed_up and done >= total,
            state=replace(self.begun.state, visited=[], listed=met.listed),
        )
        return done

    def draw(self, draws: int) -> Trace | None:
        """Return a trace with all draws; None if a ladder has left others far behind meanwhile.

        Looks come after certain numbers of draws in all: where a run was resumed makes no
        difference.
        """
        ladders, begun, run, steps = (
            self.ladders,
            self.begun,
            self.run,
            self.settings.steps_per_draw,
        )
        if any(ladder.optimised > 0.0 for ladder in ladders):
            raise RuntimeError(
                "constants of proposals are still optimised, as in a search: draws would not be of "
                "the posterior; set the share to 0 by Replicas.optimise before drawing"
            )
        problem, traces, state, watch = ladders[0].problem, begun.chains, begun.state, run.watch
        done, spent, spent_at_look, enough = state.made, state.spent, state.spent, begun.settled
        # Draws that agree are not thrown away for what a user who wants more of them comes upon.
        may_restart = state.may_restart and begun.restarts < _MOST_RESTARTS and not begun.settled
        floor = exact_rss(problem) if state.exact else -1.0

        def is_complete() -> bool:
            # A user who continues with draws that agree wants more of them.
            return max(spent, done) >= draws or (enough and not begun.settled)

        def so_far(more: int = 0) -> Trace:
            return self.paused(made=done + more, spent=spent_at_look, may_restart=may_restart)

        def keep(rounds: list[int], steps: int = steps) -> None:
            orders = [Round(steps, n, keep=True) for n in rounds]
            run.workers.advance_rounds(
                ladders, orders, lambda i, order: traces[i].extend(ladders[i].output, order.n_draws)
            )

        def after(more: int) -> None:
            self.tell("drawing", done + more, draws)
            if more < n:  # else the look at them comes first
                run.offer_state(lambda: RunState(so_far(more)))

        while not is_complete():
            run.offer_state(lambda: RunState(so_far()))
            if watch.should_stop():
                break
            per_look = draws_per_look(done)
            since_look = done % per_look
            n = min(per_look - since_look, draws - done)
            made = self.in_rounds(keep, n, after)
            cost = mean_cost(ladders)
            done += made
            spent = spent_at_look + (since_look + made) * cost
            is_look = since_look + made == per_look
            if is_look:
                spent_at_look = spent
            trips = sum(int(ladder.ladder.clock[1]) for ladder in ladders)
            has_pairs = self.settings.temperatures > 1
            enough = settled(traces, problem, floor, trips if has_pairs else None, per_look)
            may_restart = may_restart and cost < _MOST_COST_OF_RESTARTS
            # Not where a run ends between two looks: one that went on would not have been asked.
            if is_look and may_restart and not watch.should_stop(_RESTART_SHARE):
                means = [] if enough else [_mean_score(problem, trace) for trace in traces]
                behind = not enough and _catch_up(ladders, means, _FAR_BEHIND)
                if behind or (self._lists(problem) and self._finds_more(traces, enough)):
                    self._note_draws(traces)
                    self.begun = replace(
                        self.begun,
                        chains=_new_chains(len(ladders)),
                        state=replace(self.begun.state, made=0, spent=0.0, may_restart=True),
                        restarts=begun.restarts + 1,
                        settled=False,
                    )
                    return None
        timed_out = not (is_complete() or watch.interrupted)
        if done == 0:
            # Stopped before the first draw: the result is the states that warm-up has reached.
            keep([1], steps if begun.warmed_up else 1)
            done = 1
        trace = replace(
            so_far(),
            weights=[np.ones(len(trace)) for trace in traces],
            counts=np.array([ladder.chains.counts.sum(axis=0) for ladder in ladders]),
            seconds=begun.seconds + watch.seconds,
            interrupted=watch.interrupted,
            timed_out=timed_out,
            settled=enough,
            ladders=[ladder.record() for ladder in ladders],
        )
        self.tell("drawing", done, draws, ended=True)
        return trace

    def _lists(self, problem: Problem) -> bool:
        return self.settings.teleport and problem.catalogue is not None

    def _finds_more(self, traces: list[ChainTrace], enough: bool) -> bool:
        """Return whether there are good states that nobody knew when the ladders settled.

        It is asked rarely, since what was drawn until then would be lost, and at the end.
        """
        asked = enough or min(trace.made for trace in traces) in _DRAWS_PER_QUESTION
        return asked and (
            (not enough and _are_on_their_way(self.ladders, traces))
            or misses(self.ladders[0].problem, _met_by(self.ladders))
        )

    def _note_draws(self, traces: list[ChainTrace]) -> None:
        """Let the next settling know of the states that were drawn."""
        if not self.settings.teleport:
            return
        met = StateList(self.ladders[0].problem, (), self.begun.state.listed)
        met.add_met(self.begun.state.listed)
        for trace in traces:
            sizes = np.array([len(nodes) for nodes in trace.nodes])
            nodes = np.zeros((len(sizes), max(1, sizes.max(initial=0))), NODE)
            nodes[np.arange(nodes.shape[1]) < sizes[:, None]] = np.concatenate(trace.nodes)
            met.add(VisitedRows(nodes, np.array(trace.n_terms), trace.log_likelihood))
        state = replace(self.begun.state, visited=met.visited)
        self.begun = replace(self.begun, state=state)

    def in_rounds(
        self,
        advance: Callable[[list[int]], object],
        n_draws: int,
        after: Callable[[int], object],
        share: float = 1.0,
    ) -> int:
        """Let all ladders make draws; return how many.

        `advance` is called with the draws of as many rounds at once as take little time together,
        or with a part of a round that takes long. The length of a round does not depend on the
        clock.
        """
        length = round_length(len(self.ladders[0].problem.data.y))
        first = length if self.run.watch.timeout is None else min(length, _FIRST_DRAWS)
        return run_in_rounds(
            lambda n: advance([min(length, n - i) for i in range(0, n, length)]),
            n_draws, self.run.watch, after, first=first, multiple=length, share=share,
        )  # fmt: skip

    def paused(self, **changes: Any) -> Trace:
        """Return a trace as it is now, with what it takes to resume it; draws have no weights."""
        states = [ladder.state() for ladder in self.ladders]
        listed = self.begun.state.listed if self.met is None else self.met.listed
        state = replace(self.begun.state, ladders=states, **{"listed": listed, **changes})
        return replace(self.begun, weights=[], state=state)

    def tell(self, phase: str, done: int, total: int, ended: bool = False) -> None:
        """Report how far a phase has come."""
        self.run.report(Status(phase, done, total, self._look, ended))

    def _look(self) -> Look:
        """Return the coldest state of the best ladder, and how it goes with all of them."""
        ladders, searched = self.ladders, self.begun.search_counts
        proposed = 0 if searched is None else int(searched[PROPOSED].sum())
        proposed += sum(int(ladder.chains.counts[:, PROPOSED].sum()) for ladder in ladders)
        tried = np.concatenate([ladder.ladder.tried for ladder in ladders])
        rejected = np.concatenate([ladder.ladder.rejected for ladder in ladders])
        rates = 1.0 - rejected[tried > 0] / tried[tried > 0]
        best = max(ladders, key=lambda ladder: ladder.score)
        return Look(best.trees(), proposed, float(rates.mean()) if len(rates) else None)


def draws_per_look(done: int) -> int:
    """Return how many draws lie between looks, `done` being made; looks come at multiples of it."""
    return _DRAWS_PER_LOOK * max(1, 2 ** ((done // _MANY_DRAWS).bit_length() - 1))


def round_length(n_rows: int) -> int:
    """Return draws per round: fewer for large tables, so that a time limit can be kept."""
    return max(1, min(LARGEST_ROUND, LARGEST_ROUND * _ROWS_FOR_FULL_ROUNDS // n_rows))


def _met_by(ladders: list[Replicas]) -> list[list[np.ndarray]]:
    """Return the best state of each size that ladders have met."""
    return merged(ladder.met for ladder in ladders).states()


def _share_listed(ladders: list[Replicas]) -> float:
    """Return how often the coldest state was one that is listed, since that was counted anew."""
    tried, listed, _ = np.sum([ladder.ladder.teleports[0] for ladder in ladders], axis=0)
    return float(listed / max(1, tried))


def _are_on_their_way(ladders: list[Replicas], traces: list[ChainTrace]) -> bool:
    """Return whether the draws are still about to reach better states.

    That is when the log-likelihood rises from the first half of the draws to the second, or when
    one ladder is hardly ever in a state that is listed and others are.
    """
    halves = [np.array_split(trace.log_likelihood, 2) for trace in traces]
    rise = float(np.mean([second.mean() - first.mean() for first, second in halves]))
    spread = float(np.mean([trace.log_likelihood.std() for trace in traces]))
    shares = [_share_listed([ladder]) for ladder in ladders]
    return rise > max(_RISE, 0.5 * spread) or min(shares) < _HARDLY_EVER * max(shares)


def _mean_score(problem: Problem, trace: ChainTrace) -> float:
    """Return the mean log posterior, up to a constant, of some of the last draws of a chain."""
    some = slice(max(0, len(trace) - _DRAWS_PER_LOOK), None, _DRAWS_PER_LOOK // _DRAWS_PER_SCORE)
    priors = [
        problem.log_prior(split_terms(nodes, terms))
        for nodes, terms in zip(trace.nodes[some], trace.n_terms[some], strict=True)
    ]
    return float(np.mean(trace.log_likelihood[some] + priors))


def _catch_up(ladders: list[Replicas], scores: list[float], nats: float) -> bool:
    """Give ladders that are `nats` behind the best one its state; return whether there were any."""
    best = ladders[int(np.argmax(scores))].trees()
    behind = [i for i, score in enumerate(scores) if score < max(scores) - nats]
    for i in behind:
        ladders[i].spread(best, NEAR)
    return bool(behind)
