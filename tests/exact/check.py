"""`python -m tests.exact.check CASE MOVE STEPS`: print the smallest p-value of a move alone.

A process of its own, so that the planted-bugs test can run it on an altered copy of the package.
"""

from __future__ import annotations

import sys

from . import test_stationarity
from .cases import Case

CASES = {
    "plain": test_stationarity.PLAIN,
    "steep": test_stationarity.STEEP,
    "free": test_stationarity.FREE,
    "lt": test_stationarity.LT,
    "paper": test_stationarity.PAPER,
    "paper-lt": test_stationarity.PAPER_LT,
    "tempered": Case("collapsed", 1, temperature=0.3),
}


if __name__ == "__main__":
    case, move, steps = sys.argv[1:]
    results = test_stationarity.p_values(CASES[case], move, n=30_000, steps=int(steps))
    print(min(results.values()))
