"""From the start of a process to a fitted model, with and without compiled code."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from itertools import pairwise
from statistics import median
from time import perf_counter

from benchmarks.report import Section, Table, at_most

_IMPORTS = "import sympy, sklearn, numba"
_FIT = """
from symbayes import BayesianSymbolicRegressor
from symbayes.datasets import paper_task
X, y = paper_task("f1", random_state=0)
BayesianSymbolicRegressor(draws={draws}, tune={tune}, chains=1, random_state=0).fit(X, y)
"""
_FIRST_FIT = _FIT.format(draws=100, tune=100)
_FIRST_DRAW = _FIT.format(draws=1, tune=0)


def measure(quick: bool) -> Section:
    """Time whole processes: imports alone, a first fit, and a first draw once all is compiled."""
    rounds = 1 if quick else 5
    imports, cold, warm = [], [], []
    with tempfile.TemporaryDirectory() as compiled:
        # Once for nothing: files come from the disk, and the warm runs find compiled code.
        _seconds(_IMPORTS, compiled)
        _seconds(_FIRST_FIT, compiled)
        imports.append(_seconds(_IMPORTS, compiled))
        for _ in range(rounds):
            with tempfile.TemporaryDirectory() as empty:
                cold.append(_seconds(_FIRST_FIT, empty))
            imports.append(_seconds(_IMPORTS, compiled))
            warm.append(_seconds(_FIRST_DRAW, compiled))
            imports.append(_seconds(_IMPORTS, compiled))
    # Each process against the imports just before and after it: the machine is not always as fast.
    around = [(before + after) / 2 for before, after in pairwise(imports)]
    cold_ratio = median(t / base for t, base in zip(cold, around[0::2], strict=True))
    warm_ratio = median(t / base for t, base in zip(warm, around[1::2], strict=True))
    rows = [
        [name, median(times), min(times), max(times), ratio]
        for name, times, ratio in (
            (f"`{_IMPORTS}`", imports, 1.0),
            ("first fit, nothing compiled", cold, cold_ratio),
            ("first draw, all compiled", warm, warm_ratio),
        )
    ]
    return Section(
        "cold_start",
        "Cold start, seconds of a whole process",
        [Table(["process", "median", "least", "most", "times the imports"], rows)],
        [
            at_most("first fit / imports (15 s where they take 2 s)", 7.5, cold_ratio),
            at_most("first draw / imports", 1.5, warm_ratio),
        ],
        [
            "First fit: 100 rows, draws=100, tune=100, chains=1, in a fresh process with an empty "
            "NUMBA_CACHE_DIR, so that everything is compiled. First draw: draws=1, tune=0, with "
            "the cache filled by an earlier process; the time includes the table of formulas and "
            "the end of the process.",
            f"{rounds} round{'s' * (rounds > 1)} of first fit, imports, first draw, imports. "
            "Ratios: to the mean of the imports before and after, median over the rounds.",
        ],
    )


def _seconds(code: str, cache: str) -> float:
    start = perf_counter()
    subprocess.run(
        [sys.executable, "-c", code], check=True, env={**os.environ, "NUMBA_CACHE_DIR": cache}
    )
    return perf_counter() - start
