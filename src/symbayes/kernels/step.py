"""One step of the default sampler: propose, evaluate, accept or reject.

`accepted`, or `accepted_at_a_price`, is the only place where a proposal is judged.
"""

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
)
from .compiling import kernel, merged
from .front import note
from .likelihood import collapsed_log_likelihood
from .moves.choice import (
    BIRTH,
    NEWTON,
    choose_for_constants,
    choose_jump,
    choose_move,
    new_trees,
    terms_after,
)
from .nesting import count_all_nested
from .opcodes import LT
from .rng import integer, uniform
from .sensible import is_sensible
from .tree import Trees, count_nodes, same_tree, subtree_end, tree_start, undo_swaps
from .tree_prior import log_prior_transform

# Trees that Newton evaluates: the proposed one, and two derivatives on each side.
_NEWTON_TREES = 5


@merged
def step(code, chain, prior, tables, mode, scratch, front):
    """Choose a move, between terms or on a uniform one, and try it."""
    n_terms = chain.n_terms[0]
    move = choose_jump(chain.rng, n_terms, prior)
    k = 0
    if move < 0:
        k = integer(chain.rng, n_terms)
        root = tree_start(chain, chain.slots[k])
        move = choose_move(chain.rng, chain.nodes, root, prior)
        if mode.optimised == 0.0:  # a search has its constants optimised instead
            move = choose_for_constants(chain.rng, move)
    step_move(code, chain, move, k, prior, tables, mode, scratch, front)


@merged
def step_move(code, chain, move, k, prior, tables, mode, scratch, front):
    """Try a move: on the k-th term, or between terms. What is accepted may go to the front."""
    n_terms = chain.n_terms[0]
    last = chain.slots.shape[0] - 1
    first, second = chain.slots[last], chain.slots[last - 1]
    swaps = scratch.moves.swaps
    chain.counts[PROPOSED, move] += 1

    # Get the proposal: new trees in the spare slots, in their places in the order of terms, and the
    # log ratio of all but the likelihoods.
    rss = 0.0
    if move == NEWTON:
        log_ratio, rss = code.newton(
            code.evaluate, code.fit, chain, k, prior, tables.seen, mode, scratch
        )
    else:
        trees = Trees(chain.nodes, chain.slots, n_terms)
        log_ratio = code.propose(move, chain.rng, trees, k, prior, scratch.moves)
        if log_ratio == -math.inf:
            return
        if move < BIRTH and same_tree(
            chain.nodes, tree_start(chain, chain.slots[last]), tree_start(chain, first)
        ):
            undo_swaps(chain.slots, swaps)
            return

    # Evaluate the new trees, and fit all terms.
    after, n_new = terms_after(move, n_terms), new_trees(move)
    chain.counts[EVALUATED, move] += _NEWTON_TREES if move == NEWTON else n_new
    if n_new == 2:
        # The other new tree still has an old column, so it does not matter yet whether one of them
        # is redundant.
        rss = code.fit(code.evaluate, chain, second, after, tables.seen, scratch, True)
    if move != NEWTON and not (rss < 0.0):  # the old column may have no numbers, nor the sum then
        if n_new == 1 and mode.optimised > 0.0:
            log_ratio += _optimise_sometimes(
                code, chain, first, after, prior, tables, mode, scratch
            )
        made = first if n_new > 0 else -1
        rss = code.fit(code.evaluate, chain, made, after, tables.seen, scratch, False)

    # Accept it, or restore the order of terms.
    if _judge(
        code, chain, move, rss, after, log_ratio, first, second, prior, tables, mode, scratch
    ):
        note(front, chain, after, rss)
    else:
        undo_swaps(chain.slots, swaps)


@kernel
def accepted(rng, log_ratio):
    """Return whether a proposal is accepted (Metropolis, Hastings and Green)."""
    return math.log(1.0 - uniform(rng)) < log_ratio


@kernel
def accepted_at_a_price(rng, log_ratio, price, chain, n_terms, room):
    """Do that for a proposal whose log ratio lacks the price of nested operators.

    They are counted only where that may decide. Return their number as well, -1 if rejected.
    """
    threshold = math.log(1.0 - uniform(rng)) - log_ratio
    before = price * chain.nested[0]
    if not (threshold < before):
        return False, -1
    nested = count_all_nested(chain, n_terms, room)
    return threshold < before - price * nested, nested


@merged
def _judge(code, chain, move, rss, n_terms, log_ratio, first, second, prior, tables, mode, scratch):
    """Decide on a proposal that is in place, and take over its numbers if it is accepted."""
    if rss < 0.0:
        return False
    power, ratio = mode.power, mode.ratio
    log_likelihood = collapsed_log_likelihood(rss, n_terms, tables.seen)
    gain = first_power(power, ratio) * (log_likelihood - chain.numbers[LOG_LIKELIHOOD])
    passed, nested = accepted_at_a_price(
        chain.rng, gain + log_ratio, prior.nesting[0], chain, n_terms, scratch.where
    )
    if not passed:
        return False
    # A part of the prior, at every temperature. It comes late since most proposals end before.
    if not _new_terms_are_sensible(code, chain, move, first, second, tables.seen.probe, scratch):
        return False
    if sees_all(power, ratio) and not _judge_on_all_rows(
        code, chain, n_terms, gain, tables.whole, mode, scratch
    ):
        return False
    chain.n_terms[0] = n_terms
    chain.nested[0] = nested
    chain.numbers[LOG_LIKELIHOOD] = log_likelihood
    chain.numbers[RSS] = rss
    chain.counts[ACCEPTED, move] += 1
    return True


@merged
def _new_terms_are_sensible(code, chain, move, first, second, probe, scratch):
    """Return whether the new trees of a proposal, in these slots, are sensible functions."""
    n_new = new_trees(move)
    for i in range(n_new):
        root = tree_start(chain, first if i == 0 else second)
        if not is_sensible(code.evaluate, chain.nodes, root, probe, scratch):
            return False
    return True


@merged
def _judge_on_all_rows(code, chain, n_terms, gain, whole, mode, scratch):
    """Decide on a proposal that has passed on a part of the rows, where it gained `gain`.

    That gain is taken back, so that both decisions together leave the posterior on all rows as it
    is (Christen and Fox, 2005).
    """
    rss = code.fit_all(code.evaluate, chain, n_terms, whole, scratch)
    if rss < 0.0:
        return False
    log_likelihood = collapsed_log_likelihood(rss, n_terms, whole)
    log_ratio = mode.power * (log_likelihood - chain.numbers[ALL_LOG_LIKELIHOOD]) - gain
    if not accepted(chain.rng, log_ratio):
        return False
    chain.numbers[ALL_LOG_LIKELIHOOD] = log_likelihood
    chain.numbers[ALL_RSS] = rss
    return True


@merged
def _optimise_sometimes(code, chain, slot, n_terms, prior, tables, mode, scratch):
    """In the search phase, improve the constants of some proposals before they are judged.

    Return what their log prior gains: without it constants that cancel would drift away.
    """
    root = tree_start(chain, slot)
    _, n_transforms, _ = count_nodes(chain.nodes, root)
    if n_transforms == 0 or uniform(chain.rng) >= mode.optimised:
        return 0.0
    before = _log_prior_constants(chain.nodes, root, prior)
    code.optimise(code.evaluate, chain, slot, n_terms, tables.few, scratch)
    return _log_prior_constants(chain.nodes, root, prior) - before


@kernel
def _log_prior_constants(nodes, root, prior):
    total = 0.0
    for i in range(root, subtree_end(nodes, root)):
        if nodes[i]["op"] == LT:
            total += log_prior_transform(nodes[i]["a"], nodes[i]["b"], prior)
    return total
