"""How much memory a fit takes above an interpreter that has imported symbayes."""

from __future__ import annotations

import json
import subprocess
import sys
from statistics import median

from benchmarks.report import Cell, Section, Table, at_most

_CHILD = """
import json, sys
import numpy as np
from benchmarks.environment import megabytes
from symbayes import BayesianSymbolicRegressor
from symbayes.datasets import paper_task

X, y = paper_task("f1", random_state=0)
y = y + float(sys.argv[1]) * y.std() * np.random.default_rng(0).normal(size=len(y))
imported, imported_peak = megabytes("VmRSS"), megabytes("VmHWM")
BayesianSymbolicRegressor(random_state=0).fit(X, y)
print(json.dumps([imported, imported_peak, megabytes("VmHWM")]))
"""
_TARGET = 50.0
# Without noise a fit ends when it is exact; with noise it makes all its draws.
_NOISES = (0.0, 0.1)


def measure(quick: bool) -> Section:
    """Fit in fresh processes; the first one only fills the cache of compiled code."""
    if not sys.platform.startswith("linux"):
        note = "Not measured: reads /proc, which only Linux has."
        return Section("memory", "Memory of a fit", [], [at_most("MB", _TARGET, None)], [note])
    _run(_NOISES[0])
    rounds = 1 if quick else 3
    runs = [[_run(noise) for _ in range(rounds)] for noise in _NOISES]
    above = [median(peak - imported for imported, _, peak in of_noise) for of_noise in runs]
    states = ("symbayes imported", "peak during the imports", "peak at the end of the fit")
    rows: list[list[Cell]] = [
        [state, *(median(run[i] for run in of_noise) for of_noise in runs)]
        for i, state in enumerate(states)
    ]
    rows.append(["peak above symbayes imported", *above])
    return Section(
        "memory",
        "Memory of a fit, megabytes",
        [Table(["resident memory", *(f"noise {noise:.0%}" for noise in _NOISES)], rows)],
        [at_most("peak above symbayes imported, MB", _TARGET, max(above))],
        [
            "100 rows, 2 features, all defaults (4 ladders of 12 temperatures, up to 15,000 draws "
            "of warm-up and 1,000 to keep), compiled code from the cache, a fresh process; 1 MB is "
            f"a million bytes; median of {rounds} run{'s' * (rounds > 1)}. Without noise the fit "
            "ends early. What the fit imports on the way counts as memory of the fit. Some 40 MB "
            "of the imports are Numba's own modules, which it would load at the first compiled "
            "call; `import symbayes` loads them.",
        ],
    )


def _run(noise: float) -> list[float]:
    command = [sys.executable, "-c", _CHILD, str(noise)]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
