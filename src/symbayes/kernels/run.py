"""The loops that Python calls. Each runs many steps without the interpreter.

A chain that has not started has a negative number of terms: -1 - K asks for a start with K terms
drawn from the prior. One whose log-likelihood is nan was given a state that is not fitted yet.
"""

import math

from .chain import (
    ALL_LOG_LIKELIHOOD,
    ALL_RSS,
    LOG_LIKELIHOOD,
    NOISE_VARIANCE,
    NUMBERS,
    RSS,
    Code,
    max_nodes,
    tree_start,
)
from .compiling import entry_point, merged
from .likelihood import plug_in_log_likelihood
from .paper_step import paper_step
from .rng import inverse_gamma
from .tree import subtree_end
from .tree_prior import ANY_NODE, ROOT_DEPTH, draw_subtree

#: Numbers that are kept of a state: those of the chain, and the variances of the constants.
KEPT = NUMBERS + 2
# Trees drawn in search of a start before giving up.
_MOST_STARTS = 20_000


@merged
def start(code, chain, n_terms, prior, data, scratch, allow):
    """Draw terms from the prior until they can be fitted; return whether that was possible."""
    k = 0
    rss = data.n
    tries = 0
    while k < n_terms:
        tries += 1
        if tries > _MOST_STARTS:
            return False
        root = tree_start(chain, chain.slots[k])
        limit = root + max_nodes(chain)
        end = draw_subtree(
            chain.rng, chain.nodes, root, limit, ROOT_DEPTH, ANY_NODE, prior, scratch.pending
        )
        rss = -1.0
        if end >= 0:
            rss = code.fit(code.evaluate, chain, chain.slots[k], k + 1, data, scratch, allow)
        if rss >= 0.0:
            k += 1
        elif tries % 100 == 0:
            k = 0  # the terms so far may leave no room for another
    chain.n_terms[0] = n_terms
    chain.numbers[RSS] = rss
    return True


@merged
def fit_given(code, chain, data, scratch, allow):
    """Fit a state that was given; return whether that was possible."""
    chain.numbers[RSS] = data.n
    for k in range(chain.n_terms[0]):
        rss = code.fit(code.evaluate, chain, chain.slots[k], k + 1, data, scratch, allow)
        chain.numbers[RSS] = rss
        if rss < 0.0:
            return False
    return True


@merged
def keep_state(chain, prior, row, sees_all_rows, out_nodes, out_terms, out_numbers):
    """Write the state of a chain to a row of the output."""
    at = 0
    for k in range(chain.n_terms[0]):
        root = tree_start(chain, chain.slots[k])
        for i in range(root, subtree_end(chain.nodes, root)):
            out_nodes[row, at] = chain.nodes[i]
            at += 1
    out_terms[row] = chain.n_terms[0]
    for i in range(NUMBERS):
        out_numbers[row, i] = chain.numbers[i]
    if sees_all_rows:
        out_numbers[row, LOG_LIKELIHOOD] = chain.numbers[ALL_LOG_LIKELIHOOD]
        out_numbers[row, RSS] = chain.numbers[ALL_RSS]
    out_numbers[row, NUMBERS] = prior.scales[0]
    out_numbers[row, NUMBERS + 1] = prior.scales[1]


@entry_point
def run_paper(
    evaluate,
    fit,
    propose,
    jump,
    optimise,
    newton,
    fit_all,
    chain,
    prior,
    data,
    scratch,
    n_trees,
    most_accepted,
    clock,
    out_nodes,
    out_terms,
    out_numbers,
    out_times,
):
    """Propose up to `n_trees` trees by the paper's sampler, or until so many were accepted.

    Every accepted model is kept, with the number of trees proposed until then. `clock` holds that
    number and goes on from call to call. Return how many were accepted, -1 when there is no start.
    """
    code = Code(evaluate, fit, propose, jump, optimise, newton, fit_all)
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
