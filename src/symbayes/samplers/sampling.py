"""The way into both samplers: begin a run, resume it, or add draws to one that is over."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..inputs.checksums import checksum
from ..inputs.problem import Problem
from ..inputs.sampler_settings import PaperSampler, Sampler
from . import paper, tempered
from .ladder import Replicas
from .trace import LadderState, Trace


def sample(settings: Sampler, problem: Problem, **options: Any) -> Trace:
    """Return the draws of a run; see `tempered.sample` and `paper.sample` for the options."""
    if isinstance(settings, PaperSampler):
        return paper.sample(settings, problem, **options)
    return tempered.sample(settings, problem, **options)


def state_like(settings: Sampler, problem: Problem) -> LadderState:
    """Return a state with the names, types and shapes of those of a run, its search included."""
    seed = np.random.SeedSequence(0)
    if isinstance(settings, PaperSampler):
        return paper.PaperChain(problem, seed).state()
    return Replicas(settings.in_stages(problem), seed, settings.powers(problem.data.n)).state()


@dataclass(frozen=True)
class Earlier:
    """A run that a later fit can add draws to."""

    trace: Trace
    table: str
    """Checksum of the table."""
    settings: str
    """Checksum of all parameters that draws depend on."""


def remember(trace: Trace, problem: Problem, settings: Sampler) -> Earlier:
    """Return a run with what tells whether a later fit may add draws to it."""
    return Earlier(trace, _of_table(problem), _of_settings(problem, settings))


def trace_to_extend(
    earlier: Earlier | None, problem: Problem, settings: Sampler, chains: int, draws: int
) -> Trace | None:
    """Return the trace of an earlier run, None if there is none that is worth it.

    Raises
    ------
    ValueError
        If it was a run on another table or with other beliefs: its draws are of another posterior.
    """
    if earlier is None or not earlier.trace.warmed_up:
        return None
    changed = None
    if earlier.table != _of_table(problem):
        changed = "this table is another one, or its rows count otherwise (tolerance)"
    elif earlier.settings != _of_settings(problem, settings):
        changed = "parameters have changed that its draws depend on"
    elif len(earlier.trace.chains) != chains:
        changed = f"it had {len(earlier.trace.chains)} chains, not {chains}"
    if changed is not None:
        raise ValueError(
            f"warm_start=True adds to the draws of the earlier fit, and {changed}; set "
            "warm_start=False, or use a new model"
        )
    made = earlier.trace.state.made
    if draws < made:
        raise ValueError(
            f"draws is {draws}, and {made} were made already; with warm_start=True it is the "
            "number in all, so set it higher"
        )
    return earlier.trace


def _of_table(problem: Problem) -> str:
    data = problem.data
    return checksum([data.x, data.y, data.root_weight, problem.y_mean, problem.y_scale])


def _of_settings(problem: Problem, settings: Sampler) -> str:
    return checksum(
        [
            settings.drawing,
            sorted(problem.operator_weights.items()),
            problem.feature_weights,
            problem.tree_prior,
            problem.data.noise_prior,
            problem.terms,
            problem.learn,
            *problem.known,
        ]
    )
