"""The paper's sampler: a fixed number of trees, updated in turn.

The likelihood is the plug-in one (equations 1 and 2 of the paper): coefficients by least squares,
the noise variance part of the state and redrawn from its prior with every proposal, which cancels
its prior in the ratio. A redundant tree is allowed; its coefficient is zero.

Between trees of different structure the constants of `lt` jump. `Theta` is the list of constants of
a tree in preorder. If the number of `lt` nodes stays, all of `Theta` is redrawn from its prior and
nothing is left in the ratio. If it grows, the old `Theta` is mixed with a draw from the prior (map
j_e); if it shrinks, the first part of `Theta` is shifted by a draw around zero (map j_s, the
inverse of j_e) and the rest is dropped. In the last two cases the variances `sigma_Theta`, which
all trees share, are redrawn from their prior as well.
"""

import math

import numpy as np

from .chain import (
    ACCEPTED,
    EVALUATED,
    LOG_LIKELIHOOD,
    NOISE_VARIANCE,
    PROPOSED,
    RSS,
    Code,
)
from .compiling import entry_point, kernel, merged
from .likelihood import plug_in_log_likelihood
from .moves.choice import STAY, choose_move
from .opcodes import LT
from .rng import inverse_gamma, normal
from .run import fit_given, keep_state, start
from .step import accepted
from .tree import (
    Trees,
    copy_nodes,
    count_nodes,
    nth_transform,
    subtree_end,
    swap,
    term_and_room,
    tree_start,
    undo_swaps,
)
from .tree_prior import draw_transform

_HALF, _TWO = np.float64(0.5), np.float64(2.0)


@kernel
def paper_step_tree(code, chain, k, move, prior, data, scratch):
    """Try a move on the k-th tree; return whether it was accepted."""
    n_terms, swaps = chain.n_terms[0], scratch.moves.swaps
    old, new, _ = term_and_room(chain, k)
    chain.counts[PROPOSED, move] += 1

    # Get the proposal: a structure, then constants and noise variance.
    if move == STAY:  # the structure is kept; all constants are redrawn below
        copy_nodes(chain.nodes, old, subtree_end(chain.nodes, old), new)
        swaps[0] = 0
        swap(chain.slots, k, chain.slots.shape[0] - 1, swaps)
        log_ratio = 0.0
    else:
        trees = Trees(chain.nodes, chain.slots, n_terms)
        log_ratio = code.propose(move, chain.rng, trees, k, prior, scratch.moves)
    if log_ratio == -math.inf:
        return False
    scale_a, scale_b = prior.scales[0], prior.scales[1]
    log_ratio += jump_constants(chain, k, old, new, prior)
    nu, lam = data.noise_prior[0], data.noise_prior[1]
    noise_variance = inverse_gamma(chain.rng, 0.5 * nu, 0.5 * nu * lam)

    # Evaluate the new tree, and fit all terms.
    rss = code.fit(code.evaluate, chain, chain.slots[k], n_terms, data, scratch, True)
    chain.counts[EVALUATED, move] += 1
    log_likelihood = -math.inf
    if rss >= 0.0:
        log_likelihood = plug_in_log_likelihood(rss, noise_variance, data)

    # Accept it, or restore the order of terms and the variances.
    gain = log_likelihood - chain.numbers[LOG_LIKELIHOOD]
    if not accepted(chain.rng, gain + log_ratio):
        undo_swaps(chain.slots, swaps)
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


@entry_point
def run_paper(
    evaluate, fit, propose, optimise, newton, fit_all,
    chain, prior, data, scratch, n_trees, most_accepted, clock,
    out_nodes, out_terms, out_numbers, out_times,
):  # fmt: skip
    """Propose up to `n_trees` trees, or until `most_accepted` models were kept.

    Every accepted model is kept, with the number of trees proposed until then. `clock` holds that
    number from call to call. Return how many were accepted, -1 when there is no start.
    """
    code = Code(evaluate, fit, propose, optimise, newton, fit_all)
    kept = 0
    n_terms = chain.n_terms[0]
    if n_terms < 0 or math.isnan(chain.numbers[LOG_LIKELIHOOD]):
        if n_terms >= 0 and not fit_given(code, chain, data, scratch, True):
            n_terms = -1 - n_terms
        if n_terms < 0 and not start(code, chain, -1 - n_terms, prior, data, scratch, True):
            return -1
        nu, lam = data.noise_prior[0], data.noise_prior[1]
        chain.numbers[NOISE_VARIANCE] = inverse_gamma(chain.rng, 0.5 * nu, 0.5 * nu * lam)
        chain.numbers[LOG_LIKELIHOOD] = plug_in_log_likelihood(
            chain.numbers[RSS], chain.numbers[NOISE_VARIANCE], data
        )
        keep_state(chain, prior, kept, False, out_nodes, out_terms, out_numbers)
        out_times[kept] = clock[0]
        kept += 1
    for _ in range(n_trees):
        if kept >= most_accepted:
            break
        k = clock[0] % chain.n_terms[0]
        clock[0] += 1
        if paper_step(code, chain, k, prior, data, scratch):
            keep_state(chain, prior, kept, False, out_nodes, out_terms, out_numbers)
            out_times[kept] = clock[0]
            kept += 1
    return kept
