"""Teleport: a whole state is replaced by one of a list that was made before drawing began.

Two explanations of the data may be far apart: no path of small changes leads from one to the other
in reasonable time. But the search and the warm-up have met both. The list, a `Catalogue`, has the
structures that were met, each with a weight and a law of its inner constants that are close to its
posterior probability at every temperature. Teleport proposes a structure by these weights, one of
its writings, and constants by that law. It is possible only if the present structure is in the list
as well, since else there is no way back. The ratio is exact whatever the list contains, as long as
the list does not change while drawing.

A structure is a state up to what does not change its values: the order of terms, the order of the
operands of + and *, and constants. It is known by a number of 64 bits (`identify`). All its
writings have the same prior and the same likelihood, and one of them is drawn.

Learned weights and variances of constants are drawn again, given the new state, so that they are
integrated out of the ratio.
"""

import math
from typing import NamedTuple

import numpy as np

from .all_rows import sees_all
from .chain import ALL_LOG_LIKELIHOOD, ALL_RSS, LOG_LIKELIHOOD, RSS
from .compiling import entry_point, kernel, merged
from .gibbs import update_scales, update_weights
from .likelihood import collapsed_log_likelihood
from .nesting import count_all_nested
from .opcodes import ADD, FEATURE, FIRST_BINARY, LT, MUL
from .rng import gamma, integer, normal, pick, uniform
from .run import fit_given
from .step import accepted
from .tree import count_nodes, max_nodes, subtree_end, tree_start
from .tree_prior import ROOT_DEPTH, log_shape

#: Degrees of freedom of the law of constants: its tails are heavier than those of a normal law, so
#: that a state in the tails of its posterior can be left.
FREEDOM = 5.0

#: Entries of the counts: tried, tried in a state that is in the list, accepted.
TRIED, IN_LIST, TAKEN = 0, 1, 2

_LOG_2 = math.log(2.0)
_1, _30, _27, _31 = np.uint64(1), np.uint64(30), np.uint64(27), np.uint64(31)
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_NOTHING = np.uint64(0)


class Catalogue(NamedTuple):
    """Structures that are known, in the order of their keys. All are empty where there are none."""

    key: np.ndarray
    """What each is known by."""
    nodes: np.ndarray
    """Trees of all, one after the other; constants are those that the law is around."""
    first_node: np.ndarray
    """Where the trees of each begin; one more entry for the end of the last."""
    n_terms: np.ndarray
    log_forms: np.ndarray
    """Logarithm of the number of ways to write each."""
    place: np.ndarray
    """For each `lt` node the place of its constants among those of its structure."""
    first_constant: np.ndarray
    """Where the constants of each begin; one more entry for the end of the last."""
    first_product: np.ndarray
    """Where the matrix of each begins; one more entry for the end of the last."""
    centre: np.ndarray
    """Constants that the log-likelihood is expanded around."""
    slope: np.ndarray
    """Derivatives of the log-likelihood by the constants, there."""
    curvature: np.ndarray
    """Minus the second derivatives: a positive matrix for each, row by row."""
    precision: np.ndarray
    """`[slope, offset]`: the prior precision of the constants `a` and `b` in the law."""
    log_likelihood: np.ndarray
    """At the constants that it is expanded around, on the rows that are seen first."""


class Odds(NamedTuple):
    """How readily each structure is proposed; a ladder has its own, one row per temperature."""

    log_weight: np.ndarray
    """Logarithms of probabilities that sum to 1."""
    cumulative: np.ndarray
    """Running sums of the probabilities, up to 1."""


class TeleportScratch(NamedTuple):
    """Room to work in."""

    roots: np.ndarray
    order: np.ndarray
    pending: np.ndarray
    hashes: np.ndarray
    stack: np.ndarray
    constants: np.ndarray
    drawn: np.ndarray
    mean: np.ndarray
    factor: np.ndarray
    counts: np.ndarray


@kernel
def _mixed(x):
    """Return the bits of a number well mixed (the finaliser of SplitMix64)."""
    x = (x ^ (x >> _30)) * _FIRST
    x = (x ^ (x >> _27)) * _SECOND
    return x ^ (x >> _31)


@kernel
def _commutes(op):
    return op in (ADD, MUL)


@kernel
def _hash_tree(nodes, root, scratch):
    """Give every node of a tree the number of its subtree; return that of the whole."""
    hashes, stack = scratch.hashes, scratch.stack
    top = 0
    for i in range(subtree_end(nodes, root) - 1, root - 1, -1):
        op = nodes[i]["op"]
        own = _mixed(np.uint64(op + 1) * _GOLDEN)
        if op == FEATURE:
            own = _mixed(own + np.uint64(nodes[i]["feature"] + 1))
        elif op < FIRST_BINARY:
            own = _mixed(own + stack[top - 1])
            top -= 1
        else:
            left, right = stack[top - 1], stack[top - 2]
            top -= 2
            if not _commutes(op):
                left = _mixed(left + own)
            own = _mixed(own + left + right)
        hashes[i] = own
        stack[top] = own
        top += 1
    return stack[0]


@kernel
def _has_constants(nodes, root):
    _, n_transforms, _ = count_nodes(nodes, root)
    return n_transforms > 0


@kernel
def _read_constants(nodes, root, n, place, scratch):
    """Read the constants of a tree from the n-th on, in an order that no writing changes.

    Note the place of each `lt` node if `place` is not empty. Return the number of constants so far
    and of operators whose operands may be exchanged; -1 where two operands have the same structure
    with constants, so that there is no such order.
    """
    hashes, pending, constants = scratch.hashes, scratch.pending, scratch.constants
    forms = 0
    pending[0] = root
    top = 1
    while top > 0:
        top -= 1
        i = pending[top]
        op = nodes[i]["op"]
        if op == FEATURE:
            continue
        if op == LT:
            constants[n] = nodes[i]["a"]
            constants[n + 1] = nodes[i]["b"]
            if place.shape[0] > 0:
                place[i] = n
            n += 2
        first = i + 1
        if op < FIRST_BINARY:
            pending[top] = first
            top += 1
            continue
        second = subtree_end(nodes, first)
        if _commutes(op):
            if hashes[first] == hashes[second]:
                if _has_constants(nodes, first):
                    return -1, 0
            else:
                forms += 1
            if hashes[second] < hashes[first]:
                first, second = second, first
        pending[top] = second
        pending[top + 1] = first
        top += 2
    return n, forms


@kernel
def identify(nodes, n_terms, place, scratch):
    """Return what a structure is known by, its number of constants, and the log of its writings.

    The roots of its terms are in `scratch.roots`. Its constants are left in `scratch.constants`.
    The key is 0 where two parts of the same structure have constants, or two terms are the same.
    """
    roots, order, hashes = scratch.roots, scratch.order, scratch.hashes
    total = np.uint64(n_terms + 1) * _GOLDEN
    log_forms = 0.0
    for k in range(n_terms):
        total += _mixed(_hash_tree(nodes, roots[k], scratch) + _GOLDEN)
        log_forms += math.log(k + 1.0)
        # Terms in the order of their numbers.
        at = k
        while at > 0 and hashes[roots[order[at - 1]]] > hashes[roots[k]]:
            order[at] = order[at - 1]
            at -= 1
        order[at] = k
        if at > 0 and hashes[roots[order[at - 1]]] == hashes[roots[k]]:
            return _NOTHING, 0, 0.0
    n = 0
    for k in range(n_terms):
        n, forms = _read_constants(nodes, roots[order[k]], n, place, scratch)
        if n < 0:
            return _NOTHING, 0, 0.0
        log_forms += forms * _LOG_2
    return _mixed(total) | _1, n, log_forms


@kernel
def _find(keys, key):
    """Return where a key is in an ascending list, -1 if it is not there."""
    low, high = 0, keys.shape[0]
    while low < high:
        middle = (low + high) // 2
        if keys[middle] < key:
            low = middle + 1
        else:
            high = middle
    return low if low < keys.shape[0] and keys[low] == key else -1


@kernel
def _make_law(catalogue, j, power, scratch):
    """Leave the law of the constants of a structure: its mean, and the factor of its precision.

    `power` is that of the likelihood of the rows that the expansion is of. Return half the log of
    the determinant of the precision.
    """
    first, start = catalogue.first_constant[j], catalogue.first_product[j]
    n = catalogue.first_constant[j + 1] - first
    factor, mean = scratch.factor, scratch.mean
    half_log = 0.0
    for i in range(n):
        own = catalogue.precision[i % 2]
        right = power * catalogue.slope[first + i] + own * (1.0 - i % 2)
        for m in range(n):
            right += power * catalogue.curvature[start + i * n + m] * catalogue.centre[first + m]
        mean[i] = right
    for i in range(n):
        for m in range(i + 1):
            v = power * catalogue.curvature[start + i * n + m]
            if i == m:
                v += catalogue.precision[i % 2]
            for q in range(m):
                v -= factor[i * n + q] * factor[m * n + q]
            if i > m:
                factor[i * n + m] = v / factor[m * n + m]
            else:
                factor[i * n + i] = math.sqrt(max(v, 1e-300))
                half_log += math.log(factor[i * n + i])
    for i in range(n):
        v = mean[i]
        for m in range(i):
            v -= factor[i * n + m] * mean[m]
        mean[i] = v / factor[i * n + i]
    for i in range(n - 1, -1, -1):
        v = mean[i]
        for m in range(i + 1, n):
            v -= factor[m * n + i] * mean[m]
        mean[i] = v / factor[i * n + i]
    return half_log


@kernel
def _log_law(n, half_log, constants, scratch):
    """Return the log density of constants under the law that was made."""
    squares = 0.0
    for i in range(n):
        # The transpose of the factor times the distance from the mean.
        v = 0.0
        for m in range(i, n):
            v += scratch.factor[m * n + i] * (constants[m] - scratch.mean[m])
        squares += v * v
    return (
        math.lgamma(0.5 * (FREEDOM + n)) - math.lgamma(0.5 * FREEDOM)
        - 0.5 * n * math.log(math.pi * FREEDOM) + half_log
        - 0.5 * (FREEDOM + n) * math.log1p(squares / FREEDOM)
    )  # fmt: skip


@kernel
def _draw_constants(rng, n, scratch):
    """Draw constants from the law that was made."""
    drawn, mean, factor = scratch.drawn, scratch.mean, scratch.factor
    stretch = math.sqrt(0.5 * FREEDOM / gamma(rng, 0.5 * FREEDOM)) if n > 0 else 1.0
    for i in range(n):
        drawn[i] = stretch * normal(rng)
    for i in range(n - 1, -1, -1):
        v = drawn[i]
        for m in range(i + 1, n):
            v -= factor[m * n + i] * drawn[m]
        drawn[i] = v / factor[i * n + i]
    for i in range(n):
        drawn[i] += mean[i]


@merged
def _write(rng, catalogue, j, other, scratch):
    """Write one of the writings of a structure to a chain, with the constants drawn."""
    size, n_terms = max_nodes(other), catalogue.n_terms[j]
    order, pending = scratch.order, scratch.pending
    for k in range(other.slots.shape[0]):
        other.slots[k] = k
    for k in range(n_terms):  # a random order
        at = integer(rng, k + 1)
        order[k] = order[at]
        order[at] = k
    root = catalogue.first_node[j]
    for k in range(n_terms):
        target = order[k] * size
        pending[0] = root
        top = 1
        while top > 0:
            top -= 1
            i = pending[top]
            op = catalogue.nodes[i]["op"]
            other.nodes[target] = catalogue.nodes[i]
            if op == LT:
                at = catalogue.place[i]
                other.nodes[target]["a"] = scratch.drawn[at]
                other.nodes[target]["b"] = scratch.drawn[at + 1]
            target += 1
            if op == FEATURE:
                continue
            first = i + 1
            if op >= FIRST_BINARY:
                second = subtree_end(catalogue.nodes, first)
                if _commutes(op) and uniform(rng) < 0.5:
                    first, second = second, first
                pending[top] = second
                top += 1
            pending[top] = first
            top += 1
        root = subtree_end(catalogue.nodes, root)
    other.n_terms[0] = n_terms


@kernel
def _log_urn(concentration, counts, offset):
    """Return the log probability of drawing these counts, in some order, from Polya's urn."""
    total = drawn = result = 0.0
    for i in range(concentration.shape[0]):
        n = counts[offset + i]
        total += concentration[i]
        drawn += n
        if n > 0.0:
            if concentration[i] == 0.0:
                return -math.inf
            result += math.lgamma(concentration[i] + n) - math.lgamma(concentration[i])
    return result + math.lgamma(total) - math.lgamma(total + drawn)


@kernel
def _log_weights(cdf, counts, offset):
    """Return the log probability of drawing these counts with fixed weights."""
    result = before = 0.0
    for i in range(cdf.shape[0]):
        if counts[offset + i] > 0.0:
            result += counts[offset + i] * math.log(cdf[i] - before)
        before = cdf[i]
    return result


@kernel
def log_prior_of_state(chain, prior, room):
    """Return the log prior of a state, learned weights and variances integrated out.

    Its terms are sensible, since the fit has asked for that. Its nested operators are counted.
    """
    counts = room.counts
    n_operators, n_features = prior.operator_cdf.shape[0], prior.feature_cdf.shape[0]
    for i in range(n_operators + n_features):
        counts[i] = 0.0
    chain.nested[0] = count_all_nested(chain, chain.n_terms[0], room.pending)
    total = prior.log_terms[chain.n_terms[0]] - prior.nesting[0] * chain.nested[0]
    n = 0
    squares_a = squares_b = 0.0
    for k in range(chain.n_terms[0]):
        root = tree_start(chain, chain.slots[k])
        end = subtree_end(chain.nodes, root)
        total += log_shape(chain.nodes, root, ROOT_DEPTH, prior, room.pending)
        for i in range(root, end):
            op = chain.nodes[i]["op"]
            if op == FEATURE:
                counts[n_operators + chain.nodes[i]["feature"]] += 1.0
                continue
            counts[op] += 1.0
            if op == LT:
                n += 1
                squares_a += (chain.nodes[i]["a"] - 1.0) ** 2
                squares_b += chain.nodes[i]["b"] ** 2
    if prior.operator_concentration.shape[0] > 0:
        total += _log_urn(prior.operator_concentration, counts, 0)
    else:
        total += _log_weights(prior.operator_cdf, counts, 0)
    if prior.feature_concentration.shape[0] > 0:
        total += _log_urn(prior.feature_concentration, counts, n_operators)
    else:
        total += _log_weights(prior.feature_cdf, counts, n_operators)
    total += log_constants(n, squares_a, prior.scale_prior[0], prior.scale_prior[1])
    return total + log_constants(n, squares_b, prior.scale_prior[2], prior.scale_prior[3])


@kernel
def log_constants(n, squares, nu, lam):
    """Return the log density of n normal constants with squares that sum to this.

    Their common variance, IG(nu / 2, nu lam / 2), is integrated out.
    """
    if n == 0:
        return 0.0
    return (
        math.lgamma(0.5 * (nu + n)) - math.lgamma(0.5 * nu) - 0.5 * n * math.log(math.pi * nu * lam)
        - 0.5 * (nu + n) * math.log1p(squares / (nu * lam))
    )  # fmt: skip


@kernel
def teleport(code, chain, other, prior, tables, mode, scratch, room, catalogue, odds, counts, t):
    """Try to replace the state of a chain by one of the catalogue, at the t-th temperature.

    `other` is a spare chain.
    """
    counts[t, TRIED] += 1
    for k in range(chain.n_terms[0]):
        room.roots[k] = tree_start(chain, chain.slots[k])
    nowhere = room.order[:0]
    key, n, log_forms = identify(chain.nodes, chain.n_terms[0], nowhere, room)
    here = _find(catalogue.key, key)
    if here < 0 or key == _NOTHING:
        return
    counts[t, IN_LIST] += 1
    power = mode.power * max(mode.ratio, 1.0)
    back = odds.log_weight[t, here] - log_forms
    back += _log_law(n, _make_law(catalogue, here, power, room), room.constants, room)

    # Draw the proposal, and the log density of doing so.
    there = pick(chain.rng, odds.cumulative[t])
    n = catalogue.first_constant[there + 1] - catalogue.first_constant[there]
    half_log = _make_law(catalogue, there, power, room)
    _draw_constants(chain.rng, n, room)
    ahead = odds.log_weight[t, there] - catalogue.log_forms[there]
    ahead += _log_law(n, half_log, room.drawn, room)
    _write(chain.rng, catalogue, there, other, room)

    # Evaluate it on the rows that decide at this temperature.
    if not fit_given(code, other, tables.seen, scratch, False):
        return
    n_terms = other.n_terms[0]
    other.numbers[LOG_LIKELIHOOD] = collapsed_log_likelihood(
        other.numbers[RSS], n_terms, tables.seen
    )
    other.numbers[ALL_LOG_LIKELIHOOD] = math.nan
    gain = other.numbers[LOG_LIKELIHOOD] - chain.numbers[LOG_LIKELIHOOD]
    if mode.ratio > 0.0 and sees_all(mode.power, mode.ratio):
        rss = code.fit_all(code.evaluate, other, n_terms, tables.whole, scratch)
        if rss < 0.0:
            return
        other.numbers[ALL_RSS] = rss
        other.numbers[ALL_LOG_LIKELIHOOD] = collapsed_log_likelihood(rss, n_terms, tables.whole)
        gain = other.numbers[ALL_LOG_LIKELIHOOD] - chain.numbers[ALL_LOG_LIKELIHOOD]
        gain *= mode.power
    else:
        gain *= min(1.0, power)

    # Accept it, with learned weights and variances that go with it.
    gain += log_prior_of_state(other, prior, room)
    gain -= log_prior_of_state(chain, prior, room)
    if not accepted(chain.rng, gain + back - ahead):
        return
    counts[t, TAKEN] += 1
    _take_over(chain, other)
    if prior.operator_cdf[LT] > prior.operator_cdf[LT - 1]:
        update_scales(chain, prior)
    if prior.feature_concentration.shape[0] > 0:
        update_weights(chain, prior, scratch.counts)


@kernel
def _take_over(chain, other):
    """Copy the state of another chain; spare slots have nothing that matters."""
    n_terms, size = other.n_terms[0], max_nodes(other)
    n_slots, n_rows = chain.slots.shape[0], chain.columns.shape[0] // chain.slots.shape[0]
    chain.n_terms[0] = n_terms
    chain.nested[0] = other.nested[0]
    for k in range(n_slots):
        chain.slots[k] = other.slots[k]
    for k in range(n_terms):
        root = k * size
        for i in range(root, subtree_end(other.nodes, root)):
            chain.nodes[i] = other.nodes[i]
        for i in range(k * n_rows, (k + 1) * n_rows):
            chain.columns[i] = other.columns[i]
        chain.dots[k] = other.dots[k]
        for m in range(n_terms):
            chain.gram[k * n_slots + m] = other.gram[k * n_slots + m]
    for i in range(other.numbers.shape[0]):
        chain.numbers[i] = other.numbers[i]


@entry_point
def describe(nodes, n_terms, place, keys, log_forms, sizes, constants, room):
    """Identify packed structures, one per row; for Python, which makes the catalogue."""
    for row in range(n_terms.shape[0]):
        root = 0
        for k in range(n_terms[row]):
            room.roots[k] = root
            root = subtree_end(nodes[row], root)
        key, n, forms = identify(nodes[row], n_terms[row], place[row], room)
        keys[row] = key
        sizes[row] = n
        log_forms[row] = forms
        for i in range(n):
            constants[row, i] = room.constants[i]
