"""Exchange between ladders: a term of one chain and a term of another change places.

The chains are independent, so that their joint target is the product of their posteriors, each
with its own weights and variances. Both choose a term at random, the numbers of terms stay, and
the shapes of the trees have the same prior in either chain: what is left of the ratio are the
likelihoods, and the priors of operators, columns and constants under the weights and variances
of the chain they come into.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..kernels import opcodes
from ..trace import ChainTrace
from .ladder import Replicas, Round
from .running import Leg
from .turns import NoStart


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


def drawing(
    ladders: Sequence[Replicas],
    traces: Sequence[ChainTrace],
    steps: int,
    n_draws: int,
    turn: int | None,
    rng: np.random.Generator,
) -> Leg:
    """Return a round of draws that are kept, and exchanges after it if it is one's turn."""
    pairs = [] if turn is None else neighbours(len(ladders), turn)
    chances = rng.uniform(size=(len(pairs), 3))

    def keep(i: int) -> None:
        traces[i].extend(ladders[i].output, n_draws)

    def meet(k: int) -> None:
        first, second = pairs[k]
        exchange(ladders[first], ladders[second], chances[k])

    return Leg(Round(steps, n_draws, keep=True), keep, pairs, meet)


def neighbours(n: int, turn: int) -> list[tuple[int, int]]:
    """Return pairs of n ladders for an exchange, other pairs each turn."""
    order = np.roll(np.arange(n), turn % 2).tolist()
    return list(zip(order[:-1:2], order[1::2], strict=True))


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
