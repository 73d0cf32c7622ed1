"""The paper's sampler: a fixed number of trees, plug-in likelihood, its own stopping rule."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from ..formula.trees import split_terms
from ..inputs.problem import Problem
from ..inputs.sampler_settings import PaperSampler
from ..kernels import units
from ..kernels.chain import PROPOSED, RSS, Chain
from ..kernels.run import KEPT
from ..kernels.tree_prior import Prior
from .ladder import Chains
from .run.clock import run_in_rounds
from .run.context import Look, RunContext, Status
from .run.scheduler import NoStart, Work
from .search.library import LibraryCache
from .trace import ChainTrace, DrawingState, LadderState, RunState, Trace, empty_output

# Trees proposed in the smallest round, and rounds of that size in the largest.
_TREES_PER_UNIT = 250
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
        for chain, state, kept in zip(chains, earlier.state.ladders, earlier.chains, strict=True):
            chain.restore(state)
            chain.trace = kept.copy()
    elif guesses:
        for i, chain in enumerate(chains):
            chain.put(guesses[i % len(guesses)], 0)

    def finished(chain: PaperChain) -> bool:
        return len(chain.trace) >= tune + draws or chain.clock[0] >= settings.max_trees

    def all_finished() -> bool:
        return all(map(finished, chains))

    def advance(n: int) -> None:
        active = [chain for chain in chains if not finished(chain)]
        trees, most = n * _TREES_PER_UNIT, int(settings.max_trees)
        orders = [
            Trees(min(trees, most - int(chain.clock[0])), tune + draws - len(chain.trace))
            for chain in active
        ]
        for chain, made in zip(active, run.workers.advance(active, orders), strict=True):
            if made is None:
                raise NoStart
            chain.trace.extend(chain.output, made)

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
        done = min(n * _TREES_PER_UNIT, settings.max_trees)
        run.report(Status("trees", done, settings.max_trees, lambda: _look(chains), ended))

    def after(n: int) -> None:
        tell(n)
        run.offer_state(lambda: RunState(so_far()))

    n = run_in_rounds(
        advance, -(-settings.max_trees // _TREES_PER_UNIT), run.watch, after, most=_LARGEST_ROUND,
        finished=all_finished,
    )  # fmt: skip
    timed_out = not (all_finished() or run.watch.interrupted)
    if n == 0 and earlier is None:  # stopped before the first round: the start is all there is
        advance(1)
    tell(n, ended=True)
    trace = so_far()
    return replace(
        trace,
        weights=[_holding_times(chain.trace, int(chain.clock[0]), tune) for chain in chains],
        seconds=trace.seconds + run.watch.seconds,
        interrupted=run.watch.interrupted,
        timed_out=timed_out,
    )


@dataclass(frozen=True)
class Trees:
    """What a chain is ordered to do until the others have done the same."""

    n_trees: int
    """Trees to propose."""
    most_accepted: int
    """It ends early when this many were accepted."""
    keep: ClassVar[bool] = True


class PaperChain(Chains):
    """One chain, and the models that it has accepted."""

    def __init__(self, problem: Problem, seed: np.random.SeedSequence):
        self.clock = np.zeros(1, np.int64)
        super().__init__(problem, [seed], _MOVE_SHAPE, {"clock": self.clock})
        self._loop = units.load(PaperSampler.name)
        self.chain = Chain(*(array[0] for array in self.chains))
        self.prior = Prior(*(array[0] for array in self.priors))
        room = _TREES_PER_UNIT * _LARGEST_ROUND + 1
        nodes, n_terms, numbers = empty_output(room, problem.most_terms * problem.max_nodes, KEPT)
        self.output = nodes, n_terms, numbers, np.zeros(room, np.int64)
        self.trace = ChainTrace()

    @classmethod
    def blank(cls, problem: Problem, state: LadderState) -> Self:
        return cls(problem, np.random.SeedSequence(0))

    def carry_out(self, order: Trees, libraries: LibraryCache, in_parts: bool = False) -> Work:
        """Propose trees; return how many were accepted."""
        yield from ()  # all in one part: there are rarely more chains than cores
        self._make_columns()
        accepted = self._loop(
            self.chain, self.prior, self.problem.data, self.scratch,
            order.n_trees, order.most_accepted, self.clock, *self.output,
        )  # fmt: skip
        if accepted < 0:
            raise NoStart
        return int(accepted)


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
