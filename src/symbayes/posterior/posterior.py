"""From draws to a posterior: distinct states, their fits, and the formulas that they are."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np
from scipy.special import expit, logsumexp, softmax

from ..deadline import Deadline
from ..fitting.evidence import log_evidence_of_writings
from ..fitting.model import Fitter, Model, State, expression_of
from ..formula import expression as ex
from ..formula.rewriting import collected
from ..formula.trees import concatenated, split_terms, structure, to_expression
from ..kernels import opcodes
from ..kernels.chain import LOG_LIKELIHOOD, NOISE_VARIANCE
from ..kernels.tree import NODE
from ..samplers.trace import Trace
from .prediction import Mixture

# Rows times models to fit after a run, and the fewest and most models whatever the number of rows.
_MOST_WORK, _FEWEST_FITS, _MOST_FITS = 100_000_000, 200, 1500
# Formulas that are listed; what is left is spread thinly over many.
LISTED = 300
# Under a time limit: models that are fitted first, and the parts of the time left for the models of
# predictions, and then for the fits of formulas; their constants get what is left.
_FIRST_FITS, _FOR_MODELS, _FOR_FORMULAS = 8, 0.35, 0.5
# All that is done after a run, in fits of a small model for each of the most models.
_FITS_IN_ALL = 8.0
# Fitted values that agree to this part of the spread of y are the same function of the data.
_SAME_FIT = 1.0e-7
# Digits of a sum of probabilities that are not rounding errors.
_DECIMALS = 12
# Formulas, from the most probable on, whose constants are polished, besides the front of size and
# error. Long formulas take their time, with the square of the number of constants: after this much
# work (nodes times rows times squared transforms, two seconds) no further one is begun.
_POLISHED, _MOST_POLISHING = 20, 6_000_000
# Formulas, from the most probable on, whose evidence is worked out.
_WITH_EVIDENCE = 20


@dataclass(frozen=True, eq=False)
class Draws:
    """The draws of one chain, as positions in a list of distinct states, and how much each counts.

    That is 1, or how long the paper's sampler held it.
    """

    state: np.ndarray
    weight: np.ndarray


@dataclass(frozen=True, eq=False)
class Group:
    """A formula: its probability, how it is shown, and which of the states it is."""

    weight: float
    model: Model
    members: frozenset[int]
    log_evidence: float = np.nan
    """See `fitting.evidence`; nan where it was not worked out."""


@dataclass(frozen=True, eq=False)
class Member:
    """A formula of the front, drawn or not."""

    model: Model
    group: int
    """Which of the formulas that were drawn it is, -1 if it is none of them."""
    log_evidence: float
    """See `fitting.evidence`; nan in files of versions that did not have it."""


@dataclass(frozen=True, eq=False)
class Posterior:
    """What a run says."""

    states: list[State]
    """The distinct states that it visited, most probable first where chains are pooled."""
    draws: list[Draws]
    """Those of each chain."""
    chain_weights: np.ndarray
    """How much each chain counts; they sum to 1. All the same where chains are pooled."""
    mixture: Mixture
    """The states with their fits, for predictions; of very many states a sample."""
    groups: list[Group]
    """The distinct formulas, most probable first."""
    inclusion: np.ndarray
    """For each column of the problem, the probability that a formula uses it."""
    front: list[Member] = field(default_factory=list)
    """The formulas to which no other is both shorter and closer, the shortest first."""

    @property
    def formula_models(self) -> list[tuple[float, Model]]:
        """The formulas with their probabilities, as tables and files want them."""
        return [(group.weight, group.model) for group in self.groups]

    @property
    def leading_by_chain(self) -> list[float]:
        """The probability that each chain on its own gives the leading formula."""
        return self.by_chain(self.groups[0])

    def by_chain(self, one: Group) -> list[float]:
        """Return the probability that each chain on its own gives a formula."""
        members = sorted(one.members)
        return [
            float(draws.weight @ np.isin(draws.state, members) / draws.weight.sum())
            for draws in self.draws
        ]

    @property
    def model_places(self) -> np.ndarray:
        """For each state its place among the models of the mixture, -1 if it was not fitted."""
        place = {state_key(model.state): i for i, (_, model) in enumerate(self.mixture.models)}
        return np.array([place.get(state_key(state), -1) for state in self.states])

    @property
    def stands_for(self) -> np.ndarray:
        """For each state, by how much the weight of its model in the mixture differs from its own.

        Of very many states a sample is fitted, rare ones with less probability: those that are
        stand for those that are not, whose factor is 0.
        """
        place = self.model_places
        fitted = np.where(place < 0, 0.0, self.mixture.weights[place])
        own = np.array([state.weight for state in self.states])
        return np.divide(fitted, own, out=np.zeros_like(own), where=own > 0.0)


def make_posterior(fitter: Fitter, trace: Trace, deadline: Deadline | None = None) -> Posterior:
    """Fit and group the draws of a run.

    As many models and formulas are fitted as there is time for until the deadline. After a Ctrl-C
    the constants of all formulas but the first are left as they are.
    """
    problem, deadline = fitter.problem, deadline or Deadline()
    most = _most_fits(fitter)
    states, draws = collect(trace, problem.known)
    with np.errstate(all="ignore"):
        models = _fit_all(fitter, states, most, deadline.share(_FOR_MODELS))
        groups = group(states, fitter, min(most, LISTED), deadline.share(_FOR_FORMULAS))
        groups = polished(groups, fitter, deadline)
        groups = _with_evidence(groups, states, fitter, deadline)
    if not models or not groups:
        raise ValueError(
            "the coefficients of all formulas found are too large or too small for a number; "
            "rescale y or columns of extreme size"
        )
    nu, lam = problem.data.noise_prior.tolist()
    mixture = Mixture(
        models, problem.y_mean, problem.y_scale, problem.y_spread, problem.data.n, (nu, lam),
        fitter.plug_in,
    )  # fmt: skip
    return Posterior(
        states=states,
        draws=draws,
        chain_weights=np.full(len(draws), 1.0 / len(draws)),
        mixture=mixture,
        groups=groups,
        inclusion=inclusion(states, len(problem.feature_weights)),
    )


def seconds_after(fitter: Fitter) -> float:
    """Return about how long it takes to make a posterior, judged by the fit of one small model."""
    column = np.zeros(1, NODE)
    column["op"] = opcodes.FEATURE
    began = time.monotonic()
    fitter.fit_trees([column])
    return _FITS_IN_ALL * _most_fits(fitter) * (time.monotonic() - began)


def _most_fits(fitter: Fitter) -> int:
    """Return how many models are fitted at most: a fit costs time with the number of rows."""
    return min(_MOST_FITS, max(_FEWEST_FITS, _MOST_WORK // len(fitter.scaled_y)))


# States: what the draws are.


def collect(trace: Trace, known: Sequence[np.ndarray] = ()) -> tuple[list[State], list[Draws]]:
    """Return the distinct states, most probable first, and which of them each draw was.

    The known terms are put before the trees of each.
    """
    found: dict[tuple[int, bytes], list] = {}  # chain, place in it, weight, weighted noise
    keys = []
    for chain, weights in zip(trace.chains, trace.weights, strict=True):
        share = weights / (weights.sum() * len(trace.chains))
        kept = np.flatnonzero(weights)
        keys.append([(chain.n_terms[i], chain.nodes[i].tobytes()) for i in kept])
        for i, key in zip(kept, keys[-1], strict=True):
            entry = found.setdefault(key, [chain, i, 0.0, 0.0])
            entry[2] += share[i]
            entry[3] += share[i] * chain.numbers[i][NOISE_VARIANCE]
    order = sorted(found, key=lambda key: -found[key][2])
    states = []
    for chain, i, weight, noise in (found[key] for key in order):
        trees = (*known, *split_terms(chain.nodes[i], chain.n_terms[i]))
        log_likelihood = float(chain.numbers[i][LOG_LIKELIHOOD])
        states.append(State(trees, weight, log_likelihood, noise / weight))
    place = {key: i for i, key in enumerate(order)}
    draws = [
        Draws(np.array([place[key] for key in chain], dtype=np.int64), weights[weights > 0])
        for chain, weights in zip(keys, trace.weights, strict=True)
    ]
    return states, draws


def state_key(state: State) -> tuple[bytes, ...]:
    """Return what tells states apart."""
    return tuple(tree.tobytes() for tree in state.trees)


def shares_by_evidence(posterior: Posterior) -> tuple[np.ndarray, np.ndarray]:
    """Return probabilities that follow from the evidence, of the formulas and of the front.

    What was drawn of the formulas with an evidence is shared out among these and the formulas of
    the front that were not drawn, in proportion to it. nan where it is not known.
    """
    groups, front = posterior.groups, posterior.front
    drawn = np.array([one.log_evidence for one in groups])
    met = np.full(len(front), np.nan)
    for i, one in enumerate(front):
        if one.group < 0:
            met[i] = one.log_evidence
        elif np.isnan(drawn[one.group]):
            drawn[one.group] = one.log_evidence
    evidence = np.append(drawn, met)
    known = np.isfinite(evidence)
    shares = np.full(len(evidence), np.nan)
    weight = sum(one.weight for one, is_known in zip(groups, known, strict=False) if is_known)
    if known.any():
        shares[known] = min(1.0, weight) * softmax(evidence[known])
    of_groups, of_front = shares[: len(groups)], shares[len(groups) :]
    for i, one in enumerate(front):
        if one.group >= 0:
            of_front[i] = of_groups[one.group]
    return of_groups, of_front


@dataclass(frozen=True)
class Gap:
    """How far the draws are from what the evidence says."""

    missed: float = 0.0
    """The probability, by its evidence, of the likeliest formula that was met and never drawn."""
    formula: Model | None = None
    away: float = 0.0
    """The share of the draws of formulas with an evidence that should be of others among them."""


def gap_to_evidence(groups: Sequence[Group], rivals: Sequence[Member]) -> Gap:
    """Return how far draws of these formulas are from the evidence; `rivals` were never drawn."""
    drawn = [one for one in groups if np.isfinite(one.log_evidence)]
    if not drawn:
        return Gap()
    evidence = np.array([one.log_evidence for one in drawn])
    weight = np.array([one.weight for one in drawn])
    away = 0.5 * float(np.abs(softmax(evidence) - weight / weight.sum()).sum())
    first = max(rivals, key=lambda one: one.log_evidence, default=None)
    if first is None or not np.isfinite(first.log_evidence):
        return Gap(away=away)
    log_odds = np.log(weight.sum()) + first.log_evidence - logsumexp(evidence)
    return Gap(float(expit(log_odds)), first.model, away)


def inclusion(states: list[State], n_columns: int) -> np.ndarray:
    """Return for each column the probability that a formula uses it."""
    uses = np.zeros(n_columns)
    for state in states:
        uses[columns_of(state)] += state.weight
    # A column of all formulas has probability 1, not 0.999999999999996.
    return np.minimum(np.round(uses, _DECIMALS), 1.0)


def columns_of(state: State) -> np.ndarray:
    """Return the columns of the problem that a state uses; not those that cancel, as in `x*z/x`."""
    used: set[int] = set().union(*(_columns_of_tree(tree.tobytes()) for tree in state.trees))
    return np.array(sorted(used), dtype=np.int64)


@lru_cache(maxsize=2**14)  # states have trees in common
def _columns_of_tree(nodes: bytes) -> frozenset[int]:
    tree = np.frombuffer(nodes, NODE)
    columns = tree["feature"][tree["op"] == opcodes.FEATURE].tolist()
    if np.isin(tree["op"], (opcodes.DIV, opcodes.INV)).any():  # else nothing cancels
        expression = to_expression(tree, range(max(columns) + 1))
        columns = ex.features(collected(expression))
    return frozenset(columns)


def thin(states: list[State], most: int) -> list[State]:
    """Return at most `most` states, by systematic sampling: each in proportion to its weight."""
    if len(states) <= most:
        return states
    picks = systematic(np.array([state.weight for state in states]), most)
    kept, times = np.unique(picks, return_counts=True)
    return [replace(states[i], weight=float(n) / most) for i, n in zip(kept, times, strict=True)]


def systematic(weights: np.ndarray, n: int) -> np.ndarray:
    """Return n positions in their order, each as often as its weight asks for, to within one."""
    edges = np.cumsum(weights)
    return np.searchsorted(edges, (np.arange(n) + 0.5) / n * edges[-1])


def _fit_all(
    fitter: Fitter, states: list[State], most: int, deadline: Deadline
) -> list[tuple[float, Model]]:
    """Return the fits of at most `most` states with their weights, which sum to 1.

    Where there is a deadline it begins with a few of them, and takes three times as many, those
    among them, as often as there is time for.
    """
    fits: dict[tuple[bytes, ...], Model | None] = {}
    weighted: list[tuple[float, Model]] = []
    n = _FIRST_FITS if deadline.is_set else most
    while True:
        kept = []
        for state in thin(states, n):
            key = state_key(state)
            if key not in fits:
                if weighted and deadline.over():
                    return weighted
                fits[key] = fitter.fit(state)
            model = fits[key]
            if model is not None:
                kept.append((state.weight, replace(model, state=state)))
        total = sum(weight for weight, _ in kept)
        weighted = [(weight / total, model) for weight, model in kept]
        if n >= min(most, len(states)):
            return weighted
        n = min(3 * n, most)


# Formulas: what states say, each once.


def group(states: list[State], fitter: Fitter, most: int, deadline: Deadline) -> list[Group]:
    """Return the distinct formulas with their probabilities, most probable first.

    Draws that are the same formula are one: the same structure up to constants, or the same
    fitted function. It is shown by its simplest member, with the best constants seen. There are no
    more than `most`, and no further ones after the deadline.
    """
    by_structure: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for i, state in enumerate(states):
        by_structure[structure(concatenated(state.trees), len(state.trees))].append(i)
    ranked = sorted(by_structure.values(), key=lambda some: -sum(states[i].weight for i in some))
    shown: list[Group] = []
    lost = 0.0
    for places in ranked[:most]:
        if shown and deadline.over():
            break
        members = [states[i] for i in places]
        best = min(members, key=lambda state: (state.n_nodes, -state.log_likelihood))
        # What holds on the rows that were looked at may not on all.
        model = fitter.fit(fitter.tidied(best)) or fitter.fit(best)
        weight = sum(state.weight for state in members)
        if model is None:
            lost += weight
        else:
            shown.append(Group(weight, model, frozenset(places)))
    return _merge_equal_fits([replace(one, weight=one.weight / (1.0 - lost)) for one in shown])


def polished(groups: list[Group], fitter: Fitter, deadline: Deadline) -> list[Group]:
    """Return the formulas with the best constants, as far as there is time.

    With those, formulas may turn out to be equal, and others come to the front. After a Ctrl-C
    only the first is still polished; at the deadline all polishing stops.
    """
    done: set[Model] = set()
    budget = Budget(fitter, deadline.cut_short)
    columns = np.arange(len(fitter.columns))
    while True:
        models = [one.model for one in groups]
        sizes = [ex.n_nodes(expression_of(model, columns)) for model in models]
        places = to_polish(sizes, [model.mse for model in models])
        todo = [i for i in places if models[i] not in done]
        for i in todo:
            if not budget.allows(models[i]):
                return _merge_equal_fits(groups)
            groups[i] = replace(groups[i], model=fitter.polished(models[i], deadline.over))
            done.add(groups[i].model)
        if not todo:
            return groups
        groups = _merge_equal_fits(groups)


def _with_evidence(
    groups: list[Group], states: list[State], fitter: Fitter, deadline: Deadline
) -> list[Group]:
    """Return the formulas, the first ones with their evidence, as far as there is time."""
    first = []
    for one in groups[:_WITH_EVIDENCE]:
        if deadline.over():
            break
        members = [states[i] for i in sorted(one.members)]
        evidence = log_evidence_of_writings(fitter, one.model, members, deadline.over)
        first.append(replace(one, log_evidence=evidence))
    return [*first, *groups[len(first) :]]


def to_polish(sizes: Sequence[int], errors: Sequence[float]) -> list[int]:
    """Return which formulas a reader looks at: the first ones, then the front of size and error."""
    return list(dict.fromkeys([*range(len(sizes))[:_POLISHED], *front(sizes, errors).tolist()]))


class Budget:
    """What may be spent on constants of formulas, one after the other; the first always is done."""

    def __init__(self, fitter: Fitter, stop: Callable[[], bool], most: float | None = None):
        self._fitter, self._stop = fitter, stop
        self._most = _MOST_POLISHING if most is None else most
        self._spent: float | None = None

    def allows(self, model: Model) -> bool:
        """Return whether to do one more formula, and count it if so."""
        if self._spent is not None and (self._spent >= self._most or self._stop()):
            return False
        self._spent = (self._spent or 0.0) + self._fitter.work(model.state)
        return True


def front(sizes: Sequence[int], errors: Sequence[float]) -> np.ndarray:
    """Return the places of formulas to which no other is both shorter and closer, by size."""
    order = np.lexsort((errors, sizes))
    ranked = np.asarray(errors, dtype=float)[order]
    best_before = np.concatenate([[np.inf], np.minimum.accumulate(ranked)[:-1]])
    return order[ranked < best_before]


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
                members = other.members | one.members
                merged[i] = Group(other.weight + one.weight, simplest, members)
                break
        else:
            shadows[len(merged)] = shadow
            merged.append(one)
    return sorted(merged, key=lambda one: -one.weight)
