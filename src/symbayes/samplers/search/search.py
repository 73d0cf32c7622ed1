"""The search phase: find good states by any means; nothing of it is kept but where it ends.

Ladders run on a part of the rows, with the constants of some proposals optimised, in stages. From
the second stage on, half of the ladders start on transformed targets, and what they find is carried
back to y; the others start anew every two stages, and are offered further terms from the library.
The search ends when a formula fits to all digits, when several starts agree and only noise is left,
or when its budget is spent. What was found is then made shorter, if that can be done. Every
decision depends on counts alone, never on the clock, so that a seed gives the same result on any
machine (unless a time limit cuts it short).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from ...formula.trees import concatenated, evaluate_trees, split_terms, structure
from ...inputs.problem import Problem, some_rows
from ...kernels.chain import PROPOSED
from ...kernels.opcodes import FEATURE
from ..exactness import exact_rss, is_exact
from ..front import Met, merged, nothing_met
from ..ladder import LARGEST_ROUND, Replicas, Round, mean_cost
from ..run.context import Look, RunContext, Status
from ..run.scheduler import NoStart
from ..run.workers import Workers
from ..trace import ChainTrace, Find, RunState, SearchState
from . import common_factor, equal_parts, heuristics, power_law, rational
from .heuristics import all_columns, response
from .noise_floor import is_noise
from .targets import Target, divided_targets, targets_of

# Rows that a search looks at: enough to tell formulas apart, few enough to be fast.
_SEARCH_ROWS = 200
# Priors of size with which most is found: the least alpha of trees, the decay of terms. What is
# found is judged by the user's own priors afterwards.
_LEAST_ALPHA, _DECAY = 0.6, 0.1
#: Share of proposals whose constants are optimised.
OPTIMISED = 0.1
# Draws per stage; after this many draws of the first one a second is likely, and the library is
# made, from which that offers terms.
_STAGE, _PREPARE = 768, 384
# A ladder runs for this many stages before what it has found counts, and before it starts anew.
_STAGES_PER_START = 2
# The best state is confirmed by a start that ends within this many nats of it. This many
# confirmations settle the matter, but not before this many draws.
_SAME, _CONFIRMATIONS, _LEAST_DRAWS = 6.0, 4, 3840
#: States at most this many nats behind the best are worth a chain of their own.
NEAR = 10.0
# The most rounds between two looks at what was found, and the ladders that allow one more. Many
# ladders have many cores, which wait for one another at every look.
_MOST_ROUNDS, _LADDERS_PER_ROUND = 4, 8
# Steps of a chain that tries a state out.
_STEPS_TO_TRY = 200
# An improvement by fewer nats is the same find with better constants.
_WORTH_NOTING = 3.0
# An exact formula counts as the shortest after this many rounds without one that is better by this
# many nats.
_ROUNDS_TO_SHORTEN, _SHORTER = 6, 0.1


@dataclass
class SearchLadder:
    """One ladder of the search; while it works on another target, it keeps its state on y."""

    seed: np.random.SeedSequence
    on_y: Replicas
    target: Target | None = None
    """What it works on in this stage; None is y itself."""
    on_target: Replicas | None = None
    """None as well once the target has been fitted exactly; for the rest it works on y."""
    stages: int = 0
    """How long it has been on y since its start."""

    @property
    def active(self) -> Replicas:
        return self.on_target or self.on_y

    @property
    def find(self) -> Find:
        return Find(0.0, self.on_y.score, self.on_y.trees())

    def try_out(self, trees: list[np.ndarray]) -> Replicas:
        """Return a chain on y that starts at these trees, after a few steps.

        Only constants move at first, if there are any: they are optimised where they are.
        """
        chain = Replicas(self.on_y.problem, self.seed.spawn(1)[0], np.ones(1))
        chain.optimise(1.0)
        chain.put(trees)
        chain.run(_STEPS_TO_TRY, 1, 1)
        return chain


@dataclass
class Incumbent:
    """The best state so far, and those before it."""

    score: float = -np.inf
    state: list[np.ndarray] = field(default_factory=list)
    history: list[Find] = field(default_factory=list)

    def trees(self) -> list[np.ndarray]:
        return self.state

    def update(self, score: float, trees: list[np.ndarray], seconds: float) -> None:
        """Take a state over if it is better; note when it was found if it is much better."""
        if not score > self.score:
            return
        self.score, self.state = score, trees
        if self.history and score < self.history[-1].score + _WORTH_NOTING:
            self.history[-1] = replace(self.history[-1], trees=trees)
        else:
            self.history.append(Find(seconds, score, trees))


@dataclass
class SearchResult:
    """Where a search ended."""

    trees: list[np.ndarray]
    """The best state."""
    ladders: list[Replicas]
    starts: list[list[np.ndarray]]
    """Where each ladder is to begin: at different states as far as good ones were found."""
    ends: list[list[np.ndarray]]
    """What starts have come to, on y or on another target."""
    finished: bool
    """Whether it ended by itself: settled, or its budget spent."""
    exact: bool
    agreed: bool
    """Whether several starts came to the same end, or the data leave no doubt."""
    met: Met
    """The best state of each size that was met on y."""


class Search:
    """A search on one problem, with one ladder per seed.

    `powers` returns the powers of the likelihood for a number of rows. `steps` is the number of
    proposals between two draws, `seconds` the time that there is.
    """

    def __init__(
        self,
        problem: Problem,
        powers: Callable[[float], np.ndarray],
        seeds: list[np.random.SeedSequence],
        steps: int,
        seconds: float = np.inf,
    ):
        self._use = heuristics.in_use
        self._on_all_rows = _with_priors_of_a_search(problem)
        self._rows = some_rows(self._on_all_rows, _SEARCH_ROWS)
        self.problem = self._on_all_rows.on_rows(self._rows)
        # On the way to a law there may be states that nobody would believe. So every other ladder
        # begins without that limit; what it finds counts if it keeps to it, or is exact. After its
        # first start it has the limit too: noisy data have too many states that break it.
        self._free = self.problem.with_any_terms()
        self._judge = Replicas(self.problem, np.random.SeedSequence(0), np.ones(1))
        self._powers = powers(self.problem.data.n)
        self._steps = steps
        self._counts: list[np.ndarray] = []
        self._ladders = [
            SearchLadder(seed, self._new_ladder(self._problem_of(i), seed))
            for i, seed in enumerate(seeds)
        ]
        # What is suggested for y as a whole, or found for another target, is one term.
        self._one_term = not isinstance(problem.terms, int) or problem.terms == 1
        self._targets, self._divided = self._other_targets(seconds) if self._one_term else ([], [])
        # Half of the ladders work on other targets, one target after the other.
        self._others = max(1, len(seeds) // 2) if self._targets or self._divided else 0
        self._most_rounds = max(1, min(_MOST_ROUNDS, len(seeds) // _LADDERS_PER_ROUND))
        self.best = Incumbent()
        # The ends that starts have come to.
        self._ends: list[Find] = []
        # The best states of each size that ladders on y have met which are gone.
        self._met = nothing_met()
        # Draws per ladder so far; what they have cost, in units of ordinary ones; the stage, and
        # the draws per ladder in it.
        self._done, self._spent, self._stage, self._in_stage = 0, 0.0, 0, 0

    def _problem_of(self, i: int) -> Problem:
        """Return the problem of a ladder on y."""
        return self._free if i % 2 == 1 else self.problem

    def _new_ladder(self, problem: Problem, seed: np.random.SeedSequence) -> Replicas:
        ladder = Replicas(problem, seed.spawn(1)[0], self._powers)
        ladder.optimise(OPTIMISED)
        self._counts.append(ladder.chains.counts)
        return ladder

    def _other_targets(self, seconds: float) -> tuple[list[Target], list[Target]]:
        """Return the targets for y, and those for y divided by a factor that it has."""
        y, operators = response(self.problem), self.problem.operator_weights
        divided: list[Target] = []
        if self._use.common_factor:
            for (factor,) in common_factor.suggest(self._on_all_rows, None, seconds):
                (values,) = evaluate_trees([factor], all_columns(self.problem))
                divided = divided_targets(y, factor, values, operators)
        return targets_of(y, operators), divided

    def begin_at(self, guesses: list[list[np.ndarray]]) -> None:
        """Start ladders at what the user guesses, with constants optimised."""
        free = [one for one in self._ladders if one.on_y.problem is self._free]
        for i, trees in enumerate(guesses):
            ladders = self._ladders if self.problem.are_sensible(trees) else free or self._ladders
            self._try(ladders[i % len(ladders)], [trees])

    def run(self, budget: int, run: RunContext, share: float = 1.0) -> SearchResult:
        """Search for at most `budget` draws per ladder, fewer where states are large.

        It ends early when this share of the time is used up. After `restore` it resumes.
        """
        stop = partial(run.watch.should_stop, share)
        out_of_time = partial(run.watch.out_of_time, share)

        def tell(ended: bool = False) -> None:
            done = min(int(self._spent), budget)
            run.report(Status("search", done, budget, self._look, ended))

        def note() -> None:
            for ladder in self._ladders:
                find = self._find_of(ladder)
                self.best.update(find.score, find.trees, run.watch.seconds)

        # First what regression finds without any draws.
        if self._done == 0:
            self._try_known_forms(out_of_time)
            note()
        # Then ladders, stage by stage.
        exact, settled = self._is_exact(), False
        while self._spent < budget and not (exact or settled or stop()):
            if self._in_stage == 0:
                self._assign_targets()
            length = min(_STAGE, budget - (self._done - self._in_stage))
            while self._in_stage < length:
                before = self._in_stage
                resumable = self._make_rounds(length, run, share)
                halfway = self._stage == 0 and before <= _PREPARE < self._in_stage
                if halfway and budget > _STAGE and self._use.library:
                    run.workers.prepare_library(self.problem, out_of_time)
                for ladder in self._ladders:
                    if ladder.on_target is not None and is_exact(ladder.on_target):
                        # Nothing more to learn there; the rest of the stage it is on y.
                        self._carry_back(ladder)
                note()
                tell()
                exact = self._is_exact()
                if exact or self._spent >= budget:
                    break
                run.offer_state(resumable)
                if stop():
                    break
            for ladder in self._ladders:
                if ladder.on_target is not None:
                    self._carry_back(ladder)
            exact = self._is_exact()
            note()
            self._stage += 1
            self._in_stage = 0
            settled = not exact and self._settled()
        # At last a shorter way to write what was found.
        if exact:
            self._shorten(run, stop, tell)
        else:
            self._replace_equal_parts(run, stop)
        tell(ended=True)
        return SearchResult(
            trees=self.best.state,
            ladders=[
                # Of two neighbours one keeps to the limits, of which draws are made.
                self._ladders[i if exact or self._free is self.problem else i - i % 2].on_y
                for i in range(len(self._ladders))
            ],
            starts=self._starts(),
            ends=[end.trees for end in self._ends],
            finished=self._spent >= budget or exact or settled,
            exact=exact,
            agreed=exact or settled,
            met=merged([self._met, *(self._met_by(ladder.on_y) for ladder in self._ladders)]),
        )

    def _look(self) -> Look:
        return Look(self.best.state, int(self.counts()[PROPOSED].sum()))

    def _find_of(self, ladder: SearchLadder) -> Find:
        """Return what a ladder has come to on y, with the score that it counts with."""
        if ladder.on_y.problem is not self.problem and is_exact(ladder.on_y):
            return ladder.find
        return self._judged(ladder, ladder.find)

    def _judged(self, ladder: SearchLadder, find: Find) -> Find:
        """Return a find of a ladder on y with the score that it has on the problem as it is.

        That is minus infinity where its terms are not sensible.
        """
        if ladder.on_y.problem is self.problem or not find.trees:
            return find
        try:
            self._judge.move_to(find.trees)
        except NoStart:
            return replace(find, score=-np.inf)
        same = concatenated(self._judge.trees()).tobytes() == concatenated(find.trees).tobytes()
        return replace(find, score=self._judge.score if same else -np.inf)

    def _met_by(self, ladder: Replicas) -> Met:
        """Return the best state of each size that a ladder on y has met; only sensible ones."""
        free = ladder.problem is not self.problem
        return ladder.met.only(self.problem.are_sensible) if free else ladder.met

    def _is_exact(self) -> bool:
        return any(is_exact(ladder.on_y) for ladder in self._ladders)

    # Suggestions

    def _try_known_forms(self, stop: Callable[[], bool]) -> None:
        """Begin where y, or another target, has a form that regression finds."""
        for way, in_use in ((power_law, self._use.power_law), (rational, self._use.rational)):
            if in_use and self._one_term:
                self._try(self._ladders[-1], way.suggest(self.problem, None, stop))

    def _try(self, ladder: SearchLadder, suggested: Iterable[list[np.ndarray]]) -> Find | None:
        """Let a ladder take over the best of these states, if it is better; return that state."""
        best = None
        for trees in suggested:
            if max(map(len, trees), default=0) > self.problem.max_nodes:
                continue
            chain = ladder.try_out(trees)
            self._met = merged([self._met, self._met_by(chain)])
            if best is None or chain.score > best.score:
                best = Find(0.0, chain.score, chain.trees())
            if not ladder.on_y.trees() or chain.score > ladder.on_y.score:
                ladder.on_y.move_to(chain.trees())
        return best

    def _carry_back(self, ladder: SearchLadder) -> None:
        """Bring what was found on another target to y, and go on there."""
        assert ladder.target is not None
        assert ladder.on_target is not None
        best = self._try(ladder, ladder.target.suggest(self.problem, ladder.on_target))
        # It started anew, on another target, and counts as much as one that did on y.
        if best is not None:
            self._ends.append(self._judged(ladder, best))
        ladder.on_target = None

    # Stages

    def _assign_targets(self) -> None:
        """Say what each ladder does in this stage: go on, start anew, or try another target."""
        for i, ladder in enumerate(self._ladders if self._stage > 0 else ()):
            if self._stage == _STAGES_PER_START:
                self._limit(ladder)
            ladder.on_target, ladder.target = None, self._target_of(i, self._stage)
            if ladder.target is not None:
                ladder.on_target = self._new_ladder(self._problem_for(ladder.target), ladder.seed)
            elif ladder.stages >= _STAGES_PER_START:
                # It has had its chance: what it found counts, and it looks elsewhere.
                self._met = merged([self._met, self._met_by(ladder.on_y)])
                ladder.on_y = self._new_ladder(ladder.on_y.problem, ladder.seed)
                ladder.stages = 0

    def _limit(self, ladder: SearchLadder) -> None:
        """Give a ladder the limits that it has begun without; what it found stays if it counts."""
        if ladder.on_y.problem is self.problem:
            return
        find = self._find_of(ladder)
        self._met = merged([self._met, self._met_by(ladder.on_y)])
        ladder.on_y = self._new_ladder(self.problem, ladder.seed)
        if find.score > -np.inf:
            ladder.on_y.move_to(find.trees)

    def _target_of(self, i: int, stage: int) -> Target | None:
        """Return what a ladder tries in a stage; None is y itself."""
        other = i - (len(self._ladders) - self._others)
        if stage == 0 or other < 0:
            return None
        return self._target((stage - 1) * self._others + other)

    def _target(self, turn: int) -> Target:
        """Return the target of a turn: those of y, and those of y without its factor in between."""
        kinds = [targets for targets in (self._targets, self._divided) if targets]
        targets = kinds[turn % len(kinds)]
        return targets[turn // len(kinds) % len(targets)]

    def _problem_for(self, target: Target) -> Problem:
        problem = self._on_all_rows.with_any_terms()
        return problem.on_rows(self._rows, target.forward(response(self.problem)))

    def _make_rounds(self, length: int, run: RunContext, share: float) -> Callable[[], RunState]:
        """Let all ladders make draws until the next look at what they have found.

        Return what makes a state that the search can be resumed from.
        """
        left = length - self._in_stage
        n = min(LARGEST_ROUND, left)
        times = max(1, min(self._most_rounds, min(left, self._done) // LARGEST_ROUND))
        again = left // (times * n) - 1 if times == self._most_rounds else 0
        # Where rounds end early, ladders have made different numbers of draws, and the search can
        # only be resumed from where it was before.
        before = self.state() if run.save is not None and times > 1 else None
        stop = partial(run.watch.is_over if times > 1 else run.watch.out_of_time, share)
        offer = self._use.library and self._stage > 0
        made = self._advance(n, run.workers, offer, times, again, stop)
        cut = stop()
        n = made if cut else times * n
        self._done += n
        self._in_stage += n
        self._spent += n * mean_cost([ladder.active for ladder in self._ladders])
        return lambda: RunState(search=before if cut and before else self.state())

    def _advance(
        self,
        n: int,
        workers: Workers,
        offer: bool,
        times: int,
        again: int,
        stop: Callable[[], bool],
    ) -> int:
        """Let all ladders make n draws `times` times; return the least number that were made.

        Each time they are offered a term from the library if `offer` is true. The same is likely to
        be asked for `again` more times. `stop` ends it early.
        """
        active = [ladder.active for ladder in self._ladders]
        orders = []
        for replicas in active:
            # A fit that owes it to its many constants, or an approximation, is no reason to stop.
            exact = exact_rss(replicas.problem)
            no_more = bool(replicas.trees()) and replicas.rss <= exact and not is_exact(replicas)
            orders.append(Round(self._steps, n, -1.0 if no_more else exact, offer, times=times))
        made = workers.advance(active, orders, again, stop)
        for ladder, draws in zip(self._ladders, made, strict=True):
            if draws is None:
                if ladder.on_target is None:
                    raise NoStart
                ladder.on_target = None
                workers.advance([ladder.on_y], [Round(self._steps, 0, offer=offer)])
        return min(draws or 0 for draws in made)

    def _settled(self) -> bool:
        """Return whether independent starts have come to the same end often enough."""
        for ladder in self._ladders:
            if ladder.target is None:
                ladder.stages += 1
                if ladder.stages == _STAGES_PER_START or self._stage == 1:
                    self._ends.append(self._find_of(ladder))
        confirmed = sum(end.score >= self.best.score - _SAME for end in self._ends)
        return (
            confirmed >= _CONFIRMATIONS
            and self._done >= _LEAST_DRAWS
            # Every target has had its turn.
            and (self._stage - 1) * max(1, self._others) >= len(self._targets)
            and (not self._use.noise_floor or self._only_noise_left())
        )

    def _only_noise_left(self) -> bool:
        best = Replicas(self.problem, self._ladders[0].seed, np.ones(1))
        best.move_to(self.best.state)
        used = self.problem.data.root_weight > 0
        columns, residual = all_columns(self.problem).T, best.residual()[used]
        return is_noise(columns, residual, self.problem.trust)

    # A shorter way to write what was found

    def _replace_equal_parts(self, run: RunContext, stop: Callable[[], bool]) -> None:
        """Replace parts of the best state by shorter equals, as long as that helps."""
        exact = self._is_exact()
        some = [one for one in self._ladders if exact or one.on_y.problem is self.problem]
        ladder = max(some, key=lambda ladder: ladder.on_y.score)
        helped = self._use.equal_parts
        while helped and not stop():
            helped = False
            for trees in equal_parts.suggest(self.problem, self.best, stop):
                chain = ladder.try_out(trees)
                self._met = merged([self._met, self._met_by(chain)])
                if chain.score > self.best.score + _SHORTER:
                    self.best.update(chain.score, chain.trees(), run.watch.seconds)
                    helped = True
                    break
        if self.best.score > ladder.on_y.score:
            ladder.on_y.move_to(self.best.state)

    def _shorten(self, run: RunContext, stop: Callable[[], bool], tell: Callable[[], None]) -> None:
        """Look for shorter exact formulas around the best: one step is enough for many.

        Constants are optimised as before, and each find is the start of the next round.
        """
        self._replace_equal_parts(run, stop)
        idle = 0 if self._use.shortening else _ROUNDS_TO_SHORTEN
        while idle < _ROUNDS_TO_SHORTEN and not stop():
            before = self.best.score
            ladders = [ladder.on_y for ladder in self._ladders]
            for ladder in ladders:
                ladder.put(self.best.state)
            made = run.workers.advance_all(ladders, Round(self._steps, LARGEST_ROUND, keep=True))
            for ladder, n in zip(ladders, made, strict=True):
                self.best.update(*_best_draw(ladder, n), run.watch.seconds)
            tell()
            idle += 1
            if self.best.score > before + _SHORTER:
                self._replace_equal_parts(run, stop)
                idle = 0
        for one in self._ladders:
            one.on_y.move_to(self.best.state)

    # Where the sampling begins

    def _starts(self) -> list[list[np.ndarray]]:
        """Return where each ladder is to begin.

        Data may have several explanations that are equally good, and chains which all begin at one
        of them may agree without ever having seen the others. So ladders begin at different states
        among the good ones that independent starts of the search have ended in: with different
        columns as far as possible, then with different structures.
        """
        own = list(map(self._find_of, self._ladders))
        if self.best.score == -np.inf:
            return [[] for _ in own]  # nothing that counts was found
        best = Find(0.0, self.best.score, self.best.state)
        good = [find for find in (best, *own, *self._ends) if find.score >= best.score - NEAR]
        chosen = _most_different(sorted(good, key=lambda find: -find.score), len(own))
        starts: dict[int, Find] = {}
        left = []
        for find in chosen:  # a ladder that is there already stays
            for i, one in enumerate(own):
                if i not in starts and _structure(one) == _structure(find):
                    starts[i] = find
                    break
            else:
                left.append(find)
        for i, find in enumerate(own):
            if i not in starts:
                near = find.score >= best.score - NEAR
                starts[i] = left.pop(0) if left else find if near else chosen[i % len(chosen)]
        return [starts[i].trees for i in range(len(own))]

    # What is told and kept of it

    def counts(self) -> np.ndarray:
        """Return proposals made, evaluated and accepted, by move, of all ladders together."""
        return np.sum([counts.sum(axis=0) for counts in self._counts], axis=0)

    def state(self) -> SearchState:
        """Return what it takes to resume from here, between two rounds of a stage."""
        in_use = [one for ladder in self._ladders for one in (ladder.on_y, ladder.on_target) if one]
        counts = np.sum([one.chains.counts.sum(axis=0) for one in in_use], axis=0)
        return SearchState(
            done=self._done,
            spent=self._spent,
            stage=self._stage,
            in_stage=self._in_stage,
            ladders=[ladder.on_y.state() for ladder in self._ladders],
            others={i: s.on_target.state() for i, s in enumerate(self._ladders) if s.on_target},
            stages=[ladder.stages for ladder in self._ladders],
            spawned=[ladder.seed.n_children_spawned for ladder in self._ladders],
            best=Find(0.0, self.best.score, self.best.state),
            history=list(self.best.history),
            ends=list(self._ends),
            counts=self.counts() - counts,
            met=self._met,
        )

    def restore(self, state: SearchState) -> None:
        """Resume from a state of a search on the same problem, with the same seeds."""
        self._done, self._spent = state.done, state.spent
        self._stage, self._in_stage = state.stage, state.in_stage
        self.best = Incumbent(state.best.score, state.best.trees, list(state.history))
        self._ends = list(state.ends)
        self._met = state.met
        self._counts = [state.counts[None]]
        for i, ladder in enumerate(self._ladders):
            seed, spawned = ladder.seed, state.spawned[i]
            ladder.seed = np.random.SeedSequence(
                seed.entropy, spawn_key=seed.spawn_key, n_children_spawned=spawned
            )
            ladder.stages = state.stages[i]
            ladder.target = self._target_of(i, state.stage)
            free = state.stage < _STAGES_PER_START
            problem = self._problem_of(i) if free else self.problem
            ladder.on_y = Replicas.restored(problem, state.ladders[i])
            self._counts.append(ladder.on_y.chains.counts)
            if i in state.others:
                assert ladder.target is not None
                problem = self._problem_for(ladder.target)
                ladder.on_target = Replicas.restored(problem, state.others[i])
                self._counts.append(ladder.on_target.chains.counts)


def _with_priors_of_a_search(problem: Problem) -> Problem:
    tree, terms = problem.tree_prior, problem.terms
    return replace(
        problem,
        tree_prior=replace(tree, alpha=max(tree.alpha, _LEAST_ALPHA)),
        terms=terms if isinstance(terms, int) else replace(terms, decay=_DECAY),
    )


def _best_draw(replicas: Replicas, n: int) -> tuple[float, list[np.ndarray]]:
    """Return the score of the best of the draws of a round, and that draw."""
    draws = ChainTrace()
    draws.extend(replicas.output, n)
    states = list(map(split_terms, draws.nodes, draws.n_terms))
    scores = draws.log_likelihood + np.array(list(map(replicas.problem.log_prior, states)))
    best = int(np.argmax(scores))
    return scores[best], states[best]


def _most_different(finds: list[Find], n: int) -> list[Find]:
    """Return up to n states, of those given best first, that have little in common.

    First those with columns that none before them has, then those with another structure.
    """
    chosen: list[Find] = []
    for key in (_columns, _structure):
        taken = {key(find) for find in chosen}
        for find in finds:
            if len(chosen) < n and key(find) not in taken:
                taken.add(key(find))
                chosen.append(find)
    return chosen


def _columns(find: Find) -> frozenset[int]:
    return frozenset(
        column for tree in find.trees for column in tree["feature"][tree["op"] == FEATURE].tolist()
    )


def _structure(find: Find) -> tuple[str, ...]:
    return structure(concatenated(find.trees), len(find.trees))
