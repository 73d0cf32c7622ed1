"""A tree's value on all rows: one opcode switch, blocks of rows that stay in the cache.

Nodes are visited from the last to the first, so operands are ready when their operator comes. A
terminal costs nothing: it is an offset into the table. Every level of the operand stack has two
slots and an operator writes into the one it does not read, so that loops never overlap.
"""

import math

import numpy as np

from .compiling import entry_point, merged
from .opcodes import (
    ABS,
    ADD,
    ARCCOS,
    ARCSIN,
    ARCTAN,
    COS,
    CUBE,
    DIV,
    EXP,
    FEATURE,
    INV,
    LOG,
    LT,
    MUL,
    NEG,
    SIN,
    SQRT,
    SQUARE,
    SUB,
    TAN,
    TANH,
)
from .rows import copy
from .tree import arity, subtree_end
from .vector_math import NO_TURN, QUARTER_TURN, exp_rows, log_rows, sine_rows

#: Rows per block; a stack slot holds one block.
BLOCK = 1024
#: Rows are padded to a multiple of this, so that vector loops have no scalar rest.
PADDING = 8


def padded(n_rows):
    """Return the number of rows with the padding."""
    return -(-n_rows // PADDING) * PADDING


@merged
def _arithmetic_unary(op, a, b, source, s, target, t, n):
    if op == LT:
        for i in range(n):
            target[t + i] = a * source[s + i] + b
    elif op == NEG:
        for i in range(n):
            target[t + i] = -source[s + i]
    elif op == INV:
        for i in range(n):
            target[t + i] = 1.0 / source[s + i]
    elif op == SQUARE:
        for i in range(n):
            target[t + i] = source[s + i] * source[s + i]
    elif op == CUBE:
        for i in range(n):
            target[t + i] = source[s + i] * source[s + i] * source[s + i]
    elif op == ABS:
        for i in range(n):
            target[t + i] = abs(source[s + i])
    elif op == SQRT:
        for i in range(n):
            x = source[s + i]
            target[t + i] = math.sqrt(x) if x >= 0.0 else math.nan


@merged
def _library_unary(op, source, s, target, t, n):
    """The operators left to the C library, outside their domain nan."""
    for i in range(n):
        x = source[s + i]
        y = math.nan
        if op == TAN:
            if abs(x) < math.inf:
                y = math.tan(x)
        elif op == TANH:
            y = math.tanh(x)
        elif op == ARCTAN:
            y = math.atan(x)
        elif abs(x) <= 1.0:
            if op == ARCSIN:
                y = math.asin(x)
            elif op == ARCCOS:
                y = math.acos(x)
        target[t + i] = y


@merged
def _binary(op, left, p, right, q, target, t, n):
    if op == ADD:
        for i in range(n):
            target[t + i] = left[p + i] + right[q + i]
    elif op == SUB:
        for i in range(n):
            target[t + i] = left[p + i] - right[q + i]
    elif op == MUL:
        for i in range(n):
            target[t + i] = left[p + i] * right[q + i]
    elif op == DIV:
        for i in range(n):
            target[t + i] = left[p + i] / right[q + i]


def stack_slots(max_nodes):
    """Return how many blocks of stack the largest tree may need."""
    return 2 * (max_nodes // 2 + 2)


@entry_point
def evaluate(nodes, root, x, n_rows, begin, stop, target, offset, stack, where):
    """Write the value of the tree at `root` on rows `begin` to `stop` to `target[offset:]`.

    `x` holds the columns of the table one after the other, `n_rows` each. `where` is integer
    scratch: for each level of the operand stack the offset of its value, and whether that is in
    the table (1) or on the stack (0).
    """
    end = subtree_end(nodes, root)
    first = begin
    while first < stop:
        n = np.uint64(min(BLOCK, stop - first))
        level = -1
        for i in range(end - 1, root - 1, -1):
            op = nodes[i]["op"]
            if op == FEATURE:
                level += 1
                where[2 * level] = nodes[i]["feature"] * n_rows + first
                where[2 * level + 1] = 1
                continue
            result = level - (arity(op) - 1)
            t = 2 * result * BLOCK
            # The right operand of a binary operator sits where the result goes.
            if where[2 * result + 1] == 0 and where[2 * result] == t:
                t += BLOCK
            out, o = stack, np.uint64(t)
            if i == root:
                out, o = target, np.uint64(offset + first - begin)
            p = np.uint64(where[2 * level])
            left = x if where[2 * level + 1] == 1 else stack
            if result == level:
                if op == SIN:
                    sine_rows(left, p, out, o, n, NO_TURN)
                elif op == COS:
                    sine_rows(left, p, out, o, n, QUARTER_TURN)
                elif op == EXP:
                    exp_rows(left, p, out, o, n)
                elif op == LOG:
                    log_rows(left, p, out, o, n)
                elif op < TAN:
                    _arithmetic_unary(op, nodes[i]["a"], nodes[i]["b"], left, p, out, o, n)
                else:
                    _library_unary(op, left, p, out, o, n)
            else:
                q = np.uint64(where[2 * result])
                right = x if where[2 * result + 1] == 1 else stack
                _binary(op, left, p, right, q, out, o, n)
            where[2 * result] = t
            where[2 * result + 1] = 0
            level = result
        if end == root + 1:
            copy(target, np.uint64(offset + first - begin), x, np.uint64(where[0]), n)
        first += BLOCK
