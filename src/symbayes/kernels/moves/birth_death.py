"""Birth and death of a whole term. Each is the reverse of the other.

States are ordered lists of terms. A birth puts a tree from the prior at a uniform one of K + 1
places, and what was there moves to the end; a death removes a uniform term and the last one takes
its place. So there: 1/(K+1) x (tree); back: 1/(K+1). Places and tree cancel against the prior;
what is left is p(K+1) / p(K) and the probabilities of trying.
"""

import math

from ..compiling import kernel
from ..rng import integer
from ..tree import max_nodes, swap, tree_start
from ..tree_prior import ANY_NODE, ROOT_DEPTH, draw_subtree
from .choice import birth_probability, death_probability


@kernel
def propose_birth(rng, trees, k, prior, scratch):
    """A tree from the prior becomes a term. There, back and what cancels: see above."""
    slots, n_terms = trees.slots, trees.n_terms
    last = slots.shape[0] - 1
    start = tree_start(trees, slots[last])
    limit = start + max_nodes(trees)
    end = draw_subtree(rng, trees.nodes, start, limit, ROOT_DEPTH, ANY_NODE, prior, scratch.pending)
    if end < 0:
        return -math.inf
    log_ratio = (
        prior.log_terms[n_terms + 1]
        - prior.log_terms[n_terms]
        + math.log(death_probability(n_terms + 1, prior.log_terms))
        - math.log(birth_probability(n_terms, prior.log_terms))
    )
    swap(slots, n_terms, last, scratch.swaps)
    swap(slots, integer(rng, n_terms + 1), n_terms, scratch.swaps)
    return log_ratio


@kernel
def propose_death(rng, trees, k, prior, scratch):
    """A uniform term is dropped. There, back and what cancels: see above."""
    n_terms = trees.n_terms
    log_ratio = (
        prior.log_terms[n_terms - 1]
        - prior.log_terms[n_terms]
        + math.log(birth_probability(n_terms - 1, prior.log_terms))
        - math.log(death_probability(n_terms, prior.log_terms))
    )
    swap(trees.slots, integer(rng, n_terms), n_terms - 1, scratch.swaps)
    return log_ratio
