"""Can the draws be relied on: what was measured, and a verdict with what to do.

A verdict is data. `Verdict.text` is the one place where it becomes English; remedies, which name
parameters in Python and options in a shell, are said in the words of whoever asks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

import numpy as np

from ..cautions import Remedy
from ..inputs.parameters import STANDS_OUT
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
from .posterior import Gap

# Up to this R-hat, chains with few effective draws may only be too short to agree.
_DISAGREEMENT = 1.1
# Temperatures that swap more rarely than this pass too little on.
_LOW_SWAP_RATE = 0.1
# Chains whose probabilities of the same thing differ by more contradict each other.
_CONTRADICTION = 0.5
# A smaller difference of log predictive densities of left-out rows may well be chance (Sivula,
# Magnusson, Matamoros and Vehtari, 2020).
_WORTH_STACKING = 4.0
# With more rows than this, small differences in error tell formulas apart that the data may not.
_MANY_ROWS = 300
# A formula that was met and never drawn is missed if it has this probability by its evidence, and
# formulas drawn are out of proportion to theirs if this share of the draws is. Half of either may
# be due to the evidence, which is approximate.
_MISSED, _OUT_OF_PROPORTION = 0.2, 0.3


class _Phrase(StrEnum):
    """A name for files, and its words."""

    words: str

    def __new__(cls, name: str, words: str = "") -> _Phrase:
        phrase = str.__new__(cls, name)
        phrase._value_, phrase.words = name, words
        return phrase


class Reason(_Phrase):
    """Why a run has converged (the first two) or not."""

    EXACT = "exact", "the formula found fits the data to rounding error"
    AGREEMENT = (
        "agreement",
        "the chains agree (R-hat {r_hat:.3f} for log-likelihood, size and predictions) and their "
        "draws are worth {effective:.0f} independent ones",
    )
    WARM_UP = (
        "warm-up not finished",
        "{end} before warm-up was finished, so that the probabilities mean little",
    )
    CONTRADICTION = (
        "probabilities that contradict each other",
        "{who} do not agree: {quantity} is {high} in one of them and {low} in another",
    )
    DISAGREEMENT = (
        "large R-hat",
        f"{{who}} do not agree (R-hat {{r_hat:.3f}} for {{quantity}}, where {LARGEST_R_HAT} is the "
        "limit)",
    )
    HARDLY_ANY_DRAWS = "hardly any draws", "there are only {draws} draws"
    FEW_EFFECTIVE = (
        "few effective draws",
        "the draws are worth only {effective:.0f} independent ones for {quantity}, and "
        f"{FEWEST_EFFECTIVE:.0f} are wanted",
    )
    LARGE_ERROR = (
        "large standard error",
        "{quantity} is known only with a standard error of {error:.3f}, and "
        f"{LARGEST_ERROR} is wanted",
    )
    ONE_CHAIN = (
        "one chain",
        "there is one chain, so that agreement between chains cannot be checked",
    )
    FEW_TRIPS = (
        "few round trips",
        "{how_often} travelled from the coldest temperature to the hottest and back, and "
        f"{FEWEST_TRIPS} times are wanted, so that formulas as good as those found may have been "
        "missed",
    )
    MISSED = (
        "a formula missed",
        "{formula} was met and never drawn, and has a probability of {missed} by its evidence",
    )


# With many rows there may be too much to tell apart.
_TOO_MANY = (
    Reason.CONTRADICTION, Reason.DISAGREEMENT, Reason.FEW_TRIPS, Reason.MISSED,
)  # fmt: skip


class End(_Phrase):
    """What ended a run before its time."""

    INTERRUPTED = "interrupted", "the run was interrupted"
    TIMEOUT = "timeout", "the time limit was reached"


class Note(_Phrase):
    """Where the trouble may come from, or what agreement does not say."""

    HARDLY_SWAPS = "hardly any swaps", "Its temperatures hardly swap states"
    FEW_PASS = "few round trips", "Few states pass through all temperatures"
    SEARCH_CUT = (
        "search cut short",
        "But the time limit cut the search short, so that there may be a better formula",
    )
    SEARCH_DISAGREED = (
        "search did not agree",
        "But the search ended before several starts had come to the same formula, so that there "
        "may be a better one",
    )
    OUT_OF_PROPORTION = (
        "out of proportion to the evidence",
        "But by their evidence {away} of the draws of the leading formulas should be of other ones "
        "among them, see by_evidence in formulas_",
    )
    NONESTANDS_OUT = (
        "no formula stands out",
        "No formula stands out, the leading one has a probability of {leading}: more rows or less "
        "noise would tell them apart",
    )


@dataclass(frozen=True)
class Verdict:
    """Whether a run has converged, why, and what to do."""

    reason: Reason
    facts: Mapping[str, Any] = field(default_factory=dict)
    """Numbers that the reason, the note and the remedies name; `quantity` is a key of `r_hat`."""
    end: End | None = None
    """What ended a run that has not converged before its time."""
    note: Note | None = None
    remedies: tuple[Remedy, ...] = ()
    stacking_gain: float | None = None
    """By how much stacked chains predict left-out rows better than pooled ones, in nats; None where
    chains agree or there was no time to find out."""
    stacked: bool = False

    @property
    def converged(self) -> bool:
        """Whether the draws can be relied on."""
        return self.reason in (Reason.EXACT, Reason.AGREEMENT)

    def text(self, words: Mapping[Remedy, str] | None = None) -> str:
        """Return the verdict in English, with these words for remedies, or else those of Python."""

        def say(remedy: Remedy) -> str:
            return (words or {}).get(remedy, remedy.value).format(**self.facts)

        phrases = {**self.facts, **_phrases(self.facts, self.end)}
        reason = self.reason.words.format(**phrases)
        if self.end is not None and self.reason is not Reason.WARM_UP:
            reason += f"; {self.end.words}"
        sentences = [f"{'Converged' if self.converged else 'Not converged'}: {reason}"]
        ways = [say(remedy) for remedy in self.remedies]
        advice = ", or ".join([", ".join(ways[:-1]), ways[-1]] if len(ways) > 1 else ways)
        if self.note is not None:
            note = self.note.words.format(**phrases)
            sentences.append(f"{note}: {advice}" if advice else note)
        elif advice:
            sentences.append(advice[0].upper() + advice[1:])
        if self.stacking_gain is not None:
            nats = f"predict left-out rows better{{}}, by {self.stacking_gain:.0f} nats"
            if self.stacked:
                gain = "They are stacked, and " + nats.format(" than if they were pooled")
            elif self.stacking_gain < _WORTH_STACKING:
                gain = "Stacking the chains would not predict better than pooling them"
            else:
                gain = f"Stacked instead of pooled, {say(Remedy.STACK)}, they " + nats.format("")
            sentences += [say(Remedy.SEE_CHAINS), gain]
        return " ".join(f"{sentence}." for sentence in sentences)

    def entries(self) -> dict[str, Any]:
        """Return the verdict as entries of `diagnostics_`, of plain values that files can hold."""
        data = vars(self) | {
            "reason": self.reason.value,
            "facts": dict(self.facts),
            "end": self.end and self.end.value,
            "note": self.note and self.note.value,
            "remedies": [remedy.name for remedy in self.remedies],
        }
        return {"converged": self.converged, "verdict": self.text(), "verdict_data": data}


def verdict_of(diagnostics: Mapping[str, Any]) -> Verdict | None:
    """Return the verdict among diagnostics; None if it is text only, as in older files."""
    try:
        data = diagnostics["verdict_data"]
        verdict = Verdict(
            Reason(data["reason"]),
            dict(data["facts"]),
            None if data["end"] is None else End(data["end"]),
            None if data["note"] is None else Note(data["note"]),
            tuple(Remedy[name] for name in data["remedies"]),
            data["stacking_gain"],
            data["stacked"],
        )
        verdict.text()  # a file may hold anything: who gets a verdict can rely on its text
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError):
        return None
    return verdict


def combined(diagnostics: Mapping[str, Any], stacked: bool) -> dict[str, Any]:
    """Return the entries of `diagnostics_` that change with how chains are combined."""
    verdict, gain = verdict_of(diagnostics), diagnostics["stacking_gain"]
    if verdict is None or gain is None or not diagnostics["chains_disagree"]:
        return {}
    return replace(verdict, stacking_gain=gain, stacked=stacked).entries()


def judge(
    trace: Trace,
    problem: Problem,
    leading_by_chain: Sequence[float],
    names: Sequence[str],
    gap: Gap | None = None,
    missed: str = "",
) -> dict[str, Any]:
    """Return R-hat and effective draws, whether the run has converged, and a verdict.

    It has converged when the chains had settled and either all draws fit to rounding error or
    several chains agree by the rules of `convergence.py`, and states have travelled through all
    temperatures. A search that was cut short is no objection to what the draws say of the formulas
    found, but worth a note. `names` are those of the columns; `missed` is the formula of the gap to
    the evidence.
    """
    measured = list(agreements(trace.chains, trace.weights, problem, names))
    limit = exact_rss(problem)
    # The second half of the draws of each chain tells what the formula found leaves.
    exact = (
        trace.settled
        and trace.state.exact
        and all((chain.rss[len(chain) // 2 :] <= limit).all() for chain in trace.chains)
    )
    gap = gap or Gap()
    verdict = _objection(trace, exact, measured) or _missed(trace, exact, gap, missed)
    if verdict is not None and verdict.reason in _TOO_MANY and problem.data.n > _MANY_ROWS:
        first, *others = verdict.remedies
        verdict = replace(verdict, remedies=(first, Remedy.TOLERATE, *others))
    if verdict is None and exact:
        verdict = Verdict(Reason.EXACT)
    elif verdict is None:
        verdict = _agreement(trace, measured, float(np.mean(leading_by_chain)), gap.away)
    return {
        "r_hat": {one.name: one.r_hat for one in measured},
        "effective_draws": {one.name: one.effective for one in measured},
        "leading_by_chain": [float(share) for share in leading_by_chain],
        "search_agreed": trace.search_agreed,
        "chains_disagree": not exact and len(trace.chains) > 1 and any(map(_differs, measured)),
    } | verdict.entries()


def _differs(one: Agreement) -> bool:
    """Return whether the draws show that chains, or the halves of one, do not agree."""
    return not one.is_good and one.r_hat > (_DISAGREEMENT if one.are_few else LARGEST_R_HAT)


def _objection(trace: Trace, exact: bool, measured: Sequence[Agreement]) -> Verdict | None:
    """Return why a run has not converged and what to do about it; None if it has."""
    end, longer = _end_of(trace)
    if not trace.warmed_up:
        if trace.interrupted:
            return Verdict(Reason.WARM_UP, end=end, remedies=(Remedy.RUN_ON,))
        remedies = (Remedy.RAISE_TIMEOUT, Remedy.LOWER_TUNE)
        return Verdict(Reason.WARM_UP, end=End.TIMEOUT, remedies=remedies)
    if exact:
        return None
    different = [one for one in measured if _differs(one)]
    if different:
        return _disagreement(trace, different, end, longer)
    few = [one for one in measured if one.are_few]
    if few:
        reason, facts = _too_few(trace, few)
        return Verdict(reason, facts, end, remedies=(longer,))
    if len(trace.chains) == 1:
        return Verdict(Reason.ONE_CHAIN, remedies=(Remedy.USE_SEVERAL_CHAINS,))
    trips = _round_trips(trace)
    if trips < FEWEST_TRIPS:
        remedies = (longer, Remedy.LEAVE_OUT)
        return Verdict(Reason.FEW_TRIPS, {"round_trips": trips}, end, remedies=remedies)
    return None


def _missed(trace: Trace, exact: bool, gap: Gap, formula: str) -> Verdict | None:
    """Return the objection that a formula should have been drawn; None if there is none."""
    if exact or not gap.missed > _MISSED:
        return None
    end, longer = _end_of(trace)
    facts = {"missed": gap.missed, "formula": formula}
    return Verdict(Reason.MISSED, facts, end, remedies=(longer, Remedy.OTHER_SEED))


def _end_of(trace: Trace) -> tuple[End | None, Remedy]:
    """Return what ended a run before its time, and how to let it run longer."""
    if trace.interrupted:
        return End.INTERRUPTED, Remedy.RUN_ON
    if trace.timed_out:
        return End.TIMEOUT, Remedy.RAISE_TIMEOUT
    return None, Remedy.RAISE_DRAWS if trace.ladders else Remedy.RAISE_DRAWS_AND_TREES


def _disagreement(
    trace: Trace, different: Sequence[Agreement], end: End | None, longer: Remedy
) -> Verdict:
    farthest = max(different, key=lambda one: one.high - one.low if one.is_probability else 0.0)
    worst = max(different, key=lambda one: one.r_hat)
    facts: dict[str, Any] = {"chains": len(trace.chains)}
    if farthest.is_probability and farthest.high - farthest.low > _CONTRADICTION:
        reason = Reason.CONTRADICTION
        facts |= {"quantity": farthest.name, "high": farthest.high, "low": farthest.low}
    else:
        reason = Reason.DISAGREEMENT
        facts |= {"quantity": worst.name, "r_hat": worst.r_hat}
    note: Note | None = None
    remedies: tuple[Remedy, ...] = (longer, Remedy.USE_MORE_CHAINS, Remedy.LEAVE_OUT)
    if not trace.ladders:
        remedies = (longer, Remedy.USE_TEMPERED)
    elif np.mean([one.swap_rate for one in trace.ladders], axis=0).min(initial=1) < _LOW_SWAP_RATE:
        note, remedies = Note.HARDLY_SWAPS, (Remedy.ADD_TEMPERATURES, Remedy.FEWER_OPERATORS)
        facts["temperatures"] = -(-3 * len(trace.ladders[0].power) // 2)
    elif _round_trips(trace) < FEWEST_TRIPS:
        note, remedies = Note.FEW_PASS, (longer, Remedy.LEAVE_OUT)
    elif end is None:
        remedies = (Remedy.RAISE_DRAWS_AND_TUNE, *remedies[1:])
    return Verdict(reason, facts, end, note, remedies)


def _too_few(trace: Trace, few: Sequence[Agreement]) -> tuple[Reason, dict[str, Any]]:
    if any(np.isnan(one.effective) for one in few):
        return Reason.HARDLY_ANY_DRAWS, {"draws": sum(map(len, trace.chains))}
    wholes = [one for one in few if not one.is_probability]
    if wholes:
        worst = min(wholes, key=lambda one: one.effective)
        return Reason.FEW_EFFECTIVE, {"quantity": worst.name, "effective": worst.effective}
    worst = max(few, key=lambda one: one.error)
    return Reason.LARGE_ERROR, {"quantity": worst.name, "error": worst.error}


def _agreement(trace: Trace, measured: Sequence[Agreement], leading: float, away: float) -> Verdict:
    wholes = [one for one in measured if not one.is_probability]
    facts = {
        "r_hat": max(one.r_hat for one in wholes),
        "effective": min(one.effective for one in wholes),
    }
    note: Note | None = None
    remedies: tuple[Remedy, ...] = ()
    if trace.search_cut:
        note, remedies = Note.SEARCH_CUT, (Remedy.RAISE_TIMEOUT,)
    elif trace.search_agreed is False:
        note, remedies = Note.SEARCH_DISAGREED, (Remedy.RAISE_TUNE, Remedy.OTHER_SEED)
    elif away > _OUT_OF_PROPORTION:
        note, remedies = Note.OUT_OF_PROPORTION, (Remedy.RAISE_DRAWS, Remedy.OTHER_SEED)
        facts["away"] = away
    elif leading < STANDS_OUT:
        note, facts["leading"] = Note.NONESTANDS_OUT, leading
    return Verdict(Reason.AGREEMENT, facts, note=note, remedies=remedies)


def _round_trips(trace: Trace) -> float:
    """Return the round trips of all ladders; as many as one likes where there is nowhere to go."""
    if not trace.ladders or len(trace.ladders[0].power) == 1:
        return np.inf
    return sum(ladder.round_trips for ladder in trace.ladders)


def _phrases(facts: Mapping[str, Any], end: End | None) -> dict[str, str]:
    """Return those facts in words that are not just numbers."""
    words = {} if end is None else {"end": end.words}
    for name in facts.keys() & {"high", "low", "leading", "missed", "away"}:
        words[name] = "less than 1%" if facts[name] < 0.01 else f"{facts[name]:.0%}"
    if "chains" in facts:
        words["who"] = "the chains" if facts["chains"] > 1 else "the two halves of the chain"
    if "quantity" in facts:
        kind, _, rest = facts["quantity"].partition(" ")
        words["quantity"] = {
            "uses": f"the probability that the formula uses {rest}",
            "formula": "the probability of a leading formula",
            "prediction": "predictions",
            "log_likelihood": "the log-likelihood",
            "n_nodes": "the size of formulas",
        }[kind]
    if "round_trips" in facts:
        n = facts["round_trips"]
        words["how_often"] = {0: "no state has", 1: "only once has a state"}.get(
            n, f"only {n} times has a state"
        )
    return words
