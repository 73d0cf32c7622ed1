"""Can the draws be relied on: what was measured, a verdict in plain words, and what to do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..inputs.problem import Problem
from ..samplers.convergence import (
    FEWEST_EFFECTIVE,
    FEWEST_TRIPS,
    LARGEST_ERROR,
    LARGEST_R_HAT,
    Agreement,
    agreements,
)
from ..samplers.exactness import exact_rss
from ..samplers.trace import Trace

# Up to this R-hat, chains with few effective draws may only be too short to agree.
_DISAGREEMENT = 1.1
# Temperatures that swap more rarely than this pass too little on.
_LOW_SWAP_RATE = 0.1
# Chains whose probabilities of the same thing differ by more contradict each other.
_CONTRADICTION = 0.5
# A smaller difference of log predictive densities of left-out rows may well be chance (Sivula,
# Magnusson, Matamoros and Vehtari, 2020).
_WORTH_STACKING = 4.0
# A leading formula of a smaller probability is one among many.
_STANDS_OUT = 0.1
_LEAVE_OUT = "leave out operators and columns that are not needed"


def judge(
    trace: Trace, problem: Problem, leading_by_chain: Sequence[float], names: Sequence[str]
) -> dict[str, Any]:
    """Return R-hat and effective draws, whether the run has converged, and a verdict in words.

    It has converged when the chains had settled and either all draws fit to rounding error or
    several chains agree by the rules of `convergence.py`, and states have travelled through all
    temperatures. A search that was cut short is no objection to what the draws say of the formulas
    found, but a reservation. `names` are those of the columns.
    """
    measured = list(agreements(trace.chains, trace.weights, problem, names))
    exact = trace.settled and _is_exact(trace, exact_rss(problem))
    objection = _objection(trace, exact, measured)
    if objection is not None:
        verdict = f"Not converged: {objection}."
    elif exact:
        verdict = "Converged: the formula found fits the data to rounding error."
    else:
        verdict = (
            f"Converged: the chains agree (R-hat {_largest_r_hat(measured):.3f} for "
            "log-likelihood, size and predictions) and their draws are worth "
            f"{_fewest_effective(measured):.0f} independent ones."
            + _reservation(trace, leading_by_chain)
        )
    return {
        "r_hat": {one.name: one.r_hat for one in measured},
        "effective_draws": {one.name: one.effective for one in measured},
        "leading_by_chain": [float(share) for share in leading_by_chain],
        "search_agreed": trace.search_agreed,
        "chains_disagree": not exact and len(trace.chains) > 1 and any(map(_differs, measured)),
        "converged": objection is None,
        "verdict": verdict,
    }


def _is_exact(trace: Trace, limit: float) -> bool:
    """Return whether the second half of the draws are those of an exact formula."""
    return trace.state.exact and all(
        (chain.rss[len(chain) // 2 :] <= limit).all() for chain in trace.chains
    )


def _largest_r_hat(measured: Sequence[Agreement]) -> float:
    return max(one.r_hat for one in measured if not one.is_probability)


def _fewest_effective(measured: Sequence[Agreement]) -> float:
    return min(one.effective for one in measured if not one.is_probability)


def _differs(one: Agreement) -> bool:
    """Return whether the draws show that chains, or the halves of one, do not agree."""
    return not one.is_good and one.r_hat > (_DISAGREEMENT if one.are_few else LARGEST_R_HAT)


def _objection(trace: Trace, exact: bool, measured: Sequence[Agreement]) -> str | None:
    """Return why a run has not converged and what to do about it; None if it has."""
    if not trace.warmed_up:
        return (
            f"{_end(trace)} before warm-up was finished, so that the probabilities mean little. "
            + ("Let it run on" if trace.interrupted else "Raise timeout, or lower tune")
        )
    if exact:
        return None
    different = [one for one in measured if _differs(one)]
    if different:
        reason = _disagreement(trace, different)
        return f"{reason}{_cut(trace)}. {_remedy(trace)}"
    few = [one for one in measured if one.are_few]
    if few:
        return f"{_too_few(trace, few)}{_cut(trace)}. {_more_draws(trace)}"
    if len(trace.chains) == 1:
        return (
            "there is one chain, so that agreement between chains cannot be checked. Use more "
            "(chains=4)"
        )
    if _has_few_trips(trace):
        return (
            f"{_trips(trace)}, so that formulas as good as those found may have been "
            f"missed{_cut(trace)}. {_more_draws(trace)}, or {_LEAVE_OUT}"
        )
    return None


def _end(trace: Trace) -> str:
    return "the run was interrupted" if trace.interrupted else "the time limit was reached"


def _cut(trace: Trace) -> str:
    return f"; {_end(trace)}" if trace.interrupted or trace.timed_out else ""


def _disagreement(trace: Trace, different: Sequence[Agreement]) -> str:
    who = "the chains" if len(trace.chains) > 1 else "the two halves of the chain"
    farthest = max(different, key=lambda one: one.high - one.low if one.is_probability else 0.0)
    if farthest.is_probability and farthest.high - farthest.low > _CONTRADICTION:
        return (
            f"{who} do not agree: {_what(farthest)} is {_percent(farthest.high)} in one of them "
            f"and {_percent(farthest.low)} in another"
        )
    worst = max(different, key=lambda one: one.r_hat)
    return (
        f"{who} do not agree (R-hat {worst.r_hat:.3f} for {_what(worst)}, where {LARGEST_R_HAT} is "
        "the limit)"
    )


def _what(one: Agreement) -> str:
    """Return what a quantity is, in words."""
    if one.kind == "column":
        return f"the probability that the formula {one.name}"
    if one.kind == "whole":
        return {"log_likelihood": "the log-likelihood", "n_nodes": "the size of formulas"}[one.name]
    return {"formula": "the probability of a leading formula", "prediction": "predictions"}[
        one.kind
    ]


def _too_few(trace: Trace, few: Sequence[Agreement]) -> str:
    if any(np.isnan(one.effective) for one in few):
        return f"there are only {sum(map(len, trace.chains))} draws"
    wanted = [one for one in few if not one.is_probability]
    if not wanted:
        worst = max(few, key=lambda one: one.error)
        return (
            f"{_what(worst)} is known only with a standard error of {worst.error:.3f}, and "
            f"{LARGEST_ERROR} is wanted"
        )
    worst = min(wanted, key=lambda one: one.effective)
    return (
        f"the draws are worth only {worst.effective:.0f} independent ones for {_what(worst)}, and "
        f"{FEWEST_EFFECTIVE:.0f} are wanted"
    )


def _more_draws(trace: Trace) -> str:
    if trace.interrupted:
        return "Let it run on"
    if trace.timed_out:
        return "Raise timeout"
    return "Raise draws" if trace.ladders else "Raise draws and the max_trees of PaperSampler"


def _remedy(trace: Trace) -> str:
    """Return what to do about chains that do not agree."""
    longer = _more_draws(trace)
    if not trace.ladders:
        return f"{longer}, or use sampler='tempered'"
    if _hardly_swaps(trace):
        more = -(-3 * len(trace.ladders[0].power) // 2)
        return (
            f"Its temperatures hardly swap states: use more of them "
            f"(sampler=TemperedSampler(temperatures={more})), or fewer operators"
        )
    if _has_few_trips(trace):
        return (
            f"Few states pass through all temperatures: {longer[0].lower()}{longer[1:]}, or "
            f"{_LEAVE_OUT}"
        )
    also = "" if trace.interrupted or trace.timed_out else " and tune"
    return f"{longer}{also}, use more chains, or {_LEAVE_OUT}"


def stacking_advice(gain: float, stacked: bool = False) -> str:
    """Return what to do with chains that do not agree, as further sentences of a verdict.

    Parameters
    ----------
    gain : float
        By how much stacked chains predict left-out rows better than pooled ones, in nats.
    stacked : bool
        Whether they are.
    """
    own = " formulas_by_chain() shows what each chain found."
    if stacked:
        return (
            f"{own} They are stacked, and predict left-out rows better than if they were pooled, "
            f"by {gain:.0f} nats."
        )
    if gain < _WORTH_STACKING:
        return f"{own} Stacking the chains would not predict better than pooling them."
    return (
        f"{own} Stacked instead of pooled, combined('stack'), they predict left-out rows better, "
        f"by {gain:.0f} nats."
    )


def _hardly_swaps(trace: Trace) -> bool:
    """Return whether there are neighbouring temperatures that hardly swap states."""
    if not trace.ladders or len(trace.ladders[0].power) == 1:
        return False
    rates = np.mean([record.swap_rate for record in trace.ladders], axis=0)
    return bool(rates.min() < _LOW_SWAP_RATE)


def _has_few_trips(trace: Trace) -> bool:
    """Return whether states hardly travelled through all temperatures, where there are several."""
    if not trace.ladders or len(trace.ladders[0].power) == 1:
        return False
    return _n_trips(trace) < FEWEST_TRIPS


def _n_trips(trace: Trace) -> int:
    return sum(record.round_trips for record in trace.ladders)


def _trips(trace: Trace) -> str:
    """Return how often states have travelled, in words."""
    n = _n_trips(trace)
    times = {0: "no state has", 1: "only once has a state"}.get(n, f"only {n} times has a state")
    return (
        f"{times} travelled from the coldest temperature to the hottest and back, and "
        f"{FEWEST_TRIPS} times are wanted"
    )


def _reservation(trace: Trace, leading_by_chain: Sequence[float]) -> str:
    """Return what agreement does not say, as a further sentence; empty if there is nothing."""
    if trace.search_cut:
        return (
            " But the time limit cut the search short, so that there may be a better formula: "
            "raise timeout."
        )
    if trace.search_agreed is False:
        return (
            " But the search ended before several starts had come to the same formula, so that "
            "there may be a better one: raise tune, or compare another random_state."
        )
    leading = float(np.mean(leading_by_chain))
    if leading < _STANDS_OUT:
        return (
            f" No formula stands out, the leading one has a probability of {_percent(leading)}: "
            "more rows or less noise would tell them apart."
        )
    return ""


def _percent(share: float) -> str:
    return "less than 1%" if share < 0.01 else f"{share:.0%}"
