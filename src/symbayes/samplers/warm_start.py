"""Going on with an earlier fit: what has to be the same, and what it needs."""

from __future__ import annotations

from dataclasses import dataclass

from ..inputs.checksums import checksum
from ..inputs.problem import Problem
from .parameters import Sampler
from .trace import Trace


@dataclass(frozen=True)
class Earlier:
    """A run that can be gone on with."""

    trace: Trace
    table: str
    """Checksum of the table."""
    settings: str
    """Checksum of all parameters that draws depend on."""


def remember(trace: Trace, problem: Problem, sampler: Sampler) -> Earlier:
    """Return a run with what tells whether a later fit may go on with it."""
    return Earlier(trace, _of_table(problem), _of_settings(problem, sampler))


def trace_to_go_on_with(
    earlier: Earlier | None, problem: Problem, sampler: Sampler, chains: int, draws: int
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
        changed = "this table is another one"
    elif earlier.settings != _of_settings(problem, sampler):
        changed = "parameters have changed that its draws depend on"
    elif len(earlier.trace.chains) != chains:
        changed = f"it had {len(earlier.trace.chains)} chains, not {chains}"
    if changed is not None:
        raise ValueError(
            f"warm_start=True goes on with the draws of the earlier fit, and {changed}; set "
            "warm_start=False, or use a new model"
        )
    made = earlier.trace.pause.made
    if draws < made:
        raise ValueError(
            f"draws is {draws}, and {made} were made already; with warm_start=True it is the "
            "number in all, so set it higher"
        )
    return earlier.trace


def _of_table(problem: Problem) -> str:
    data = problem.data
    return checksum([data.x, data.y, data.root_weight, problem.y_mean, problem.y_scale])


def _of_settings(problem: Problem, sampler: Sampler) -> str:
    return checksum(
        [
            sampler.drawing,
            sorted(problem.operator_weights.items()),
            problem.feature_weights,
            problem.tree_prior,
            problem.data.noise_prior,
            problem.terms,
            problem.learn,
            *problem.known,
        ]
    )
