"""Loops over rows, all but the evaluation of trees (`evaluate.py`, `vector_math.py`).

Columns lie one after the other in flat arrays; a function is told where each begins. Offsets and
numbers of rows are unsigned: a signed index may be negative in Python, and the test for it would
keep the compiler from vectorising.
"""

import math

import numpy as np

from .compiling import kernel, reduction


@reduction
def dot(left, p, right, q, n):
    """Return the inner product of n values."""
    total = 0.0
    for i in range(n):
        total += left[p + i] * right[q + i]
    return total


@reduction
def mean(values, offset, n):
    """Return the mean of n values."""
    total = 0.0
    for i in range(n):
        total += values[offset + i]
    return total / n


@reduction
def moments(values, offset, root_weight):
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
def centre(values, offset, root_weight, mean):
    """Centre and weight in place; return the sum of squares."""
    squares = 0.0
    for i in range(np.uint64(root_weight.shape[0])):
        v = root_weight[i] * (values[offset + i] - mean)
        values[offset + i] = v
        squares += v * v
    return squares


@reduction
def largest(values, offset, root_weight):
    """Return the largest absolute value that has a weight, infinity if one is not finite."""
    most = 0.0
    for i in range(np.uint64(root_weight.shape[0])):
        v = abs(values[offset + i])
        if not (v <= most) and root_weight[i] > 0.0:  # also true for nan
            most = v
            if not (v < math.inf):
                return math.inf
    return most


@kernel
def farthest(values, offset, n, shift):
    """Return the largest distance from `shift`, infinity if one is not finite."""
    most = 0.0
    for i in range(n):
        v = abs(values[offset + i] - shift)
        if not (v <= most):  # also true for nan
            most = v
            if not (v < math.inf):
                return math.inf
    return most


@kernel
def multiply(values, offset, n, factor):
    """Multiply n values in place."""
    for i in range(n):
        values[offset + i] *= factor


@kernel
def multiply_by(values, offset, factors, n):
    """Multiply n values in place, each by a factor of its own."""
    for i in range(n):
        values[offset + i] *= factors[i]


@kernel
def weigh(values, offset, n, root_weight, first, shift, unit):
    """Shift and scale n values in place, and multiply them by the root of their weights."""
    inverse = 1.0 / unit
    for i in range(n):
        values[offset + i] = root_weight[first + i] * ((values[offset + i] - shift) * inverse)


@kernel
def add_multiple(target, t, source, s, factor, n):
    """Add a multiple of n values to others, in place."""
    for i in range(n):
        target[t + i] += factor * source[s + i]


@kernel
def difference(values, v, base, b, increment, n):
    """Turn n values at a constant plus an increment into derivatives, in place."""
    for i in range(n):
        values[v + i] = (values[v + i] - base[b + i]) / increment


@kernel
def copy(target, t, source, s, n):
    """Copy n values."""
    for i in range(n):
        target[t + i] = source[s + i]


@kernel
def gather(target, t, source, s, rows, n):
    """Copy n values that lie at certain rows."""
    for i in range(n):
        target[t + i] = source[s + rows[i]]


@kernel
def fill(values, offset, n, value):
    """Set n values to one number."""
    for i in range(n):
        values[offset + i] = value
