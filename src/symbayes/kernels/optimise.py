"""Gauss-Newton steps on the constants of a proposed tree; for the search phase only.

The coefficients are eliminated by solving for them jointly with the linearised constants: y is
regressed on the other terms, on the tree g and on its derivatives J, and a constant moves by the
coefficient of its J over that of g. It works on a few rows; the proposal is then judged on all.
"""

import math

import numpy as np

from .compiling import entry_point, kernel
from .opcodes import LT
from .rows import copy, difference, dot, gather, multiply_by
from .tree import subtree_end, tree_start

#: Most constants that move at once, and most rows looked at.
MOST_CONSTANTS = 12
MOST_ROWS = 128

# Evaluations of the tree at new constants, and how often a step that was too long is shortened.
_MOST_STEPS, _MOST_CUTS = 6, 2
# Steps end when the residual falls by less than this part.
_ENOUGH = 1.0e-3
# Increment of a constant for a derivative; errors of this size only slow the last digits.
_INCREMENT = 1.0e-7
# Below this part of the total the residual has lost its digits; one more step, unchecked, is taken.
_LAST_STEP = 1.0e-10
# A column is redundant when less than this part of it (squared) lies outside the others' span.
_REDUNDANT = 1.0e-11


@kernel
def _add_to_factor(design, column, m, y, factor, width, z):
    """Append a column to the Cholesky factor of the normal equations; return what it explains.

    Columns count by their length, so that units do not matter; a redundant one gets a zero pivot.
    Apart from `likelihood.factorise`, since here columns come one by one and are not standardised.
    """
    own = np.uint64(column) * m
    square = dot(design, own, design, own, m)
    z[column] = 0.0
    factor[column * width + column] = 0.0
    if not (0.0 < square < math.inf):
        return 0.0
    rest = square
    product = dot(design, own, y, np.uint64(0), m)
    for j in range(column):
        pivot = factor[j * width + j]
        v = 0.0
        if pivot > 0.0:
            v = dot(design, own, design, np.uint64(j) * m, m)
            for k in range(j):
                v -= factor[column * width + k] * factor[j * width + k]
            v /= pivot
        factor[column * width + j] = v
        rest -= v * v
        product -= v * z[j]
    if not (rest > _REDUNDANT * square):
        return 0.0
    pivot = math.sqrt(rest)
    factor[column * width + column] = pivot
    z[column] = product / pivot
    return z[column] * z[column]


@kernel
def _solve_last(factor, width, first, n, z):
    """Solve for the coefficients of the columns from `first` on, in place."""
    for i in range(n - 1, first - 1, -1):
        pivot = factor[i * width + i]
        if pivot == 0.0:
            z[i] = 0.0
            continue
        v = z[i]
        for j in range(i + 1, n):
            v -= factor[j * width + i] * z[j]
        z[i] = v / pivot


@kernel
def _constants(nodes, root, end, values, write):
    """Read the constants of the tree into `values`, or write them; return their number."""
    n = 0
    for i in range(root, end):
        if nodes[i]["op"] == LT and n + 2 <= MOST_CONSTANTS:
            if write:
                nodes[i]["a"] = values[n]
                nodes[i]["b"] = values[n + 1]
            else:
                values[n] = nodes[i]["a"]
                values[n + 1] = nodes[i]["b"]
            n += 2
    return n


@kernel
def _evaluate_tree(evaluate, nodes, root, few, column, scratch):
    """Write the weighted values of the tree into a column of the design."""
    design, m = scratch.optimise.design, few.y.shape[0]
    evaluate(nodes, root, few.x, m, 0, m, design, column * m, scratch.stack, scratch.where)
    multiply_by(design, np.uint64(column * m), few.root_weight, np.uint64(m))


@entry_point
def optimise(evaluate, chain, slot, n_terms, few, scratch):
    """Move the constants of the tree in a slot towards a better fit beside the other terms."""
    room = scratch.optimise
    nodes = chain.nodes
    root = tree_start(chain, slot)
    end = subtree_end(nodes, root)
    m, zero = np.uint64(few.y.shape[0]), np.uint64(0)
    n_rows = chain.columns.shape[0] // chain.slots.shape[0]
    width = room.z.shape[0]
    design, factor, z = room.design, room.factor, room.z

    # Intercept, known terms and the other terms come first: they stay the same.
    total = dot(few.y, zero, few.y, zero, m)
    start = total
    copy(design, zero, few.root_weight, zero, m)
    start -= _add_to_factor(design, 0, m, few.y, factor, width, z)
    g = 1
    for j in range(few.known.shape[0] // few.y.shape[0]):
        copy(design, np.uint64(g) * m, few.known, np.uint64(j) * m, m)
        start -= _add_to_factor(design, g, m, few.y, factor, width, z)
        g += 1
    for k in range(n_terms):
        if chain.slots[k] != slot:
            gather(design, np.uint64(g) * m, chain.columns, chain.slots[k] * n_rows, few.rows, m)
            start -= _add_to_factor(design, g, m, few.y, factor, width, z)
            g += 1

    constants, direction, trial = room.constants, room.direction, room.trial
    n = _constants(nodes, root, end, constants, False)
    best = math.inf
    cut = 1.0
    cuts = 0
    for step in range(_MOST_STEPS):
        _evaluate_tree(evaluate, nodes, root, few, g, scratch)
        gain = _add_to_factor(design, g, m, few.y, factor, width, z)
        rss = start - gain
        if gain == 0.0 or not (rss < best):
            if step == 0:
                return
            cuts += 1
            if cuts > _MOST_CUTS:
                break
            cut *= 0.2
            for i in range(n):
                trial[i] = constants[i] + cut * direction[i]
            _constants(nodes, root, end, trial, True)
            continue
        enough = best - rss < _ENOUGH * best
        best = rss
        if step > 0:
            _constants(nodes, root, end, constants, False)
        if step + 1 == _MOST_STEPS or enough:
            break
        # Derivatives, one constant after the other.
        for i in range(n):
            trial[i] = constants[i]
        for i in range(n):
            increment = _INCREMENT * max(1.0, abs(constants[i]))
            trial[i] = constants[i] + increment
            _constants(nodes, root, end, trial, True)
            trial[i] = constants[i]
            column = g + 1 + i
            _evaluate_tree(evaluate, nodes, root, few, column, scratch)
            difference(design, np.uint64(column) * m, design, np.uint64(g) * m, increment, m)
            _add_to_factor(design, column, m, few.y, factor, width, z)
        _solve_last(factor, width, g, g + 1 + n, z)
        if z[g] == 0.0:
            break
        for i in range(n):
            direction[i] = z[g + 1 + i] / z[g]
            trial[i] = constants[i] + direction[i]
        cut = 1.0
        _constants(nodes, root, end, trial, True)
        if rss < _LAST_STEP * total:
            return  # quadratic convergence: nothing is left to compare
    _constants(nodes, root, end, constants, True)
