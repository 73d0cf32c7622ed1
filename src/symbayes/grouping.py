"""From draws to distinct states, and from states to formulas: what is the same is counted once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from .fitted import Model, State
from .fitting import Fitter
from .kernels import opcodes
from .kernels.chain import LOG_LIKELIHOOD, NOISE_VARIANCE
from .kernels.tree import NODE
from .skeleton import skeleton
from .trace import Trace, split_terms

# Fitted values that agree to this part of the spread of y are the same function of the data.
_SAME_FIT = 1.0e-7
# Formulas, from the most probable on, whose constants are polished. Long formulas take their time,
# with the square of the number of constants: after so much work (nodes times rows times squared
# transforms, two seconds) no further one is begun.
_POLISHED, _MOST_POLISHING = 20, 6_000_000


@dataclass(frozen=True, eq=False)
class Draws:
    """The draws of one chain, as positions in a list of distinct states."""

    state: np.ndarray
    weight: np.ndarray
    """How much each counts: 1, or how long the paper's sampler held it."""


@dataclass(frozen=True, eq=False)
class Group:
    """Draws that are the same formula."""

    weight: float
    """Its probability."""
    model: Model
    """How it is shown."""
    members: frozenset[int]
    """Which of the states it is."""


def collect(trace: Trace, known: Sequence[np.ndarray] = ()) -> tuple[list[State], list[Draws]]:
    """Return the distinct states, most probable first, and which of them each draw was.

    The known terms are put before the trees of each.
    """
    total: dict[tuple[int, bytes], list] = {}
    keys = []
    for chain, weights in zip(trace.chains, trace.weights, strict=True):
        share = weights / (weights.sum() * len(trace.chains))
        kept = np.flatnonzero(weights)
        keys.append([(chain.n_terms[i], chain.nodes[i].tobytes()) for i in kept])
        for i, key in zip(kept, keys[-1], strict=True):
            entry = total.setdefault(key, [chain, i, 0.0, 0.0])
            entry[2] += share[i]
            entry[3] += share[i] * chain.numbers[i][NOISE_VARIANCE]
    order = sorted(total, key=lambda key: -total[key][2])
    states = [
        State(
            trees=(*known, *split_terms(chain.nodes[i], chain.n_terms[i])),
            weight=weight,
            log_likelihood=float(chain.numbers[i][LOG_LIKELIHOOD]),
            noise_variance=weighted_noise / weight,
        )
        for chain, i, weight, weighted_noise in (total[key] for key in order)
    ]
    place = {key: i for i, key in enumerate(order)}
    draws = [
        Draws(np.array([place[key] for key in chain], dtype=np.int64), weights[weights > 0])
        for chain, weights in zip(keys, trace.weights, strict=True)
    ]
    return states, draws


def state_key(state: State) -> tuple[bytes, ...]:
    """Return what tells states apart."""
    return tuple(tree.tobytes() for tree in state.trees)


def inclusion(states: list[State], n_columns: int) -> np.ndarray:
    """Return for each column the probability that a formula uses it."""
    uses = np.zeros(n_columns)
    for state in states:
        uses[columns_of(state)] += state.weight
    return np.minimum(uses, 1.0)


def columns_of(state: State) -> np.ndarray:
    """Return the columns of the problem that a state uses."""
    nodes = np.concatenate([np.empty(0, NODE), *state.trees])
    return np.unique(nodes["feature"][nodes["op"] == opcodes.FEATURE])


def thin(states: list[State], most: int) -> list[State]:
    """Return at most so many states, by systematic sampling: each in proportion to its weight."""
    if len(states) <= most:
        return states
    picks = systematic(np.array([state.weight for state in states]), most)
    kept, times = np.unique(picks, return_counts=True)
    return [replace(states[i], weight=float(n) / most) for i, n in zip(kept, times, strict=True)]


def systematic(weights: np.ndarray, n: int) -> np.ndarray:
    """Return n positions in their order, each as often as its weight asks for, to within one."""
    edges = np.cumsum(weights)
    return np.searchsorted(edges, (np.arange(n) + 0.5) / n * edges[-1])


def group(
    states: list[State], fitter: Fitter, most: int, out_of_time: Callable[[], bool]
) -> list[Group]:
    """Return the distinct formulas with their probabilities, most probable first.

    Draws that are the same formula are one: the same structure up to constants, or the same
    fitted function. It is shown by its simplest member, with the best constants seen.
    """
    by_skeleton: dict[tuple, list[int]] = {}
    for i, state in enumerate(states):
        key = tuple(sorted(skeleton(tree) for tree in state.trees))
        by_skeleton.setdefault(key, []).append(i)
    ranked = sorted(by_skeleton.values(), key=lambda places: -sum(states[i].weight for i in places))
    shown: list[Group] = []
    lost = work = 0.0
    for places in ranked[:most]:
        members = [states[i] for i in places]
        fewest = min(state.n_nodes for state in members)
        best = max(
            (state for state in members if state.n_nodes == fewest),
            key=lambda state: state.log_likelihood,
        )
        model, weight = fitter.fit(best), sum(state.weight for state in members)
        if model is not None and is_worth_it(len(shown), _POLISHED, work, out_of_time):
            work += fitter.work(best)
            model = fitter.polished(model)
        if model is None:
            lost += weight
        else:
            shown.append(Group(weight, model, frozenset(places)))
    return _merge_equal_fits([replace(one, weight=one.weight / (1.0 - lost)) for one in shown])


def is_worth_it(place: int, most: int, work: float, out_of_time: Callable[[], bool]) -> bool:
    """Return whether constants of one more formula are looked after; those of the first always."""
    return place == 0 or (place < most and work < _MOST_POLISHING and not out_of_time())


def _merge_equal_fits(groups: list[Group]) -> list[Group]:
    """Merge formulas that fit the same values: the same function, written otherwise.

    The simplest of them is kept.
    """
    merged: list[Group] = []
    # A mean of the values with random weights tells most functions apart at once.
    shadows = np.empty(len(groups))
    for one in groups:
        probe = one.model.probe
        direction = np.random.default_rng(0).normal(size=len(probe))
        shadow = direction @ probe / np.abs(direction).sum()
        for i in np.flatnonzero(np.abs(shadows[: len(merged)] - shadow) <= 2.0 * _SAME_FIT):
            other = merged[i]
            if np.max(np.abs(probe - other.model.probe)) <= _SAME_FIT:
                simplest = min(other.model, one.model, key=lambda m: m.state.n_nodes)
                merged[i] = Group(other.weight + one.weight, simplest, other.members | one.members)
                break
        else:
            shadows[len(merged)] = shadow
            merged.append(one)
    return sorted(merged, key=lambda one: -one.weight)
