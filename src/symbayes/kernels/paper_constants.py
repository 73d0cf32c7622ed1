"""The paper's reversible jump over the constants of `lt`, between trees of different structure.

`Theta` is the list of constants of a tree in preorder. If the number of `lt` nodes stays, all of
`Theta` is redrawn from its prior and nothing is left in the ratio. If it grows, the old `Theta` is
mixed with a draw from the prior (map j_e); if it shrinks, the first part of `Theta` is shifted by a
draw around zero (map j_s, the inverse of j_e) and the rest is dropped. In the last two cases the
variances `sigma_Theta`, which all trees share, are redrawn from their prior as well.
"""

import math

import numpy as np

from .chain import tree_start
from .compiling import kernel
from .opcodes import LT
from .rng import inverse_gamma, normal
from .tree import count_nodes, nth_transform, subtree_end
from .tree_prior import draw_transform

_HALF, _TWO = np.float64(0.5), np.float64(2.0)


@kernel
def _log_normal(x, mean, variance):
    d = x - mean
    return -0.5 * (math.log(2.0 * math.pi * variance) + d * d / variance)


@kernel
def _expand(rng, value, mean, old_variance, new_variance):
    """j_e for one constant: return its new value and its part of the log ratio."""
    u = mean + math.sqrt(new_variance) * normal(rng)
    mixed = (value + u) / 2.0
    back = (value - u) / 2.0
    log_ratio = (
        _log_normal(mixed, mean, new_variance)
        - _log_normal(value, mean, old_variance)
        + _log_normal(back, 0.0, old_variance)
        - _log_normal(u, mean, new_variance)
        + math.log(_HALF)  # the Jacobian
    )
    return mixed, log_ratio


@kernel
def _shrink(rng, value, mean, old_variance, new_variance):
    """j_s for one constant: return its new value and its part of the log ratio."""
    u = math.sqrt(new_variance) * normal(rng)
    shifted = value + u
    back = value - u
    log_ratio = (
        _log_normal(shifted, mean, new_variance)
        - _log_normal(value, mean, old_variance)
        + _log_normal(back, mean, old_variance)
        - _log_normal(u, 0.0, new_variance)
        + math.log(_TWO)  # the Jacobian
    )
    return shifted, log_ratio


@kernel
def _log_prior_of_others(chain, k, prior):
    """Return the log prior density of the constants of all terms but the k-th."""
    total = 0.0
    for j in range(chain.n_terms[0]):
        if j == k:
            continue
        root = tree_start(chain, chain.slots[j])
        for i in range(root, subtree_end(chain.nodes, root)):
            if chain.nodes[i]["op"] == LT:
                total += _log_normal(chain.nodes[i]["a"], 1.0, prior.scales[0])
                total += _log_normal(chain.nodes[i]["b"], 0.0, prior.scales[1])
    return total


@kernel
def jump_constants(chain, k, old, new, prior):
    """Give the proposed tree its constants; return their part of the log ratio.

    It contains the constants of all terms, the auxiliary variables of both directions and the
    Jacobian. The densities of the redrawn variances cancel against their prior.
    """
    rng, nodes = chain.rng, chain.nodes
    _, n_old, _ = count_nodes(nodes, old)
    _, n_new, _ = count_nodes(nodes, new)
    if n_old == n_new:
        for i in range(n_new):
            draw_transform(rng, nodes, nth_transform(nodes, new, i), prior)
        return 0.0

    log_ratio = -_log_prior_of_others(chain, k, prior)
    old_a, old_b = prior.scales[0], prior.scales[1]
    nu_a, lam_a = prior.scale_prior[0], prior.scale_prior[1]
    nu_b, lam_b = prior.scale_prior[2], prior.scale_prior[3]
    prior.scales[0] = inverse_gamma(rng, 0.5 * nu_a, 0.5 * nu_a * lam_a)
    prior.scales[1] = inverse_gamma(rng, 0.5 * nu_b, 0.5 * nu_b * lam_b)
    new_a, new_b = prior.scales[0], prior.scales[1]
    log_ratio += _log_prior_of_others(chain, k, prior)
    for i in range(n_new):
        target = nth_transform(nodes, new, i)
        if i >= n_old:
            draw_transform(rng, nodes, target, prior)  # u_n: cancels against its prior
            continue
        source = nth_transform(nodes, old, i)
        a, b = nodes[source]["a"], nodes[source]["b"]
        if n_new > n_old:
            a, part_a = _expand(rng, a, 1.0, old_a, new_a)
            b, part_b = _expand(rng, b, 0.0, old_b, new_b)
        else:
            a, part_a = _shrink(rng, a, 1.0, old_a, new_a)
            b, part_b = _shrink(rng, b, 0.0, old_b, new_b)
        nodes[target]["a"] = a
        nodes[target]["b"] = b
        log_ratio += part_a + part_b
    return log_ratio
