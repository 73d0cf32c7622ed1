"""The default sampler: coefficients and noise integrated out, terms born and dying.

Warm-up and drawing are two phases. Nothing of the warm-up is kept, so it may do what finds good
states. It runs in a few starts: after each, chains that are hopelessly behind the best one begin
anew, and after the last they take over its state. The drawing phase uses exact moves only.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from ..kernels import units
from ..kernels.chain import LOG_LIKELIHOOD, NUMBERS, Chain, Scratch
from ..kernels.tree_prior import Prior
from ..prior import NoisePrior, require_count, require_real
from ..problem import Problem
from ..trace import ChainTrace, Output, Trace, empty_output
from .running import Progress, Watch, Workers, run_rounds

# Share of the time limit that warm-up may take.
_WARM_UP_SHARE = 0.6
# A chain so many nats below the best one would not get back there in any run.
_HOPELESS = 30.0
# Draws a round at most, which bounds the memory of the output arrays.
_LARGEST_ROUND = 64
# Extra columns of the output: the variances of the constants.
_OUTPUT_NUMBERS = NUMBERS + 2


@dataclass(frozen=True)
class CollapsedSampler:
    """Settings of the default sampler.

    Parameters
    ----------
    steps_per_draw : int
        Proposals between two draws.
    temperature : float in (0, 1]
        Power of the likelihood; 1 is the posterior.
    starts : int
        Into how many stretches warm-up is cut, with new starts in between.
    """

    steps_per_draw: int = 500
    temperature: float = 1.0
    starts: int = 8

    name = "collapsed"
    plug_in = False
    #: Data without noise can be fitted to all digits.
    noise_prior = NoisePrior()
    #: How often constants move: the share of such moves, and the `lt` nodes for half of it.
    move_shape = (0.5, 1.0)

    def __post_init__(self):
        for name in ("steps_per_draw", "starts"):
            require_count("sampler", name, getattr(self, name))
        if not 0 < require_real("sampler", "temperature", self.temperature) <= 1:
            raise ValueError(f"sampler: temperature is {self.temperature}; it must lie in (0, 1]")

    def sample(
        self,
        problem: Problem,
        *,
        tune: int,
        draws: int,
        seeds: list[np.random.SeedSequence],
        workers: Workers,
        watch: Watch,
        progress: Progress,
    ) -> Trace:
        """Run one chain a seed; return their draws."""
        loop = units.load(self.name)
        width = problem.most_terms * problem.max_nodes
        runs = [
            _Run(
                problem.new_chain(seed),
                problem.new_prior(self.move_shape),
                problem.new_scratch(),
                empty_output(_LARGEST_ROUND, width, _OUTPUT_NUMBERS),
                ChainTrace(),
            )
            for seed in seeds
        ]

        def advance(run: _Run, n: int) -> None:
            done = loop(
                run.chain, run.prior, problem.data, run.scratch, float(self.temperature),
                int(self.steps_per_draw), n, *run.output,
            )  # fmt: skip
            if done < 0:
                raise NoStart

        def keep(run: _Run, n: int) -> None:
            advance(run, n)
            run.trace.extend(run.output, n)

        warmed_up = _warm_up(problem, runs, advance, self, tune, workers, watch, progress)
        done = run_rounds(
            runs, keep, draws, workers, watch, 1.0,
            lambda n: progress("drawing", n, draws), _LARGEST_ROUND,
        )  # fmt: skip
        timed_out = done < draws and not watch.interrupted
        if done == 0:
            # Stopped before the first draw: the states warm-up has reached are what there is.
            for run in runs:
                keep(run, 1)
        return Trace(
            chains=[run.trace for run in runs],
            weights=[np.ones(len(run.trace)) for run in runs],
            counts=np.array([run.chain.counts for run in runs]),
            seconds=watch.seconds,
            interrupted=watch.interrupted,
            warmed_up=warmed_up,
            timed_out=timed_out,
        )


@dataclass(eq=False)
class _Run:
    """One chain with all that belongs to it."""

    chain: Chain
    prior: Prior
    scratch: Scratch
    output: Output
    trace: ChainTrace

    @property
    def log_likelihood(self) -> float:
        return float(self.chain.numbers[LOG_LIKELIHOOD])


class NoStart(RuntimeError):
    """No formula could be found that has a finite value on all rows."""


def _warm_up(problem, runs, advance, settings, tune, workers, watch, progress) -> bool:
    """Bring the chains to good states; return whether there was time for all of it."""
    done = 0
    starts = min(settings.starts, max(1, tune))
    bounds = np.linspace(0, tune, starts + 1).astype(int)
    for i in range(starts):
        share = _WARM_UP_SHARE * (i + 1) / starts
        done += run_rounds(
            runs, advance, int(bounds[i + 1] - bounds[i]), workers, watch, share,
            partial(_report, progress, int(bounds[i]), tune), _LARGEST_ROUND,
        )  # fmt: skip
        if watch.interrupted:
            break
        if i + 1 < starts:
            for run in _hopeless(runs)[1]:
                _start_anew(problem, run)
    best, behind = _hopeless(runs)
    for run in behind:
        _take_over(run, best)
    return done >= tune


def _hopeless(runs: list[_Run]) -> tuple[_Run, list[_Run]]:
    """Return the best chain, and those so far behind that they would not get there.

    A chain that has not started is behind one that has.
    """
    started = [run for run in runs if run.chain.n_terms[0] >= 0]
    if not started:
        return runs[0], []
    best = max(started, key=lambda run: run.log_likelihood)
    least = best.log_likelihood - _HOPELESS
    return best, [run for run in runs if run not in started or run.log_likelihood <= least]


def _report(progress: Progress, before: int, total: int, n: int) -> None:
    progress("warm-up", before + n, total)


def _start_anew(problem: Problem, run: _Run) -> None:
    start = problem.terms if isinstance(problem.terms, int) else 0
    run.chain.n_terms[0] = -1 - start


def _take_over(run: _Run, other: _Run) -> None:
    """Copy the state of another chain; the random numbers stay the chain's own."""
    for name in ("nodes", "columns", "gram", "dots", "slots", "n_terms", "numbers"):
        getattr(run.chain, name)[...] = getattr(other.chain, name)
    run.prior.scales[...] = other.prior.scales
