"""Reassign feature: a terminal reads another column. Its own reverse."""

from ..compiling import merged
from ..rng import integer
from ..tree import copy_nodes, count_nodes, nth_terminal, subtree_end
from ..tree_prior import draw_terminal


@merged
def propose_reassign_feature(rng, nodes, old, new, limit, prior, pending):
    """A uniform terminal gets a feature from w_ft.

    There: 1/N_t x w_ft(new). Back: 1/N_t x w_ft(old). Everything cancels against the prior.
    """
    n_operators, _, size = count_nodes(nodes, old)
    place = nth_terminal(nodes, old, integer(rng, size - n_operators))
    copy_nodes(nodes, old, subtree_end(nodes, old), new)
    draw_terminal(rng, nodes, new + (place - old), prior)
    return 0.0
