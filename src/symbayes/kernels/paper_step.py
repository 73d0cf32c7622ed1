"""One step of the paper's sampler: a fixed number of trees, updated in turn.

The likelihood is the plug-in one (equations 1 and 2 of the paper): coefficients by least squares,
the noise variance part of the state and redrawn from its prior with every proposal, which cancels
its prior in the ratio. A redundant tree is allowed; its coefficient is zero.
"""

import math

from .chain import (
    ACCEPTED,
    EVALUATED,
    LOG_LIKELIHOOD,
    NOISE_VARIANCE,
    PROPOSED,
    RSS,
    max_nodes,
    tree_start,
)
from .choose import STAY, choose_move, log_choice_ratio
from .compiling import kernel, merged
from .likelihood import plug_in_log_likelihood
from .moves.terms import swap
from .paper_constants import jump_constants
from .rng import inverse_gamma
from .step import accepted
from .tree import copy_nodes, subtree_end


@kernel
def paper_step_tree(code, chain, k, move, prior, data, scratch):
    """Try a move on the k-th tree; return whether it was accepted."""
    last = chain.slots.shape[0] - 1
    proposal = chain.slots[last]
    old = tree_start(chain, chain.slots[k])
    new = tree_start(chain, proposal)
    limit = new + max_nodes(chain)
    n_terms = chain.n_terms[0]
    chain.counts[PROPOSED, move] += 1
    if move == STAY:  # the structure is kept; all constants are redrawn below
        copy_nodes(chain.nodes, old, subtree_end(chain.nodes, old), new)
        log_ratio = 0.0
    else:
        log_ratio = code.propose(
            move, chain.rng, chain.nodes, old, new, limit, prior, scratch.pending
        )
    if log_ratio == -math.inf:
        return False
    log_ratio += log_choice_ratio(move, chain.nodes, old, new, prior)
    scale_a, scale_b = prior.scales[0], prior.scales[1]
    log_ratio += jump_constants(chain, k, old, new, prior)
    nu, lam = data.noise_prior[0], data.noise_prior[1]
    noise_variance = inverse_gamma(chain.rng, 0.5 * nu, 0.5 * nu * lam)

    swap(chain.slots, k, last)
    rss = code.fit(code.evaluate, chain, proposal, n_terms, data, scratch, True)
    chain.counts[EVALUATED, move] += 1
    log_likelihood = -math.inf
    if rss >= 0.0:
        log_likelihood = plug_in_log_likelihood(rss, noise_variance, data)
    gain = log_likelihood - chain.numbers[LOG_LIKELIHOOD]
    if not accepted(chain.rng, gain + log_ratio):
        swap(chain.slots, k, last)
        prior.scales[0], prior.scales[1] = scale_a, scale_b
        return False
    chain.numbers[LOG_LIKELIHOOD] = log_likelihood
    chain.numbers[RSS] = rss
    chain.numbers[NOISE_VARIANCE] = noise_variance
    chain.counts[ACCEPTED, move] += 1
    return True


@merged
def paper_step(code, chain, k, prior, data, scratch):
    """One proposal for the k-th tree; return whether it was accepted."""
    root = tree_start(chain, chain.slots[k])
    move = choose_move(chain.rng, chain.nodes, root, prior)
    return paper_step_tree(code, chain, k, move, prior, data, scratch)
