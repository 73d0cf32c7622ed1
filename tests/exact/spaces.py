"""Small spaces whose posterior is known exactly, by listing every state.

With `lt` the constants are integrated out by averaging the likelihood over many draws from their
prior, which is exact up to an error far below what a test can see.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
from scipy import stats

from symbayes.formula.operators import BY_OPCODE
from symbayes.formula.trees import state_size
from symbayes.inputs.problem import Problem
from symbayes.kernels import opcodes
from symbayes.kernels.tree import NODE

from .. import naive
from ..problems import beliefs


def all_trees(believed: naive.Beliefs) -> list[naive.Tree]:
    """Return every structure that fits, constants of `lt` left open."""
    operators = [op for op, weight in enumerate(believed.operator_weights) if weight > 0]
    by_size: dict[int, list[naive.Tree]] = {
        1: [naive.Tree(0, f) for f, w in enumerate(believed.feature_weights) if w > 0]
    }
    for size in range(2, believed.max_nodes + 1):
        by_size[size] = []
        for op in operators:
            if BY_OPCODE[op].arity == 1:
                by_size[size] += [naive.Tree(op, children=[c.copy()]) for c in by_size[size - 1]]
            else:
                for left in range(1, size - 1):
                    pairs = itertools.product(by_size[left], by_size[size - 1 - left])
                    by_size[size] += [
                        naive.Tree(op, children=[p.copy(), q.copy()]) for p, q in pairs
                    ]
    return [tree for size in sorted(by_size) for tree in by_size[size]]


def structure_key(nodes: np.ndarray, n_terms: int) -> tuple:
    """Return what identifies a packed state up to its constants."""
    return (n_terms, tuple(zip(nodes["op"].tolist(), nodes["feature"].tolist(), strict=True)))


@dataclass
class Space:
    """All states of a problem with their exact probabilities."""

    problem: Problem
    states: list[tuple[naive.Tree, ...]]
    probability: np.ndarray
    index: dict[tuple, int]
    width: int
    prepared: dict

    def pack(self, trees) -> np.ndarray:
        row = np.zeros(self.width, NODE)
        packed = np.concatenate([naive.to_nodes(tree) for tree in trees] or [np.zeros(0, NODE)])
        row[: len(packed)] = packed
        return row

    def draw(self, n: int, rng: np.random.Generator):
        """Draw states from the exact posterior, constants, scales and noise included."""
        picks = rng.choice(len(self.states), size=n, p=self.probability)
        packed = np.stack([self.pack(state) for state in self.states])
        transforms = [np.flatnonzero(row["op"] == opcodes.LT) for row in packed]
        nodes = packed[picks]
        terms = np.array([len(state) for state in self.states])[picks]
        scales = np.ones((n, 2))
        all_rss = np.ones(n)
        prior = self.problem.new_prior((0.25, 3.0))
        concentrations = (prior.operator_concentration, prior.feature_concentration)
        weights = np.zeros((n, sum(map(len, concentrations))))
        for i, state in enumerate(picks):
            constants, scales[i], all_rss[i] = self.prepared["draw"](state, rng)
            assert len(constants) == len(transforms[state])
            for at, (a, b) in zip(transforms[state], constants, strict=True):
                nodes["a"][i, at], nodes["b"][i, at] = a, b
            if self.problem.learn:
                weights[i] = draw_weights(self.states[state], concentrations, rng)
        nu, lam = self.problem.data.noise_prior
        noise = inverse_gamma(0.5 * (self.problem.data.n + nu), 0.5 * (nu * lam + all_rss), n, rng)
        return nodes, terms, scales, noise, weights


def inverse_gamma(shape: float, scale, n: int, rng: np.random.Generator) -> np.ndarray:
    """Draw from an inverse gamma distribution, much faster than SciPy does."""
    return scale / rng.standard_gamma(shape, n)


def draw_weights(trees, concentrations, rng: np.random.Generator) -> np.ndarray:
    """Draw learned weights given trees; return their running sums, operators before columns."""
    counts = naive.node_counts(trees, *map(len, concentrations))
    parts = []
    for concentration, seen in zip(concentrations, counts, strict=True):
        shape = concentration + seen
        drawn = np.where(shape > 0, rng.standard_gamma(np.where(shape > 0, shape, 1.0)), 0.0)
        sums = np.cumsum(drawn) / drawn.sum()
        sums[np.flatnonzero(shape)[-1] :] = 1.0
        parts.append(sums)
    return np.concatenate(parts)


def enumerate_space(
    problem: Problem, X, y, weights, likelihood: str, temperature: float = 1.0,
    constant_draws: int = 20_000, seed: int = 0,
) -> Space:  # fmt: skip
    """List every state with its exact probability.

    Where the problem has a part that takes the place of all rows, the rows are those of the part.
    """
    in_part = len(y) < np.count_nonzero(problem.data.root_weight)
    believed = beliefs(problem)
    limits = (problem.tree_prior.max_depth, problem.tree_prior.nesting)
    trees = [tree for tree in all_trees(believed) if naive.is_allowed(tree, *limits)]
    log_tree = [
        naive.log_shape(tree, believed) if problem.learn else naive.log_prior(tree, believed)
        for tree in trees
    ]
    if isinstance(problem.terms, int):
        counts = {problem.terms: 0.0}
    else:
        counts = {k: k * math.log(problem.terms.decay) for k in range(problem.terms.most + 1)}
    states, log_weight, samples = [], [], []
    rng = np.random.default_rng(seed)
    for n_terms, log_count in counts.items():
        for combination in itertools.product(range(len(trees)), repeat=n_terms):
            state = tuple(trees[i] for i in combination)
            log_prior = log_count + sum(log_tree[i] for i in combination)
            log_prior -= problem.tree_prior.nesting_price * sum(map(naive.count_nested, state))
            if problem.learn:
                log_prior += _log_urns(state, problem)
            log_likelihood, sample = _marginal(
                state, problem, X, y, weights, likelihood, temperature, constant_draws, rng, in_part
            )
            if log_likelihood == -math.inf:
                continue
            states.append(state)
            log_weight.append(log_prior + log_likelihood)
            samples.append(sample)
    log_weight = np.array(log_weight)
    probability = np.exp(log_weight - log_weight.max())
    probability /= probability.sum()
    width = problem.most_terms * problem.max_nodes

    def draw(state, generator):
        constants, scales, cumulative, rss = samples[state]
        i = int(np.searchsorted(cumulative, generator.random())) if cumulative is not None else 0
        return constants[i], scales[i], rss[i]

    space = Space(problem, states, probability, {}, width, {"draw": draw})
    for i, state in enumerate(states):
        packed = space.pack(state)
        space.index[structure_key(packed[: sum(t.size() for t in state)], len(state))] = i
    return space


def _log_urns(state, problem):
    """Log prior of all operators and columns of a state, the learned weights integrated out."""
    prior = problem.new_prior((0.25, 3.0))
    concentrations = (prior.operator_concentration, prior.feature_concentration)
    counts = naive.node_counts(state, *map(len, concentrations))
    return sum(
        naive.log_urn(seen, concentration)
        for seen, concentration in zip(counts, concentrations, strict=True)
    )


def _marginal(state, problem, X, y, weights, likelihood, temperature, n_draws, rng, in_part):
    """Log-likelihood with constants averaged over their prior, and a sample of them."""
    n_lt = sum(len(tree.transforms()) for tree in state)
    strict = likelihood == "collapsed" and not in_part
    if strict and 1 + len(state) + 2 * n_lt > problem.data.most_constants:
        return -math.inf, None
    has_lt = "lt" in problem.operator_weights
    nu, lam = (float(v) for v in (problem.part if in_part else problem.data).noise_prior)
    n = float(np.sum(weights))
    tree_prior = problem.tree_prior
    shapes = (tree_prior.slope_shape, tree_prior.offset_shape)
    centres = (tree_prior.slope_scale, tree_prior.offset_scale)
    count = n_draws if n_lt or has_lt else 1
    scales = np.column_stack(
        [
            inverse_gamma(0.5 * s, 0.5 * s * c, count, rng)
            for s, c in zip(shapes, centres, strict=True)
        ]
    )
    constants = np.empty((count, n_lt, 2))
    constants[:, :, 0] = 1 + np.sqrt(scales[:, :1]) * rng.normal(size=(count, n_lt))
    constants[:, :, 1] = np.sqrt(scales[:, 1:]) * rng.normal(size=(count, n_lt))
    known = [naive.from_nodes(tree) for tree in problem.known]
    is_probed = len(problem.data.probe) > 0
    rss, redundant, sizes = _residuals(
        state, constants, X, naive.scaled(y, weights), weights, n_lt, known, in_part, is_probed
    )
    possible = np.isfinite(rss)
    if is_probed:
        possible &= _are_sensible(state, constants, problem.data.probe, X.shape[1])
        possible &= (sizes <= problem.data.most_size) | in_part
    if likelihood == "collapsed":
        possible &= ~redundant if strict else True
        log_values = -0.5 * len(state) * math.log(1 + n) - 0.5 * (n - 1 + nu) * np.log(
            nu * lam + np.where(possible, rss, 1.0)
        )
    else:
        log_values = -0.5 * (n + nu) * np.log(nu * lam + np.where(possible, rss, 1.0))
    log_values = np.where(possible, temperature * log_values, -np.inf)
    top = log_values.max()
    if top == -np.inf:
        return -math.inf, None
    values = np.exp(log_values - top)
    cumulative = np.cumsum(values) / values.sum()
    return top + math.log(values.mean()), (constants, scales, cumulative, rss)


def _are_sensible(state, constants, probe, n_columns):
    """Whether all terms are sensible, for many sets of constants at once."""
    rows = probe.reshape(n_columns, -1).T
    result = np.ones(len(constants), bool)
    used = 0
    for tree in state:
        transforms = tree.transforms()
        position = {id(node): used + i for i, node in enumerate(transforms)}
        used += len(transforms)
        if not tree.op:
            continue
        some = constants if transforms else constants[:1]
        result &= naive.are_sensible(_evaluate(tree, some, rows, position))
        for node in tree.operators():
            if node.op in (opcodes.ADD, opcodes.SUB):
                parts = (node, *node.children)
                result &= naive.keep_digits(
                    *(_evaluate(part, some, rows[: len(rows) // 3], position) for part in parts)
                )
    return result


def _residuals(state, constants, X, y, weights, n_lt, known, in_part, with_sizes):
    """Residual sums of squares, and sizes of the coefficients, for many sets of constants at once.

    In units of what the known terms leave of y; a column that is nothing beside them has none. In
    a part of the rows a column that is constant or nothing new is one of zeros.
    """
    count, n_rows = (len(constants) if n_lt else 1), len(y)
    root = np.sqrt(weights)
    design = np.column_stack(
        [root, *(root * _evaluate(tree, np.ones((1, 0, 2)), X, {})[0] for tree in known)]
    )
    span = np.linalg.svd(design, full_matrices=False)[0]
    target = y * root
    target = target - span @ (span.T @ target)
    target *= np.sqrt(weights.sum() / (target @ target))
    columns = np.empty((count, len(state), n_rows))
    used = 0
    valid = np.ones(count, bool)
    for k, tree in enumerate(state):
        transforms = tree.transforms()
        position = {id(node): used + i for i, node in enumerate(transforms)}
        values = _evaluate(tree, constants[:count], X, position)
        used += len(transforms)
        mean = np.average(values, axis=1, weights=weights)
        with np.errstate(all="ignore"):
            centred = (values - mean[:, None]) * root
            length = np.sqrt(np.sum(centred**2, axis=1))
            raw = np.sqrt(np.sum((values * root) ** 2, axis=1))
            some = length > 1e-10 * raw
            valid &= np.isfinite(values).all(axis=1) & (some | in_part)
            columns[:, k] = np.where(some[:, None], centred / length[:, None], 0.0)
        columns[~valid] = 0.0
        if known:
            columns[:, k] -= (columns[:, k] @ span) @ span.T
            size = np.sum(columns[:, k] ** 2, axis=1)
            some = size > 1e-10
            valid &= some | in_part
            columns[:, k] /= np.sqrt(np.where(some, size, 1.0))[:, None]
            columns[~some, k] = 0.0
    columns[~valid] = 0.0
    residual = np.broadcast_to(target, (count, n_rows)).copy()
    redundant = np.zeros(count, bool)
    basis: list[np.ndarray] = []
    for k in range(len(state)):
        v = columns[:, k].copy()
        for q in basis:
            v -= np.sum(v * q, axis=1)[:, None] * q
        size = np.sum(v * v, axis=1)
        gone = size <= 1e-10
        redundant |= gone
        q = np.where(gone[:, None], 0.0, v / np.sqrt(np.where(gone, 1.0, size))[:, None])
        residual -= np.sum(residual * q, axis=1)[:, None] * q
        basis.append(q)
    rss = np.where(valid, np.sum(residual**2, axis=1), np.nan)
    # Only for problems that ask for it, as it takes longer than all the rest.
    sizes = np.zeros(count)
    if with_sizes:
        sizes = np.abs(target @ np.linalg.pinv(columns)).sum(axis=1)
    if not n_lt:
        rss, redundant, sizes = (np.repeat(v, len(constants)) for v in (rss, redundant, sizes))
    return rss, redundant, sizes


def _evaluate(tree, constants, X, position):
    if tree.op == 0:
        return np.broadcast_to(X[:, tree.feature], (len(constants), len(X)))
    operands = [_evaluate(child, constants, X, position) for child in tree.children]
    if tree.op == opcodes.LT:
        at = constants[:, position[id(tree)]]
        return at[:, :1] * operands[0] + at[:, 1:]
    with np.errstate(all="ignore"):
        return BY_OPCODE[tree.op].numpy(*operands)


def count_states(space: Space, out_nodes, out_terms) -> np.ndarray | None:
    """Return how often each state was seen; None when one of probability zero was."""
    seen = np.zeros(len(space.states))
    for nodes, n_terms in zip(out_nodes, out_terms, strict=True):
        key = structure_key(nodes[: state_size(nodes, int(n_terms))], int(n_terms))
        if key not in space.index:
            return None
        seen[space.index[key]] += 1
    return seen


def p_value(space: Space, out_nodes, out_terms) -> float:
    """Chi-squared p-value of states seen against the exact posterior."""
    seen = count_states(space, out_nodes, out_terms)
    return 0.0 if seen is None else p_of_counts(seen, space.probability * len(out_terms))


def p_of_counts(seen: np.ndarray, expected: np.ndarray, fewest: float = 20.0) -> float:
    """Chi-squared p-value of counts against what is expected, rare cells pooled."""
    common = expected >= fewest
    seen = np.append(seen[common], seen[~common].sum())
    expected = np.append(expected[common], expected[~common].sum())
    if expected[-1] < fewest:
        seen, expected = (np.append(v[:-2], v[-2:].sum()) for v in (seen, expected))
    return float(stats.chi2.sf(np.sum((seen - expected) ** 2 / expected), len(seen) - 1))
