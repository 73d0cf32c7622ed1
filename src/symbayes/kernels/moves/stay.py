"""Stay: the structure is kept, the constants of one `lt` node walk. Its own reverse."""

import math

from ..compiling import merged
from ..rng import integer, normal, uniform
from ..tree import copy_nodes, count_nodes, nth_transform, subtree_end, term_and_room
from ..tree_prior import log_prior_transform

# Steps are normal, their size log-uniform between these: far enough to leave a basin, small
# enough to sharpen the tenth digit.
_SMALLEST, _LARGEST = 1.0e-10, 3.0


@merged
def propose_stay(rng, trees, k, prior, scratch):
    """A symmetric random walk of `a`, of `b` or of both, on a mixture of scales.

    There and back are equally likely; what is left is the prior ratio of the constants.
    """
    nodes = trees.nodes
    old, new, _ = term_and_room(trees, k)
    _, n_transforms, _ = count_nodes(nodes, old)
    if n_transforms == 0:
        return -math.inf
    place = nth_transform(nodes, old, integer(rng, n_transforms))
    copy_nodes(nodes, old, subtree_end(nodes, old), new)
    at = new + (place - old)
    which = uniform(rng)
    size = _SMALLEST * (_LARGEST / _SMALLEST) ** uniform(rng)
    if which < 2.0 / 3.0:
        nodes[at]["a"] += size * normal(rng)
    if which > 1.0 / 3.0:
        nodes[at]["b"] += size * normal(rng)
    return log_prior_transform(nodes[at]["a"], nodes[at]["b"], prior) - log_prior_transform(
        nodes[place]["a"], nodes[place]["b"], prior
    )
