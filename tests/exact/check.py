"""`python -m tests.exact.check CASE MOVE`: print the smallest p-value of a move alone.

A process of its own, so that the planted-bugs test can run it on an altered copy of the package.
"""

from __future__ import annotations

import sys

from . import test_stationarity
from .cases import Case

CASES = {
    "plain": test_stationarity.PLAIN,
    "free": test_stationarity.FREE,
    "lt": test_stationarity.LT,
    "paper": test_stationarity.PAPER,
    "paper-lt": test_stationarity.PAPER_LT,
    "tempered": Case("collapsed", 1, temperature=0.3),
}


if __name__ == "__main__":
    results = test_stationarity.p_values(CASES[sys.argv[1]], sys.argv[2], n=30_000, steps=60)
    print(min(results.values()))
