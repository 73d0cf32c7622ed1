"""How a run went: effort, acceptance, the paper's record, and whether it was cut short."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from ..cautions import Remedy
from ..inputs.problem import Problem
from ..kernels.moves.choice import MOVE_NAMES
from ..samplers.trace import Trace


class Diagnostics(dict[str, Any]):
    """What is known of a run: a dict that prints the sizes of its arrays, not their values.

    Examples
    --------
    >>> import numpy as np
    >>> from symbayes.posterior.diagnostics import Diagnostics
    >>> Diagnostics(converged=True, log_likelihood=[np.zeros(384), np.zeros(384)])
    {'converged': True,
     'log_likelihood': <2 x array, the first of shape (384,)>}
    """

    def __repr__(self) -> str:
        return "{" + ",\n ".join(f"{name!r}: {_short(x)}" for name, x in self.items()) + "}"


def _short(value: Any) -> str:
    if isinstance(value, list) and value and isinstance(value[0], np.ndarray):
        return f"<{len(value)} x array, the first of shape {value[0].shape}>"
    if isinstance(value, list) and value and isinstance(value[0], tuple):
        return f"<{len(value)} x entry, the last {value[-1]!r}>"
    return repr(value)


def cut_short(trace: Trace) -> tuple[str | Remedy, ...] | None:
    """Return what to tell a user whose run kept less than was asked for, as parts of a warning."""
    if trace.interrupted:
        draws = sum(len(chain) for chain in trace.chains)
        first_look = "" if trace.warmed_up else (
            "; warm-up was not finished, so the formulas are a first look and their probabilities "
            "mean little"
        )  # fmt: skip
        return (f"interrupted: the model is fitted on the {draws} draws made so far{first_look}",)
    if trace.search_cut:
        return (
            "the time limit cut the search short, so that there may be a better formula; ",
            Remedy.RAISE_TIMEOUT,
        )
    return None


def effort(trace: Trace) -> Diagnostics:
    """Return what was tried and accepted, and how long it took."""
    proposed, evaluated, accepted = trace.counts.sum(axis=0)
    searched = np.zeros(3) if trace.search_counts is None else trace.search_counts.sum(axis=1)
    acceptance = zip(MOVE_NAMES, proposed, accepted, strict=True)
    return Diagnostics(
        proposals=int(proposed.sum() + searched[0]),
        evaluations=int(evaluated.sum() + searched[1]),
        acceptance={name: float(a / p) for name, p, a in acceptance if p},
        seconds=trace.seconds,
        log_likelihood=[chain.log_likelihood for chain in trace.chains],
        log_likelihood_by_temperature=[chain.by_temperature for chain in trace.chains],
        interrupted=trace.interrupted,
        timed_out=trace.timed_out,
        search_cut=trace.search_cut,
        settled=trace.settled,
        restarts=trace.restarts,
        thinning=max(chain.stride for chain in trace.chains),
        powers=[record.power for record in trace.ladders],
        swap_rates=[record.swap_rate for record in trace.ladders],
        round_trips=[record.round_trips for record in trace.ladders],
    )


def history(trace: Trace, problem: Problem) -> pd.DataFrame:
    """Return RMSE and number of nodes at every acceptance of the paper's sampler."""
    tables = [
        pd.DataFrame({
            "chain": i,
            "trees": chain.times,
            "rmse": np.sqrt(chain.rss / problem.data.n) * problem.y_scale,
            "n_nodes": chain.n_nodes,
        })
        for i, chain in enumerate(trace.chains)
    ]  # fmt: skip
    return pd.concat(tables, ignore_index=True)
