"""Can the draws be relied on: what was measured, a verdict in plain words, and what to do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .convergence import (
    FEWEST_DRAWS,
    FEWEST_EFFECTIVE,
    LARGEST_R_HAT,
    effective_draws,
    r_hat,
)
from .problem import Problem
from .samplers.exactness import exact_rss
from .trace import Trace

# Moments of a chain of the paper's sampler, which holds a model for a while, that are looked at.
_MOMENTS = 10_000
# Up to this R-hat, chains with few effective draws may only be too short to agree.
_DISAGREEMENT = 1.1
# Temperatures that swap more rarely than this pass too little on.
_LOW_SWAP_RATE = 0.1
# So do those between which no replica has gone there and back in so many draws for each of them, or
# in fewer where the chains do not agree either.
_DRAWS_FOR_A_TRIP, _FEWER_DRAWS_FOR_A_TRIP = 50, 16
# Chains whose probabilities of the leading formula differ by more contradict each other.
_CONTRADICTION = 0.5
# A smaller difference of log predictive densities of left-out rows may well be chance (Sivula,
# Magnusson, Matamoros and Vehtari, 2020).
_WORTH_STACKING = 4.0
# A leading formula of a smaller probability is one among many.
_STANDS_OUT = 0.1
_NO_TRIPS = "no state has travelled from the coldest temperature to the hottest and back yet"


def judge(trace: Trace, problem: Problem, leading_by_chain: Sequence[float]) -> dict[str, Any]:
    """Return R-hat and effective draws, whether the run has converged, and a verdict in words.

    It has converged when the chains had settled and either all draws fit to rounding error or
    several chains agree by the rules of `convergence.settled`. A search that was cut short is no
    objection to what the draws say of the formulas found, but a reservation.
    """
    series = _series(trace)
    hats = {name: _measured(r_hat, values) for name, values in series.items()}
    effective = {name: _measured(effective_draws, values) for name, values in series.items()}
    exact = trace.settled and _is_exact(trace, exact_rss(problem))
    objection = _objection(trace, exact, hats, effective, leading_by_chain)
    if objection is not None:
        verdict = f"Not converged: {objection}."
    elif exact:
        verdict = "Converged: all draws fit the data to rounding error."
    else:
        verdict = (
            f"Converged: the chains agree (R-hat {max(hats.values()):.3f}) and their draws are "
            f"worth {min(effective.values()):.0f} independent ones."
            + _reservation(trace, leading_by_chain)
        )
    return {
        "r_hat": hats,
        "effective_draws": effective,
        "leading_by_chain": [float(share) for share in leading_by_chain],
        "search_agreed": trace.search_agreed,
        "chains_disagree": not exact and len(trace.chains) > 1 and _differ(hats, effective),
        "converged": objection is None,
        "verdict": verdict,
    }


def _series(trace: Trace) -> dict[str, np.ndarray]:
    """Return what every model has, one row a chain, at evenly spaced moments of each chain."""
    lengths = [
        max(int(np.count_nonzero(weights)), min(int(weights.sum()), _MOMENTS))
        for weights in trace.weights
    ]
    moments = (np.arange(min(lengths)) + 0.5) / min(lengths)
    edges = [np.cumsum(weights) for weights in trace.weights]
    picks = [np.searchsorted(edge, moments * edge[-1]) for edge in edges]
    pairs = list(zip(trace.chains, picks, strict=True))
    return {
        "log_likelihood": np.array([chain.log_likelihood[pick] for chain, pick in pairs]),
        "n_nodes": np.array([chain.n_nodes[pick] for chain, pick in pairs], dtype=float),
    }


def _measured(measure: Callable[[np.ndarray], float], values: np.ndarray) -> float:
    return measure(values) if values.shape[1] >= FEWEST_DRAWS else np.nan


def _is_exact(trace: Trace, limit: float) -> bool:
    """Return whether the second half of the draws fits to rounding error."""
    return all((chain.rss[len(chain) // 2 :] <= limit).all() for chain in trace.chains)


def _differ(hats: dict[str, float], effective: dict[str, float]) -> bool:
    """Return whether the draws show that chains, or the halves of one, do not agree."""
    return max(hats.values()) > (_DISAGREEMENT if _are_few(effective) else LARGEST_R_HAT)


def _are_few(effective: dict[str, float]) -> bool:
    return not min(effective.values()) >= FEWEST_EFFECTIVE


def _objection(
    trace: Trace,
    exact: bool,
    hats: dict[str, float],
    effective: dict[str, float],
    leading_by_chain: Sequence[float],
) -> str | None:
    """Return why a run has not converged and what to do about it; None if it has."""
    if not trace.warmed_up:
        return (
            f"{_end(trace)} before warm-up was finished, so that the probabilities mean little. "
            + ("Let it run on" if trace.interrupted else "Raise timeout, or lower tune")
        )
    if exact:
        return None
    if _differ(hats, effective):
        reason = _disagreement(trace, hats, leading_by_chain)
        return f"{reason}{_cut(trace)}. {_remedy(trace)}"
    if _are_few(effective):
        least = min(effective.values())
        reason = f"there are only {sum(map(len, trace.chains))} draws"
        if not np.isnan(least):
            reason = (
                f"the draws are worth only {least:.0f} independent ones, and "
                f"{FEWEST_EFFECTIVE:.0f} are wanted"
            )
        return f"{reason}{_cut(trace)}. {_more_draws(trace)}"
    if len(trace.chains) == 1:
        return (
            "there is one chain, so that agreement between chains cannot be checked. Use more "
            "(chains=4)"
        )
    return None


def _end(trace: Trace) -> str:
    return "the run was interrupted" if trace.interrupted else "the time limit was reached"


def _cut(trace: Trace) -> str:
    return f"; {_end(trace)}" if trace.interrupted or trace.timed_out else ""


def _disagreement(trace: Trace, hats: dict[str, float], leading_by_chain: Sequence[float]) -> str:
    name, worst = max(hats.items(), key=lambda item: item[1])
    what = {"log_likelihood": "the log-likelihood", "n_nodes": "the size of formulas"}[name]
    who = "the chains" if len(trace.chains) > 1 else "the two halves of the chain"
    low, high = min(leading_by_chain), max(leading_by_chain)
    contradiction = (
        f"; the leading formula has a probability of {_percent(high)} in one of them and of "
        f"{_percent(low)} in another"
    )
    return (
        f"{who} do not agree (R-hat {worst:.3f} for {what}, where {LARGEST_R_HAT} is the limit)"
        + (contradiction if high - low > _CONTRADICTION else "")
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
    if _has_no_trips(trace, _FEWER_DRAWS_FOR_A_TRIP):
        return (
            f"{_NO_TRIPS.capitalize()}: {longer.lower()}, or leave out operators and columns that "
            "are not needed"
        )
    also = "" if trace.interrupted or trace.timed_out else " and tune"
    return (
        f"{longer}{also}, use more chains, or leave out operators and columns that are not needed"
    )


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


def _has_no_trips(trace: Trace, draws_a_temperature: int) -> bool:
    """Return whether no replica has gone through all temperatures and back in that many draws."""
    if not trace.ladders or len(trace.ladders[0].power) == 1:
        return False
    trips = sum(record.round_trips for record in trace.ladders)
    wanted = draws_a_temperature * len(trace.ladders[0].power)
    return trips == 0 and len(trace.chains[0]) >= wanted


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
    if _hardly_swaps(trace):
        return (
            " But its temperatures hardly swap states, so that other formulas may have been "
            "missed: use more of them (TemperedSampler), or raise draws."
        )
    if _has_no_trips(trace, _DRAWS_FOR_A_TRIP):
        return f" But {_NO_TRIPS}, so that other formulas may have been missed: raise draws."
    leading = float(np.mean(leading_by_chain))
    if leading < _STANDS_OUT:
        return (
            f" No formula stands out, the leading one has a probability of {_percent(leading)}: "
            "more rows or less noise would tell them apart."
        )
    return ""


def _percent(share: float) -> str:
    return "less than 1%" if share < 0.01 else f"{share:.0%}"
