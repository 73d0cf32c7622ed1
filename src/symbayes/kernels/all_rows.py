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

from .compiling import entry_point, kernel
from .evaluate import BLOCK
from .likelihood import (
    CONSTANT,
    LARGE_SQUARES,
    MOST_REFINEMENTS,
    REDUNDANT,
    REFINED,
    SMALL_SQUARES,
    count_constants,
    factorise,
    solve,
    solve_normal_equations,
)
from .rows import add_multiple, copy, dot, farthest, mean, weigh
from .tree import tree_start


@kernel
def sees_all(power, ratio):
    """Return whether the target at a power of the likelihood is that of all rows.

    Where the likelihood counts no more than that of the part would, it is the part's instead: hot
    chains never need to see all rows. For `ratio` see `chain.Mode`.
    """
    return power * ratio >= 1.0


@kernel
def first_power(power, ratio):
    """Return the power of the likelihood that a proposal is first judged by."""
    return min(1.0, power * ratio) if ratio > 0.0 else power


@kernel
def _evaluate_term(evaluate, chain, k, whole, first, n, scratch):
    """Evaluate the k-th term on the n rows from `first` on; return where its values begin."""
    evaluate(
        chain.nodes, tree_start(chain, chain.slots[k]), whole.x, whole.y.shape[0], first, first + n,
        scratch.all_rows.block, k * BLOCK, scratch.stack, scratch.where,
    )  # fmt: skip
    return np.uint64(k * BLOCK)


@kernel
def _choose_units(evaluate, chain, n_terms, whole, scratch, n_seen):
    """Set shift and unit of every term from the first `n_seen` rows; return whether they can be.

    The shift is the mean over the first block in any case.
    """
    n_rows = whole.y.shape[0]
    rows = scratch.all_rows
    first = 0
    while first < n_seen:
        n = min(BLOCK, n_rows - first)
        for k in range(n_terms):
            own = _evaluate_term(evaluate, chain, k, whole, first, n, scratch)
            if first == 0:
                rows.shift[k] = mean(rows.block, own, np.uint64(n))
                rows.unit[k] = 0.0
            distance = farthest(rows.block, own, np.uint64(n), rows.shift[k])
            if not (distance < math.inf):
                return False
            rows.unit[k] = max(rows.unit[k], distance)
        first += BLOCK
    for k in range(n_terms):
        if rows.unit[k] == 0.0:
            rows.unit[k] = max(1.0, abs(rows.shift[k]))
    return True


@kernel
def _add_up(evaluate, chain, n_terms, whole, scratch):
    """Fill the sums over all rows."""
    rows = scratch.all_rows
    n_rows = whole.y.shape[0]
    n_slots = chain.slots.shape[0]
    n_known = whole.known.shape[0] // n_rows
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
            own = _evaluate_term(evaluate, chain, k, whole, first, rest, scratch)
            weigh(rows.block, own, n, whole.root_weight, begin, rows.shift[k], rows.unit[k])
            rows.totals[k] += dot(rows.block, own, whole.root_weight, begin, n)
            rows.dots[k] += dot(rows.block, own, whole.y, begin, n)
            for j in range(k + 1):
                rows.gram[k * n_slots + j] += dot(
                    rows.block, own, rows.block, np.uint64(j * BLOCK), n
                )
            for j in range(n_known):
                rows.beside[j * n_slots + k] += dot(
                    rows.block, own, whole.known, np.uint64(j * n_rows) + begin, n
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
def _standardise(n_terms, n_slots, rows, n_rows, n_known):
    """Turn sums into a correlation matrix; return whether every term has a column.

    `n_rows` is the sum of the weights.
    """
    for k in range(n_terms):
        own = rows.gram[k * n_slots + k] - rows.totals[k] * rows.totals[k] / n_rows
        unit = rows.unit[k]
        mean = rows.shift[k] / unit + rows.totals[k] / n_rows
        if not (own > CONSTANT * CONSTANT * (own + n_rows * mean * mean)):
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
            product = rows.gram[k * n_slots + j] - rows.totals[k] * rows.totals[j] / n_rows
            for i in range(n_known):
                product -= rows.beside[i * n_slots + k] * rows.beside[i * n_slots + j]
            rows.gram[k * n_slots + j] = product / (rows.length[k] * rows.length[j])
        rows.gram[k * n_slots + k] = 1.0
    return True


@kernel
def _residuals(evaluate, chain, n_terms, whole, scratch):
    """Return the sum of squared residuals; leave their products with the columns in `correction`.

    Columns are not centred and still contain the known terms; what that adds is taken out of the
    residuals, and of their products with the columns.
    """
    rows, solution, correction = scratch.all_rows, scratch.solution, scratch.correction
    n_rows = whole.y.shape[0]
    n_slots = chain.slots.shape[0]
    n_known = whole.known.shape[0] // n_rows
    spare = np.uint64(n_slots * BLOCK)
    level = 0.0
    for k in range(n_terms):
        level += solution[k] / rows.length[k] * rows.totals[k] / whole.n
        correction[k] = 0.0
    squares = total = 0.0
    for j in range(n_known):
        rows.other[j] = 0.0
    first = 0
    while first < n_rows:
        rest = min(BLOCK, n_rows - first)
        n, begin = np.uint64(rest), np.uint64(first)
        copy(rows.block, spare, whole.y, begin, n)
        add_multiple(rows.block, spare, whole.root_weight, begin, level, n)
        for j in range(n_known):
            along = 0.0
            for k in range(n_terms):
                along += solution[k] / rows.length[k] * rows.beside[j * n_slots + k]
            add_multiple(rows.block, spare, whole.known, np.uint64(j * n_rows) + begin, along, n)
        for k in range(n_terms):
            own = _evaluate_term(evaluate, chain, k, whole, first, rest, scratch)
            weigh(rows.block, own, n, whole.root_weight, begin, rows.shift[k], rows.unit[k])
            add_multiple(rows.block, spare, rows.block, own, -solution[k] / rows.length[k], n)
        squares += dot(rows.block, spare, rows.block, spare, n)
        total += dot(rows.block, spare, whole.root_weight, begin, n)
        for k in range(n_terms):
            correction[k] += dot(rows.block, spare, rows.block, np.uint64(k * BLOCK), n)
        for j in range(n_known):
            rows.other[j] += dot(rows.block, spare, whole.known, np.uint64(j * n_rows) + begin, n)
        first += BLOCK
    for k in range(n_terms):
        product = correction[k] - total * rows.totals[k] / whole.n
        for j in range(n_known):
            product -= rows.other[j] * rows.beside[j * n_slots + k]
        correction[k] = product / rows.length[k]
    return squares


@entry_point
def fit_nothing(evaluate, chain, n_terms, whole, scratch):
    """Stand in for `fit_all` where chains see all rows, and nobody calls it: less to compile."""
    return -1.0


@entry_point
def fit_all(evaluate, chain, n_terms, whole, scratch):
    """Return the residual sum of squares of the first `n_terms` terms on all rows.

    Return -1 when a term has no column or is redundant, terms cancel too far, or the model has too
    many constants: the rules are those of `likelihood.fit`.
    """
    rows = scratch.all_rows
    n_rows = whole.y.shape[0]
    n_slots = chain.slots.shape[0]
    if count_constants(chain, n_terms) > whole.most_constants:
        return -1.0
    if n_terms == 0:
        return whole.n
    if not _choose_units(evaluate, chain, n_terms, whole, scratch, min(BLOCK, n_rows)):
        return -1.0
    _add_up(evaluate, chain, n_terms, whole, scratch)
    if not _in_range(n_terms, n_slots, rows):
        # Rare: later rows are of another size than the first block, or not finite.
        if not _choose_units(evaluate, chain, n_terms, whole, scratch, n_rows):
            return -1.0
        _add_up(evaluate, chain, n_terms, whole, scratch)
    if not _standardise(n_terms, n_slots, rows, whole.n, whole.known.shape[0] // n_rows):
        return -1.0
    for k in range(n_slots):
        rows.order[k] = k  # columns lie in the order of the terms here, not in slots
    factor, solution, correction = scratch.factor, scratch.solution, scratch.correction
    if factorise(rows.gram, rows.order, n_terms, factor) > 0:
        return -1.0
    rss, safe, size = solve_normal_equations(
        rows.dots, rows.order, n_terms, whole.n, factor, solution
    )
    if not (size <= whole.most_size):
        return -1.0
    if safe:
        return rss
    # Iterative refinement, as in `likelihood.py`.
    rss = _residuals(evaluate, chain, n_terms, whole, scratch)
    for _ in range(MOST_REFINEMENTS):
        solve(factor, n_slots, n_terms, correction)
        for k in range(n_terms):
            solution[k] += correction[k]
        before = rss
        rss = _residuals(evaluate, chain, n_terms, whole, scratch)
        if not rss < (1.0 - REFINED) * before:
            break
    return rss
