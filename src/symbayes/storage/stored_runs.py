"""A moment of a run as JSON and arrays, and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..inputs.problem import Problem
from ..kernels.moves.choice import N_MOVES
from ..kernels.run import KEPT
from ..kernels.tree import NODE
from ..samplers.trace import (
    ChainTrace,
    DrawingState,
    Find,
    LadderRecord,
    LadderState,
    RunState,
    SearchState,
    Trace,
    split_terms,
)
from .archive import Arrays
from .parts import Parts, split
from .stored_ladders import (
    ladders_from_arrays,
    ladders_to_arrays,
    states_from_arrays,
    states_to_arrays,
)
from .stored_zip import Damage

_OF_TRACE: dict[str, tuple[type, ...]] = {
    "seconds": (float,), "warmed_up": (bool,), "timed_out": (bool,), "settled": (bool,),
    "restarts": (int,), "search_cut": (bool,), "search_agreed": (bool, type(None)),
}  # fmt: skip
_OF_PAUSE: dict[str, tuple[type, ...]] = {
    "made": (int,), "spent": (float,), "exact": (bool,), "may_restart": (bool,),
}  # fmt: skip
_OF_SEARCH: dict[str, tuple[type, ...]] = {
    "done": (int,), "spent": (float,), "stage": (int,), "in_stage": (int,),
}  # fmt: skip


def to_parts(point: RunState) -> tuple[dict[str, Any], Arrays]:
    """Return a point as a document and arrays."""
    document: dict[str, Any] = {
        "settling": None if point.settling is None else list(point.settling),
        "finished": point.finished,
        "trace": None,
        "search": None,
    }
    arrays: Arrays = {}
    if point.trace is not None:
        document["trace"], arrays = _trace_to_parts(point.trace)
    elif point.search is not None:
        document["search"], arrays = _search_to_parts(point.search)
    return document, arrays


def from_parts(
    document: Any, parts: Parts, chains: int, like: LadderState, problem: Problem
) -> RunState:
    """Return the point that a document and arrays hold, or raise a Damage.

    Parameters
    ----------
    document : dict
        As it was read.
    parts : Parts
    chains : int
        How many the run has.
    like : LadderState
        A state of a ladder of this run, whatever it is: all have its size.
    problem : Problem
    """
    if not isinstance(document, dict) or document.keys() != {
        "settling", "finished", "trace", "search"
    }:  # fmt: skip
        raise Damage("what it says about its run does not have the expected entries")
    trace, search, settling = document["trace"], document["search"], document["settling"]
    if settling is not None:
        settling = tuple(_counts(settling, 2, "settling"))
    if type(document["finished"]) is not bool or (document["finished"] and trace is None):
        raise Damage("whether its run is finished cannot be told")
    if trace is None and search is None:
        return RunState()
    if trace is None:
        return RunState(search=_search_from_parts(search, parts, chains, like, problem))
    made = _trace_from_parts(trace, parts, chains, like, problem)
    return RunState(made, settling, finished=document["finished"])


def _trace_to_parts(trace: Trace) -> tuple[dict[str, Any], Arrays]:
    pause, chains = trace.state, trace.chains
    document = _plain(trace, _OF_TRACE) | {"pause": _plain(pause, _OF_PAUSE)}
    document["most"] = chains[0].most
    width = KEPT + (len(pause.ladders[0].own["power"]) if _has_powers(pause.ladders) else 0)
    numbers = [row for chain in chains for row in chain.numbers]
    arrays = {
        "draws/count": np.array([len(chain) for chain in chains], np.int64),
        "draws/made": np.array([chain.made for chain in chains], np.int64),
        "draws/stride": np.array([chain.stride for chain in chains], np.int64),
        "draws/numbers": np.array(numbers, np.float64).reshape(len(numbers), width),
        "draws/times": np.array([t for chain in chains for t in chain.times], np.int64),
        "weights": np.concatenate([np.empty(0), *trace.weights]),
        "counts": trace.counts,
    }
    arrays |= states_to_arrays(
        "draws/nodes",
        [nodes for chain in chains for nodes in chain.nodes],
        [terms for chain in chains for terms in chain.n_terms],
    )
    arrays |= ladders_to_arrays("ladders", pause.ladders) | _finds_to_arrays("found", trace.search)
    document["searched"] = trace.search_counts is not None
    if trace.search_counts is not None:
        arrays["search_counts"] = trace.search_counts
    document["recorded"] = bool(trace.ladders)
    if trace.ladders:
        arrays["records/power"] = np.array([one.power for one in trace.ladders])
        arrays["records/swap_rate"] = np.array([one.swap_rate for one in trace.ladders])
        trips = np.array([one.round_trips for one in trace.ladders], np.int64)
        arrays["records/round_trips"] = trips
    return document, arrays


def _trace_from_parts(
    document: Any, parts: Parts, n: int, like: LadderState, problem: Problem
) -> Trace:
    others = ("pause", "most", "searched", "recorded")
    own = _values(document, _OF_TRACE, others)
    ladders = ladders_from_arrays(parts, "ladders", n, like, problem)
    temperatures = len(like.own["power"]) if _has_powers([like]) else 0
    pause = DrawingState(ladders, **_values(document["pause"], _OF_PAUSE))
    chains = _chains(document["most"], parts, n, KEPT + temperatures, problem)
    if not all(map(_are_in_order, chains, ladders)):
        raise Damage("the times of its draws cannot be")
    weights = parts.within("weights", np.float64, (None,), 0.0)
    counts = parts.within("counts", np.int64, (n, 3, N_MOVES), 0)
    searched = None
    if document["searched"]:
        searched = parts.within("search_counts", np.int64, (3, N_MOVES), 0)
    records: list[LadderRecord] = []
    if document["recorded"]:
        power = parts.within("records/power", np.float64, (n, temperatures), 0.0, 1.0)
        rates = parts.within("records/swap_rate", np.float64, (n, temperatures - 1))
        trips = parts.within("records/round_trips", np.int64, (n,), 0)
        records = [LadderRecord(*row) for row in zip(power, rates, trips.tolist(), strict=True)]
    return Trace(
        chains=chains,
        weights=split("weights", weights, np.array([len(c) for c in chains]))
        if len(weights)
        else [],
        counts=counts,
        **own,
        search_counts=searched,
        search=_finds("found", parts, problem),
        ladders=records,
        state=pause,
    )


def _chains(most: Any, parts: Parts, n: int, width: int, problem: Problem) -> list[ChainTrace]:
    if most is not None and not (type(most) is int and most >= 2 and most % 2 == 0):
        raise Damage("the most draws that it keeps cannot be")
    counts = parts.within("draws/count", np.int64, (n,), 0)
    made = parts.within("draws/made", np.int64, (n,), 0)
    stride = parts.within("draws/stride", np.int64, (n,), 1)
    total = int(counts.sum())
    nodes, terms = states_from_arrays(parts, "draws/nodes", total, len(problem.feature_weights))
    numbers = parts.take("draws/numbers", np.float64, (total, width))
    times = parts.within("draws/times", np.int64, (None,), 0)
    if len(times) not in (0, total):
        raise Damage("the times of its draws are not one a draw")
    result, start = [], 0
    for i, count in enumerate(counts.tolist()):
        rows = slice(start, start + count)
        chain = ChainTrace(
            nodes[rows], terms[rows], list(numbers[rows]), times[rows].tolist(),
            most, int(made[i]), int(stride[i]),
        )  # fmt: skip
        result.append(chain)
        start += count
    return result


def _are_in_order(chain: ChainTrace, ladder: LadderState) -> bool:
    """Return whether the times of draws, if there are any, come before where the chain is."""
    return not chain.times or bool(
        (np.diff([*chain.times, int(ladder.own["clock"][0]) + 1]) >= 0).all()
    )


def _search_to_parts(search: SearchState) -> tuple[dict[str, Any], Arrays]:
    arrays = {
        "search/stages": np.array(search.stages, np.int64),
        "search/spawned": np.array(search.spawned, np.int64),
        "search/counts": search.counts,
        "search/with_others": np.array(sorted(search.others), np.int32),
    }
    arrays |= ladders_to_arrays("search/ladders", search.ladders)
    others = [search.others[i] for i in sorted(search.others)]
    arrays |= ladders_to_arrays("search/others", others)
    arrays |= _finds_to_arrays("search/best", [search.best])
    arrays |= _finds_to_arrays("search/history", search.history)
    arrays |= _finds_to_arrays("search/ends", search.ends)
    return _plain(search, _OF_SEARCH), arrays


def _search_from_parts(
    document: Any, parts: Parts, n: int, like: LadderState, problem: Problem
) -> SearchState:
    with_others = parts.indices("search/with_others", (None,), n)
    others = ladders_from_arrays(parts, "search/others", len(with_others), like, problem)
    best = _finds("search/best", parts, problem)
    if len(best) != 1:
        raise Damage("its search has no best state")
    return SearchState(
        **_values(document, _OF_SEARCH),
        ladders=ladders_from_arrays(parts, "search/ladders", n, like, problem),
        others=dict(zip(with_others.tolist(), others, strict=True)),
        stages=parts.within("search/stages", np.int64, (n,), 0).tolist(),
        spawned=parts.within("search/spawned", np.int64, (n,), 0).tolist(),
        best=best[0],
        history=_finds("search/history", parts, problem),
        ends=_finds("search/ends", parts, problem),
        counts=parts.within("search/counts", np.int64, (3, N_MOVES), 0),
    )


def _finds_to_arrays(prefix: str, finds: Sequence[Find]) -> Arrays:
    arrays = states_to_arrays(
        f"{prefix}/nodes",
        [np.concatenate([np.empty(0, NODE), *find.trees]) for find in finds],
        [len(find.trees) for find in finds],
    )
    arrays[f"{prefix}/seconds"] = np.array([find.seconds for find in finds], np.float64)
    arrays[f"{prefix}/score"] = np.array([find.score for find in finds], np.float64)
    return arrays


def _finds(prefix: str, parts: Parts, problem: Problem) -> list[Find]:
    seconds = parts.within(f"{prefix}/seconds", np.float64, (None,), 0.0)
    scores = parts.take(f"{prefix}/score", np.float64, seconds.shape)
    columns = len(problem.feature_weights)
    states, n_trees = states_from_arrays(parts, f"{prefix}/nodes", len(seconds), columns)
    return [
        Find(second, score, split_terms(state, n))
        for second, score, state, n in zip(
            seconds.tolist(), scores.tolist(), states, n_trees, strict=True
        )
    ]


def _has_powers(ladders: Sequence[LadderState]) -> bool:
    return bool(ladders) and "power" in ladders[0].own


def _counts(numbers: Any, n: int, what: str) -> list[int]:
    if not (
        isinstance(numbers, list)
        and len(numbers) == n
        and all(type(number) is int and number >= 0 for number in numbers)
    ):
        raise Damage(f"{what} cannot be")
    return numbers


def _plain(source: Any, types: dict[str, tuple[type, ...]]) -> dict[str, Any]:
    """Return attributes as JSON has them, without the types of NumPy."""
    values = {name: getattr(source, name) for name in types}
    return {name: None if x is None else types[name][0](x) for name, x in values.items()}


def _values(
    document: Any, types: dict[str, tuple[type, ...]], others: Sequence[str] = ()
) -> dict[str, Any]:
    """Return entries of a document, each of which has to be of a type; numbers are at least 0."""
    if not isinstance(document, dict) or document.keys() != {*types, *others}:
        raise Damage("what it says about its run does not have the expected entries")
    for name, allowed in types.items():
        value = document[name]
        if type(value) not in allowed or (type(value) in (int, float) and not value >= 0):
            raise Damage(f"{name!r} of its run cannot be")
    return {name: document[name] for name in types}
