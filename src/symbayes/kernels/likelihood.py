"""Columns of the design, their inner products, and the least-squares fit that both likelihoods use.

A column is the value of one tree, centred, multiplied by the square root of the row weights and
scaled to length one. So weights, the intercept and extreme scales are dealt with once, here, and
the Gram matrix of the columns is a correlation matrix.
"""

import math
from typing import NamedTuple

import numpy as np

from .compiling import kernel, merged, reduction

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
# the difference is not so many times larger, it is taken from the residuals.
SAFE = 1.0e4
# Below this part of the total it always is.
CANCELLED = 1.0e-5
# Steps of iterative refinement end when the residual falls by less than this part, or after so
# many.
REFINED, MOST_REFINEMENTS = 1.0e-4, 8


class Data(NamedTuple):
    """The table a chain sees. Rows are padded with copies that have weight zero."""

    x: np.ndarray
    """Columns of the table, one after the other."""
    y: np.ndarray
    """Response: centred, times the root of the weights, scaled so that its squares sum to n."""
    root_weight: np.ndarray
    """Square roots of the row weights, 0 for the padding."""
    n: float
    """Sum of the weights: the number of rows, as the likelihood counts them."""
    noise_prior: np.ndarray
    """`[nu, lam]` of the inverse-gamma prior of the noise variance of the scaled response."""
    most_constants: float
    """How many constants a model may have, its coefficients and its intercept included."""
    limits: np.ndarray
    """What trees are allowed, see `limits.py`; empty where all are."""
    known: np.ndarray
    """Columns of the terms that are always there, made orthonormal, one after the other. They are
    projected out of the response and of every column, as the intercept is."""
    is_part: bool
    """Whether proposals are judged on all rows afterwards (`all_rows.py`). Then nothing is refused
    here that may have a place there: a term that is constant or redundant on these rows has
    coefficient 0."""


@reduction
def _moments(values, offset, root_weight):
    """Return the weighted sum of the values and of their squares."""
    total = 0.0
    squares = 0.0
    for i in range(np.uint64(root_weight.shape[0])):
        v = values[offset + i]
        w = root_weight[i] * root_weight[i]
        total += w * v
        squares += w * (v * v)
    return total, squares


@reduction
def _centre(values, offset, root_weight, mean):
    """Centre and weight in place; return the sum of squares."""
    squares = 0.0
    for i in range(np.uint64(root_weight.shape[0])):
        v = root_weight[i] * (values[offset + i] - mean)
        values[offset + i] = v
        squares += v * v
    return squares


@kernel
def _multiply(values, offset, n, factor):
    for i in range(n):
        values[offset + i] *= factor


@reduction
def _largest(values, offset, root_weight):
    largest = 0.0
    for i in range(np.uint64(root_weight.shape[0])):
        v = abs(values[offset + i])
        if not (v <= largest) and root_weight[i] > 0.0:  # also true for nan
            largest = v
            if not (v < math.inf):
                return math.inf
    return largest


@reduction
def dot(left, p, right, q, n):
    """Return the inner product of n values."""
    total = 0.0
    for i in range(n):
        total += left[p + i] * right[q + i]
    return total


@kernel
def _subtract(target, source, s, factor, n):
    for i in range(n):
        target[i] -= factor * source[s + i]


@kernel
def _project_out(values, offset, known, n):
    """Take the known terms out of a column, in place; return what is left, squared."""
    # Twice, since once leaves rounding errors of the size of what was taken out.
    for _ in range(2):
        for j in range(np.uint64(known.shape[0]) // n):
            start = np.uint64(j) * n
            factor = dot(values, offset, known, start, n)
            for i in range(n):
                values[offset + i] -= factor * known[start + i]
    return dot(values, offset, values, offset, n)


@kernel
def _copy(target, source, n):
    for i in range(n):
        target[i] = source[i]


@kernel
def _without_column(values, offset, n, allow):
    if not allow:
        return 0.0, -1.0
    for i in range(n):
        values[offset + i] = 0.0
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
    total, squares = _moments(values, offset, data.root_weight)
    if not (SMALL_SQUARES < squares < LARGE_SQUARES):
        # Squares overflow or vanish, or something is not finite: work in other units.
        scale = _largest(values, offset, data.root_weight)
        if not (_SMALLEST_UNIT < scale < math.inf):
            return _without_column(values, offset, n, data.is_part and scale < math.inf)
        _multiply(values, offset, n, 1.0 / scale)
        total, squares = _moments(values, offset, data.root_weight)
    mean = total / data.n
    centred = _centre(values, offset, data.root_weight, mean)
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
    _multiply(values, offset, n, 1.0 / length)
    return mean * scale, length * scale


@merged
def project(columns, slot, slots, n_terms, data, gram, dots):
    """Fill row and column `slot` of the Gram matrix, and its product with the response."""
    n_slots = slots.shape[0]
    n_rows = data.y.shape[0]
    n = np.uint64(n_rows)
    own = np.uint64(slot * n_rows)
    for k in range(n_terms):
        other = slots[k]
        product = 1.0
        if other != slot:
            product = dot(columns, own, columns, np.uint64(other * n_rows), n)
        gram[slot * n_slots + other] = product
        gram[other * n_slots + slot] = product
    dots[slot] = dot(columns, own, data.y, np.uint64(0), n)


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
def residual_sum_of_squares(
    columns, slots, n_terms, data, gram, dots, factor, solution, correction, residual, allow
):
    """Return the residual sum of squares of the fit on all terms; leave the fit in `solution`.

    Return -1 when a term is redundant, unless `allow` says that its coefficient is then 0.
    """
    if factorise(gram, slots, n_terms, factor) > 0 and not allow:
        return -1.0
    n_slots = slots.shape[0]
    n_rows = data.y.shape[0]
    n = np.uint64(n_rows)
    for k in range(n_terms):
        solution[k] = dots[slots[k]]
    solve(factor, n_slots, n_terms, solution)
    rss = data.n
    size = 0.0
    for k in range(n_terms):
        rss -= solution[k] * dots[slots[k]]
        size += abs(solution[k])
    if rss > max(CANCELLED * data.n, SAFE * ROUNDING * size * size):
        return rss
    _copy(residual, data.y, n)
    for k in range(n_terms):
        _subtract(residual, columns, np.uint64(slots[k] * n_rows), solution[k], n)
    rss = dot(residual, np.uint64(0), residual, np.uint64(0), n)
    # Iterative refinement makes up for the squared condition of the Gram matrix. Whatever it
    # reaches, residuals cannot be smaller than they are: nothing is gained by rounding errors.
    for _ in range(MOST_REFINEMENTS):
        for k in range(n_terms):
            correction[k] = dot(residual, np.uint64(0), columns, np.uint64(slots[k] * n_rows), n)
        solve(factor, n_slots, n_terms, correction)
        for k in range(n_terms):
            solution[k] += correction[k]
            _subtract(residual, columns, np.uint64(slots[k] * n_rows), correction[k], n)
        before = rss
        rss = dot(residual, np.uint64(0), residual, np.uint64(0), n)
        if not rss < (1.0 - REFINED) * before:
            break
    return rss


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
