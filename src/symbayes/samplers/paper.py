"""The paper's sampler: a fixed number of trees, plug-in likelihood, its own stopping rule."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, replace

import numpy as np

from ..inputs.prior import NoisePrior, require_count
from ..inputs.problem import Problem
from ..kernels import units
from ..kernels.chain import LOG_LIKELIHOOD, PROPOSED, RSS, Chain
from ..kernels.run import KEPT
from ..kernels.tree_prior import Prior
from .ladder_state import LadderState, restore, state_of
from .pause import Pause, Point, Save, save_nothing
from .run.running import Look, Report, Status, Watch, Workers, run_rounds
from .run.turns import NoStart
from .search.library import LibraryCache
from .trace import ChainTrace, Output, Trace, empty_output, packed_output, split_terms, unpack

# Trees proposed in the smallest round, and rounds of that size in the largest.
_TREES_A_UNIT = 250
_LARGEST_ROUND = 8


@dataclass(frozen=True)
class PaperSampler:
    """Settings of the paper's sampler, "Bayesian Symbolic Regression" (Jin et al., 2019).

    Trees are updated in turn by seven reversible moves, constants by reversible jump. Each chain
    stops after `max_trees` proposed trees, or when `tune + draws` models were accepted; the first
    `tune` of them, at most half of all, are left out of the posterior. An accepted model counts as
    long as it was held.

    Three things do not hold as printed and are repaired:

    * Prune has probability zero while a tree has at most six operators, so Grow could not be
      undone there: Grow's share of its third is capped at one half.
    * Delete may keep the right child, but Insert always puts the old subtree left: Insert picks
      the side.
    * The auxiliary variables of the reversible jump enter the ratio with the densities they are
      really drawn from, around 1 for slopes on expansion and around 0 on shrinkage, given the
      variances of the side they belong to. Those variances are shared by all trees, so that the
      constants of all trees enter as well.

    Parameters
    ----------
    max_trees : int
        Trees proposed a chain, at most.
    """

    max_trees: int = 100_000

    name = "paper"
    plug_in = True
    #: Accepted models a chain to leave out, unless the user says otherwise.
    tune = 2000
    #: The noise is redrawn with every proposal, so a prior far from the data accepts nothing.
    noise_prior = NoisePrior(shape=1.0, scale=0.01)
    #: The share of Stay is n_l / (4 (n_l + 3)) for n_l linear transforms.
    move_shape = (0.25, 3.0)

    def __post_init__(self):
        require_count("sampler", "max_trees", self.max_trees)

    @property
    def drawing(self) -> tuple:
        """What draws depend on, besides the problem."""
        return (self.name,)

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
        """Run one chain a seed, from the guesses if there are any; return the accepted models.

        From a point that a run has reached `before`, it goes on. Such points are told to `save`.
        """
        runs = [PaperChain(problem, seed) for seed in seeds]
        earlier = None if before is None else before.trace
        if earlier is not None:
            guesses = []
            for run, state, trace in zip(runs, earlier.pause.ladders, earlier.chains, strict=True):
                run.restore(state)
                run.trace = trace.copy()
        for i, run in enumerate(runs if guesses else []):
            run.begin_at(guesses[i % len(guesses)])

        def finished(run: PaperChain) -> bool:
            return len(run.trace) >= tune + draws or run.clock[0] >= self.max_trees

        def advance(active: list[PaperChain], n: int) -> None:
            orders = [
                Trees(
                    min(n * _TREES_A_UNIT, int(self.max_trees) - int(run.clock[0])),
                    tune + draws - len(run.trace),
                )
                for run in active
            ]
            for run, made in zip(active, workers.advance(active, orders), strict=True):
                if made is None:
                    raise NoStart
                run.trace.extend(run.output, made, run.times)

        def tell(n: int, ended: bool = False) -> None:
            done = min(n * _TREES_A_UNIT, self.max_trees)
            progress(Status("trees", done, self.max_trees, lambda: _look(runs), ended))

        def so_far() -> Trace:
            made = max(0, max(len(run.trace) for run in runs) - tune)
            return Trace(
                chains=[run.trace for run in runs],
                weights=[],
                counts=np.array([run.chain.counts for run in runs]),
                seconds=0.0 if earlier is None else earlier.seconds,
                pause=Pause([run.state() for run in runs], made),
            )

        def after(n: int) -> None:
            tell(n)
            save(lambda: Point(so_far()))

        units_in_all = -(-self.max_trees // _TREES_A_UNIT)
        n = run_rounds(
            lambda n: advance([run for run in runs if not finished(run)], n),
            units_in_all, watch, 1.0, after, _LARGEST_ROUND, lambda: all(map(finished, runs)),
        )  # fmt: skip
        complete = all(map(finished, runs))
        if n == 0 and earlier is None:  # stopped before the first round: the start is all there is
            advance(runs, 1)
        result = so_far()
        tell(n, ended=True)
        return replace(
            result,
            weights=[_holding_times(run.trace, int(run.clock[0]), tune) for run in runs],
            seconds=result.seconds + watch.seconds,
            interrupted=watch.interrupted,
            timed_out=not complete and not watch.interrupted,
        )


@dataclass(frozen=True)
class Trees:
    """What a chain is to do until the others have done the same."""

    n_trees: int
    """Trees to propose."""
    most_accepted: int
    """It ends early when so many were accepted."""


class PaperChain:
    """One chain with all that belongs to it."""

    def __init__(self, problem: Problem, seed: np.random.SeedSequence):
        room = _TREES_A_UNIT * _LARGEST_ROUND + 1
        self.problem = problem
        self._loop = units.load(PaperSampler.name)
        self.chain = problem.new_chain(seed)
        self.prior = problem.new_prior(PaperSampler.move_shape)
        self.scratch = problem.new_scratch()
        self.output: Output = empty_output(room, problem.most_terms * problem.max_nodes, KEPT)
        self.times = np.zeros(room, np.int64)
        self.clock = np.zeros(1, np.int64)
        self.trace = ChainTrace()
        self._without_columns = np.zeros(1, bool)

    @classmethod
    def blank(cls, problem: Problem, state: LadderState) -> PaperChain:
        """Return a chain that a state can be restored to."""
        return cls(problem, np.random.SeedSequence(0))

    def begin_at(self, trees: list[np.ndarray]) -> None:
        """Take a state to start from; it is fitted when the chain runs."""
        size = self.problem.max_nodes
        for k, tree in enumerate(trees):
            self.chain.nodes[k * size : k * size + len(tree)] = tree
        self.chain.n_terms[0] = len(trees)
        self.chain.numbers[LOG_LIKELIHOOD] = np.nan

    def carry_out(
        self, order: Trees, shelf: LibraryCache, in_parts: bool = False
    ) -> Generator[None, None, int]:
        """Propose trees; return how many were accepted, now in `output` and `times`."""
        yield from ()  # all in one part: its chains are rarely more than the cores
        if self._without_columns.any():
            make = units.load_make_columns()
            make(self._stacked()[0], self.problem.data, self.scratch, self._without_columns)
        accepted = self._loop(
            self.chain, self.prior, self.problem.data, self.scratch,
            order.n_trees, order.most_accepted, self.clock, *self.output, self.times,
        )  # fmt: skip
        if accepted < 0:
            raise NoStart
        return int(accepted)

    def state(self) -> LadderState:
        """Return all that has to be known to go on elsewhere, or later, with the same draws."""
        return state_of(*self._stacked(), {"clock": self.clock}, 0.0)

    def restore(self, state: LadderState) -> None:
        """Go on from a state of a chain on the same problem."""
        restore(state, *self._stacked(), {"clock": self.clock})
        self._without_columns[:] = True

    def kept(self, order: Trees, n_draws: int) -> tuple[np.ndarray, ...]:
        """Return the models of a round, as they are sent."""
        return (*packed_output(self.output, n_draws), self.times[:n_draws].copy())

    def receive(self, kept: tuple[np.ndarray, ...]) -> None:
        """Take the models of a round that was carried out elsewhere."""
        unpack((*self.output, self.times), kept)

    def _stacked(self) -> tuple[Chain, Prior]:
        """Return views that look like a ladder of one replica."""
        return Chain(*(a[None] for a in self.chain)), Prior(*(a[None] for a in self.prior))


def _look(runs: list[PaperChain]) -> Look:
    """Return the last accepted model of the chain where it fits best."""
    best = min((run.trace for run in runs), key=lambda trace: trace.numbers[-1][RSS])
    return Look(
        split_terms(best.nodes[-1], best.n_terms[-1]),
        sum(int(run.chain.counts[PROPOSED].sum()) for run in runs),
    )


def _holding_times(trace: ChainTrace, trees: int, tune: int) -> np.ndarray:
    """Return for how many proposals each model was held; 0 for those left out as warm-up."""
    weights = np.diff(np.append(trace.times, trees + 1)).astype(float)
    weights[: min(tune, len(trace) // 2)] = 0.0
    return weights
