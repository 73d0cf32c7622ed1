"""From draws to distinct states, and from states to formulas: what is the same is counted once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from ..deadline import Deadline
from ..fitting.model import Fitter, Model, State, expression_of
from ..formula import expression as ex
from ..formula.rewriting import collected
from ..formula.trees import concatenated, split_terms, structure, to_expression
from ..kernels import opcodes
from ..kernels.chain import LOG_LIKELIHOOD, NOISE_VARIANCE
from ..samplers.trace import Trace
from .selection import pareto

# Fitted values that agree to this part of the spread of y are the same function of the data.
_SAME_FIT = 1.0e-7
# Digits of a sum of probabilities that are not rounding errors.
_DECIMALS = 12
# Formulas, from the most probable on, whose constants are looked after, besides the front of size
# and error. Long formulas take their time, with the square of the number of constants: after so
# much work (nodes times rows times squared transforms, two seconds) no further one is begun.
_LOOKED_AFTER, _MOST_POLISHING = 20, 6_000_000


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
    known: dict[bytes, set[int]] = {}
    for state in states:
        uses[columns_of(state, known)] += state.weight
    # A column of all formulas has probability 1, not 0.999999999999996.
    return np.minimum(np.round(uses, _DECIMALS), 1.0)


def columns_of(state: State, known: dict[bytes, set[int]] | None = None) -> np.ndarray:
    """Return the columns of the problem that a state uses; not those that cancel, as in `x*z/x`.

    Those of each tree are put into `known`, where states have trees in common.
    """
    known = {} if known is None else known
    used: set[int] = set()
    for tree in state.trees:
        key = tree.tobytes()
        if key not in known:
            known[key] = _columns_of_tree(tree)
        used |= known[key]
    return np.array(sorted(used), dtype=np.int64)


def _columns_of_tree(tree: np.ndarray) -> set[int]:
    columns = tree["feature"][tree["op"] == opcodes.FEATURE].tolist()
    if np.isin(tree["op"], (opcodes.DIV, opcodes.INV)).any():  # else nothing cancels
        expression = to_expression(tree, range(max(columns) + 1))
        columns = ex.features(collected(expression))
    return set(columns)


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


def group(states: list[State], fitter: Fitter, most: int, deadline: Deadline) -> list[Group]:
    """Return the distinct formulas with their probabilities, most probable first.

    Draws that are the same formula are one: the same structure up to constants, or the same
    fitted function. It is shown by its simplest member, with the best constants seen. There are no
    more than `most`, and no further ones after the deadline.
    """
    by_structure: dict[tuple, list[int]] = {}
    for i, state in enumerate(states):
        key = structure(concatenated(state.trees), len(state.trees))
        by_structure.setdefault(key, []).append(i)
    ranked = sorted(
        by_structure.values(), key=lambda places: -sum(states[i].weight for i in places)
    )
    shown: list[Group] = []
    lost = 0.0
    for places in ranked[:most]:
        if shown and deadline.over():
            break
        members = [states[i] for i in places]
        fewest = min(state.n_nodes for state in members)
        best = max(
            (state for state in members if state.n_nodes == fewest),
            key=lambda state: state.log_likelihood,
        )
        # What holds on the rows that were looked at may not on all.
        model = fitter.fit(fitter.tidied(best)) or fitter.fit(best)
        weight = sum(state.weight for state in members)
        if model is None:
            lost += weight
        else:
            shown.append(Group(weight, model, frozenset(places)))
    return _merge_equal_fits([replace(one, weight=one.weight / (1.0 - lost)) for one in shown])


def polished(
    groups: list[Group], fitter: Fitter, out_of_time: Callable[[], bool], deadline: Deadline
) -> list[Group]:
    """Return the formulas with the best constants, as far as there is time.

    With those, formulas may turn out to be equal, and others come to the front. When it is
    `out_of_time` only the first is still polished; at the deadline all polishing stops.
    """
    done: set[Model] = set()
    work = 0.0
    while True:
        sizes = [_size(one.model) for one in groups]
        places = looked_after(sizes, [one.model.mse for one in groups])
        todo = [i for i in places if groups[i].model not in done]
        for i in todo:
            if not is_worth_it(len(done), work, lambda: out_of_time() or deadline.over()):
                return _merge_equal_fits(groups)
            work += fitter.work(groups[i].model.state)
            groups[i] = replace(groups[i], model=fitter.polished(groups[i].model, deadline.over))
            done.add(groups[i].model)
        if not todo:
            return groups
        groups = _merge_equal_fits(groups)


def looked_after(sizes: Sequence[int], errors: Sequence[float]) -> list[int]:
    """Return which formulas a reader looks at: the first ones, then the front of size and error."""
    front = pareto(pd.DataFrame({"n_nodes": sizes, "rmse": errors})).index.tolist()
    return list(dict.fromkeys([*range(len(sizes))[:_LOOKED_AFTER], *front]))


def is_worth_it(done: int, work: float, out_of_time: Callable[[], bool]) -> bool:
    """Return whether constants of one more formula are looked after; those of the first always."""
    return done == 0 or (work < _MOST_POLISHING and not out_of_time())


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


def _size(model: Model) -> int:
    """Return the number of nodes of a formula as it is shown."""
    columns = 1 + max((int(tree["feature"].max()) for tree in model.state.trees), default=0)
    return ex.n_nodes(expression_of(model, np.arange(columns)))
