"""The list of states that Teleport chooses from, made while the ladders settle.

All states that the ladders have been in, at any temperature, are brought together by structure.
Those that seem most probable at one temperature or another are kept. Of each, the constants are
improved, and the log-likelihood is expanded around them, so that its probability at any temperature
is known in closed form, nearly. None of that has to be right: the acceptance ratio of Teleport is
exact, and a bad guess is only accepted less often.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..formula.trees import concatenated, evaluate_trees, split_terms
from ..inputs.problem import Problem
from ..kernels.all_rows import sees_all
from ..kernels.opcodes import LT, N_OPCODES
from ..kernels.teleport import FREEDOM, Catalogue, Odds, TeleportScratch
from ..kernels.tree import NODE
from ..kernels.units import load_describe

#: Structures that are kept at most, and the part of them that is chosen for the coldest
#: temperature; the others share the rest.
MOST, COLD_SHARE = 3000, 0.5
# Constants that a structure may have: with more of them a draw from its law is hardly ever good.
_MOST_CONSTANTS = 16
# Steps towards better constants, and how often one is halved.
_STEPS, _HALVINGS = 3, 3
# Increment of a constant for a derivative, as a part of it.
_INCREMENT = 1.0e-6
# An expansion that promises to gain more nats than this is not around the best constants.
_MOST_GAIN = 1.0
# Matrices of products are made positive by this part of their diagonal.
_RIDGE = 1.0e-9


class Visited(NamedTuple):
    """States that ladders have been in, in rows of one width."""

    nodes: np.ndarray
    n_terms: np.ndarray
    log_likelihood: np.ndarray
    """At the temperature that they were at; may be that of a part of the rows."""


class Expansion(NamedTuple):
    """The log-likelihood of a structure around some constants."""

    log_likelihood: float
    slope: np.ndarray
    curvature: np.ndarray


def room_for(problem: Problem) -> TeleportScratch:
    """Return room for the kernel of Teleport, and for `describe`."""
    slots, nodes = problem.most_terms + 2, (problem.most_terms + 2) * problem.max_nodes
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


def no_catalogue() -> Catalogue:
    """Return a list of nothing."""
    ints, reals = np.zeros(0, np.int64), np.zeros(0)
    return Catalogue(
        np.zeros(0, np.uint64), np.zeros(0, NODE), ints, ints, reals, *[ints] * 3, *[reals] * 4
    )


class _Described(NamedTuple):
    key: np.ndarray
    log_forms: np.ndarray
    n_constants: np.ndarray
    constants: np.ndarray
    place: np.ndarray


def _describe(nodes: np.ndarray, n_terms: np.ndarray, problem: Problem) -> _Described:
    n, width = nodes.shape
    result = _Described(
        np.zeros(n, np.uint64), np.zeros(n), np.zeros(n, np.int64), np.zeros((n, 2 * width)),
        np.full((n, width), -1),
    )  # fmt: skip
    load_describe()(
        nodes, n_terms, result.place, result.key, result.log_forms, result.n_constants,
        result.constants, room_for(problem),
    )  # fmt: skip
    return result


def choose(
    problem: Problem, visited: Visited, powers: np.ndarray, most: int = MOST
) -> list[list[np.ndarray]]:
    """Return the states that seem worth listing, each structure once, with better constants.

    `powers` are those of the likelihood at which they will be proposed.
    """
    some = _describe(visited.nodes, visited.n_terms, problem)
    usable = (some.key != 0) & (some.n_constants <= _MOST_CONSTANTS)
    # Of each structure the state with the largest likelihood.
    order = np.flatnonzero(usable)
    order = order[np.lexsort((-visited.log_likelihood[order], some.key[order]))]
    keys = some.key[order]
    first = order[np.append(True, keys[1:] != keys[:-1])[: len(order)]]
    states = [
        split_terms(visited.nodes[i], int(visited.n_terms[i])) for i in first
    ]
    priors = np.array([problem.log_prior(trees) for trees in states])
    base = priors + some.log_forms[first]
    chosen: dict[int, None] = {}
    shares = np.full(len(powers), (1.0 - COLD_SHARE) / max(1, len(powers) - 1))
    shares[0] = COLD_SHARE
    for power, share in zip(powers, shares, strict=True):
        score = base + power * visited.log_likelihood[first]
        room = len(chosen) + int(share * most)
        for i in np.argsort(-score, kind="stable"):
            if len(chosen) >= room:
                break
            chosen[int(i)] = None
    return [_improved(problem, states[i]) for i in chosen]


def make_catalogue(problem: Problem, states: Sequence[list[np.ndarray]]) -> Catalogue:
    """Return the list of these states, one of each structure, expanded where they are."""
    expansions, kept = [], []
    for trees in states:
        found = _expand(problem, trees)
        if found is not None:
            expansions.append(found)
            kept.append(trees)
    width = max((sum(map(len, trees)) for trees in kept), default=0)
    nodes = np.zeros((len(kept), max(1, width)), NODE)
    sizes = np.array([sum(map(len, trees)) for trees in kept], np.int64)
    n_terms = np.array([len(trees) for trees in kept], np.int64)
    for row, trees, size in zip(nodes, kept, sizes, strict=True):
        row[:size] = concatenated(trees)
    about = _describe(nodes, n_terms, problem)
    order = np.argsort(about.key, kind="stable")
    order = order[about.key[order] != 0]
    order = order[np.append(True, np.diff(about.key[order].astype(object)) != 0)[: len(order)]]
    constants = about.n_constants[order]
    pick = [expansions[i] for i in order]
    places = [about.place[i, : sizes[i]] for i in order]
    in_order = [_reordered(e, nodes[i, : sizes[i]], p) for e, i, p in zip(pick, order, places)]
    tree = problem.tree_prior
    return Catalogue(
        key=about.key[order],
        nodes=np.concatenate([np.zeros(0, NODE), *(nodes[i, : sizes[i]] for i in order)]),
        first_node=np.append(0, np.cumsum(sizes[order])),
        n_terms=n_terms[order],
        log_forms=about.log_forms[order],
        place=np.concatenate([np.zeros(0, np.int64), *places]),
        first_constant=np.append(0, np.cumsum(constants)),
        first_product=np.append(0, np.cumsum(constants**2)),
        centre=np.concatenate(
            [np.zeros(0), *(about.constants[i, :n] for i, n in zip(order, constants))]
        ),
        slope=np.concatenate([np.zeros(0), *(e.slope for e in in_order)]),
        curvature=np.concatenate([np.zeros(0), *(e.curvature.reshape(-1) for e in in_order)]),
        precision=np.array([1.0 / tree.slope_scale, 1.0 / tree.offset_scale]),
    ), np.array([e.log_likelihood for e in in_order])


def _reordered(found: Expansion, nodes: np.ndarray, place: np.ndarray) -> Expansion:
    """Return an expansion with its constants in the order of their places."""
    at = place[nodes["op"] == LT]
    to = np.stack([at, at + 1], axis=1).reshape(-1)
    back = np.argsort(to)
    return found._replace(slope=found.slope[back], curvature=found.curvature[np.ix_(back, back)])


def make_odds(
    problem: Problem, catalogue: Catalogue, log_likelihood: np.ndarray, powers: np.ndarray
) -> Odds:
    """Return how readily each structure is proposed at each temperature."""
    n, t = len(catalogue.key), len(powers)
    if n == 0:
        return Odds(np.zeros((t, 0)), np.zeros((t, 0)), np.zeros((t, 3), np.int64))
    ratio = 1.0 if problem.part is None else problem.data.n / problem.part.n
    base = np.array(
        [
            problem.log_prior.of_structure(
                split_terms(catalogue.nodes[a:b], int(k))
            )
            for a, b, k in zip(
                catalogue.first_node, catalogue.first_node[1:], catalogue.n_terms, strict=False
            )
        ]
    ) + catalogue.log_forms
    log_weight = base + np.multiply.outer(powers * ratio, log_likelihood)
    sizes = np.diff(catalogue.first_constant)
    for size in np.unique(sizes[sizes > 0]):
        which = np.flatnonzero(sizes == size)
        at = catalogue.first_constant[which][:, None] + np.arange(size)
        square = catalogue.first_product[which][:, None] + np.arange(size**2)
        centre, slope = catalogue.centre[at], catalogue.slope[at]
        curvature = catalogue.curvature[square].reshape(-1, size, size)
        prior = np.tile(catalogue.precision, size // 2)
        mean = np.tile([1.0, 0.0], size // 2)
        along = (curvature @ centre[:, :, None])[:, :, 0]
        for row, power in enumerate(powers * ratio):
            precision = power * curvature + np.diag(prior)
            right = power * (slope + along) + prior * mean
            best = np.linalg.solve(precision, right[:, :, None])[:, :, 0]
            log_weight[row, which] += (
                -power * np.sum(centre * (slope + 0.5 * along), axis=1)
                + 0.5 * np.sum(np.log(prior))
                - 0.5 * np.linalg.slogdet(precision)[1]
                + 0.5 * np.sum(best * right, axis=1)
                - 0.5 * np.sum(prior * mean**2)
            )
    log_weight -= log_weight.max(axis=1, keepdims=True)
    weight = np.exp(log_weight)
    total = weight.sum(axis=1, keepdims=True)
    cumulative = np.cumsum(weight / total, axis=1)
    cumulative /= cumulative[:, -1:]
    log_weight -= np.log(total)
    return Odds(log_weight, cumulative, np.zeros((t, 3), np.int64))


def _transforms(trees: Sequence[np.ndarray]) -> list[tuple[int, int]]:
    return [(k, int(i)) for k, tree in enumerate(trees) for i in np.flatnonzero(tree["op"] == LT)]


class _Rows(NamedTuple):
    x: np.ndarray
    y: np.ndarray
    root: np.ndarray
    span: np.ndarray
    n: float
    noise: tuple[float, float]


def _rows(problem: Problem) -> _Rows:
    data = problem.seen
    used = data.root_weight > 0
    root = data.root_weight[used]
    known = data.known.reshape(-1, len(data.y))[:, used]
    return _Rows(
        np.ascontiguousarray(data.x.reshape(-1, len(data.y))[:, used]), data.y[used], root,
        np.vstack([root / np.sqrt(data.n), known]), float(data.n),
        (float(data.noise_prior[0]), float(data.noise_prior[1])),
    )  # fmt: skip


def _expand(problem: Problem, trees: Sequence[np.ndarray], rows: _Rows | None = None):
    """Return the expansion of the log-likelihood around the constants of a state."""
    rows = rows or _rows(problem)
    nu, lam = rows.noise
    if not trees:
        log_likelihood = -0.5 * (rows.n - 1.0 + nu) * np.log(nu * lam + rows.n)
        return Expansion(float(log_likelihood), np.zeros(0), np.zeros((0, 0)))
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
    with np.errstate(all="ignore"):
        values = evaluate_trees([*trees, *moved], rows.x) * rows.root
        if not np.isfinite(values).all():
            return None
        values -= (values @ rows.span.T) @ rows.span
        columns, slopes = values[: len(trees)], values[len(trees) :]
        length = np.sqrt(np.sum(columns**2, axis=1))
        if not (length > 0.0).all():
            return None
        q, r = np.linalg.qr((columns / length[:, None]).T)
        if not (np.abs(np.diag(r)) > 1e-6).all():
            return None
        along = q.T @ rows.y
        residual = rows.y - q @ along
        beta = np.linalg.solve(r, along) / length
        rss = float(residual @ residual)
        gain = (rows.n - 1.0 + nu) / (nu * lam + rss)
        log_likelihood = -0.5 * len(trees) * np.log1p(rows.n) - 0.5 * (rows.n - 1.0 + nu) * np.log(
            nu * lam + rss
        )
        if places:
            jacobian = (slopes - columns[owners]) * (beta[owners] / np.array(steps))[:, None]
            jacobian -= (jacobian @ q) @ q.T
            slope, curvature = gain * jacobian @ residual, gain * jacobian @ jacobian.T
            curvature[np.diag_indices(len(curvature))] *= 1.0 + _RIDGE
            prior = np.diag(
                np.tile(
                    [1.0 / problem.tree_prior.slope_scale, 1.0 / problem.tree_prior.offset_scale],
                    len(places),
                )
            )
            # Far from the best constants nothing is known of what lies between.
            if not 0.5 * slope @ np.linalg.solve(curvature + prior, slope) < _MOST_GAIN:
                slope[:] = 0.0
        else:
            slope, curvature = np.zeros(0), np.zeros((0, 0))
    if not (np.isfinite(log_likelihood) and np.isfinite(slope).all() and np.isfinite(curvature).all()):
        return None
    return Expansion(float(log_likelihood), slope, curvature)


def _improved(problem: Problem, trees: list[np.ndarray]) -> list[np.ndarray]:
    """Return a state with its constants closer to the best ones, by damped Gauss-Newton steps."""
    places = _transforms(trees)
    if not places:
        return trees
    rows, tree_prior = _rows(problem), problem.tree_prior
    precision = np.tile([1.0 / tree_prior.slope_scale, 1.0 / tree_prior.offset_scale], len(places))
    mean = np.tile([1.0, 0.0], len(places))

    def objective(found, theta):
        return found.log_likelihood - 0.5 * float(precision @ (theta - mean) ** 2)

    def with_constants(theta):
        result = [tree.copy() for tree in trees]
        for (k, i), a, b in zip(places, theta[::2], theta[1::2], strict=True):
            result[k][i]["a"], result[k][i]["b"] = a, b
        return result

    theta = np.array([trees[k][i][name] for k, i in places for name in ("a", "b")])
    best = _expand(problem, trees, rows)
    for _ in range(_STEPS):
        if best is None:
            return trees
        step = np.linalg.solve(
            best.curvature + np.diag(precision), best.slope - precision * (theta - mean)
        )
        for _ in range(_HALVINGS):
            moved = theta + step
            found = _expand(problem, with_constants(moved), rows)
            if found is not None and objective(found, moved) > objective(best, theta):
                break
            step *= 0.5
        else:
            break
        gain = objective(found, moved) - objective(best, theta)
        theta, best = moved, found
        if gain < 0.05:
            break
    return with_constants(theta)
