"""Compiled loops for the tests of exactness: load a state, make steps, write the state.

They call the very functions the samplers are made of, with one addition: moves that are not
allowed leave the state as it is. That keeps the target, since detailed balance holds pair by pair.
"""

from __future__ import annotations

import numpy as np
from numba import boolean, config, float64, int64, njit, typeof, void

from symbayes.kernels import units
from symbayes.kernels.chain import LOG_LIKELIHOOD, NOISE_VARIANCE, RSS, Code, tree_start
from symbayes.kernels.choose import BIRTH, DEATH, birth_probability, choose_move, death_probability
from symbayes.kernels.likelihood import collapsed_log_likelihood, plug_in_log_likelihood
from symbayes.kernels.paper_step import paper_step_tree
from symbayes.kernels.rng import integer, uniform
from symbayes.kernels.scales import update_scales
from symbayes.kernels.step import step_birth, step_death, step_tree
from symbayes.kernels.tree import NODE, arity, subtree_end

FLAGS = {"error_model": "numpy", "_nrt": False}


@njit(**FLAGS)
def load_state(code, chain, data, scratch, nodes, row, n_terms, allow):
    """Put a packed state into a chain; return its residual sum of squares."""
    rss = data.n
    at = 0
    for k in range(chain.slots.shape[0]):
        chain.slots[k] = k
    for k in range(n_terms):
        target = tree_start(chain, k)
        missing = 1
        while missing > 0:
            chain.nodes[target] = nodes[row, at]
            missing += arity(nodes[row, at]["op"]) - 1
            at += 1
            target += 1
        rss = code.fit(code.evaluate, chain, k, k + 1, data, scratch, allow)
    chain.n_terms[0] = n_terms
    chain.numbers[RSS] = rss
    return rss


@njit(**FLAGS)
def write_state(chain, row, out_nodes, out_terms):
    at = 0
    for k in range(chain.n_terms[0]):
        root = tree_start(chain, chain.slots[k])
        for i in range(root, subtree_end(chain.nodes, root)):
            out_nodes[row, at] = chain.nodes[i]
            at += 1
    out_terms[row] = chain.n_terms[0]


@njit(**FLAGS)
def collapsed_batch(
    evaluate, fit, propose, chain, prior, data, scratch,
    nodes, terms, scales, picks, allowed, gibbs, temperature, steps,
    out_nodes, out_terms, out_scales,
):  # fmt: skip
    """For each pick, load that state, make steps of the default sampler, write the result."""
    code = Code(evaluate, fit, propose)
    for row in range(picks.shape[0]):
        state = picks[row]
        rss = load_state(code, chain, data, scratch, nodes, state, terms[state], False)
        prior.scales[0], prior.scales[1] = scales[state, 0], scales[state, 1]
        chain.numbers[LOG_LIKELIHOOD] = collapsed_log_likelihood(rss, terms[state], data)
        for _ in range(steps):
            n_terms = chain.n_terms[0]
            birth = birth_probability(n_terms, prior.log_terms)
            death = death_probability(n_terms, prior.log_terms)
            u = uniform(chain.rng)
            if u < birth:
                if allowed[BIRTH]:
                    step_birth(code, chain, prior, data, scratch, temperature)
            elif u < birth + death:
                if allowed[DEATH]:
                    step_death(code, chain, prior, data, scratch, temperature)
            else:
                k = integer(chain.rng, n_terms)
                root = tree_start(chain, chain.slots[k])
                move = choose_move(chain.rng, chain.nodes, root, prior)
                if allowed[move]:
                    step_tree(code, chain, k, move, prior, data, scratch, temperature)
            if gibbs:
                update_scales(chain, prior)
        write_state(chain, row, out_nodes, out_terms)
        out_scales[row, 0], out_scales[row, 1] = prior.scales[0], prior.scales[1]


@njit(**FLAGS)
def paper_batch(
    evaluate, fit, propose, chain, prior, data, scratch,
    nodes, terms, scales, noise, picks, allowed, steps, out_nodes, out_terms, out_scales, out_noise,
):  # fmt: skip
    """The same for the paper's sampler."""
    code = Code(evaluate, fit, propose)
    for row in range(picks.shape[0]):
        state = picks[row]
        rss = load_state(code, chain, data, scratch, nodes, state, terms[state], True)
        prior.scales[0], prior.scales[1] = scales[state, 0], scales[state, 1]
        chain.numbers[NOISE_VARIANCE] = noise[state]
        chain.numbers[LOG_LIKELIHOOD] = plug_in_log_likelihood(rss, noise[state], data)
        for i in range(steps):
            k = i % chain.n_terms[0]
            root = tree_start(chain, chain.slots[k])
            move = choose_move(chain.rng, chain.nodes, root, prior)
            if allowed[move]:
                paper_step_tree(code, chain, k, move, prior, data, scratch)
        write_state(chain, row, out_nodes, out_terms)
        out_scales[row, 0], out_scales[row, 1] = prior.scales[0], prior.scales[1]
        out_noise[row] = chain.numbers[NOISE_VARIANCE]


def load(name: str):
    """Return a batch loop with the compiled units filled in."""
    units.load("collapsed")
    loop = {"collapsed": collapsed_batch, "paper": paper_batch}[name]
    if not config.DISABLE_JIT and not loop.signatures:
        common = list(units.signatures()[name].args[:7])
        trees, table = typeof(np.empty((0, 0), NODE)), typeof(np.empty((0, 0)))
        ints, flags = typeof(np.empty(0, np.int64)), typeof(np.empty(0, np.bool_))
        reals = typeof(np.empty(0))
        if name == "collapsed":
            rest = [trees, ints, table, ints, flags, boolean, float64, int64, trees, ints, table]
        else:
            rest = [trees, ints, table, reals, ints, flags, int64, trees, ints, table, reals]
        loop.compile(void(*common, *rest))
        loop.disable_compile()
    return lambda *arguments: loop(units.evaluate, units.fit, units.propose, *arguments)
