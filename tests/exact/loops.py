"""Compiled loops for the tests of exactness: load a state, make steps, write the state.

They call the very functions the samplers are made of, with one addition: moves that are not
allowed leave the state as it is. That keeps the target, since detailed balance holds pair by pair.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
from numba import boolean, config, float64, int64, njit, typeof, void

from symbayes.kernels import units
from symbayes.kernels.chain import LOG_LIKELIHOOD, NOISE_VARIANCE, RSS, Code, Mode
from symbayes.kernels.compiling import source_hash
from symbayes.kernels.front import new_front
from symbayes.kernels.gibbs import update_scales, update_weights
from symbayes.kernels.ladder import fit_on_all_rows, swap_neighbours
from symbayes.kernels.likelihood import collapsed_log_likelihood, plug_in_log_likelihood
from symbayes.kernels.moves.choice import choose_for_constants, choose_jump, choose_move
from symbayes.kernels.nesting import count_all_nested
from symbayes.kernels.paper import paper_step_tree
from symbayes.kernels.rng import integer
from symbayes.kernels.step import step_move
from symbayes.kernels.teleport import teleport
from symbayes.kernels.tree import NODE, arity, subtree_end, tree_start

FLAGS = {"error_model": "numpy", "_nrt": False}


def cached(function):
    """Compile a loop and keep its machine code until the kernels or this file change."""
    dispatcher = njit(**FLAGS, cache=True)(function)
    if not config.DISABLE_JIT:
        own = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()
        dispatcher._cache._cache_file._source_stamp = source_hash() + own
    return dispatcher


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
    chain.nested[0] = count_all_nested(chain, n_terms, scratch.where)
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
def load_weights(weights, row, prior):
    """Set the weights of operators and columns, given as their running sums."""
    n_operators = prior.operator_concentration.shape[0]
    for i in range(weights.shape[1]):
        if i < n_operators:
            prior.operator_cdf[i] = weights[row, i]
        else:
            prior.feature_cdf[i - n_operators] = weights[row, i]


@njit(**FLAGS)
def write_weights(prior, row, out_weights):
    n_operators = prior.operator_concentration.shape[0]
    for i in range(out_weights.shape[1]):
        if i < n_operators:
            out_weights[row, i] = prior.operator_cdf[i]
        else:
            out_weights[row, i] = prior.feature_cdf[i - n_operators]


@cached
def collapsed_batch(
    evaluate, fit, propose, optimise, newton, fit_all, chain, prior, tables, scratch, front,
    nodes, terms, scales, weights, picks, allowed, gibbs_scales, gibbs_weights, temperature, steps,
    out_nodes, out_terms, out_scales, out_weights,
):  # fmt: skip
    """For each pick, load that state, make steps of the default sampler, write the result."""
    code = Code(evaluate, fit, propose, optimise, newton, fit_all)
    data, mode = tables.seen, Mode(temperature, tables.whole.n / tables.seen.n, 0.0)
    for row in range(picks.shape[0]):
        state = picks[row]
        rss = load_state(code, chain, data, scratch, nodes, state, terms[state], False)
        prior.scales[0], prior.scales[1] = scales[state, 0], scales[state, 1]
        load_weights(weights, state, prior)
        chain.numbers[LOG_LIKELIHOOD] = collapsed_log_likelihood(rss, terms[state], data)
        if mode.ratio > 0.0:
            fit_on_all_rows(code, chain, tables.whole, scratch)
        for _ in range(steps):
            n_terms = chain.n_terms[0]
            move = choose_jump(chain.rng, n_terms, prior)
            k = 0
            if move < 0:
                k = integer(chain.rng, n_terms)
                root = tree_start(chain, chain.slots[k])
                move = choose_for_constants(
                    chain.rng, choose_move(chain.rng, chain.nodes, root, prior)
                )
            if allowed[move]:
                step_move(code, chain, move, k, prior, tables, mode, scratch, front)
            if gibbs_scales:
                update_scales(chain, prior)
            if gibbs_weights:
                update_weights(chain, prior, scratch.counts)
        write_state(chain, row, out_nodes, out_terms)
        out_scales[row, 0], out_scales[row, 1] = prior.scales[0], prior.scales[1]
        write_weights(prior, row, out_weights)


@cached
def teleport_batch(
    evaluate, fit, propose, optimise, newton, fit_all, chain, prior, tables, scratch,
    other, room, catalogue, odds, counts, nodes, terms, scales, weights, temperature, steps,
    out_nodes, out_terms, out_scales, out_weights,
):  # fmt: skip
    """From each state try to teleport a few times, and write the result."""
    code = Code(evaluate, fit, propose, optimise, newton, fit_all)
    data, mode = tables.seen, Mode(temperature, tables.whole.n / tables.seen.n, 0.0)
    for row in range(terms.shape[0]):
        rss = load_state(code, chain, data, scratch, nodes, row, terms[row], False)
        prior.scales[0], prior.scales[1] = scales[row, 0], scales[row, 1]
        load_weights(weights, row, prior)
        chain.numbers[LOG_LIKELIHOOD] = collapsed_log_likelihood(rss, terms[row], data)
        if mode.ratio > 0.0:
            fit_on_all_rows(code, chain, tables.whole, scratch)
        for _ in range(steps):
            teleport(
                code, chain, other, prior, tables, mode, scratch, room, catalogue, odds, counts, 0
            )
        write_state(chain, row, out_nodes, out_terms)
        out_scales[row, 0], out_scales[row, 1] = prior.scales[0], prior.scales[1]
        write_weights(prior, row, out_weights)


@cached
def paper_batch(
    evaluate, fit, propose, optimise, newton, fit_all, chain, prior, data, scratch,
    nodes, terms, scales, noise, picks, allowed, steps, out_nodes, out_terms, out_scales, out_noise,
):  # fmt: skip
    """The same for the paper's sampler."""
    code = Code(evaluate, fit, propose, optimise, newton, fit_all)
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


@njit(**FLAGS)
def swap_batch(ladder, numbers, log_likelihood, out_replica):
    """For each row, swap neighbours once among replicas with these log-likelihoods.

    Rows are by turns even and odd, so that every pair of neighbours is met.
    """
    n = ladder.replica.shape[0]
    for row in range(log_likelihood.shape[0]):
        for t in range(n):
            ladder.replica[t] = t
            numbers[t, LOG_LIKELIHOOD] = log_likelihood[row, t]
        ladder.clock[0] = row % 2
        swap_neighbours(ladder, numbers, 0.0)
        for t in range(n):
            out_replica[row, t] = ladder.replica[t]


def compile_units():
    """Compile what the loops call by address, and none of the loops."""
    if not config.DISABLE_JIT:
        units._compile(units._UNITS)


def load(name: str):
    """Return a batch loop with the compiled units filled in."""
    compile_units()
    loop = {"collapsed": collapsed_batch, "paper": paper_batch, "teleport": teleport_batch}[name]
    if not config.DISABLE_JIT and not loop.signatures:
        common = list(units.signatures()["paper"].args[: len(units._UNITS) + 4])
        if name != "paper":  # the tables in the place of one
            common[-2] = units.signatures()["tempered"].args[len(units._UNITS) + 2]
        trees, table = typeof(np.empty((0, 0), NODE)), typeof(np.empty((0, 0)))
        ints, flags = typeof(np.empty(0, np.int64)), typeof(np.empty(0, np.bool_))
        reals = typeof(np.empty(0))
        if name == "collapsed":
            rest = [
                typeof(new_front()), trees, ints, table, table, ints, flags, boolean, boolean,
                float64, int64, trees, ints, table, table,
            ]  # fmt: skip
        elif name == "teleport":
            catalogue, odds, chain, room = units.signatures()["tempered"].args[
                len(units._UNITS) + 7 : len(units._UNITS) + 11
            ]
            rest = [
                chain, room, catalogue, odds, typeof(np.empty((0, 0), np.int64)), trees, ints,
                table, table, float64, int64, trees, ints, table, table,
            ]  # fmt: skip
        else:
            rest = [trees, ints, table, reals, ints, flags, int64, trees, ints, table, reals]
        loop.compile(void(*common, *rest))
        loop.disable_compile()
    # What a front keeps makes no difference to what is sampled.
    front = [new_front()] if name == "collapsed" else []
    pointers = units._UNITS.values()
    return lambda *arguments: loop(*pointers, *arguments[:4], *front, *arguments[4:])
