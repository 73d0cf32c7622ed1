"""The paper's sampler: a fixed number of trees, plug-in likelihood, its own stopping rule."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, replace

import numpy as np

from ..formula.trees import split_terms
from ..inputs.problem import Problem
from ..inputs.sampler_settings import PaperSampler
from ..kernels import units
from ..kernels.chain import LOG_LIKELIHOOD, PROPOSED, RSS, Chain
from ..kernels.run import KEPT
from ..kernels.tree_prior import Prior
from .ladder import restore_state, state_of
from .run.clock import run_in_rounds
from .run.context import Look, RunContext, Status
from .run.scheduler import NoStart
from .search.library import LibraryCache
from .trace import (
    ChainTrace,
    DrawingState,
    LadderState,
    Output,
    RunState,
    Trace,
    empty_output,
    packed_output,
    unpack,
)

# Trees proposed in the smallest round, and rounds of that size in the largest.
_TREES_A_UNIT = 250
_LARGEST_ROUND = 8
# The share of Stay is n_l / (4 (n_l + 3)) for n_l linear transforms.
_MOVE_SHAPE = (0.25, 3.0)


def sample(
    settings: PaperSampler,
    problem: Problem,
    *,
    tune: int,
    draws: int,
    guesses: list[list[np.ndarray]],
    seeds: list[np.random.SeedSequence],
    run: RunContext,
    before: RunState | None = None,
) -> Trace:
    """Run one chain per seed, from the guesses or from `before`; return the accepted models."""
    chains = [PaperChain(problem, seed) for seed in seeds]
    earlier = None if before is None else before.trace
    if earlier is not None:
        for chain, state, draws_of in zip(
            chains, earlier.state.ladders, earlier.chains, strict=True
        ):
            chain.restore(state)
            chain.trace = draws_of.copy()
    elif guesses:
        for i, chain in enumerate(chains):
            chain.begin_at(guesses[i % len(guesses)])

    def finished(chain: PaperChain) -> bool:
        return len(chain.trace) >= tune + draws or chain.clock[0] >= settings.max_trees

    def all_finished() -> bool:
        return all(map(finished, chains))

    def advance(n: int) -> None:
        active = [chain for chain in chains if not finished(chain)]
        orders = [
            Trees(
                min(n * _TREES_A_UNIT, int(settings.max_trees) - int(chain.clock[0])),
                tune + draws - len(chain.trace),
            )
            for chain in active
        ]
        for chain, made in zip(active, run.workers.advance(active, orders), strict=True):
            if made is None:
                raise NoStart
            chain.trace.extend(chain.output, made, chain.times)

    def so_far() -> Trace:
        made = max(0, max(len(chain.trace) for chain in chains) - tune)
        return Trace(
            chains=[chain.trace for chain in chains],
            weights=[],
            counts=np.array([chain.chain.counts for chain in chains]),
            seconds=0.0 if earlier is None else earlier.seconds,
            state=DrawingState([chain.state() for chain in chains], made),
        )

    def tell(n: int, ended: bool = False) -> None:
        done = min(n * _TREES_A_UNIT, settings.max_trees)
        run.report(Status("trees", done, settings.max_trees, lambda: _look(chains), ended))

    def after(n: int) -> None:
        tell(n)
        run.offer_state(lambda: RunState(so_far()))

    n = run_in_rounds(
        advance, -(-settings.max_trees // _TREES_A_UNIT), run.watch, after, most=_LARGEST_ROUND,
        finished=all_finished,
    )  # fmt: skip
    complete = all_finished()
    if n == 0 and earlier is None:  # stopped before the first round: the start is all there is
        advance(1)
    trace = so_far()
    tell(n, ended=True)
    return replace(
        trace,
        weights=[_holding_times(chain.trace, int(chain.clock[0]), tune) for chain in chains],
        seconds=trace.seconds + run.watch.seconds,
        interrupted=run.watch.interrupted,
        timed_out=not complete and not run.watch.interrupted,
    )


@dataclass(frozen=True)
class Trees:
    """What a chain is to do until the others have done the same."""

    n_trees: int
    """Trees to propose."""
    most_accepted: int
    """It ends early when this many were accepted."""


class PaperChain:
    """One chain with all that belongs to it; `Advanceable` says how it is run."""

    def __init__(self, problem: Problem, seed: np.random.SeedSequence):
        room = _TREES_A_UNIT * _LARGEST_ROUND + 1
        self.problem = problem
        self._loop = units.load(PaperSampler.name)
        self.chain = problem.new_chain(seed)
        self.prior = problem.new_prior(_MOVE_SHAPE)
        self.scratch = problem.new_scratch()
        self.output: Output = empty_output(room, problem.most_terms * problem.max_nodes, KEPT)
        self.times = np.zeros(room, np.int64)
        self.clock = np.zeros(1, np.int64)
        self.trace = ChainTrace()
        self._without_columns = np.zeros(1, bool)

    @classmethod
    def blank(cls, problem: Problem, state: LadderState) -> PaperChain:
        return cls(problem, np.random.SeedSequence(0))

    def begin_at(self, trees: list[np.ndarray]) -> None:
        """Take a state to start from; it is fitted when the chain runs."""
        size = self.problem.max_nodes
        for k, tree in enumerate(trees):
            self.chain.nodes[k * size : k * size + len(tree)] = tree
        self.chain.n_terms[0] = len(trees)
        self.chain.numbers[LOG_LIKELIHOOD] = np.nan

    def carry_out(
        self, order: Trees, libraries: LibraryCache, in_parts: bool = False
    ) -> Generator[None, None, int]:
        """Propose trees; return how many were accepted, now in `output` and `times`."""
        yield from ()  # all in one part: there are rarely more chains than cores
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
        return state_of(*self._stacked(), {"clock": self.clock}, 0.0)

    def restore(self, state: LadderState) -> None:
        restore_state(state, *self._stacked(), {"clock": self.clock})
        self._without_columns[:] = True

    def packed_draws(self, order: Trees, n_draws: int) -> tuple[np.ndarray, ...]:
        return (*packed_output(self.output, n_draws), self.times[:n_draws].copy())

    def receive_draws(self, packed: tuple[np.ndarray, ...]) -> None:
        unpack((*self.output, self.times), packed)

    def _stacked(self) -> tuple[Chain, Prior]:
        """Return views that look like a ladder of one replica."""
        return Chain(*(a[None] for a in self.chain)), Prior(*(a[None] for a in self.prior))


def _look(chains: list[PaperChain]) -> Look:
    """Return the last accepted model of the chain where it fits best."""
    best = min((chain.trace for chain in chains), key=lambda trace: trace.numbers[-1][RSS])
    return Look(
        split_terms(best.nodes[-1], best.n_terms[-1]),
        sum(int(chain.chain.counts[PROPOSED].sum()) for chain in chains),
    )


def _holding_times(trace: ChainTrace, trees: int, tune: int) -> np.ndarray:
    """Return for how many proposals each model was held; 0 for those left out as warm-up."""
    weights = np.diff(np.append(trace.times, trees + 1)).astype(float)
    weights[: min(tune, len(trace) // 2)] = 0.0
    return weights
