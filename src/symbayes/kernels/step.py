"""One step of the default sampler. `accepted` is the only place where a proposal is judged."""

import math

from .chain import ACCEPTED, EVALUATED, LOG_LIKELIHOOD, PROPOSED, RSS, max_nodes, tree_start
from .choose import (
    BIRTH,
    DEATH,
    birth_probability,
    choose_move,
    death_probability,
    log_choice_ratio,
)
from .compiling import kernel, merged
from .likelihood import collapsed_log_likelihood
from .moves.terms import propose_birth, propose_death, swap
from .rng import integer, uniform
from .tree import same_tree


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
    rss = code.fit(code.evaluate, chain, proposal, n_terms, data, scratch, False)
    if not _judge(chain, move, rss, n_terms, log_ratio, temperature, data):
        swap(chain.slots, k, last)


@merged
def step(code, chain, prior, data, scratch, temperature):
    """One proposal: a birth, a death, or a move on a uniform term.

    The likelihood enters with the power `temperature`, between 0 (the prior) and 1.
    """
    n_terms = chain.n_terms[0]
    birth = birth_probability(n_terms, prior.log_terms)
    death = death_probability(n_terms, prior.log_terms)
    u = uniform(chain.rng)
    if u < birth:
        step_birth(code, chain, prior, data, scratch, temperature)
    elif u < birth + death:
        step_death(code, chain, prior, data, scratch, temperature)
    else:
        k = integer(chain.rng, n_terms)
        root = tree_start(chain, chain.slots[k])
        move = choose_move(chain.rng, chain.nodes, root, prior)
        step_tree(code, chain, k, move, prior, data, scratch, temperature)
