"""The second stage of delayed acceptance: a fit on all rows, in blocks that stay in the cache.

On a large table a proposal is first judged on a part of the rows, which a chain sees as its whole
table. Only what passes comes here. No column of all rows is ever kept: the terms are evaluated
block by block, and of each block only sums are kept, so that memory does not grow with the number
of chains.

A column is `root_weight * (value - shift) / unit`; shift and unit come from the first block, which
is enough to keep sums of squares clear of overflow and cancellation.
"""

import math

import numpy as np

from .chain import count_constants, tree_start
from .compiling import entry_point, kernel, reduction
from .evaluate import BLOCK
from .likelihood import (
    CANCELLED,
    CONSTANT,
    LARGE_SQUARES,
    MOST_REFINEMENTS,
    REDUNDANT,
    REFINED,
    ROUNDING,
    SAFE,
    SMALL_SQUARES,
    dot,
    factorise,
    solve,
)


@kernel
def sees_all(power, ratio):
    """Return whether the target at a power of the likelihood is that of all rows.

    `ratio` is how many times more rows there are than in the part; 0 if there is no part. Where the
    likelihood counts no more than that of the part would, it is the part's instead: hot chains
    never need to see all rows.
    """
    return power * ratio >= 1.0


@kernel
def first_power(power, ratio):
    """Return the power of the likelihood that a proposal is first judged by."""
    return min(1.0, power * ratio) if ratio > 0.0 else power


@kernel
def _column(evaluate, nodes, root, rows, first, n, k, stack, where):
    """Evaluate a term on a block."""
    evaluate(
        nodes, root, rows.x, rows.y.shape[0], first, first + n, rows.block, k * BLOCK, stack, where
    )


@reduction
def _mean(values, offset, n):
    total = 0.0
    for i in range(n):
        total += values[offset + i]
    return total / n


@kernel
def _farthest(values, offset, n, shift):
    """Return the largest distance from a value, infinity if one is not finite."""
    largest = 0.0
    for i in range(n):
        v = abs(values[offset + i] - shift)
        if not (v <= largest):  # also true for nan
            largest = v
            if not (v < math.inf):
                return math.inf
    return largest


@kernel
def _weigh(values, offset, n, root_weight, first, shift, unit):
    inverse = 1.0 / unit
    for i in range(n):
        values[offset + i] = root_weight[first + i] * ((values[offset + i] - shift) * inverse)


@kernel
def _add_multiple(target, t, source, s, factor, n):
    for i in range(n):
        target[t + i] += factor * source[s + i]


@kernel
def _choose_units(evaluate, chain, n_terms, rows, scratch, n_seen):
    """Set shift and unit of every term from the first `n_seen` rows; return whether they can be.

    The shift is the mean over the first block in any case.
    """
    n_rows = rows.y.shape[0]
    first = 0
    while first < n_seen:
        n = min(BLOCK, n_rows - first)
        for k in range(n_terms):
            root = tree_start(chain, chain.slots[k])
            _column(evaluate, chain.nodes, root, rows, first, n, k, scratch.stack, scratch.where)
            offset = np.uint64(k * BLOCK)
            if first == 0:
                rows.shift[k] = _mean(rows.block, offset, np.uint64(n))
                rows.unit[k] = 0.0
            farthest = _farthest(rows.block, offset, np.uint64(n), rows.shift[k])
            if not (farthest < math.inf):
                return False
            rows.unit[k] = max(rows.unit[k], farthest)
        first += BLOCK
    for k in range(n_terms):
        if rows.unit[k] == 0.0:
            rows.unit[k] = max(1.0, abs(rows.shift[k]))
    return True


@kernel
def _add_up(evaluate, chain, n_terms, rows, scratch):
    """Fill the sums over all rows."""
    n_rows = rows.y.shape[0]
    n_slots = chain.slots.shape[0]
    n_known = rows.known.shape[0] // n_rows
    for k in range(n_terms):
        rows.totals[k] = 0.0
        rows.dots[k] = 0.0
        for j in range(k + 1):
            rows.gram[k * n_slots + j] = 0.0
        for j in range(n_known):
            rows.beside[j * n_slots + k] = 0.0
    first = 0
    while first < n_rows:
        rest = min(BLOCK, n_rows - first)
        n, begin = np.uint64(rest), np.uint64(first)
        for k in range(n_terms):
            root = tree_start(chain, chain.slots[k])
            _column(evaluate, chain.nodes, root, rows, first, rest, k, scratch.stack, scratch.where)
            own = np.uint64(k * BLOCK)
            _weigh(rows.block, own, n, rows.root_weight, begin, rows.shift[k], rows.unit[k])
            rows.totals[k] += dot(rows.block, own, rows.root_weight, begin, n)
            rows.dots[k] += dot(rows.block, own, rows.y, begin, n)
            for j in range(k + 1):
                rows.gram[k * n_slots + j] += dot(
                    rows.block, own, rows.block, np.uint64(j * BLOCK), n
                )
            for j in range(n_known):
                rows.beside[j * n_slots + k] += dot(
                    rows.block, own, rows.known, np.uint64(j * n_rows) + begin, n
                )
        first += BLOCK


@kernel
def _in_range(n_terms, n_slots, rows):
    """Return whether no sum of squares has overflowed or come near it."""
    for k in range(n_terms):
        squares = rows.gram[k * n_slots + k]
        if not (squares == 0.0 or SMALL_SQUARES < squares < LARGE_SQUARES):
            return False
    return True


@kernel
def _standardise(n_terms, n_slots, rows, n_known):
    """Turn sums into a correlation matrix; return whether every term has a column."""
    for k in range(n_terms):
        own = rows.gram[k * n_slots + k] - rows.totals[k] * rows.totals[k] / rows.n
        unit = rows.unit[k]
        mean = rows.shift[k] / unit + rows.totals[k] / rows.n
        if not (own > CONSTANT * CONSTANT * (own + rows.n * mean * mean)):
            return False
        outside = own
        for j in range(n_known):
            outside -= rows.beside[j * n_slots + k] ** 2
        if not (outside > REDUNDANT * own):
            return False
        rows.length[k] = math.sqrt(outside)
        if not (rows.length[k] * unit < math.inf):
            return False
        rows.dots[k] /= rows.length[k]
        for j in range(k):
            product = rows.gram[k * n_slots + j] - rows.totals[k] * rows.totals[j] / rows.n
            for i in range(n_known):
                product -= rows.beside[i * n_slots + k] * rows.beside[i * n_slots + j]
            rows.gram[k * n_slots + j] = product / (rows.length[k] * rows.length[j])
        rows.gram[k * n_slots + k] = 1.0
    return True


@kernel
def _residuals(evaluate, chain, n_terms, rows, scratch, solution, correction):
    """Return the sum of squared residuals; leave their products with the columns in `correction`.

    Columns are not centred and not without the known terms; what that adds is taken out of the
    residuals, and of their products with the columns.
    """
    n_rows = rows.y.shape[0]
    n_slots = chain.slots.shape[0]
    n_known = rows.known.shape[0] // n_rows
    spare = np.uint64(n_slots * BLOCK)
    level = 0.0
    for k in range(n_terms):
        level += solution[k] / rows.length[k] * rows.totals[k] / rows.n
        correction[k] = 0.0
    squares = total = 0.0
    for j in range(n_known):
        rows.other[j] = 0.0
    first = 0
    while first < n_rows:
        rest = min(BLOCK, n_rows - first)
        n, begin = np.uint64(rest), np.uint64(first)
        for i in range(n):
            rows.block[spare + i] = rows.y[begin + i] + level * rows.root_weight[begin + i]
        for j in range(n_known):
            along = 0.0
            for k in range(n_terms):
                along += solution[k] / rows.length[k] * rows.beside[j * n_slots + k]
            _add_multiple(rows.block, spare, rows.known, np.uint64(j * n_rows) + begin, along, n)
        for k in range(n_terms):
            root = tree_start(chain, chain.slots[k])
            _column(evaluate, chain.nodes, root, rows, first, rest, k, scratch.stack, scratch.where)
            own = np.uint64(k * BLOCK)
            _weigh(rows.block, own, n, rows.root_weight, begin, rows.shift[k], rows.unit[k])
            _add_multiple(rows.block, spare, rows.block, own, -solution[k] / rows.length[k], n)
        squares += dot(rows.block, spare, rows.block, spare, n)
        total += dot(rows.block, spare, rows.root_weight, begin, n)
        for k in range(n_terms):
            correction[k] += dot(rows.block, spare, rows.block, np.uint64(k * BLOCK), n)
        for j in range(n_known):
            rows.other[j] += dot(rows.block, spare, rows.known, np.uint64(j * n_rows) + begin, n)
        first += BLOCK
    for k in range(n_terms):
        product = correction[k] - total * rows.totals[k] / rows.n
        for j in range(n_known):
            product -= rows.other[j] * rows.beside[j * n_slots + k]
        correction[k] = product / rows.length[k]
    return squares


@entry_point
def fit_nothing(evaluate, chain, n_terms, scratch):
    """Stand in for `fit_all` where chains see all rows, and nobody calls it: less to compile."""
    return -1.0


@entry_point
def fit_all(evaluate, chain, n_terms, scratch):
    """Return the residual sum of squares of the first `n_terms` terms on all rows.

    Return -1 when a term has no column or is redundant, or the model has too many constants: the
    rules are those of `chain.fit`.
    """
    rows = scratch.all_rows
    n_rows = rows.y.shape[0]
    n_slots = chain.slots.shape[0]
    if count_constants(chain, n_terms) > rows.most_constants:
        return -1.0
    if n_terms == 0:
        return rows.n
    if not _choose_units(evaluate, chain, n_terms, rows, scratch, min(BLOCK, n_rows)):
        return -1.0
    _add_up(evaluate, chain, n_terms, rows, scratch)
    if not _in_range(n_terms, n_slots, rows):
        # Rare: later rows are of another size than the first block, or not finite.
        if not _choose_units(evaluate, chain, n_terms, rows, scratch, n_rows):
            return -1.0
        _add_up(evaluate, chain, n_terms, rows, scratch)
    if not _standardise(n_terms, n_slots, rows, rows.known.shape[0] // n_rows):
        return -1.0
    if factorise(rows.gram, rows.order, n_terms, scratch.factor) > 0:
        return -1.0
    solution, correction = scratch.solution, scratch.correction
    for k in range(n_terms):
        solution[k] = rows.dots[k]
    solve(scratch.factor, n_slots, n_terms, solution)
    rss = rows.n
    size = 0.0
    for k in range(n_terms):
        rss -= solution[k] * rows.dots[k]
        size += abs(solution[k])
    if rss > max(CANCELLED * rows.n, SAFE * ROUNDING * size * size):
        return rss
    rss = _residuals(evaluate, chain, n_terms, rows, scratch, solution, correction)
    for _ in range(MOST_REFINEMENTS):
        solve(scratch.factor, n_slots, n_terms, correction)
        for k in range(n_terms):
            solution[k] += correction[k]
        before = rss
        rss = _residuals(evaluate, chain, n_terms, rows, scratch, solution, correction)
        if not rss < (1.0 - REFINED) * before:
            break
    return rss
