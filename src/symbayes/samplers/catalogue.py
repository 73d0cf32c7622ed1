"""The list of structures that Teleport chooses from, made while the ladders settle.

All states that the ladders have been in, at any temperature, are brought together by structure,
and with them what the search has found and the best states of each size. Those that seem most
probable at one temperature or another are listed. Of each, the constants are improved, and the
log-likelihood is expanded around them, so that its probability at any temperature is known in
closed form, nearly. None of that has to be right: the acceptance ratio of Teleport is exact, and a
proposal after a bad guess is only accepted less often.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from ..formula.trees import concatenated, evaluate_trees, split_terms, state_sizes
from ..inputs.problem import Problem
from ..kernels.opcodes import LT, N_OPCODES
from ..kernels.teleport import Catalogue, Odds, TeleportScratch
from ..kernels.tree import NODE
from ..kernels.units import load_describe
from .trace import VisitedState

# Structures that are listed at most, and the part of them that is chosen for the coldest
# temperature; the others share the rest.
_MOST, _COLD_SHARE = 3000, 0.5
# One that is this many nats behind the best, at every temperature, is as good as never proposed.
_BEHIND = 12.0
# One that is no more than this behind the best, and not listed, was missed.
_AS_GOOD = 2.0
# Constants that a structure may have: with more, hardly any draw from a simple law is a good one.
_MOST_CONSTANTS = 16
# Steps towards better constants, and how often one is halved. A step that gains less is the last.
_STEPS, _HALVINGS, _SMALL_GAIN = 3, 3, 0.05
# Increment of a constant for a derivative, as a part of it.
_INCREMENT = 1.0e-6
# An expansion that promises to gain more nats than this is not around the best constants.
_MOST_GAIN = 1.0
# Terms of which a smaller part (not squared) lies outside the span of the others have no expansion.
_SPANNED = 1.0e-6
# Products of derivatives are made a positive matrix by this part of the diagonal.
_RIDGE = 1.0e-9


class VisitedRows(NamedTuple):
    """States that a ladder has been in, one per row."""

    nodes: np.ndarray
    n_terms: np.ndarray
    log_likelihood: np.ndarray
    """Of all rows; at hot temperatures it may be estimated from a part of them."""


@dataclass
class _Visited:
    state: VisitedState
    log_forms: float
    log_prior: float | None = None


class StateList:
    """What ladders have visited, and the list that is made of it.

    It continues from `visited` states and from those `listed` at last, whose constants need not be
    improved again.
    """

    def __init__(
        self,
        problem: Problem,
        visited: Iterable[VisitedState] = (),
        listed: Sequence[list[np.ndarray]] = (),
    ):
        self._problem = problem
        self._visited: dict[int, _Visited] = {}
        self.listed = list(listed)
        for state in visited:
            nodes = np.zeros((1, max(1, len(state.nodes))), NODE)
            nodes[0, : len(state.nodes)] = state.nodes
            of = np.array([state.n_terms]), np.array([state.log_likelihood])
            self.add(VisitedRows(nodes, *of))

    @property
    def visited(self) -> list[VisitedState]:
        """The states so far, one for each structure."""
        return [one.state for one in self._visited.values()]

    def add(self, rows: VisitedRows) -> None:
        """Take note of states; of each structure the one with the largest likelihood is kept.

        In which order they come makes no difference: among equals it is the one with the largest
        bytes.
        """
        about = describe(self._problem, rows.nodes, rows.n_terms)
        sizes = state_sizes(rows.nodes["op"], rows.n_terms)
        for i, key in enumerate(about.key.tolist()):
            if key == 0 or about.n_constants[i] > _MOST_CONSTANTS:
                continue
            known, log_likelihood = self._visited.get(key), float(rows.log_likelihood[i])
            if known is not None and log_likelihood < known.state.log_likelihood:
                continue
            nodes = rows.nodes[i, : sizes[i]].copy()
            if (
                known is None
                or log_likelihood > known.state.log_likelihood
                or nodes.tobytes() > known.state.nodes.tobytes()
            ):
                state = VisitedState(nodes, int(rows.n_terms[i]), log_likelihood)
                self._visited[key] = _Visited(state, float(about.log_forms[i]))

    def add_met(self, states: Iterable[list[np.ndarray]]) -> None:
        """Take note of states that were met elsewhere, and of parts of them."""
        for one in _unknown(self._problem, states, self._visited.keys()):
            if one.log_likelihood > -np.inf:
                state = VisitedState(concatenated(one.trees), len(one.trees), one.log_likelihood)
                self._visited[one.key] = _Visited(state, one.log_forms)

    def make(self, powers: np.ndarray, stop: Callable[[], bool]) -> Problem:
        """Return the problem with the list of what was visited, for these powers."""
        improved = dict(zip(_keys(self._problem, self.listed), self.listed, strict=True))
        listed = []
        for key in self._chosen(powers):
            if stop():
                break
            if key not in improved:
                state = self._visited[key].state
                improved[key] = _improved(self._problem, split_terms(state.nodes, state.n_terms))
            listed.append(improved[key])
        self.listed = listed
        return with_catalogue(self._problem, listed, stop)

    def _chosen(self, powers: np.ndarray) -> list[int]:
        """Return the keys of the structures that seem most probable at one of the powers."""
        keys = sorted(self._visited)
        of = [self._visited[key] for key in keys]
        for one in of:
            if one.log_prior is None:
                trees = split_terms(one.state.nodes, one.state.n_terms)
                one.log_prior = self._problem.log_prior(trees)
        base = np.array([one.log_forms + (one.log_prior or 0.0) for one in of])
        log_likelihood = np.array([one.state.log_likelihood for one in of])
        shares = np.full(len(powers), (1.0 - _COLD_SHARE) / max(1, len(powers) - 1))
        shares[0] = _COLD_SHARE
        chosen: dict[int, None] = {}
        for power, share in zip(powers, shares, strict=True):
            score = base + power * log_likelihood
            most = len(chosen) + int(share * _MOST)
            for i in np.argsort(-score, kind="stable"):
                if len(chosen) >= most or score[i] < score.max() - _BEHIND:
                    break
                chosen[keys[i]] = None
        return list(chosen)


class _Met(NamedTuple):
    """A structure that is not known yet; its log-likelihood is that of all rows, nearly."""

    trees: list[np.ndarray]
    key: int
    log_forms: float
    log_likelihood: float


def _unknown(
    problem: Problem, states: Iterable[list[np.ndarray]], known: Container[int]
) -> Iterator[_Met]:
    """Yield what is not known of some states, and of what they are without one of their terms."""
    every = [list(state) for state in states]
    if not isinstance(problem.terms, int):
        every += [
            [*one[:k], *one[k + 1 :]] for one in every if len(one) > 1 for k in range(len(one))
        ]
    every = [
        one
        for one in every
        if len(one) <= problem.most_terms and max(map(len, one), default=0) <= problem.max_nodes
    ]
    if not every:
        return
    nodes, n_terms, _ = _packed(every)
    about, rows, seen = describe(problem, nodes, n_terms), _rows_of(problem), set()
    for i, key in enumerate(about.key.tolist()):
        if key == 0 or key in known or key in seen or about.n_constants[i] > _MOST_CONSTANTS:
            continue
        seen.add(key)
        found = _expansion(problem, every[i], rows) if problem.are_sensible(every[i]) else None
        value = -np.inf if found is None else found.log_likelihood * _rows_per_seen(problem)
        yield _Met(every[i], key, float(about.log_forms[i]), value)


def misses(problem: Problem, states: Iterable[list[np.ndarray]]) -> bool:
    """Return whether some of these states, or parts of them, should be listed and are not.

    That is where one is about as probable as the best that is listed.
    """
    catalogue = problem.catalogue
    if catalogue is None:
        return False
    ratio = _rows_per_seen(problem)
    ends = zip(catalogue.first_node, catalogue.first_node[1:], catalogue.n_terms, strict=False)
    listed = [split_terms(catalogue.nodes[a:b], int(k)) for a, b, k in ends]
    prior = np.array([problem.log_prior(trees) for trees in listed])
    best = np.max(prior + catalogue.log_forms + ratio * catalogue.log_likelihood)
    return any(
        problem.log_prior(one.trees) + one.log_forms + one.log_likelihood > best - _AS_GOOD
        for one in _unknown(problem, states, set(catalogue.key.tolist()))
    )


def _rows_per_seen(problem: Problem) -> float:
    return 1.0 if problem.part is None else problem.data.n / problem.part.n


# What the kernels want.


def room_for(problem: Problem) -> TeleportScratch:
    """Return room for the kernel of Teleport, and for what identifies structures."""
    slots = problem.most_terms + 2
    nodes = slots * problem.max_nodes
    return TeleportScratch(
        roots=np.zeros(slots, np.int64),
        order=np.zeros(slots, np.int64),
        pending=np.zeros(nodes + 2, np.int64),
        hashes=np.zeros(nodes, np.uint64),
        stack=np.zeros(nodes + 2, np.uint64),
        constants=np.zeros(2 * nodes),
        drawn=np.zeros(_MOST_CONSTANTS),
        mean=np.zeros(_MOST_CONSTANTS),
        factor=np.zeros(_MOST_CONSTANTS**2),
        counts=np.zeros(N_OPCODES + len(problem.feature_weights)),
    )


class Description(NamedTuple):
    """What `kernels.teleport.identify` says of states, one row of each array per state."""

    key: np.ndarray
    log_forms: np.ndarray
    n_constants: np.ndarray
    constants: np.ndarray
    place: np.ndarray


def describe(problem: Problem, nodes: np.ndarray, n_terms: np.ndarray) -> Description:
    """Return what tells the structures of packed states apart."""
    n, width = nodes.shape
    about = Description(
        np.zeros(n, np.uint64), np.zeros(n), np.zeros(n, np.int64), np.zeros((n, 2 * width)),
        np.full((n, width), -1, np.int64),
    )  # fmt: skip
    load_describe()(
        np.ascontiguousarray(nodes), np.asarray(n_terms, np.int64), about.place, about.key,
        about.log_forms, about.n_constants, about.constants, room_for(problem),
    )  # fmt: skip
    return about


def _packed(states: Sequence[list[np.ndarray]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the nodes of states in rows, the numbers of terms and of nodes."""
    sizes = np.array([sum(map(len, trees)) for trees in states], np.int64)
    nodes = np.zeros((len(states), max(1, sizes.max(initial=0))), NODE)
    for row, trees, size in zip(nodes, states, sizes, strict=True):
        row[:size] = concatenated(trees)
    return nodes, np.array([len(trees) for trees in states], np.int64), sizes


def _keys(problem: Problem, states: Sequence[list[np.ndarray]]) -> list[int]:
    nodes, n_terms, _ = _packed(states)
    return describe(problem, nodes, n_terms).key.tolist()


def with_catalogue(
    problem: Problem, states: Sequence[list[np.ndarray]], stop: Callable[[], bool] = lambda: False
) -> Problem:
    """Return a problem with the list of these states, expanded around their constants.

    When it is time to `stop`, those that are left are not listed.
    """
    rows = _rows_of(problem)
    expanded = {}
    for i, trees in enumerate(states):
        if stop():
            break
        if (one := _cautious(problem, _expansion(problem, trees, rows))) is not None:
            expanded[i] = one
    nodes, n_terms, sizes = _packed(states)
    about = describe(problem, nodes, n_terms)
    by_key = {int(about.key[i]): i for i in reversed(expanded) if about.key[i] != 0}
    plain = problem.plain or problem
    if not by_key:
        return plain
    order = [by_key[key] for key in sorted(by_key)]
    constants = about.n_constants[order]
    places = [about.place[i, : sizes[i]] for i in order]
    sorted_ = [
        _in_places(expanded[i], place[nodes["op"][i, : sizes[i]] == LT])
        for i, place in zip(order, places, strict=True)
    ]
    tree = problem.tree_prior
    catalogue = Catalogue(
        key=about.key[order],
        nodes=np.concatenate([nodes[i, : sizes[i]] for i in order]),
        first_node=_starts(sizes[order]),
        n_terms=n_terms[order],
        log_forms=about.log_forms[order],
        place=np.concatenate(places),
        first_constant=_starts(constants),
        first_product=_starts(constants**2),
        centre=np.concatenate(
            [about.constants[i, :n] for i, n in zip(order, constants, strict=True)]
        ),
        slope=np.concatenate([one.slope for one in sorted_]),
        curvature=np.concatenate([one.curvature.reshape(-1) for one in sorted_]),
        precision=np.array([1.0 / tree.slope_scale, 1.0 / tree.offset_scale]),
        log_likelihood=np.array([one.log_likelihood for one in sorted_]),
    )
    return replace(plain, catalogue=catalogue, plain=plain)


def _starts(sizes: np.ndarray) -> np.ndarray:
    return np.append(0, np.cumsum(sizes)).astype(np.int64)


_INTEGERS, _REALS = np.zeros(0, np.int64), np.zeros(0)
#: The list of nothing, for compiled code.
EMPTY = Catalogue(
    key=np.zeros(0, np.uint64),
    nodes=np.zeros(0, NODE),
    first_node=_INTEGERS,
    n_terms=_INTEGERS,
    log_forms=_REALS,
    place=_INTEGERS,
    first_constant=_INTEGERS,
    first_product=_INTEGERS,
    centre=_REALS,
    slope=_REALS,
    curvature=_REALS,
    precision=_REALS,
    log_likelihood=_REALS,
)


def make_odds(problem: Problem, powers: np.ndarray) -> Odds:
    """Return how readily each structure is proposed at each power of the likelihood.

    That is in proportion to its probability there as far as that is known: with all of its
    writings, and with its constants integrated out by the expansion.
    """
    catalogue = problem.catalogue
    if catalogue is None:
        return Odds(*[np.zeros((len(powers), 0))] * 2)
    ratio = _rows_per_seen(problem)
    ends = zip(catalogue.first_node, catalogue.first_node[1:], catalogue.n_terms, strict=False)
    of_structure = problem.log_prior.of_structure
    base = [of_structure(split_terms(catalogue.nodes[a:b], int(k))) for a, b, k in ends]
    log_weight = np.add(base, catalogue.log_forms) + np.multiply.outer(
        powers * ratio, catalogue.log_likelihood
    )
    sizes = np.diff(catalogue.first_constant)
    for size in np.unique(sizes[sizes > 0]).tolist():
        which = np.flatnonzero(sizes == size)
        for row, power in enumerate(powers * ratio):
            log_weight[row, which] += _log_integrals(catalogue, which, size, float(power))
    log_weight -= log_weight.max(axis=1, keepdims=True)
    weight = np.exp(log_weight)
    total = weight.sum(axis=1, keepdims=True)
    cumulative = np.cumsum(weight, axis=1)
    return Odds(log_weight - np.log(total), cumulative / cumulative[:, -1:])


def _log_integrals(catalogue: Catalogue, which: np.ndarray, size: int, power: float) -> np.ndarray:
    """Return the log of the likelihood, expanded, over that at the centre, averaged over the prior.

    For structures with `size` constants, with the precisions of the prior that the law has.
    """
    at = catalogue.first_constant[which][:, None] + np.arange(size)
    square = catalogue.first_product[which][:, None] + np.arange(size**2)
    centre, slope = catalogue.centre[at], power * catalogue.slope[at]
    curvature = power * catalogue.curvature[square].reshape(-1, size, size)
    own, mean = np.tile(catalogue.precision, size // 2), np.tile([1.0, 0.0], size // 2)
    along = np.einsum("kij,kj->ki", curvature, centre)
    precision = curvature + np.diag(own)
    right = slope + along + own * mean
    best = np.linalg.solve(precision, right[:, :, None])[:, :, 0]
    return (
        np.sum(best * right, axis=1) / 2
        - np.sum(centre * (slope + along / 2), axis=1)
        + (np.sum(np.log(own)) - np.sum(own * mean**2) - np.linalg.slogdet(precision)[1]) / 2
    )


# The log-likelihood around the constants of a structure.


class _Rows(NamedTuple):
    """The rows that are seen first, with weight; `span` is what is taken out of every column."""

    x: np.ndarray
    y: np.ndarray
    root: np.ndarray
    span: np.ndarray
    n: float
    noise: tuple[float, float]


class _Expansion(NamedTuple):
    log_likelihood: float
    slope: np.ndarray
    curvature: np.ndarray


def _rows_of(problem: Problem) -> _Rows:
    data = problem.seen
    used = data.root_weight > 0
    root = data.root_weight[used]
    known = data.known.reshape(-1, len(data.y))[:, used]
    nu, lam = data.noise_prior.tolist()
    return _Rows(
        np.ascontiguousarray(data.x.reshape(-1, len(data.y))[:, used]), data.y[used], root,
        np.vstack([root / np.sqrt(data.n), known]), float(data.n), (nu, lam),
    )  # fmt: skip


def _in_places(found: _Expansion, place: np.ndarray) -> _Expansion:
    """Return an expansion with its constants in the order of the places of their nodes."""
    back = np.argsort(np.stack([place, place + 1], axis=1).reshape(-1))
    return found._replace(slope=found.slope[back], curvature=found.curvature[np.ix_(back, back)])


def _transforms(trees: Sequence[np.ndarray]) -> list[tuple[int, int]]:
    return [(k, int(i)) for k, tree in enumerate(trees) for i in np.flatnonzero(tree["op"] == LT)]


def _precision(problem: Problem, n_transforms: int) -> np.ndarray:
    tree = problem.tree_prior
    return np.tile([1.0 / tree.slope_scale, 1.0 / tree.offset_scale], n_transforms)


def _expansion(problem: Problem, trees: Sequence[np.ndarray], rows: _Rows) -> _Expansion | None:
    """Return the expansion of the log-likelihood, coefficients and noise integrated out.

    The curvature is that of Gauss and Newton: products of derivatives, projected off the terms.
    """
    places = _transforms(trees)
    moved, steps, owners = [], [], []
    for k, i in places:
        for name in ("a", "b"):
            tree = trees[k].copy()
            value = float(tree[i][name])
            tree[i][name] = value + _INCREMENT * max(1.0, abs(value))
            steps.append(float(tree[i][name]) - value)
            moved.append(tree)
            owners.append(k)
    nu, lam = rows.noise
    slope, curvature, rss, k = np.zeros(0), np.zeros((0, 0)), rows.n, len(trees)
    with np.errstate(all="ignore"):
        if trees:
            values = evaluate_trees([*trees, *moved], rows.x) * rows.root
            if not np.isfinite(values).all():
                return None
            values -= (values @ rows.span.T) @ rows.span
            length = np.sqrt(np.sum(values[:k] ** 2, axis=1))
            if not (length > 0.0).all():
                return None
            q, r = np.linalg.qr((values[:k] / length[:, None]).T)
            if not (np.abs(np.diag(r)) > _SPANNED).all():
                return None
            along = q.T @ rows.y
            residual = rows.y - q @ along
            rss = float(residual @ residual)
            gain = (rows.n - 1.0 + nu) / (nu * lam + rss)
            if places:
                beta = np.linalg.solve(r, along) / length
                jacobian = values[k:] - values[owners]
                jacobian *= (beta[owners] / np.array(steps))[:, None]
                jacobian -= (jacobian @ q) @ q.T
                slope, curvature = gain * jacobian @ residual, gain * jacobian @ jacobian.T
                curvature[np.diag_indices(len(curvature))] *= 1.0 + _RIDGE
        log_likelihood = -0.5 * k * np.log1p(rows.n) - 0.5 * (rows.n - 1.0 + nu) * np.log(
            nu * lam + rss
        )
    if not (np.isfinite(log_likelihood) and np.isfinite(curvature).all()):
        return None
    return _Expansion(float(log_likelihood), slope, curvature)


def _cautious(problem: Problem, found: _Expansion | None) -> _Expansion | None:
    """Return an expansion that promises no more than a little.

    Far from the best constants nothing is known of what lies between.
    """
    if found is None or not len(found.slope):
        return found
    precision = found.curvature + np.diag(_precision(problem, len(found.slope) // 2))
    if 0.5 * found.slope @ np.linalg.solve(precision, found.slope) < _MOST_GAIN:
        return found
    return found._replace(slope=np.zeros(len(found.slope)))


def _improved(problem: Problem, trees: list[np.ndarray]) -> list[np.ndarray]:
    """Return a state with its constants closer to the most probable ones (Gauss and Newton)."""
    places, rows = _transforms(trees), _rows_of(problem)
    if not places:
        return trees
    precision, mean = _precision(problem, len(places)), np.tile([1.0, 0.0], len(places))

    def with_constants(values: np.ndarray) -> list[np.ndarray]:
        result = [tree.copy() for tree in trees]
        for (k, i), a, b in zip(places, values[::2], values[1::2], strict=True):
            result[k][i]["a"], result[k][i]["b"] = a, b
        return result

    def score(found: _Expansion | None, values: np.ndarray) -> float:
        if found is None:
            return -np.inf
        return found.log_likelihood - 0.5 * float(precision @ (values - mean) ** 2)

    values = np.array([trees[k][i][name] for k, i in places for name in ("a", "b")])
    best = _expansion(problem, trees, rows)
    for _ in range(_STEPS):
        if best is None:
            break
        step = np.linalg.solve(
            best.curvature + np.diag(precision), best.slope - precision * (values - mean)
        )
        for _ in range(_HALVINGS):
            found = _expansion(problem, with_constants(values + step), rows)
            gain = score(found, values + step) - score(best, values)
            if gain > 0.0:
                break
            step *= 0.5
        else:
            break
        values, best = values + step, found
        if gain < _SMALL_GAIN:
            break
    better = with_constants(values)
    return better if problem.are_sensible(better) else trees
