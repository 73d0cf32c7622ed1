"""Birth and death of a whole term. Each is the reverse of the other.

States are ordered lists of terms. A birth puts a tree from the prior at a uniform one of K + 1
places, and what was there moves to the end; a death removes a uniform term and the last one takes
its place. So there: 1/(K+1) x (tree); back: 1/(K+1). Places and tree cancel against the prior;
what is left is p(K+1) / p(K) and the probabilities of trying.

The order is kept in `slots`: the first K entries are the slots of the terms, the last two are
where proposals are written.
"""

import math

from ..choose import birth_probability, death_probability
from ..compiling import kernel
from ..rng import integer
from ..tree_prior import ANY_NODE, ROOT_DEPTH, draw_subtree


@kernel
def swap(slots, i, j):
    """Exchange two entries of the order; done twice, nothing has happened."""
    slots[i], slots[j] = slots[j], slots[i]


@kernel
def propose_birth(rng, nodes, slots, n_terms, max_nodes, prior, pending):
    """Draw a tree into the last slot; return the log ratio and the place it should go to.

    A ratio of minus infinity says that nothing was drawn.
    """
    last = slots.shape[0] - 1
    start = slots[last] * max_nodes
    if draw_subtree(rng, nodes, start, start + max_nodes, ROOT_DEPTH, ANY_NODE, prior, pending) < 0:
        return -math.inf, 0
    log_ratio = (
        prior.log_terms[n_terms + 1]
        - prior.log_terms[n_terms]
        + math.log(death_probability(n_terms + 1, prior.log_terms))
        - math.log(birth_probability(n_terms, prior.log_terms))
    )
    return log_ratio, integer(rng, n_terms + 1)


@kernel
def propose_death(rng, n_terms, prior):
    """Return the log ratio of dropping a uniform term, and its place."""
    place = integer(rng, n_terms)
    log_ratio = (
        prior.log_terms[n_terms - 1]
        - prior.log_terms[n_terms]
        + math.log(birth_probability(n_terms - 1, prior.log_terms))
        - math.log(death_probability(n_terms, prior.log_terms))
    )
    return log_ratio, place
