"""One step of the default sampler. `accepted` is the only place where a proposal is judged."""

import math

from .all_rows import first_power, sees_all
from .chain import (
    ACCEPTED,
    ALL_LOG_LIKELIHOOD,
    ALL_RSS,
    EVALUATED,
    LOG_LIKELIHOOD,
    PROPOSED,
    RSS,
    max_nodes,
    tree_start,
)
from .choose import (
    BIRTH,
    NEWTON,
    choose_for_constants,
    choose_jump,
    choose_move,
    log_choice_ratio,
)
from .compiling import kernel, merged
from .likelihood import collapsed_log_likelihood
from .moves.jump import new_columns, swap_noted, terms_after, undo_swaps
from .opcodes import LT
from .rng import integer, uniform
from .tree import count_nodes, same_tree, subtree_end
from .tree_prior import log_prior_transform

# Trees that Newton evaluates: the proposed one, and two derivatives on each side.
_NEWTON_TREES = 5


@kernel
def accepted(rng, log_ratio):
    """Return whether a proposal is accepted (Metropolis, Hastings and Green)."""
    return math.log(1.0 - uniform(rng)) < log_ratio


@merged
def judge_on_all_rows(code, chain, n_terms, scratch, power, gain):
    """Decide on a proposal that has passed on a part of the rows, where it gained so much.

    That gain is taken back, so that both decisions together leave the posterior on all rows as it
    is (Christen and Fox, 2005).
    """
    rss = code.fit_all(code.evaluate, chain, n_terms, scratch)
    if rss < 0.0:
        return False
    log_likelihood = collapsed_log_likelihood(rss, n_terms, scratch.all_rows)
    log_ratio = power * (log_likelihood - chain.numbers[ALL_LOG_LIKELIHOOD]) - gain
    if not accepted(chain.rng, log_ratio):
        return False
    chain.numbers[ALL_LOG_LIKELIHOOD] = log_likelihood
    chain.numbers[ALL_RSS] = rss
    return True


@merged
def _judge(code, chain, move, rss, n_terms, log_ratio, power, data, scratch):
    """Decide on a proposal that is in place, and take over its numbers if it is accepted."""
    if rss < 0.0:
        return False
    ratio = scratch.all_rows.n / data.n
    log_likelihood = collapsed_log_likelihood(rss, n_terms, data)
    gain = first_power(power, ratio) * (log_likelihood - chain.numbers[LOG_LIKELIHOOD])
    if not accepted(chain.rng, gain + log_ratio):
        return False
    if sees_all(power, ratio) and not judge_on_all_rows(code, chain, n_terms, scratch, power, gain):
        return False
    chain.n_terms[0] = n_terms
    chain.numbers[LOG_LIKELIHOOD] = log_likelihood
    chain.numbers[RSS] = rss
    chain.counts[ACCEPTED, move] += 1
    return True


@kernel
def _log_prior_constants(nodes, root, prior):
    total = 0.0
    for i in range(root, subtree_end(nodes, root)):
        if nodes[i]["op"] == LT:
            total += log_prior_transform(nodes[i]["a"], nodes[i]["b"], prior)
    return total


@merged
def _optimise_sometimes(code, chain, slot, n_terms, prior, scratch):
    """In the search phase, improve the constants of some proposals before they are judged.

    Return what their log prior gains: without it constants that cancel would drift away.
    """
    root = tree_start(chain, slot)
    _, n_transforms, _ = count_nodes(chain.nodes, root)
    if n_transforms == 0 or uniform(chain.rng) >= scratch.few.share[0]:
        return 0.0
    before = _log_prior_constants(chain.nodes, root, prior)
    code.optimise(code.evaluate, chain, slot, n_terms, scratch)
    return _log_prior_constants(chain.nodes, root, prior) - before


@merged
def step_move(code, chain, move, k, prior, data, scratch, power):
    """Try a move: on the k-th term, or between terms."""
    n_terms = chain.n_terms[0]
    last = chain.slots.shape[0] - 1
    first, second = chain.slots[last], chain.slots[last - 1]
    swaps = scratch.swaps
    after, columns, rss = n_terms, 1, 0.0
    chain.counts[PROPOSED, move] += 1
    swaps[0] = 0
    if move == NEWTON:
        log_ratio, rss = code.newton(code.evaluate, code.fit, chain, k, prior, data, scratch, power)
        columns = _NEWTON_TREES
        swap_noted(chain.slots, k, last, swaps)
    elif move < BIRTH:
        old, new = tree_start(chain, chain.slots[k]), tree_start(chain, first)
        log_ratio = code.propose(
            move, chain.rng, chain.nodes, old, new, new + max_nodes(chain), prior, scratch.pending
        )
        if log_ratio == -math.inf or same_tree(chain.nodes, old, new):
            return
        log_ratio += log_choice_ratio(move, chain.nodes, old, new, prior)
        swap_noted(chain.slots, k, last, swaps)
    else:
        log_ratio = code.jump(
            move, chain.rng, chain.nodes, chain.slots, n_terms, max_nodes(chain), prior,
            scratch.pending, swaps,
        )  # fmt: skip
        if log_ratio == -math.inf:
            return
        after, columns = terms_after(move, n_terms), new_columns(move)
    chain.counts[EVALUATED, move] += columns
    if columns == 2:
        # Made beside an old column in the place of the other new one: redundant or not does not
        # matter yet.
        rss = code.fit(code.evaluate, chain, second, after, data, scratch, True)
    if move != NEWTON and not (rss < 0.0):  # the old column may have no numbers, nor the sum then
        if columns == 1 and scratch.few.share[0] > 0.0:
            log_ratio += _optimise_sometimes(code, chain, first, after, prior, scratch)
        made = first if columns > 0 else -1
        rss = code.fit(code.evaluate, chain, made, after, data, scratch, False)
    if not _judge(code, chain, move, rss, after, log_ratio, power, data, scratch):
        undo_swaps(chain.slots, swaps)


@merged
def step(code, chain, prior, data, scratch, power):
    """One proposal: a move between terms, or a move on a uniform term.

    The likelihood enters with a power between 0 (the prior) and 1.
    """
    n_terms = chain.n_terms[0]
    move = choose_jump(chain.rng, n_terms, prior)
    k = 0
    if move < 0:
        k = integer(chain.rng, n_terms)
        root = tree_start(chain, chain.slots[k])
        move = choose_move(chain.rng, chain.nodes, root, prior)
        if scratch.few.share[0] == 0.0:  # a search has its constants optimised
            move = choose_for_constants(chain.rng, move)
    step_move(code, chain, move, k, prior, data, scratch, power)
