"""When a formula fits to all digits, and when that says something."""

from __future__ import annotations

from ..kernels import opcodes
from ..problem import Problem
from .ladder import Replicas

# A residual below this part of y's variance is rounding error: the formula is exact. So it is where
# a smaller one would gain nothing, being far below what the prior of the noise expects.
_EXACT, _EXACT_NOISE = 1.0e-18, 1.0e-3
# Constants a row at which an exact fit says something.
_CONSTANTS_A_ROW = 0.5


def exact_rss(problem: Problem) -> float:
    """Return the residual sum of squares below which a fit is exact."""
    nu, lam = problem.data.noise_prior
    return float(max(_EXACT * problem.data.n, _EXACT_NOISE * nu * lam))


def is_exact(replicas: Replicas) -> bool:
    """Return whether the coldest state fits to rounding error, and not by the number of constants.

    With few rows enough constants fit anything.
    """
    if not replicas.rss <= exact_rss(replicas.problem):
        return False
    trees = replicas.trees()
    constants = 1 + len(trees) + 2 * sum(int((tree["op"] == opcodes.LT).sum()) for tree in trees)
    return constants <= _CONSTANTS_A_ROW * replicas.problem.data.n
