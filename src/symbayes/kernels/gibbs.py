"""Gibbs updates of what a chain learns about its prior: exact draws, so nothing is rejected."""

import math

from .compiling import kernel, merged
from .opcodes import FEATURE, LT
from .rng import gamma, inverse_gamma, uniform
from .tree import subtree_end, tree_start

# Concentrations of many columns: numbers with a smaller one are mostly next to nothing.
_SMALL = 0.05
# The logarithm of what is nothing beside 1.
_LOG_NOTHING = math.log(1.0e-20)


@merged
def update_scales(chain, prior):
    """Draw the variances s_a^2 and s_b^2 of the constants of `lt`, given all constants."""
    n = 0
    squares_a = 0.0
    squares_b = 0.0
    for k in range(chain.n_terms[0]):
        root = tree_start(chain, chain.slots[k])
        for i in range(root, subtree_end(chain.nodes, root)):
            if chain.nodes[i]["op"] == LT:
                a, b = chain.nodes[i]["a"], chain.nodes[i]["b"]
                n += 1
                squares_a += (a - 1.0) * (a - 1.0)
                squares_b += b * b
    nu_a, lam_a = prior.scale_prior[0], prior.scale_prior[1]
    nu_b, lam_b = prior.scale_prior[2], prior.scale_prior[3]
    prior.scales[0] = inverse_gamma(chain.rng, 0.5 * (nu_a + n), 0.5 * (nu_a * lam_a + squares_a))
    prior.scales[1] = inverse_gamma(chain.rng, 0.5 * (nu_b + n), 0.5 * (nu_b * lam_b + squares_b))


@kernel
def _draw(rng, concentration, counts, offset, cdf):
    """Draw weights given counts (which are overwritten), and write their running sums."""
    total = 0.0
    last = 0
    # The short way is good only where the sum of all is of the size of 1, since then numbers below
    # 1e-20 do not change it.
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
    """Draw the weights of operators and of columns, given all trees.

    This is the paper's empirical Bayes, made exact: the weights have Dirichlet priors, and given
    the trees they are Dirichlet again, with the number of times each operator or column occurs
    added.
    """
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
