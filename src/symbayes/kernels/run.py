"""How a chain starts, and what is kept of its states; shared by the loops of both samplers.

A chain that has not started has a negative number of terms: -1 - K asks for a start with K terms
drawn from the prior. One whose log-likelihood is nan was given a state that is not fitted yet.
"""

from .chain import ALL_LOG_LIKELIHOOD, ALL_RSS, LOG_LIKELIHOOD, NUMBERS, RSS
from .compiling import merged
from .sensible import is_sensible
from .tree import max_nodes, subtree_end, tree_start
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
            chain.rng, chain.nodes, root, limit, ROOT_DEPTH, ANY_NODE, prior, scratch.moves.pending
        )
        rss = -1.0
        if end >= 0:
            rss = code.fit(code.evaluate, chain, chain.slots[k], k + 1, data, scratch, allow)
        if rss >= 0.0 and is_sensible(code.evaluate, chain.nodes, root, data.probe, scratch):
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
        # The first terms alone may be what all of them must not be.
        some = allow or k + 1 < chain.n_terms[0]
        rss = code.fit(code.evaluate, chain, chain.slots[k], k + 1, data, scratch, some)
        chain.numbers[RSS] = rss
        if rss < 0.0:
            return False
        root = tree_start(chain, chain.slots[k])
        if not is_sensible(code.evaluate, chain.nodes, root, data.probe, scratch):
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
