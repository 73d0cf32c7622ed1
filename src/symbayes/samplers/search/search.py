"""The search phase: find good states by any means; nothing of it is kept but where it ends.

Ladders run on a part of the rows, with the constants of some proposals optimised. In stages, half
of them start on transformed targets (`targets.py`), and what those teach is carried back; the
others start anew after two stages. A small library offers terms for the residual (`library.py`).
The search ends when a formula fits to all digits, when several starts agree and only noise is left
(`noise_floor.py`), or when its budget is spent. What was found is then made shorter, if that can be
done (`shortest.py`). Every decision depends on counts alone, never on the clock, so that a
seed gives the same result on any machine (unless a time limit cuts it short).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from ...formula.trees import concatenated, evaluate_trees, product_of_powers, structure
from ...inputs.problem import Problem, some_rows
from ...kernels.chain import PROPOSED
from ...kernels.opcodes import FEATURE
from ..exactness import exact_rss, is_exact
from ..ladder import LARGEST_ROUND, Replicas, Round, mean_cost
from ..run.context import Look, RunContext, Status
from ..run.scheduler import NoStart, never
from ..run.workers import Workers
from ..trace import Find, RunState, SearchState
from . import heuristics
from .factors import common_factor
from .noise_floor import is_noise
from .power_law import power_law_trees
from .rational import rational_trees
from .seekers import Best, Place, Seeker, columns_of, for_searching, guest
from .shortest import Shortest
from .targets import Target, carry_back, divided, usable

# Rows a search looks at: enough to tell formulas apart, few enough to be fast.
_SEARCH_ROWS = 200
# Rows on which a common factor is looked for.
_FACTOR_ROWS = 2000
#: Share of proposals whose constants are optimised.
OPTIMISED = 0.1
# A find is confirmed by a ladder that has started anew and ended within so many nats of it. So
# many confirmations settle the matter, but not before so many draws.
_SAME, _CONFIRMATIONS, _LEAST_DRAWS = 6.0, 4, 3840
#: States this many nats behind the best are still worth a chain of their own.
NEAR = 10.0
# A ladder has to run for so many stages before it counts, and before it may have to start anew.
_STAGES_A_START = 2
# Rounds between two looks at what was found, at most: one for so many ladders. Many ladders have
# many cores, which wait for one another at every look.
_MOST_ROUNDS, _LADDERS_A_ROUND = 4, 8
# Draws a stage, and after how many of the first there is likely to be a second, which offers terms.
_STAGE, _PREPARE = 768, 384


@dataclass
class Found:
    """Where a search ended."""

    trees: list[np.ndarray]
    """The best state."""
    seekers: list[Seeker]
    starts: list[list[np.ndarray]]
    """Where each ladder is to begin: at different states as far as good ones were found."""
    finished: bool
    """Whether it ended by itself: settled, or its budget spent."""
    exact: bool
    agreed: bool
    """Whether several starts came to the same end, or the data leave no doubt."""


class Search:
    """A search on one problem."""

    def __init__(
        self,
        problem: Problem,
        powers: Callable[[float], np.ndarray],
        seeds: list[np.random.SeedSequence],
        steps: int,
        seconds: float = np.inf,
    ):
        self._use = heuristics.in_use
        problem = for_searching(problem)
        rows = some_rows(problem, _SEARCH_ROWS)
        self.problem = problem.on_rows(rows)
        self._steps = steps
        self._powers = powers(self.problem.data.n)
        y = self.problem.response()[: len(rows)]
        self._y = y if y.max() > 0 else -y
        self._rows = rows
        self._original = problem
        # What is found on another target comes back as one term.
        self._one_term = not isinstance(problem.terms, int) or problem.terms == 1
        self._targets: list[Target] = []
        if self._one_term and self._use.targets:
            self._targets = usable(self._y, problem.operator_weights)
        self._divided: list[Target] = []
        if self._one_term and self._use.common_factor:
            self._divided = self._without_factor(seconds)
        self._counts: list[np.ndarray] = []
        self._seekers = [Seeker(seed, self._new(self.problem, seed)) for seed in seeds]
        # Half of the ladders try other targets, one after the other.
        self._others = max(1, len(seeds) // 2) if self._targets or self._divided else 0
        self._stages_for_targets = -(-len(self._targets) // max(1, self._others))
        self._most_rounds = max(1, min(_MOST_ROUNDS, len(seeds) // _LADDERS_A_ROUND))
        self.best = Best()
        self._ends: list[Find] = []
        self._place = Place()

    def _new(self, problem: Problem, seed: np.random.SeedSequence) -> Replicas:
        replicas = Replicas(problem, seed.spawn(1)[0], self._powers)
        replicas.optimise(OPTIMISED)
        self._counts.append(replicas.chains.counts)
        return replicas

    def counts(self) -> np.ndarray:
        """Return proposals made, evaluated and accepted, by move, of all ladders together."""
        return np.sum([counts.sum(axis=0) for counts in self._counts], axis=0)

    def begin_at(self, guesses: list[list[np.ndarray]]) -> None:
        """Start ladders at what the user guesses, with constants optimised."""
        for i, trees in enumerate(guesses):
            seeker = self._seekers[i % len(self._seekers)]
            chain = guest(self.problem, seeker.seed, trees)
            if not seeker.replicas.trees() or chain.score > seeker.replicas.score:
                seeker.begin_at(chain.trees())

    def run(self, budget: int, run: RunContext, share: float = 1.0) -> Found:
        """Search for at most `budget` draws per ladder, fewer where states are large.

        It ends early when this share of the time is used up. After `restore` it resumes.
        """
        workers, watch = run.workers, run.watch
        place, exact, settled = self._place, False, False
        offer = self._use.library

        def tell(ended: bool = False) -> None:
            run.report(Status("search", min(int(place.spent), budget), budget, self._look, ended))

        if place.done == 0:
            self._try_known_forms(partial(watch.out_of_time, share))
            exact = any(is_exact(seeker.replicas) for seeker in self._seekers)
            self._note(watch.seconds)
        while place.spent < budget and not (exact or settled or watch.should_stop(share)):
            if place.in_stage == 0:
                self._assign(place.stage)
            length = min(_STAGE, budget - (place.done - place.in_stage))
            while place.in_stage < length:
                left = length - place.in_stage
                times, n = self._rounds(left), min(LARGEST_ROUND, left)
                again = left // (times * n) - 1 if times == self._most_rounds else 0
                # Where rounds end early, what was there before can be kept, and gone on from.
                before = self.state() if run.save is not None and times > 1 else None
                stop = partial(watch.is_over if times > 1 else watch.out_of_time, share)
                made = self._advance(n, workers, offer and place.stage > 0, times, again, stop)
                cut = stop()
                n = made if cut else times * n
                halfway = place.stage == 0 and 0 <= _PREPARE - place.in_stage < n
                if offer and halfway and budget > _STAGE:
                    workers.prepare_library(self.problem, partial(watch.out_of_time, share))
                place.advance(n, mean_cost([seeker.at_work for seeker in self._seekers]))
                for seeker in self._seekers:
                    if seeker.other is not None and is_exact(seeker.other):
                        # Nothing more to learn there; the rest of the stage it is on y.
                        self._carry_back(seeker)
                self._note(watch.seconds)
                tell()
                exact = any(is_exact(seeker.replicas) for seeker in self._seekers)
                if exact or place.spent >= budget:
                    break
                kept = before if cut else None
                run.offer_state(partial(self._run_state, kept))
                if watch.should_stop(share):
                    break
            exact = self._collect()
            self._note(watch.seconds)
            place.next_stage()
            settled = not exact and self._settled(place.done, place.stage)
        shortest = Shortest(
            self.problem, self._seekers, self.best, self._steps,
            partial(self._new, self.problem), self._advance, tell, self._use,
        )  # fmt: skip
        if exact:
            shortest.shorten(workers, watch, share)
            shortest.find_others(workers, watch, share)
        else:
            shortest.simplify(watch, share)
        tell(ended=True)
        return Found(
            trees=self.best.trees,
            seekers=self._seekers,
            starts=self._starts(),
            finished=place.spent >= budget or exact or settled,
            exact=exact,
            agreed=exact or settled,
        )

    def _run_state(self, kept: SearchState | None) -> RunState:
        return RunState(search=kept or self.state())

    def state(self) -> SearchState:
        """Return what it takes to go on from here, between two rounds of a stage."""
        at_work = [ladder for s in self._seekers for ladder in (s.replicas, s.other) if ladder]
        now = np.sum([ladder.chains.counts.sum(axis=0) for ladder in at_work], axis=0)
        return SearchState(
            **vars(self._place),
            ladders=[seeker.replicas.state() for seeker in self._seekers],
            others={i: s.other.state() for i, s in enumerate(self._seekers) if s.other},
            stages=[seeker.stages for seeker in self._seekers],
            spawned=[seeker.seed.n_children_spawned for seeker in self._seekers],
            best=Find(0.0, self.best.score, self.best.trees),
            history=list(self.best.history),
            ends=list(self._ends),
            counts=self.counts() - now,
        )

    def restore(self, state: SearchState) -> None:
        """Go on from a state of a search on the same problem, with the same seeds."""
        self._place = Place(state.done, state.spent, state.stage, state.in_stage)
        self.best = Best(state.best.score, state.best.trees, list(state.history))
        self._ends = list(state.ends)
        self._counts = [state.counts[None]]
        for i, seeker in enumerate(self._seekers):
            seeker.seed = np.random.SeedSequence(
                seeker.seed.entropy,
                spawn_key=seeker.seed.spawn_key,
                n_children_spawned=state.spawned[i],
            )
            seeker.stages = state.stages[i]
            seeker.target = self._target_of(i, state.stage)
            seeker.replicas.restore(state.ladders[i])
            self._counts.append(seeker.replicas.chains.counts)
            if i in state.others:
                assert seeker.target is not None
                problem = self._problem_for(seeker.target)
                seeker.other = Replicas.restored(problem, state.others[i])
                self._counts.append(seeker.other.chains.counts)

    def _look(self) -> Look:
        return Look(self.best.trees, int(self.counts()[PROPOSED].sum()))

    def _rounds(self, left: int) -> int:
        """Return how many rounds ladders make on their own, where so many draws are left."""
        return max(1, min(self._most_rounds, min(left, self._place.done) // LARGEST_ROUND))

    def _advance(
        self,
        n: int,
        workers: Workers,
        offer: bool = False,
        times: int = 1,
        again: int = 0,
        stop: Callable[[], bool] = never,
    ) -> int:
        """Let all ladders make draws, and offer them terms from the library if asked to.

        So many times, and as many times again it will be asked to do so; `stop` ends it early.
        Return the least number of draws that were made.
        """
        orders = [self._order(seeker.at_work, n, offer, times) for seeker in self._seekers]
        made = workers.advance([seeker.at_work for seeker in self._seekers], orders, again, stop)
        for seeker, draws in zip(self._seekers, made, strict=True):
            if draws is not None:
                continue
            if seeker.other is None:
                raise NoStart
            seeker.other = None
            workers.advance([seeker.replicas], [Round(self._steps, 0, offer=offer)])
        return min(draws or 0 for draws in made)

    def _order(self, replicas: Replicas, n: int, offer: bool, times: int) -> Round:
        # A fit that owes it to its many constants, or an approximation, is no reason to stop.
        exact = exact_rss(replicas.problem)
        no_more = bool(replicas.trees()) and replicas.rss <= exact and not is_exact(replicas)
        good_enough = -1.0 if no_more else exact
        return Round(self._steps, n, good_enough, offer, times=times)

    def _assign(self, stage: int) -> None:
        """Say what each ladder does next: go on, start anew, or try another target."""
        if stage == 0:
            return
        for i, seeker in enumerate(self._seekers):
            seeker.other, seeker.target = None, self._target_of(i, stage)
            if seeker.target is not None:
                seeker.other = self._new(self._problem_for(seeker.target), seeker.seed)
            elif seeker.stages >= _STAGES_A_START:
                # It has had its chance: what it found counts, and it looks elsewhere.
                seeker.replicas = self._new(self.problem, seeker.seed)
                seeker.stages = 0

    def _target_of(self, i: int, stage: int) -> Target | None:
        """Return what a ladder tries in a stage; None is y itself."""
        first = len(self._seekers) - self._others
        if stage == 0 or i < first:
            return None
        return self._target((stage - 1) * self._others + i - first)

    def _problem_for(self, target: Target) -> Problem:
        return self._original.on_rows(self._rows, target.forward(self._y))

    def _target(self, turn: int) -> Target:
        """Return the target of a turn: those of y, and those of y without its factor in between."""
        if not (self._targets and self._divided):
            every = self._targets or self._divided
            return every[turn % len(every)]
        every = self._divided if turn % 2 else self._targets
        return every[turn // 2 % len(every)]

    def _without_factor(self, seconds: float) -> list[Target]:
        """Return the targets for y without a factor that it has, none if it has none."""
        original, operators = self._original, self.problem.operator_weights
        if np.count_nonzero(original.data.root_weight) > _FACTOR_ROWS:
            original = original.on_rows(some_rows(original, _FACTOR_ROWS))
        used = original.data.root_weight > 0
        exponents = common_factor(columns_of(original), original.response()[used], seconds)
        chosen = np.flatnonzero(exponents)
        if len(chosen) == 0:
            return []
        tree = product_of_powers(chosen.tolist(), exponents[chosen].tolist(), operators)
        if tree is None or 2 * len(tree) > self.problem.max_nodes:
            return []
        (values,) = evaluate_trees([tree], columns_of(self.problem))
        return divided(self._y, tree, values, operators)[: None if self._use.targets else 1]

    def _collect(self) -> bool:
        """Take what the ladders have found; return whether it is exact."""
        for seeker in self._seekers:
            if seeker.other is not None:
                self._carry_back(seeker)
        return any(is_exact(seeker.replicas) for seeker in self._seekers)

    def _note(self, seconds: float) -> None:
        """Remember the best state so far, and when it was found."""
        for seeker in self._seekers:
            self.best.remember(seeker.replicas.score, seeker.replicas.trees(), seconds)

    def _carry_back(self, seeker: Seeker) -> None:
        """Bring the find on another target into the ladder on y, if it is better there."""
        assert seeker.other is not None
        assert seeker.target is not None
        trees = seeker.other.trees()
        intercept, coefficients = seeker.other.coefficients()
        best = self._receive(
            seeker,
            carry_back(
                seeker.target, trees, intercept, coefficients, self.problem.operator_weights
            ),
        )
        # It started anew, on another target, and counts as much as one that did on y.
        if best is not None:
            self._ends.append(best)
        seeker.other = None

    def _receive(self, seeker: Seeker, trees: list[np.ndarray]) -> Find | None:
        """Let a ladder take over the best of these trees, if it is better; return that tree."""
        best = None
        for tree in trees:
            if len(tree) > self.problem.max_nodes:
                continue
            chain = guest(self.problem, seeker.seed, [tree])
            if best is None or chain.score > best.score:
                best = Find(0.0, chain.score, chain.trees())
            if not seeker.replicas.trees() or chain.score > seeker.replicas.score:
                seeker.begin_at(chain.trees())
        return best

    def _starts(self) -> list[list[np.ndarray]]:
        """Return where each ladder is to begin.

        Data may have several explanations that are equally good, and chains which all begin at one
        of them may agree without ever having seen the others. So ladders begin at different states
        among the good ones that independent starts of the search have ended in: with different
        columns as far as possible, then with different structures.
        """
        own = [Find(0.0, s.replicas.score, s.replicas.trees()) for s in self._seekers]
        best = Find(0.0, self.best.score, self.best.trees)
        good = [find for find in (best, *own, *self._ends) if find.score >= best.score - NEAR]
        chosen = _most_different(sorted(good, key=lambda find: -find.score), len(own))
        structures = [_structure(find) for find in own]
        starts: list[Find | None] = [None] * len(own)
        for find in chosen:  # a ladder that is there already stays
            place = next(
                (i for i, one in enumerate(structures)
                 if starts[i] is None and one == _structure(find)), None
            )  # fmt: skip
            if place is not None:
                starts[place] = find
        left = [find for find in chosen if not any(find is one for one in starts)]
        for i, find in enumerate(own):
            if starts[i] is None:
                near = find.score >= best.score - NEAR
                starts[i] = left.pop(0) if left else find if near else chosen[i % len(chosen)]
        return [find.trees for find in starts if find is not None]

    def _try_known_forms(self, stop: Callable[[], bool]) -> None:
        """Begin where y, or another target, has a form that regression finds."""
        if not self._one_term:
            return
        seeker = self._seekers[-1]
        columns, operators = columns_of(self.problem), self.problem.operator_weights
        trees = []
        if self._use.power_law:
            trees += power_law_trees(columns, self._y, self._targets, operators, stop)
        if self._use.rational:
            trees += rational_trees(columns, self._y, operators, stop)
        self._receive(seeker, trees)

    def _settled(self, done: int, stage: int) -> bool:
        """Return whether independent starts have come to the same end often enough."""
        for seeker in self._seekers:
            if seeker.target is not None:
                continue
            seeker.stages += 1
            if seeker.stages == _STAGES_A_START or stage == 1:
                find = Find(0.0, seeker.replicas.score, seeker.replicas.trees())
                self._ends.append(find)
        confirmed = sum(end.score >= self.best.score - _SAME for end in self._ends)
        return (
            confirmed >= _CONFIRMATIONS
            and done >= _LEAST_DRAWS
            and stage > self._stages_for_targets
            and (not self._use.noise_floor or self._only_noise_left())
        )

    def _only_noise_left(self) -> bool:
        data = self.problem.data
        used = data.root_weight > 0
        best = Replicas(self.problem, self._seekers[0].seed, np.ones(1))
        best.put(self.best.trees)
        best.fit()
        columns = data.x.reshape(-1, len(data.y))[:, used].T
        return is_noise(columns, best.residual()[used])


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
