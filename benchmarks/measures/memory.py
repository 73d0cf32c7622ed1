"""How much memory a fit takes above an interpreter that has imported symbayes."""

from __future__ import annotations

import json
import subprocess
import sys
from statistics import median

from benchmarks.report import Section, Table, at_most

# VmHWM, not getrusage: the latter starts with the peak of the process that forked this one.
_CHILD = """
import json, re
from symbayes import BayesianSymbolicRegressor
from symbayes.datasets import paper_task

def megabytes(name):
    with open("/proc/self/status") as status:
        return int(re.search(name + r":\\s+(\\d+) kB", status.read()).group(1)) * 1024 / 1e6

X, y = paper_task("f1", random_state=0)
imported, imported_peak = megabytes("VmRSS"), megabytes("VmHWM")
BayesianSymbolicRegressor(random_state=0).fit(X, y)
print(json.dumps([imported, imported_peak, megabytes("VmHWM")]))
"""
_TARGET = 50.0


def measure(quick: bool) -> Section:
    """Fit in fresh processes; the first one only fills the cache of compiled code."""
    if not sys.platform.startswith("linux"):
        note = "Not measured: reads /proc, which only Linux has."
        return Section("memory", "Memory of a fit", [], [at_most("MB", _TARGET, None)], [note])
    _run()
    runs = [_run() for _ in range(1 if quick else 3)]
    imported, imported_peak, peak = (median(column) for column in zip(*runs, strict=True))
    above = median(run[2] - run[0] for run in runs)
    return Section(
        "memory",
        "Memory of a fit, megabytes",
        [
            Table(
                ["state of the process", "resident memory"],
                [
                    ["symbayes imported", imported],
                    ["peak during the imports", imported_peak],
                    ["peak at the end of the fit", peak],
                    ["peak above symbayes imported", above],
                ],
            )
        ],
        [at_most("peak above symbayes imported, MB", _TARGET, above)],
        [
            "100 rows, 2 features, all defaults (4 chains, 2,000 + 1,000 draws), compiled code "
            "from the cache, a fresh process; 1 MB is a million bytes; median of "
            f"{len(runs)} run{'s' * (len(runs) > 1)}. What the fit imports on the way counts as "
            "memory of the fit. Some 40 MB of the imports are Numba's own modules, which it would "
            "load at the first compiled call; `import symbayes` loads them.",
        ],
    )


def _run() -> list[float]:
    done = subprocess.run([sys.executable, "-c", _CHILD], check=True, stdout=subprocess.PIPE)
    return json.loads(done.stdout)
