"""Gibbs update of the variances of the constants of `lt`."""

from .chain import tree_start
from .compiling import merged
from .opcodes import LT
from .rng import inverse_gamma
from .tree import subtree_end


@merged
def update_scales(chain, prior):
    """Draw s_a^2 and s_b^2 given all constants; conjugate, so nothing is rejected."""
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
