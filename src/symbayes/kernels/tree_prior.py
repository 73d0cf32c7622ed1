"""The prior over trees: how probable a tree is, and how to draw one."""

import math
from typing import NamedTuple

import numpy as np

from .compiling import kernel
from .opcodes import FEATURE, LT
from .rng import normal, pick, uniform
from .tree import arity

# Arguments that are always the same, as NumPy values (see `moves/choice.py`).
ROOT_DEPTH = np.int64(0)
ANY_NODE, OPERATOR = np.bool_(False), np.bool_(True)


class Prior(NamedTuple):
    """What a chain believes beforehand. Each chain owns a copy: parts of it may be learned."""

    operator_cdf: np.ndarray
    """Running sums of the operator weights, by opcode."""
    feature_cdf: np.ndarray
    """Running sums of the feature weights."""
    split: np.ndarray
    """Probability that a node is an operator, by depth, for depths below `max_nodes`."""
    operator_shift: np.ndarray
    """log split[d + 1] - log split[d]: what an operator gains by moving one level down."""
    terminal_shift: np.ndarray
    """log(1 - split[d + 1]) - log(1 - split[d]): the same for a terminal."""
    scales: np.ndarray
    """Prior variances `[s_a^2, s_b^2]` of the constants of `lt`; part of the sampled state."""
    scale_prior: np.ndarray
    """Their inverse-gamma hyper-prior `[nu_a, lam_a, nu_b, lam_b]`."""
    operator_concentration: np.ndarray
    """Dirichlet prior of the operator weights, by opcode; empty where they are fixed."""
    feature_concentration: np.ndarray
    """The same for the feature weights."""
    log_terms: np.ndarray
    """Logarithm of p(K) for K = 0, 1, ... terms, up to a constant; minus infinity where not
    allowed."""
    move_shape: np.ndarray
    """How often constants move: `[largest share, number of lt nodes for half of it]`."""
    nesting: np.ndarray
    """The price in nats of an operator inside another (`nesting.py`), one entry."""


@kernel
def draw_transform(rng, nodes, i, prior):
    """Give the `lt` node `i` constants from their prior."""
    nodes[i]["a"] = 1.0 + math.sqrt(prior.scales[0]) * normal(rng)
    nodes[i]["b"] = math.sqrt(prior.scales[1]) * normal(rng)


@kernel
def draw_operator(rng, nodes, i, prior):
    """Make node `i` an operator from the prior."""
    op = pick(rng, prior.operator_cdf)
    nodes[i]["op"] = op
    nodes[i]["feature"] = 0
    nodes[i]["a"] = 0.0
    nodes[i]["b"] = 0.0
    if op == LT:
        draw_transform(rng, nodes, i, prior)


@kernel
def draw_terminal(rng, nodes, i, prior):
    """Make node `i` a terminal with a feature from the prior."""
    nodes[i]["op"] = FEATURE
    nodes[i]["feature"] = pick(rng, prior.feature_cdf)
    nodes[i]["a"] = 0.0
    nodes[i]["b"] = 0.0


@kernel
def draw_subtree(rng, nodes, start, limit, depth, operator_first, prior, pending):
    """Draw a subtree whose root has the given depth; write it from `start` on.

    With `operator_first` its root is an operator for certain. Return the index behind the
    subtree, or -1 when it would not fit below `limit`. `pending[d]` counts the nodes still due
    at depth d.
    """
    i = start
    level = depth
    pending[level] = 1
    while level >= depth:
        if pending[level] == 0:
            level -= 1
            continue
        if i >= limit:
            return -1
        pending[level] -= 1
        if (operator_first and i == start) or uniform(rng) < prior.split[level]:
            draw_operator(rng, nodes, i, prior)
            level += 1
            if level >= pending.shape[0]:
                return -1
            pending[level] = arity(nodes[i]["op"])
        else:
            draw_terminal(rng, nodes, i, prior)
        i += 1
    return i


@kernel
def log_shift(nodes, root, depth, prior, pending):
    """Return what the log prior of the subtree at `root` gains by moving one level down.

    `depth` is where it stands now. Only the shape counts: operators and features stay.
    """
    total = 0.0
    i = root
    level = depth
    pending[level] = 1
    while level >= depth:
        if pending[level] == 0:
            level -= 1
            continue
        pending[level] -= 1
        op = nodes[i]["op"]
        if op == FEATURE:
            total += prior.terminal_shift[level]
        else:
            total += prior.operator_shift[level]
            level += 1
            pending[level] = arity(op)
        i += 1
    return total


@kernel
def log_shape(nodes, root, depth, prior, pending):
    """Return the log prior of the shape of the subtree at `root`, standing at a depth."""
    total = 0.0
    i = root
    level = depth
    pending[level] = 1
    while level >= depth:
        if pending[level] == 0:
            level -= 1
            continue
        pending[level] -= 1
        op = nodes[i]["op"]
        if op == FEATURE:
            total += math.log(1.0 - prior.split[level])
        else:
            total += math.log(prior.split[level])
            level += 1
            pending[level] = arity(op)
        i += 1
    return total


@kernel
def log_prior_transform(a, b, prior):
    """Return the log prior density of one `lt` node's constants, given their variances."""
    s_a, s_b = prior.scales[0], prior.scales[1]
    return (
        -math.log(2.0 * math.pi)
        - 0.5 * (math.log(s_a) + (a - 1.0) * (a - 1.0) / s_a)
        - 0.5 * (math.log(s_b) + b * b / s_b)
    )
