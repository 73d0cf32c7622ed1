"""Columns of the design, their inner products, and the least-squares fit that both likelihoods use.

A column is the value of one tree, centred, multiplied by the square root of the row weights and
scaled to length one. So weights, the intercept and extreme scales are dealt with once, here, and
the Gram matrix of the columns is a correlation matrix.
"""

import math

import numpy as np

from .compiling import entry_point, kernel, merged
from .rows import add_multiple, centre, copy, dot, fill, largest, moments, multiply
from .tree import count_nodes, is_allowed, tree_start

# A column whose spread is below this part of its root mean square is a constant to rounding.
CONSTANT = 1.0e-10
# Between these, sums of squares are safe from overflow and from vanishing digits.
SMALL_SQUARES, LARGE_SQUARES = 1.0e-250, 1.0e250
# The reciprocal of a smaller number overflows.
_SMALLEST_UNIT = 1.0e-305
# Errors of the Gram matrix.
ROUNDING = 1.0e-15
# A column whose part outside the span of the others is smaller than this (squared) is redundant. It
# is also where rounding may have made that part: errors grow by the smallest such part so far.
REDUNDANT = 1.0e-10
# The residual sum of squares as a difference has an error of `ROUNDING` times the square of the
# coefficients' sum (an error dG of the Gram matrix, seen through a solution x, is x' dG x). Where
# the difference is not this many times larger, it is taken from the residuals.
_SAFE = 1.0e4
# Below this part of the total it always is.
_CANCELLED = 1.0e-5
# Steps of iterative refinement end when the residual falls by less than this part, at the latest
# after this number of steps.
REFINED, MOST_REFINEMENTS = 1.0e-4, 8


@kernel
def _project_out(values, offset, known, n):
    """Take the known terms out of a column, in place; return what is left, squared."""
    # Twice, since once leaves rounding errors of the size of what was taken out.
    for _ in range(2):
        for j in range(np.uint64(known.shape[0]) // n):
            start = np.uint64(j) * n
            factor = dot(values, offset, known, start, n)
            add_multiple(values, offset, known, start, -factor, n)
    return dot(values, offset, values, offset, n)


@kernel
def _without_column(values, offset, n, allow):
    if not allow:
        return 0.0, -1.0
    fill(values, offset, n, 0.0)
    return 0.0, 0.0


@merged
def standardise(values, start, data):
    """Turn the values of a tree, in place, into a column of the design.

    Return its mean and its length. A length of -1 says that it has none: it is not finite
    somewhere, constant, or nothing new beside the known terms. In a part of the rows, what is
    finite always has one: if nothing else, a column of zeros with length 0.
    """
    offset = np.uint64(start)
    n = np.uint64(data.root_weight.shape[0])
    scale = 1.0
    total, squares = moments(values, offset, data.root_weight)
    if not (SMALL_SQUARES < squares < LARGE_SQUARES):
        # Squares overflow or vanish, or something is not finite: work in other units.
        scale = largest(values, offset, data.root_weight)
        if not (_SMALLEST_UNIT < scale < math.inf):
            return _without_column(values, offset, n, data.is_part and scale < math.inf)
        multiply(values, offset, n, 1.0 / scale)
        total, squares = moments(values, offset, data.root_weight)
    mean = total / data.n
    centred = centre(values, offset, data.root_weight, mean)
    if not (centred > CONSTANT * CONSTANT * squares):
        return _without_column(values, offset, n, data.is_part)
    if data.known.shape[0] > 0:
        outside = _project_out(values, offset, data.known, n)
        if not (outside > REDUNDANT * centred):
            return _without_column(values, offset, n, data.is_part)
        centred = outside
    length = math.sqrt(centred)
    if not (length * scale < math.inf):
        return _without_column(values, offset, n, False)
    multiply(values, offset, n, 1.0 / length)
    return mean * scale, length * scale


@merged
def _project(chain, slot, n_terms, data):
    """Fill row and column `slot` of the Gram matrix, and its product with the response."""
    n_slots = chain.slots.shape[0]
    n_rows = data.y.shape[0]
    n = np.uint64(n_rows)
    own = np.uint64(slot * n_rows)
    for k in range(n_terms):
        other = chain.slots[k]
        product = 1.0
        if other != slot:
            product = dot(chain.columns, own, chain.columns, np.uint64(other * n_rows), n)
        chain.gram[slot * n_slots + other] = product
        chain.gram[other * n_slots + slot] = product
    chain.dots[slot] = dot(chain.columns, own, data.y, np.uint64(0), n)


@kernel
def solve(factor, n_slots, n_terms, b):
    """Solve L L' x = b in place; a pivot of 0 marks a redundant column, whose x is 0."""
    for i in range(n_terms):
        if factor[i * n_slots + i] == 0.0:
            b[i] = 0.0
            continue
        v = b[i]
        for j in range(i):
            v -= factor[i * n_slots + j] * b[j]
        b[i] = v / factor[i * n_slots + i]
    for i in range(n_terms - 1, -1, -1):
        if factor[i * n_slots + i] == 0.0:
            continue
        v = b[i]
        for j in range(i + 1, n_terms):
            v -= factor[j * n_slots + i] * b[j]
        b[i] = v / factor[i * n_slots + i]


@kernel
def factorise(gram, slots, n_terms, factor):
    """Cholesky-factorise the Gram matrix of the terms; return the number of redundant ones."""
    n_slots = slots.shape[0]
    redundant = 0
    smallest = 1.0
    for i in range(n_terms):
        for j in range(i + 1):
            v = gram[slots[i] * n_slots + slots[j]]
            for k in range(j):
                v -= factor[i * n_slots + k] * factor[j * n_slots + k]
            if i > j:
                pivot = factor[j * n_slots + j]
                factor[i * n_slots + j] = v / pivot if pivot > 0.0 else 0.0
            elif v > max(REDUNDANT, ROUNDING / smallest):
                factor[i * n_slots + i] = math.sqrt(v)
                smallest = min(smallest, v)
            else:
                factor[i * n_slots + i] = 0.0
                redundant += 1
    return redundant


@merged
def solve_normal_equations(dots, slots, n_terms, n, factor, solution):
    """Solve for the coefficients, given the Cholesky factor; leave them in `solution`.

    Return the residual sum of squares, whether it has kept its digits, and the sum of the sizes of
    the coefficients: much more than the root of n says that terms cancel.
    """
    for k in range(n_terms):
        solution[k] = dots[slots[k]]
    solve(factor, slots.shape[0], n_terms, solution)
    rss = n
    size = 0.0
    for k in range(n_terms):
        rss -= solution[k] * dots[slots[k]]
        size += abs(solution[k])
    return rss, rss > max(_CANCELLED * n, _SAFE * ROUNDING * size * size), size


@merged
def _residual_sum_of_squares(chain, n_terms, data, scratch, allow):
    """Return the residual sum of squares of the fit on all terms; leave the fit in `solution`.

    Return -1 when a term is redundant or terms cancel too far, unless `allow` says that a redundant
    one has coefficient 0.
    """
    columns, slots, factor = chain.columns, chain.slots, scratch.factor
    solution, correction, residual = scratch.solution, scratch.correction, scratch.residual
    if factorise(chain.gram, slots, n_terms, factor) > 0 and not allow:
        return -1.0
    rss, safe, size = solve_normal_equations(chain.dots, slots, n_terms, data.n, factor, solution)
    if not (allow or size <= data.most_size):
        return -1.0
    if safe:
        return rss
    n_rows = data.y.shape[0]
    n, zero = np.uint64(n_rows), np.uint64(0)
    copy(residual, zero, data.y, zero, n)
    for k in range(n_terms):
        add_multiple(residual, zero, columns, np.uint64(slots[k] * n_rows), -solution[k], n)
    rss = dot(residual, zero, residual, zero, n)
    # Iterative refinement makes up for the squared condition of the Gram matrix. Whatever it
    # reaches, residuals cannot be smaller than they are: nothing is gained by rounding errors.
    for _ in range(MOST_REFINEMENTS):
        for k in range(n_terms):
            correction[k] = dot(residual, zero, columns, np.uint64(slots[k] * n_rows), n)
        solve(factor, slots.shape[0], n_terms, correction)
        for k in range(n_terms):
            solution[k] += correction[k]
            add_multiple(residual, zero, columns, np.uint64(slots[k] * n_rows), -correction[k], n)
        before = rss
        rss = dot(residual, zero, residual, zero, n)
        if not rss < (1.0 - REFINED) * before:
            break
    return rss


@kernel
def count_constants(chain, n_terms):
    """Return the number of constants of a model: those of its trees, coefficients, intercept."""
    constants = 1 + n_terms
    for k in range(n_terms):
        _, transforms, _ = count_nodes(chain.nodes, tree_start(chain, chain.slots[k]))
        constants += 2 * transforms
    return constants


@entry_point
def fit(evaluate, chain, slot, n_terms, data, scratch, allow):
    """Return the residual sum of squares of the first `n_terms` terms.

    If `slot` is not negative, the tree there is new: its column is made first. Return -1 when it is
    not allowed or has no column (not finite somewhere, or constant). Return -1 as well when a term
    is redundant, terms cancel too far or the model has too many constants, unless `allow` says that
    none of that matters (a redundant term has coefficient 0).
    """
    allow = allow or data.is_part
    if not allow and count_constants(chain, n_terms) > data.most_constants:
        return -1.0
    if slot >= 0:
        root, n_rows = tree_start(chain, slot), data.y.shape[0]
        if not is_allowed(chain.nodes, root, data.limits, scratch.where, scratch.moves.pending):
            return -1.0
        evaluate(
            chain.nodes, root, data.x, n_rows, 0, n_rows, chain.columns, slot * n_rows,
            scratch.stack, scratch.where,
        )  # fmt: skip
        _, length = standardise(chain.columns, slot * n_rows, data)
        if length < 0.0:
            return -1.0
        _project(chain, slot, n_terms, data)
        if length == 0.0:
            chain.gram[slot * chain.slots.shape[0] + slot] = 0.0
    return _residual_sum_of_squares(chain, n_terms, data, scratch, allow)


@kernel
def collapsed_log_likelihood(rss, n_terms, data):
    """Return log p(y | trees), up to a constant: coefficients and noise integrated out.

    The coefficients have the unit-information prior centred at their least-squares estimate.
    """
    nu, lam = data.noise_prior[0], data.noise_prior[1]
    return -0.5 * n_terms * math.log1p(data.n) - 0.5 * (data.n - 1.0 + nu) * math.log(
        nu * lam + rss
    )


@kernel
def plug_in_log_likelihood(rss, noise_variance, data):
    """Return log p(y | trees, noise) with the coefficients at their least-squares estimate."""
    return -0.5 * (data.n * math.log(2.0 * math.pi * noise_variance) + rss / noise_variance)
