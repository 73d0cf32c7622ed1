"""The default sampler: parallel tempering, coefficients and noise integrated out.

Three phases. The search (`search.py`) finds good states by any means. Settling runs on all rows,
first with optimised constants, then with exact moves only, and adapts the temperatures until all
pairs of neighbours swap equally often. Drawing keeps everything frozen and uses exact moves only;
it ends early when the draws agree.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from ..inputs.prior import NoisePrior, require_count, require_real
from ..inputs.problem import Problem, some_rows
from ..kernels.chain import PROPOSED
from ..kernels.moves.choice import N_MOVES
from .convergence import settled
from .exactness import exact_rss
from .ladder import Replicas, Round, mean_cost
from .pause import Pause, Point, Save, save_nothing
from .rounds import round_length, run_even_rounds
from .run.running import Report, Watch, Workers, advance_all
from .search.search import NEAR, OPTIMISED, Found, Search
from .search.seekers import Seeker
from .telling import teller
from .trace import ChainTrace, LadderRecord, Trace, split_terms

# Shares of the time limit after which search and settling end.
_SEARCH_SHARE, _SETTLE_SHARE = 0.65, 0.75
# After this share nothing is thrown away any more.
_RESTART_SHARE = 0.85
# Draws a ladder for settling, as a part of `tune`, and the most; fewer where the fit is exact.
_SETTLE_PART, _MOST_SETTLING, _EXACT_SETTLING = 0.1, 320, 80
# How often the temperatures are adapted while settling.
_ADAPTATIONS = 4
# Draws between two looks at whether enough was drawn.
_DRAWS_A_LOOK = 128
# Of those, draws that tell how far a chain has come.
_DRAWS_A_SCORE = 4
# Draws that are kept, at most: in all, of a ladder, and of a ladder where there are very many. More
# would take memory; with 10,000 independent ones the error of a probability is 0.005 at most.
_MOST_KEPT, _MOST_KEPT_A_LADDER, _FEWEST_KEPT = 80_000, 10_000, 1000
# While drawing, one so far behind on average shows that warm-up was not over: it is gone through
# again, at most so many times.
_FAR_BEHIND, _MOST_RESTARTS = 25.0, 3
# Not where a draw costs so many times what it usually does: that would take minutes.
_MOST_COST_OF_RESTARTS = 1.5
# Rows on which proposals are judged first, where the table has more than so many.
_FIRST_ROWS, _FEWEST_IN_STAGES = 1024, 5000
# At the hottest temperature the data count as about so many rows.
_HOTTEST_ROWS = 3.0


@dataclass(frozen=True)
class TemperedSampler:
    """Settings of the default sampler.

    Parameters
    ----------
    temperatures : int
        Replicas a ladder. 1 is plain Markov chain Monte Carlo.
    hottest : float in (0, 1), optional
        Power of the likelihood at the hottest temperature; by default the data count there as
        about three rows.
    steps_per_draw : int
        Proposals of each replica between two draws.
    search : bool
        Whether warm-up begins with a search. Without it, chains start from the prior.
    first_rows : int, "auto" or None
        Rows on which proposals are judged first; only those that pass are judged on all rows, and
        what the first judgement had to say is taken out of the second, so that the posterior is
        that of all rows (delayed acceptance). "auto" takes 1,024 rows of tables with more than
        5,000. None judges on all rows at once.
    """

    temperatures: int = 12
    hottest: float | None = None
    steps_per_draw: int = 50
    search: bool = True
    first_rows: int | str | None = "auto"

    name = "tempered"
    plug_in = False
    #: Draws a ladder for warm-up, unless the user says otherwise.
    tune = 15_000
    #: Data without noise can be fitted to all digits.
    noise_prior = NoisePrior()

    def __post_init__(self):
        for name in ("temperatures", "steps_per_draw"):
            require_count("sampler", name, getattr(self, name))
        if self.first_rows not in ("auto", None):
            require_count("sampler", "first_rows", self.first_rows)
        if self.hottest is None:
            return
        if not 0 < require_real("sampler", "hottest", self.hottest) < 1:
            raise ValueError(f"sampler: hottest is {self.hottest}; it must lie in (0, 1)")

    @property
    def drawing(self) -> tuple:
        """What draws depend on, once warm-up is over."""
        return self.name, self.temperatures, self.steps_per_draw, self.first_rows

    def powers(self, n: float) -> np.ndarray:
        """Return the powers of the likelihood that a run on so many rows begins with."""
        hottest = self.hottest or min(0.5, _HOTTEST_ROWS / n)
        return np.geomspace(1.0, hottest, self.temperatures)

    def sample(
        self,
        problem: Problem,
        *,
        tune: int,
        draws: int,
        guesses: list[list[np.ndarray]],
        seeds: list[np.random.SeedSequence],
        workers: Workers,
        watch: Watch,
        progress: Report,
        before: Point | None = None,
        save: Save = save_nothing,
    ) -> Trace:
        """Run one ladder a seed, from the guesses if there are any; return their draws.

        From a point that a run has reached `before`, it goes on. Such points are told to `save`.
        """
        problem = self.in_stages(problem)
        settling: tuple[int, int] | None = (0, 0)
        if before is None or before.trace is None:
            state = None if before is None else before.search
            ladders, begun = self._search(
                problem, tune, guesses, seeds, workers, watch, progress, state, save
            )
        else:
            ladders, begun = _restored(problem, before.trace)
            settling = before.settling
        searched = begun.search_counts
        proposed = 0 if searched is None else int(searched[PROPOSED].sum())
        tell = teller(ladders, proposed, progress)
        most = _EXACT_SETTLING if begun.pause.exact else _MOST_SETTLING
        n_settle = min(most, int(np.ceil(_SETTLE_PART * tune)))
        while True:
            if settling is not None:
                share = 1.0 if begun.restarts else _SETTLE_SHARE
                keep = partial(_save_settling, save, ladders, begun)
                done = self._settle(ladders, n_settle, workers, watch, tell, share, settling, keep)
                begun = replace(begun, warmed_up=begun.warmed_up and done == n_settle)
            trace = self._draw(ladders, draws, begun, workers, watch, tell, save)
            if trace is not None:
                break
            # A chain came upon something far better only now: warm-up was not over.
            settling = (0, 0)
            begun = replace(
                begun,
                chains=_new_chains(len(ladders)),
                pause=replace(begun.pause, made=0, spent=0.0, may_restart=True),
                restarts=begun.restarts + 1,
                settled=False,
            )
        cut = (trace.search_cut or not trace.warmed_up) and not trace.interrupted
        return replace(trace, timed_out=trace.timed_out or cut)

    def _search(
        self, problem, tune, guesses, seeds, workers, watch, progress, state, save
    ) -> tuple[list[Replicas], Trace]:
        """Return ladders at the states that the search has found, and a trace without draws."""
        ladders = [Replicas(problem, seed, self.powers(problem.data.n)) for seed in seeds]
        if guesses:
            for i, ladder in enumerate(ladders):
                for replica in range(self.temperatures):
                    ladder.put(guesses[i % len(guesses)], replica)
        begun = Trace(
            chains=_new_chains(len(ladders)),
            weights=[],
            counts=np.zeros((len(ladders), 3, N_MOVES), np.int64),
            seconds=0.0,
            pause=Pause([], made=0),
        )
        if self.search and tune > 0:
            search = Search(
                problem, self.powers, [seed.spawn(1)[0] for seed in seeds],
                self.steps_per_draw, watch.left(_SEARCH_SHARE),
            )  # fmt: skip
            if state is None:
                search.begin_at(guesses)
            else:
                search.restore(state)
            found = search.run(
                tune, workers, watch, _SEARCH_SHARE, progress,
                None if save is save_nothing else lambda make: save(lambda: Point(search=make())),
            )  # fmt: skip
            workers.forget()
            _begin_at(ladders, found, workers)
            begun = replace(
                begun,
                search_cut=not found.finished,
                search=search.best.history,
                search_agreed=found.agreed,
                search_counts=search.counts(),
                pause=Pause([], made=0, exact=found.exact),
            )
        return ladders, begun

    def in_stages(self, problem: Problem) -> Problem:
        """Return the problem as it is judged: on a part of the rows first where that pays."""
        n = np.count_nonzero(problem.data.root_weight)
        m = self.first_rows
        if m == "auto":
            m = _FIRST_ROWS if n > _FEWEST_IN_STAGES else None
        if m is None or n <= int(m):
            return problem
        return problem.in_two_stages(some_rows(problem, int(m)))

    def _settle(
        self, ladders, total, workers, watch, tell, share=_SETTLE_SHARE, begun=(0, 0),
        save=lambda parts, n: None,
    ) -> int:  # fmt: skip
        """Bring the ladders to the posterior on all rows, and adapt their temperatures.

        It goes on where so many parts were over and so many draws of the next were made.
        """
        first, made = begun
        length = round_length(len(ladders[0].problem.data.y))
        part = -(-total // (_ADAPTATIONS + 1))
        done = min(first * part, total)
        for i in range(first, _ADAPTATIONS + 1):
            for ladder in ladders:
                # Constants are optimised at first: on all rows they are others than on a part.
                ladder.optimise(OPTIMISED if i == 0 and self.search else 0.0)
            n, start = min(part, total - done), made if i == first else 0

            def after(more: int, i: int = i, start: int = start, done: int = done) -> None:
                tell("settling", done + start + more, total)
                save(i, start + more)

            def advance(rounds: list[int]) -> None:
                for n in rounds:
                    advance_all(workers, ladders, Round(self.steps_per_draw, n))

            done += start + run_even_rounds(advance, n - start, length, watch, share, after)
            if watch.should_stop(share):
                break
            if i == 0:
                _catch_up(ladders, [ladder.score for ladder in ladders], NEAR)
            for ladder in ladders:
                ladder.adapt()
        for ladder in ladders:
            ladder.optimise(0.0)
            ladder.forget()
        if total > 0:
            tell("settling", done, total, ended=True)
        return done

    def _draw(self, ladders, draws, begun, workers, watch, tell, save) -> Trace | None:
        """Return a trace with all draws; None if a ladder has left others far behind meanwhile.

        Looks come after certain numbers of draws, counted from the first of all: where a run
        paused makes no difference.
        """
        if any(ladder.optimised > 0.0 for ladder in ladders):
            raise RuntimeError(
                "constants of proposals are still optimised, as in a search: draws would not be of "
                "the posterior; set the share to 0 by Replicas.optimise before drawing"
            )
        traces, pause = begun.chains, begun.pause
        done, at_last_look = pause.made, pause.spent
        spent, enough = at_last_look, begun.settled
        # Who goes on with draws that agree wants more of them.
        may_settle = not begun.settled
        may_restart = pause.may_restart and begun.restarts < _MOST_RESTARTS

        def so_far(more: int = 0) -> Trace:
            return _paused(
                begun, ladders, made=done + more, spent=at_last_look, may_restart=may_restart
            )

        def after(more: int) -> None:
            tell("drawing", done + more, draws)
            if more < n:  # else the look at them comes first
                save(lambda: Point(so_far(more)))

        def keep(rounds: list[int], steps: int = self.steps_per_draw) -> None:
            orders = [Round(steps, n, keep=True) for n in rounds]
            workers.advance_rounds(
                ladders, orders, lambda i, order: traces[i].extend(ladders[i].output, order.n_draws)
            )

        pairs = list(zip(ladders, traces, strict=True))
        length = round_length(len(ladders[0].problem.data.y))
        floor = exact_rss(ladders[0].problem) if pause.exact else -1.0
        while max(spent, done) < draws and not (enough and may_settle):
            save(lambda: Point(so_far()))
            if watch.should_stop():
                break
            since_look = done % _DRAWS_A_LOOK
            n = min(_DRAWS_A_LOOK - since_look, draws - done)
            made = run_even_rounds(keep, n, length, watch, 1.0, after)
            cost = mean_cost(ladders)
            done += made
            spent = at_last_look + (since_look + made) * cost
            if since_look + made == _DRAWS_A_LOOK:
                at_last_look = spent
            trips = sum(int(ladder.ladder.clock[1]) for ladder in ladders)
            enough = settled(
                traces, ladders[0].problem, floor, trips if self.temperatures > 1 else None,
                _DRAWS_A_LOOK,
            )  # fmt: skip
            may_restart = may_restart and cost < _MOST_COST_OF_RESTARTS
            if not enough and may_restart and not watch.should_stop(_RESTART_SHARE):
                means = [_mean_score(*pair) for pair in pairs]
                if _catch_up(ladders, means, _FAR_BEHIND):
                    return None
        complete = max(spent, done) >= draws or (enough and may_settle)
        if done == 0:
            # Stopped before the first draw: the states warm-up has reached are what there is.
            keep([1], self.steps_per_draw if begun.warmed_up else 1)
            done = 1
        trace = replace(
            so_far(),
            weights=[np.ones(len(trace)) for trace in traces],
            counts=np.array([ladder.chains.counts.sum(axis=0) for ladder in ladders]),
            seconds=begun.seconds + watch.seconds,
            interrupted=watch.interrupted,
            timed_out=not (complete or watch.interrupted),
            settled=enough,
            ladders=[
                LadderRecord(
                    power=ladder.ladder.power.copy(),
                    swap_rate=1.0 - ladder.ladder.rejected / np.maximum(ladder.ladder.tried, 1),
                    round_trips=int(ladder.ladder.clock[1]),
                )
                for ladder in ladders
            ],
        )
        tell("drawing", done, draws, ended=True)
        return trace


def _restored(problem: Problem, before: Trace) -> tuple[list[Replicas], Trace]:
    """Return the ladders of an earlier run, and its trace, which it keeps as it is."""
    ladders = [Replicas.restored(problem, state) for state in before.pause.ladders]
    return ladders, replace(before, chains=[chain.copy() for chain in before.chains])


def _new_chains(n_ladders: int) -> list[ChainTrace]:
    return [ChainTrace(most=_most_kept(n_ladders)) for _ in range(n_ladders)]


def _most_kept(n_ladders: int) -> int:
    """Return the most draws of a ladder that are kept, an even number."""
    return max(_FEWEST_KEPT, min(_MOST_KEPT_A_LADDER, _MOST_KEPT // n_ladders // 2 * 2))


def _save_settling(
    save: Save, ladders: list[Replicas], begun: Trace, parts: int, made: int
) -> None:
    save(lambda: Point(_paused(begun, ladders), (parts, made)))


def _paused(begun: Trace, ladders: list[Replicas], **changes: Any) -> Trace:
    """Return a trace as it is now, with what it takes to go on; draws have no weights yet."""
    states = [one.state() for one in ladders]
    return replace(begun, weights=[], pause=replace(begun.pause, ladders=states, **changes))


def _begin_at(ladders: list[Replicas], found: Found, workers: Workers) -> None:
    """Start the ladders where the search ended, each with the temperatures of one of its own."""

    def begin(ladder: Replicas, seeker: Seeker, trees: list[np.ndarray]) -> None:
        ladder.take_over(seeker.replicas)
        if found.trees:
            ladder.put(trees)
            ladder.spread(trees, NEAR)

    workers.each(begin, ladders, found.seekers, found.starts)


def _catch_up(ladders: list[Replicas], scores: list[float], nats: float) -> bool:
    """Give ladders so far behind the best one its coldest state; return whether there were any."""
    best = ladders[int(np.argmax(scores))].trees()
    behind = [i for i, score in enumerate(scores) if score < max(scores) - nats]
    for i in behind:
        ladders[i].spread(best, NEAR)
    return bool(behind)


def _mean_score(ladder: Replicas, trace: ChainTrace) -> float:
    """Return the mean log posterior, up to a constant, of some of the last draws of a chain."""
    some = slice(max(0, len(trace) - _DRAWS_A_LOOK), None, _DRAWS_A_LOOK // _DRAWS_A_SCORE)
    priors = [
        ladder.problem.log_prior(split_terms(nodes, terms))
        for nodes, terms in zip(trace.nodes[some], trace.n_terms[some], strict=True)
    ]
    return float(np.mean(trace.log_likelihood[some] + priors))
