"""Exchange between ladders: a term of one chain and a term of another change places.

The chains are independent, so that their joint target is the product of their posteriors, each
with its own weights and variances. Both choose a term at random, the numbers of terms stay, and
the shapes of the trees have the same prior in either chain: what is left of the ratio are the
likelihoods, and the priors of operators, columns and constants under the weights and variances
of the chain they come into.
"""

from __future__ import annotations

import math

import numpy as np

from ..kernels import opcodes
from .ladder import Replicas
from .running import NoStart, Workers


def log_prior_given(tree: np.ndarray, ladder: Replicas) -> float:
    """Return the log prior of a tree but for its shape, under the weights of a ladder's chain."""
    r, total = ladder.cold, 0.0
    s_a, s_b = ladder.priors.scales[r].tolist()
    for i, op in enumerate(tree["op"].tolist()):
        if op == opcodes.FEATURE:
            cdf, at = ladder.priors.feature_cdf[r], int(tree["feature"][i])
        else:
            cdf, at = ladder.priors.operator_cdf[r], op
        weight = float(cdf[at] - cdf[at - 1]) if at > 0 else float(cdf[0])
        if weight <= 0.0:
            return -math.inf
        total += math.log(weight)
        if op == opcodes.LT:
            total += _log_normal(float(tree["a"][i]) - 1.0, s_a)
            total += _log_normal(float(tree["b"][i]), s_b)
    return total


def _log_normal(x: float, variance: float) -> float:
    return -0.5 * (math.log(2.0 * math.pi * variance) + x * x / variance)


def exchange(first: Replicas, second: Replicas, chance: np.ndarray) -> bool:
    """Try to let a term of each of two chains at temperature one change places.

    `chance` are three uniform random numbers: for the terms, and for the decision.
    """
    pair = (first, second)
    states = [ladder.trees() for ladder in pair]
    if not (states[0] and states[1]):
        return False
    k, j = (int(u * len(trees)) for u, trees in zip(chance, states, strict=False))
    p, q = states[0][k], states[1][j]
    log_ratio = (
        log_prior_given(q, first)
        + log_prior_given(p, second)
        - log_prior_given(p, first)
        - log_prior_given(q, second)
        - first.log_likelihood
        - second.log_likelihood
    )
    if not np.isfinite(log_ratio):
        return False
    new = [
        [*states[0][:k], q, *states[0][k + 1 :]],
        [*states[1][:j], p, *states[1][j + 1 :]],
    ]
    before = [ladder.coldest() for ladder in pair]
    for ladder, trees in zip(pair, new, strict=True):
        log_ratio += _try(ladder, trees)
    if np.log(1.0 - chance[2]) < log_ratio:
        return True
    for ladder, state in zip(pair, before, strict=True):
        ladder.put_back(state)
    return False


def exchange_neighbours(
    ladders: list[Replicas], turn: int, rng: np.random.Generator, workers: Workers
) -> None:
    """Try an exchange between pairs of ladders, other pairs each turn."""
    order = [ladders[i] for i in np.roll(np.arange(len(ladders)), turn % 2)]
    chances = rng.uniform(size=(len(order) // 2, 3))
    workers.each(exchange, order[:-1:2], order[1::2], chances)


def _try(ladder: Replicas, trees: list[np.ndarray]) -> float:
    """Give the coldest chain other terms; return their log-likelihood, if they can be fitted."""
    ladder.put(trees)
    try:
        ladder.fit()
    except NoStart:
        return -np.inf
    held = ladder.trees()
    same = len(held) == len(trees) and all(map(np.array_equal, held, trees))
    return ladder.log_likelihood if same else -np.inf
