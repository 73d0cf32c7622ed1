"""Nanoseconds per node and row: compiled evaluation of a tree against NumPy's ufuncs."""

from __future__ import annotations

import gc
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from time import perf_counter_ns

import numpy as np
from numba import int64, njit, types, void

from benchmarks.report import Section, Table, at_least
from symbayes.formula.operators import OPERATORS
from symbayes.kernels.evaluate import BLOCK, stack_slots
from symbayes.kernels.opcodes import FEATURE
from symbayes.kernels.tree import NODE
from symbayes.kernels.units import load_evaluate, signatures

N_ROWS = 10_000
_CHAIN = 8
_SLOPE, _OFFSET = 0.75, 0.25


@dataclass(frozen=True)
class Case:
    """An operator, and the fastest way to compute it by ufuncs that write to `out`."""

    name: str
    numpy: Callable[[np.ndarray, np.ndarray, np.ndarray], object]
    """Called with the operand, the second operand or any array, and `out`."""
    positive: bool = False
    """Whether the operands have to be above 0."""
    chain: bool = True
    """Whether the operator can be applied to itself without leaving the finite numbers."""


def _lt(x, _, out):
    np.multiply(x, _SLOPE, out=out)
    np.add(out, _OFFSET, out=out)


def _cube(x, _, out):
    # Two products: np.power is many times slower.
    np.multiply(x, x, out=out)
    np.multiply(out, x, out=out)


_CASES = (
    Case("+", lambda x, y, out: np.add(x, y, out=out)),
    Case("*", lambda x, y, out: np.multiply(x, y, out=out), positive=True),
    Case("/", lambda x, y, out: np.divide(x, y, out=out), positive=True),
    Case("square", lambda x, _, out: np.square(x, out=out), chain=False),
    Case("cube", _cube, chain=False),
    Case("lt", _lt),
    Case("sqrt", lambda x, _, out: np.sqrt(x, out=out), positive=True),
    Case("abs", lambda x, _, out: np.absolute(x, out=out)),
    Case("neg", lambda x, _, out: np.negative(x, out=out)),
    Case("inv", lambda x, _, out: np.reciprocal(x, out=out), positive=True),
    Case("sin", lambda x, _, out: np.sin(x, out=out)),
    Case("cos", lambda x, _, out: np.cos(x, out=out)),
    Case("exp", lambda x, _, out: np.exp(x, out=out), chain=False),
    Case("log", lambda x, _, out: np.log(x, out=out), positive=True, chain=False),
)


def measure(quick: bool) -> Section:
    """Measure all operators, alone and in a chain."""
    rounds = 5 if quick else 60
    rows, targets = [], []
    for case in _CASES:
        ours, numpys = _compare(case, 1, rounds)
        ours_chain, numpys_chain = _compare(case, _CHAIN, rounds) if case.chain else (None, None)
        ratio = numpys / ours
        ratio_chain = numpys_chain / ours_chain if case.chain else None
        rows.append([case.name, ours, numpys, ratio, ours_chain, numpys_chain, ratio_chain])
        goal = 4.0 if case.name in ("sin", "cos") else 1.0
        targets.append(at_least(f"NumPy / symbayes, {case.name}", goal, ratio))
    return Section(
        "kernels",
        f"Evaluation of one operator, nanoseconds per row, {N_ROWS:,} rows",
        [
            Table(
                ["operator", "symbayes", "NumPy", "NumPy / symbayes"]
                + ["symbayes, chain", "NumPy, chain", "NumPy / symbayes, chain"],
                rows,
            )
        ],
        targets,
        [
            "Time of a call of the compiled evaluation of the tree `op(x)` or `x op y`, divided by "
            "the rows, called by address from a compiled loop as the sampler does. NumPy: the "
            "ufunc called from Python with `out=` an array made before (the call itself is about a "
            "tenth of the time of the cheapest); for lt two ufuncs (times, plus), for cube two "
            "products.",
            f"A chain is the operator {_CHAIN} times, `sin(sin(...))` or `x + (x + (...))`, the "
            f"time divided by {_CHAIN} as well: what a node costs inside a tree. Left out where "
            "the values would overflow or leave the domain. The targets are about single "
            "operators.",
            f"Best of {rounds} rounds, the two alternately.",
        ],
    )


def _compare(case: Case, depth: int, rounds: int) -> tuple[float, float]:
    """Return nanoseconds per node and row, of symbayes and of NumPy."""
    rng = np.random.default_rng(0)
    low, high = (0.5, 1.5) if case.positive else (-3.0, 3.0)
    x, y = rng.uniform(low, high, (2, N_ROWS))
    table = np.concatenate([x, y])
    nodes = _tree(case.name, depth)
    target, out = np.empty(N_ROWS), np.empty(N_ROWS)
    stack = np.empty(stack_slots(len(nodes)) * BLOCK)
    where = np.empty(2 * len(nodes) + 4, np.int64)
    evaluate = load_evaluate()
    binary = OPERATORS[case.name].arity == 2
    # Every link of the chain needs its own result, as its operand is still to be read.
    buffers = [out, np.empty(N_ROWS)]

    repeat = _repeat()

    def ours(calls: int) -> None:
        repeat(evaluate, calls, nodes, table, N_ROWS, target, stack, where)

    def numpys(calls: int) -> None:
        for _ in range(calls):
            value = y if binary else x
            for i in range(depth):
                result = buffers[i % 2]
                if binary:
                    case.numpy(x, value, result)
                else:
                    case.numpy(value, x, result)
                value = result

    ours(1)
    numpys(1)
    np.testing.assert_allclose(target, buffers[(depth - 1) % 2], rtol=1e-12, atol=1e-14)
    best_ours, best_numpys = _best_in_turn(ours, numpys, rounds)
    return best_ours / (N_ROWS * depth), best_numpys / (N_ROWS * depth)


@cache
def _repeat():
    """Return a compiled loop that calls the evaluation by address."""

    @njit(error_model="numpy")
    def repeat(evaluate, calls, nodes, table, n_rows, target, stack, where):
        for _ in range(calls):
            evaluate(nodes, 0, table, n_rows, 0, n_rows, target, 0, stack, where)

    signature = signatures()["evaluate"]
    nodes, _, reals, _, _, _, _, ints = signature.args
    pointer = types.FunctionType(signature)
    repeat.compile(void(pointer, int64, nodes, reals, int64, reals, reals, ints))
    repeat.disable_compile()
    return repeat


def _tree(name: str, depth: int) -> np.ndarray:
    """Return the nodes, in preorder, of the operator applied `depth` times."""
    operator = OPERATORS[name]
    nodes = []
    for _ in range(depth):
        nodes.append((operator.opcode, 0, _SLOPE, _OFFSET))
        if operator.arity == 2:
            nodes.append((FEATURE, 0, 0.0, 0.0))
    nodes.append((FEATURE, operator.arity - 1, 0.0, 0.0))
    return np.array(nodes, NODE)


def _best_in_turn(first, second, rounds: int, calls: int = 300) -> tuple[float, float]:
    """Return the shortest mean time of a call, in nanoseconds, of two functions timed in turn."""
    best = [float("inf"), float("inf")]
    gc.disable()
    try:
        for _ in range(rounds):
            for i, function in enumerate((first, second)):
                start = perf_counter_ns()
                function(calls)
                best[i] = min(best[i], (perf_counter_ns() - start) / calls)
    finally:
        gc.enable()
    return best[0], best[1]
