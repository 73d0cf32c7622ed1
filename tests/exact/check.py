"""`python -m tests.exact.check CASE:MOVE:STEPS:BUG ...`: the smallest p-value of each move alone.

A process of its own, so that the planted-bugs test can run it on an altered copy of the package, in
which bugs have numbers; with 0 there is none.
"""

from __future__ import annotations

import sys

from symbayes.kernels import compiling, units

from . import test_stationarity, test_teleport, test_tempering
from .cases import Case

CASES = {
    "plain": test_stationarity.PLAIN,
    "steep": test_stationarity.STEEP,
    "free": test_stationarity.FREE,
    "lt": test_stationarity.LT,
    "limited": test_stationarity.LIMITED,
    "shallow": test_stationarity.SHALLOW,
    "known": test_stationarity.KNOWN,
    "waves": test_stationarity.WAVES,
    "paper": test_stationarity.PAPER,
    "paper-lt": test_stationarity.PAPER_LT,
    "hot": Case("collapsed", 1, temperature=0.3),
    "sums": Case("collapsed", (2, 3.0), "sums", max_nodes=3, beta=1.5, temperature=0.3),
    "two": test_stationarity.TWO,
    "three": test_stationarity.THREE,
    "learned": test_stationarity.LEARNED,
    "part": test_stationarity.PART,
    "tempered-part": test_tempering.PART,
    "known-part": test_stationarity.KNOWN_PART,
    "limited-part": test_stationarity.LIMITED_PART,
    "waves-part": test_stationarity.WAVES_PART,
    "sensible": test_stationarity.SENSIBLE,
    "sensible-sums": test_stationarity.SENSIBLE_SUMS,
    "sensible-two": test_stationarity.SENSIBLE_TWO,
    "sensible-part": test_stationarity.SENSIBLE_PART,
    "sensible-hot": test_stationarity.HOT_SENSIBLE,
    "price": test_stationarity.PRICE,
    "price-hot": test_stationarity.HOT_PRICE,
    "price-part": test_stationarity.PRICE_PART,
}


def smallest_p_value(case: Case, move: str, steps: int) -> float:
    if move == "ladder":
        # One step between two swaps, so that what these do wrong is not made good at once.
        results = test_tempering.p_values_of_ladders(
            case, (1.0, 0.3), n=12_000, rounds=steps, steps=1
        )
    elif move == "teleport":
        results = test_teleport.p_values(case, 60_000, steps, counts_too=False)
    elif move == "swap":
        results = test_tempering.p_values_of_swaps(case, n=30_000)
    else:
        # Few states can be split, so that it takes more of them.
        n = 100_000 if move == "split-merge" else 30_000
        results = test_stationarity.p_values(case, move, n=n, steps=steps)
    return min(results.values())


def main(checks: list[str]) -> None:
    switched = hasattr(compiling, "PLANTED")
    if switched and any(":ladder:" in check for check in checks):
        # What other processes compile would look for the number in the memory of theirs.
        units.compile_here(*units._UNITS, "tempered")
    for check in checks:
        case, move, steps, bug = check.split(":")
        if switched:
            compiling.PLANTED.value = int(bug)
        print(smallest_p_value(CASES[case], move, int(steps)), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
