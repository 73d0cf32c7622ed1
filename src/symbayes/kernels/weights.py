"""Gibbs updates of the weights of operators and columns (the paper's empirical Bayes, made exact).

The weights have Dirichlet priors. Given the trees they are Dirichlet again, with the number of
times each operator or column occurs added, so nothing is rejected.
"""

import math

from .chain import tree_start
from .compiling import kernel, merged
from .opcodes import FEATURE
from .rng import gamma, uniform
from .tree import subtree_end

# Concentrations of many columns: numbers with a smaller one are mostly next to nothing.
_SMALL = 0.05
# The logarithm of what is nothing beside 1.
_LOG_NOTHING = math.log(1.0e-20)


@kernel
def _draw(rng, concentration, counts, offset, cdf):
    """Draw weights given counts (which are overwritten), and write their running sums."""
    total = 0.0
    last = 0
    # Only where the sum of all is of the size of 1, so that nothing below 1e-20 has a part in it.
    together = 0.0
    for i in range(concentration.shape[0]):
        together += concentration[i]
    limit = _SMALL if together >= 1.0 else 0.0
    small, vanishes = -1.0, 0.0
    for i in range(concentration.shape[0]):
        shape = concentration[i] + counts[offset + i]
        counts[offset + i] = 0.0
        if shape <= 0.0:
            continue
        if shape < limit:
            # As `gamma` does it, but most of these numbers need not be finished.
            if shape != small:
                small, vanishes = shape, math.exp(shape * _LOG_NOTHING)
            boost = 1.0 - uniform(rng)
            if boost < vanishes:
                continue
            counts[offset + i] = boost ** (1.0 / shape) * gamma(rng, shape + 1.0)
        else:
            counts[offset + i] = gamma(rng, shape)
        total += counts[offset + i]
        last = i
    if not (total > 0.0):
        return  # all vanished, which tiny concentrations may do: the old weights stay
    running = 0.0
    for i in range(concentration.shape[0]):
        running += counts[offset + i]
        cdf[i] = running / total if i < last else 1.0


@merged
def update_weights(chain, prior, counts):
    """Draw the weights of operators and of columns given all trees."""
    n_operators = prior.operator_concentration.shape[0]
    n_features = prior.feature_concentration.shape[0]
    for i in range(n_operators + n_features):
        counts[i] = 0.0
    for k in range(chain.n_terms[0]):
        root = tree_start(chain, chain.slots[k])
        for i in range(root, subtree_end(chain.nodes, root)):
            op = chain.nodes[i]["op"]
            if op == FEATURE:
                counts[n_operators + chain.nodes[i]["feature"]] += 1.0
            else:
                counts[op] += 1.0
    _draw(chain.rng, prior.operator_concentration, counts, 0, prior.operator_cdf)
    _draw(chain.rng, prior.feature_concentration, counts, n_operators, prior.feature_cdf)
