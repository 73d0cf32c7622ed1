"""Newton: the constants of one `lt` node are proposed from a normal law fitted to the posterior.

Its own reverse, and the only move that looks at data. The law comes from one Gauss-Newton step and
the curvature at the present constants; the way back from those at the proposed ones, so that
nothing is approximated but the proposal (stochastic Newton; Martin, Wilcox, Burstedde and Ghattas,
2012). Coefficients are eliminated by projection: a derivative counts by what of it the terms do not
span.

Where all rows decide and only a part of them is looked at here, the part's best constants are not
those of all rows, but its curvature nearly is: then the law stays where the constants are.
"""

import math

import numpy as np

from ..all_rows import sees_all
from ..compiling import entry_point, kernel
from ..likelihood import solve, standardise
from ..rng import integer, normal
from ..rows import difference, dot
from ..tree import (
    copy_nodes,
    count_nodes,
    nth_transform,
    subtree_end,
    swap,
    term_and_room,
    tree_start,
    undo_swaps,
)
from ..tree_prior import log_prior_transform

# Increment of a constant for a derivative, as a part of it.
_INCREMENT = 1.0e-6
# A derivative of which less than this part (squared) lies outside the span of the terms has none.
_SPANNED = 1.0e-9
# Length of steps that stay where the constants are; the best for two of them (Roberts and others).
_STRIDE = 1.7
# No law: something is not finite.
_NONE = (False, 0.0, 0.0, 1.0, 0.0, 1.0)


@kernel
def _derivative(evaluate, chain, slot, at, name_a, values, start, data, scratch):
    """Write the derivative of a column by `a` or `b` of a node; return whether it is finite.

    Columns have unit length, which changes the derivative by a multiple of the column alone.
    """
    nodes, n_rows = chain.nodes, data.y.shape[0]
    value = nodes[at]["a"] if name_a else nodes[at]["b"]
    moved = value + _INCREMENT * max(1.0, abs(value))
    if name_a:
        nodes[at]["a"] = moved
    else:
        nodes[at]["b"] = moved
    root = tree_start(chain, slot)
    evaluate(nodes, root, data.x, n_rows, 0, n_rows, values, start, scratch.stack, scratch.where)
    if name_a:
        nodes[at]["a"] = value
    else:
        nodes[at]["b"] = value
    _, length = standardise(values, start, data)
    if not (length > 0.0):  # in a part of the rows it may be a column of zeros
        return False
    own = np.uint64(slot * n_rows)
    difference(values, np.uint64(start), chain.columns, own, moved - value, np.uint64(n_rows))
    return True


@kernel
def _project(chain, n_terms, values, start, data, scratch, products):
    """Return the inner products of a derivative with the residuals and with itself, projected.

    Leave its products with the columns in `products`, the solution for them in `correction`.
    """
    n_rows = data.y.shape[0]
    n, offset = np.uint64(n_rows), np.uint64(start)
    slope = dot(values, offset, data.y, np.uint64(0), n)
    total = dot(values, offset, values, offset, n)
    for j in range(n_terms):
        column = np.uint64(chain.slots[j] * n_rows)
        products[j] = dot(values, offset, chain.columns, column, n)
        scratch.correction[j] = products[j]
        slope -= scratch.solution[j] * products[j]
    solve(scratch.factor, chain.slots.shape[0], n_terms, scratch.correction)
    rest = total
    for j in range(n_terms):
        rest -= scratch.correction[j] * products[j]
    if not (rest > _SPANNED * total):
        return 0.0, 0.0
    return slope, rest


@kernel
def _local_law(evaluate, chain, k, at, rss, prior, data, mode, scratch):
    """Return the normal law at the constants of node `at` in the k-th term.

    That is: whether there is one, its mean, and the Cholesky factor of its precision. The fit of
    the terms as they are has to be in `scratch`.
    """
    nodes, n_terms = chain.nodes, chain.n_terms[0]
    n_rows = data.y.shape[0]
    slot = chain.slots[k]
    spare = chain.slots[chain.slots.shape[0] - 2] * n_rows
    by_a, by_b = chain.columns, scratch.residual
    if not _derivative(evaluate, chain, slot, at, True, by_a, spare, data, scratch):
        return _NONE
    if not _derivative(evaluate, chain, slot, at, False, by_b, 0, data, scratch):
        return _NONE
    slope_b, rest_b = _project(chain, n_terms, by_b, 0, data, scratch, scratch.products)
    both = dot(by_a, np.uint64(spare), by_b, np.uint64(0), np.uint64(n_rows))
    slope_a, rest_a = _project(chain, n_terms, by_a, spare, data, scratch, scratch.other_products)
    for j in range(n_terms):
        both -= scratch.correction[j] * scratch.products[j]
    if rest_a == 0.0 or rest_b == 0.0:
        both = 0.0

    nu, lam = data.noise_prior[0], data.noise_prior[1]
    scaled = mode.power * mode.ratio if mode.ratio > 0.0 else mode.power
    gain = scaled * scratch.solution[k] * (data.n - 1.0 + nu) / (nu * lam + rss)
    curvature = gain * scratch.solution[k]
    a, b = nodes[at]["a"], nodes[at]["b"]
    p_aa = curvature * rest_a + 1.0 / prior.scales[0]
    p_bb = curvature * rest_b + 1.0 / prior.scales[1]
    l_aa = math.sqrt(p_aa)
    l_ba = curvature * both / l_aa
    left = p_bb - l_ba * l_ba
    if not (0.0 < left < math.inf) or not (p_aa < math.inf):
        return _NONE
    l_bb = math.sqrt(left)
    if sees_all(mode.power, mode.ratio):
        return True, a, b, l_aa / _STRIDE, l_ba / _STRIDE, l_bb / _STRIDE
    u_a = (gain * slope_a - (a - 1.0) / prior.scales[0]) / l_aa
    u_b = (gain * slope_b - b / prior.scales[1] - l_ba * u_a) / l_bb
    step_b = u_b / l_bb
    step_a = (u_a - l_ba * step_b) / l_aa
    return True, a + step_a, b + step_b, l_aa, l_ba, l_bb


@kernel
def _log_density(law, a, b):
    _, mean_a, mean_b, l_aa, l_ba, l_bb = law
    u_a = l_aa * (a - mean_a) + l_ba * (b - mean_b)
    u_b = l_bb * (b - mean_b)
    return math.log(l_aa) + math.log(l_bb) - 0.5 * (u_a * u_a + u_b * u_b)


@entry_point
def newton(evaluate, fit, chain, k, prior, data, mode, scratch):
    """Propose constants for a uniform `lt` node of the k-th term.

    There: 1/N_lt x the density of the law at the old constants. Back: 1/N_lt x that of the law at
    the new ones; 1/N_lt cancels. Return the log ratio of the priors and of both densities, and the
    residual sum of squares of the proposal.
    """
    nodes, n_terms, swaps = chain.nodes, chain.n_terms[0], scratch.moves.swaps
    swaps[0] = 0
    last = chain.slots.shape[0] - 1
    old, new, _ = term_and_room(chain, k)
    _, n_transforms, _ = count_nodes(nodes, old)
    if n_transforms == 0:
        return -math.inf, -1.0
    place = nth_transform(nodes, old, integer(chain.rng, n_transforms))
    a, b = nodes[place]["a"], nodes[place]["b"]
    rss = fit(evaluate, chain, -1, n_terms, data, scratch, False)
    if not (rss >= 0.0):
        return -math.inf, -1.0
    there = _local_law(evaluate, chain, k, place, rss, prior, data, mode, scratch)
    if not there[0]:
        return -math.inf, -1.0

    copy_nodes(nodes, old, subtree_end(nodes, old), new)
    at = new + (place - old)
    _, mean_a, mean_b, l_aa, l_ba, l_bb = there
    shift = normal(chain.rng) / l_bb
    new_b = mean_b + shift
    new_a = mean_a + (normal(chain.rng) - l_ba * shift) / l_aa
    nodes[at]["a"], nodes[at]["b"] = new_a, new_b
    swap(chain.slots, k, last, swaps)
    back = _NONE
    rss = fit(evaluate, chain, chain.slots[k], n_terms, data, scratch, False)
    if rss >= 0.0:
        back = _local_law(evaluate, chain, k, at, rss, prior, data, mode, scratch)
    if not back[0]:
        undo_swaps(chain.slots, swaps)
        swaps[0] = 0
        return -math.inf, -1.0
    log_ratio = log_prior_transform(new_a, new_b, prior) - log_prior_transform(a, b, prior)
    log_ratio += _log_density(back, a, b)
    log_ratio -= _log_density(there, new_a, new_b)
    return log_ratio, rss
