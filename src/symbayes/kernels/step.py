"""One step of the default sampler. `accepted` is the only place where a proposal is judged."""

import math

from .chain import ACCEPTED, EVALUATED, LOG_LIKELIHOOD, PROPOSED, RSS, max_nodes, tree_start
from .choose import (
    BIRTH,
    DEATH,
    EXCHANGE,
    MERGE,
    SPLIT,
    choose_jump,
    choose_move,
    log_choice_ratio,
)
from .compiling import kernel, merged
from .likelihood import collapsed_log_likelihood
from .moves.between import propose_exchange, propose_merge, propose_split
from .moves.terms import propose_birth, propose_death, swap
from .opcodes import LT
from .rng import integer, uniform
from .tree import count_nodes, same_tree, subtree_end
from .tree_prior import log_prior_transform


@kernel
def accepted(rng, log_ratio):
    """Return whether a proposal is accepted (Metropolis, Hastings and Green)."""
    return math.log(1.0 - uniform(rng)) < log_ratio


@merged
def _judge(chain, move, rss, n_terms, log_ratio, temperature, data):
    """Decide on a proposal that is in place, and take over its numbers if it is accepted."""
    if rss < 0.0:
        return False
    log_likelihood = collapsed_log_likelihood(rss, n_terms, data)
    gain = temperature * (log_likelihood - chain.numbers[LOG_LIKELIHOOD])
    if not accepted(chain.rng, gain + log_ratio):
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


@kernel
def _optimise_sometimes(code, chain, slot, n_terms, prior, scratch):
    """In the search phase, improve the constants of some proposals before they are judged.

    Return what their log prior gains: without it constants that cancel would drift away.
    """
    share = scratch.few.share[0]
    if share > 0.0:
        root = tree_start(chain, slot)
        _, n_transforms, _ = count_nodes(chain.nodes, root)
        if n_transforms > 0 and uniform(chain.rng) < share:
            before = _log_prior_constants(chain.nodes, root, prior)
            code.optimise(code.evaluate, chain, slot, n_terms, scratch)
            return _log_prior_constants(chain.nodes, root, prior) - before
    return 0.0


@kernel
def _fit_two(code, chain, first, second, n_terms, data, scratch, move):
    """Return the residual sum of squares with two new columns, -1 where one has no value."""
    chain.counts[EVALUATED, move] += 2
    # The first column is made beside an old one in the place of the second: redundant or not
    # does not matter yet.
    if code.fit(code.evaluate, chain, first, n_terms, data, scratch, True) < 0.0:
        return -1.0
    return code.fit(code.evaluate, chain, second, n_terms, data, scratch, False)


@merged
def step_birth(code, chain, prior, data, scratch, temperature):
    """Try to add a term."""
    n_terms = chain.n_terms[0]
    chain.counts[PROPOSED, BIRTH] += 1
    log_ratio, place = propose_birth(
        chain.rng, chain.nodes, chain.slots, n_terms, max_nodes(chain), prior, scratch.pending
    )
    if log_ratio == -math.inf:
        return
    chain.counts[EVALUATED, BIRTH] += 1
    log_ratio += _optimise_sometimes(code, chain, chain.slots[place], n_terms + 1, prior, scratch)
    rss = code.fit(code.evaluate, chain, chain.slots[place], n_terms + 1, data, scratch, False)
    if not _judge(chain, BIRTH, rss, n_terms + 1, log_ratio, temperature, data):
        swap(chain.slots, place, n_terms)
        swap(chain.slots, n_terms, chain.slots.shape[0] - 1)


@merged
def step_death(code, chain, prior, data, scratch, temperature):
    """Try to drop a term."""
    n_terms = chain.n_terms[0]
    chain.counts[PROPOSED, DEATH] += 1
    log_ratio, place = propose_death(chain.rng, chain.slots, n_terms, prior)
    rss = code.fit(code.evaluate, chain, -1, n_terms - 1, data, scratch, False)
    if not _judge(chain, DEATH, rss, n_terms - 1, log_ratio, temperature, data):
        swap(chain.slots, place, n_terms - 1)


@merged
def step_tree(code, chain, k, move, prior, data, scratch, temperature):
    """Try a move on the k-th term."""
    last = chain.slots.shape[0] - 1
    proposal = chain.slots[last]
    old = tree_start(chain, chain.slots[k])
    new = tree_start(chain, proposal)
    limit = new + max_nodes(chain)
    chain.counts[PROPOSED, move] += 1
    log_ratio = code.propose(move, chain.rng, chain.nodes, old, new, limit, prior, scratch.pending)
    if log_ratio == -math.inf or same_tree(chain.nodes, old, new):
        return
    log_ratio += log_choice_ratio(move, chain.nodes, old, new, prior)
    n_terms = chain.n_terms[0]
    swap(chain.slots, k, last)
    chain.counts[EVALUATED, move] += 1
    log_ratio += _optimise_sometimes(code, chain, proposal, n_terms, prior, scratch)
    rss = code.fit(code.evaluate, chain, proposal, n_terms, data, scratch, False)
    if not _judge(chain, move, rss, n_terms, log_ratio, temperature, data):
        swap(chain.slots, k, last)


@merged
def step_split(code, chain, prior, data, scratch, temperature):
    """Try to make two terms of a sum."""
    n_terms = chain.n_terms[0]
    last = chain.slots.shape[0] - 1
    chain.counts[PROPOSED, SPLIT] += 1
    log_ratio, k, place = propose_split(
        chain.rng, chain.nodes, chain.slots, n_terms, max_nodes(chain), prior, scratch.pending
    )
    if log_ratio == -math.inf:
        return
    first, second = chain.slots[last], chain.slots[last - 1]
    swap(chain.slots, k, last)
    swap(chain.slots, n_terms, last - 1)
    swap(chain.slots, place, n_terms)
    rss = _fit_two(code, chain, first, second, n_terms + 1, data, scratch, SPLIT)
    if not _judge(chain, SPLIT, rss, n_terms + 1, log_ratio, temperature, data):
        swap(chain.slots, place, n_terms)
        swap(chain.slots, n_terms, last - 1)
        swap(chain.slots, k, last)


@merged
def step_merge(code, chain, prior, data, scratch, temperature):
    """Try to make a sum of two terms."""
    n_terms = chain.n_terms[0]
    last = chain.slots.shape[0] - 1
    chain.counts[PROPOSED, MERGE] += 1
    log_ratio, k, place = propose_merge(
        chain.rng, chain.nodes, chain.slots, n_terms, max_nodes(chain), prior, scratch.pending
    )
    if log_ratio == -math.inf:
        return
    proposal = chain.slots[last]
    swap(chain.slots, place, n_terms - 1)
    swap(chain.slots, k, last)
    chain.counts[EVALUATED, MERGE] += 1
    rss = code.fit(code.evaluate, chain, proposal, n_terms - 1, data, scratch, False)
    if not _judge(chain, MERGE, rss, n_terms - 1, log_ratio, temperature, data):
        swap(chain.slots, k, last)
        swap(chain.slots, place, n_terms - 1)


@merged
def step_exchange(code, chain, prior, data, scratch, temperature):
    """Try to let subtrees of two terms change places."""
    n_terms = chain.n_terms[0]
    last = chain.slots.shape[0] - 1
    chain.counts[PROPOSED, EXCHANGE] += 1
    log_ratio, k, j = propose_exchange(
        chain.rng, chain.nodes, chain.slots, n_terms, max_nodes(chain), prior, scratch.pending
    )
    if log_ratio == -math.inf:
        return
    first, second = chain.slots[last], chain.slots[last - 1]
    swap(chain.slots, k, last)
    swap(chain.slots, j, last - 1)
    rss = _fit_two(code, chain, first, second, n_terms, data, scratch, EXCHANGE)
    if not _judge(chain, EXCHANGE, rss, n_terms, log_ratio, temperature, data):
        swap(chain.slots, j, last - 1)
        swap(chain.slots, k, last)


@merged
def step(code, chain, prior, data, scratch, temperature):
    """One proposal: a move between terms, or a move on a uniform term.

    The likelihood enters with the power `temperature`, between 0 (the prior) and 1.
    """
    n_terms = chain.n_terms[0]
    jump = choose_jump(chain.rng, n_terms, prior)
    if jump < 0:
        k = integer(chain.rng, n_terms)
        root = tree_start(chain, chain.slots[k])
        move = choose_move(chain.rng, chain.nodes, root, prior)
        step_tree(code, chain, k, move, prior, data, scratch, temperature)
    elif jump == BIRTH:
        step_birth(code, chain, prior, data, scratch, temperature)
    elif jump == DEATH:
        step_death(code, chain, prior, data, scratch, temperature)
    elif jump == SPLIT:
        step_split(code, chain, prior, data, scratch, temperature)
    elif jump == MERGE:
        step_merge(code, chain, prior, data, scratch, temperature)
    else:
        step_exchange(code, chain, prior, data, scratch, temperature)
