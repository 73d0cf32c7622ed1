"""The paper's sampler: a fixed number of trees, plug-in likelihood, its own stopping rule."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..kernels import units
from ..kernels.chain import LOG_LIKELIHOOD, PROPOSED, RSS, Chain, Scratch
from ..kernels.run import KEPT
from ..kernels.tree_prior import Prior
from ..prior import NoisePrior, require_count
from ..problem import Problem
from ..trace import ChainTrace, Output, Trace, empty_output, split_terms
from .ladder import NoStart
from .running import Look, Report, Status, Watch, Workers, run_rounds

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
    ) -> Trace:
        """Run one chain a seed, from the guesses if there are any; return the accepted models."""
        loop = units.load(self.name)
        room = _TREES_A_UNIT * _LARGEST_ROUND + 1
        width = problem.most_terms * problem.max_nodes
        runs = [
            _Run(
                problem.new_chain(seed),
                problem.new_prior(self.move_shape),
                problem.new_scratch(),
                empty_output(room, width, KEPT),
                np.zeros(room, np.int64),
                np.zeros(1, np.int64),
                ChainTrace(),
            )
            for seed in seeds
        ]
        for i, run in enumerate(runs if guesses else []):
            _begin_at(run.chain, guesses[i % len(guesses)], problem.max_nodes)

        def finished(run: _Run) -> bool:
            return len(run.trace) >= tune + draws or run.clock[0] >= self.max_trees

        def advance(run: _Run, n: int) -> None:
            if finished(run):
                return
            left = tune + draws - len(run.trace)
            trees = min(n * _TREES_A_UNIT, int(self.max_trees) - int(run.clock[0]))
            accepted = loop(
                run.chain, run.prior, problem.data, run.scratch, trees, left, run.clock,
                *run.output, run.times,
            )  # fmt: skip
            if accepted < 0:
                raise NoStart
            run.trace.extend(run.output, accepted, run.times)

        def tell(n: int, ended: bool = False) -> None:
            done = min(n * _TREES_A_UNIT, self.max_trees)
            progress(Status("trees", done, self.max_trees, lambda: _look(runs), ended))

        units_in_all = -(-self.max_trees // _TREES_A_UNIT)
        n = run_rounds(
            runs, advance, units_in_all, workers, watch, 1.0, tell, _LARGEST_ROUND, finished
        )
        complete = all(map(finished, runs))
        for run in runs:
            if len(run.trace) == 0:  # stopped before the first round: the start is what there is
                advance(run, 1)
        trace = Trace(
            chains=[run.trace for run in runs],
            weights=[_holding_times(run.trace, int(run.clock[0]), tune) for run in runs],
            counts=np.array([run.chain.counts for run in runs]),
            seconds=watch.seconds,
            interrupted=watch.interrupted,
            timed_out=not complete and not watch.interrupted,
        )
        tell(n, ended=True)
        return trace


def _begin_at(chain: Chain, trees: list[np.ndarray], max_nodes: int) -> None:
    """Give a chain a state to start from; it is fitted when the chain runs."""
    for k, tree in enumerate(trees):
        chain.nodes[k * max_nodes : k * max_nodes + len(tree)] = tree
    chain.n_terms[0] = len(trees)
    chain.numbers[LOG_LIKELIHOOD] = np.nan


@dataclass
class _Run:
    """One chain with all that belongs to it."""

    chain: Chain
    prior: Prior
    scratch: Scratch
    output: Output
    times: np.ndarray
    clock: np.ndarray
    trace: ChainTrace


def _look(runs: list[_Run]) -> Look:
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
