"""When a formula fits to all digits, and when that says something.

A series of enough terms fits anything smooth to eight or nine digits, and is an approximation all
the same. A formula is exact if what it leaves of y is no more than its own arithmetic, and the
digits that y is given with, leave.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..fitting.constants import free_constants, newton_step
from ..fitting.least_squares import exact_coefficients
from ..formula.operators import BY_OPCODE
from ..formula.trees import evaluate_trees
from ..inputs.problem import Problem
from ..kernels import opcodes
from .ladder import Replicas

# A state whose residual is below this part of y's variance may be exact, and so may one where a
# smaller residual would gain nothing, being far below what the prior of the noise expects.
_EXACT, _EXACT_NOISE = 1.0e-18, 1.0e-3
# With more constants per row than this, an exact fit says nothing.
_CONSTANTS_PER_ROW = 0.5
# The most steps to the best constants.
_MOST_STEPS = 8
# y may be rounded this many times as much as the formula that was found, since it may have been
# computed in another form. Beyond this part of the spread of y, terms cancel each other.
_OTHER_FORM, _CANCELLING = 100.0, 1.0e-12
# An error may be this many times the last digit of y, which has at most this many decimal digits.
_LAST_DIGITS, _MOST_DIGITS = 5.0, 15
# To be measured, rounding errors are made this large instead of epsilon, this many times; they are
# taken to be proportional.
_ENLARGED, _EPSILON, _REPEATS = 2.0**-30, 2.0**-53, 3


def exact_rss(problem: Problem) -> float:
    """Return the residual sum of squares above which a state is not exact."""
    nu, lam = problem.data.noise_prior
    return float(max(_EXACT * problem.data.n, _EXACT_NOISE * nu * lam))


def is_exact(replicas: Replicas) -> bool:
    """Return whether the coldest state is exact, and not by the number of constants.

    With few rows enough constants fit anything.
    """
    trees = replicas.trees()
    if not trees or not replicas.rss <= exact_rss(replicas.problem):
        return False
    constants = 1 + len(trees) + 2 * sum(int((tree["op"] == opcodes.LT).sum()) for tree in trees)
    few = constants <= _CONSTANTS_PER_ROW * replicas.problem.data.n
    return few and fits_to_rounding(trees, replicas.problem)


def fits_to_rounding(trees: Sequence[np.ndarray], problem: Problem) -> bool:
    """Return whether terms leave no more of y than rounding errors, with the best constants."""
    data = problem.data
    used = data.root_weight > 0
    columns = np.ascontiguousarray(data.x.reshape(-1, len(data.y))[:, used])
    y, root = problem.response(used), data.root_weight[used]
    last_digit = _last_digit(y) / problem.y_scale
    y = y / problem.y_scale  # squares are safe
    terms = (*problem.known, *trees)
    places = free_constants(terms, len(problem.known))
    before = np.inf
    with np.errstate(all="ignore"):
        for _ in range(_MOST_STEPS):
            values = evaluate_trees(terms, columns)
            solved = exact_coefficients(values, y, root)
            if solved is None:
                return False
            coefficients, left = solved
            error = _mean_square_root(left, root)
            if not error < before:
                return False
            arithmetic = _rounding(terms, values, coefficients, columns, y, root)
            if error <= max(min(_OTHER_FORM * arithmetic, _CANCELLING), last_digit):
                return True
            before = 0.5 * error
            moved = newton_step(terms, places, columns, y, root**2) if places else None
            if moved is None:
                return False
            terms = moved
    return False


def _rounding(
    terms: Sequence[np.ndarray],
    values: np.ndarray,
    coefficients: np.ndarray,
    columns: np.ndarray,
    y: np.ndarray,
    root: np.ndarray,
) -> float:
    """Return the root mean square of the errors that the arithmetic of these terms makes."""
    rng, squares = np.random.default_rng(0), 0.0
    for _ in range(_REPEATS):
        off = np.array([_perturbed(tree, columns, rng) for tree in terms]) - values
        off += values * _errors(rng, values.shape)
        total = coefficients @ off + y * _errors(rng, len(y))
        squares += _mean_square_root(total, root) ** 2 / _REPEATS
    return float(np.sqrt(squares) * _EPSILON / _ENLARGED)


def _perturbed(tree: np.ndarray, columns: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return the values of a tree, every operation of which makes an error."""
    operands: list[np.ndarray] = []
    for node in tree[::-1]:
        op = int(node["op"])
        if op == opcodes.FEATURE:
            operands.append(columns[node["feature"]])
            continue
        inner = [operands.pop() for _ in range(BY_OPCODE[op].arity)]
        if op == opcodes.LT:
            slope = float(node["a"]) * inner[0]
            value = slope * (1.0 + _errors(rng, len(slope))) + float(node["b"])
        else:
            value = BY_OPCODE[op].numpy(*inner)
        operands.append(value * (1.0 + _errors(rng, len(value))))
    return operands.pop()


def _errors(rng: np.random.Generator, shape: int | tuple[int, ...]) -> np.ndarray:
    return rng.uniform(-_ENLARGED, _ENLARGED, shape)


def _last_digit(y: np.ndarray) -> float:
    """Return how large errors are because y has no more digits."""
    largest = float(np.abs(y).max())
    rounding = 8.0 * np.finfo(float).eps * largest
    large = y[np.abs(y) >= 0.1 * largest]
    for digits in range(1, _MOST_DIGITS):
        unit = 10.0 ** (np.floor(np.log10(largest)) + 1.0 - digits)
        if (np.abs(large - np.round(large / unit) * unit) <= rounding).all():
            return float(_LAST_DIGITS * unit)
    return rounding


def _mean_square_root(values: np.ndarray, root: np.ndarray) -> float:
    return float(np.sqrt(np.sum((values * root) ** 2) / np.sum(root**2)))
