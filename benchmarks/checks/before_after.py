"""Is a change slower? Two checkouts in turn, in one run: cold start, draws, two cores, memory.

    python -m benchmarks.checks.before_after BEFORE [AFTER] [--rounds 5]

Both are folders of checkouts; AFTER is by default the one that this is run from. Of every pair of
runs the ratio after / before is taken, and the median of the ratios is printed: machines are noisy,
and more so from one minute to the next than within one.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

import numpy as np

_HERE = Path(__file__).parents[2]
_COLD = """
from symbayes import BayesianSymbolicRegressor
from symbayes.datasets import paper_task
X, y = paper_task("f1", random_state=0)
BayesianSymbolicRegressor(draws=100, tune=100, chains=1, random_state=0).fit(X, y)
"""
_DRAWS = """
import resource, sys, time
import numpy as np
from symbayes import BayesianSymbolicRegressor
n_rows, cores, chains, draws = map(int, sys.argv[1:])
rng = np.random.default_rng(0)
X = rng.uniform(0.5, 3.0, (n_rows, 4))
y = np.sqrt(X[:, 0] + X[:, 3] ** 2) + np.sin(X[:, 0]) + rng.normal(0, 0.1, n_rows)
options = {"tune": 400, "chains": chains, "n_jobs": cores, "random_state": 0}
BayesianSymbolicRegressor(draws=10, **options).fit(X, y)
began, cpu = time.perf_counter(), time.process_time()
model = BayesianSymbolicRegressor(draws=draws, **options).fit(X, y)
proposals = model.diagnostics_["proposals"]
print((time.perf_counter() - began) / proposals, (time.process_time() - cpu) / proposals,
      resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""
#: Rows, cores, chains and draws, by what they tell.
_FITS = {
    "100 rows": (100, 1, 1, 1500),
    "5,000 rows": (5000, 1, 1, 60),
    "4 chains, 1 core": (200, 1, 4, 300),
    "4 chains, 2 cores": (200, 2, 4, 300),
}


def _process(root: Path, program: str, cache: str, *arguments: int) -> tuple[float, str]:
    """Run a program with the package of a checkout; return its CPU seconds and what it prints."""
    own = {"PYTHONPATH": str(root / "src"), "NUMBA_CACHE_DIR": cache, "OMP_NUM_THREADS": "1"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-W", "ignore", "-c", program, *map(str, arguments)]
    done = subprocess.run(
        command, env={**os.environ, **own}, capture_output=True, text=True, check=True
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return sum(after[:2]) - sum(before[:2]), done.stdout


def main() -> None:
    """Measure, and print one line per measure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path, nargs="?", default=_HERE)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    found: dict[str, list[list[float]]] = defaultdict(lambda: [[], []])
    with tempfile.TemporaryDirectory() as folder:
        roots = [(0, options.before), (1, options.after)]
        for i, root in roots:
            _process(root, _COLD, f"{folder}/{i}")
        for k in range(options.rounds):
            for i, root in roots if k % 2 == 0 else roots[::-1]:
                cpu, _ = _process(root, _COLD, f"{folder}/cold {i} {k}")
                found["cold start, CPU"][i].append(cpu)
            for name, fit in _FITS.items():
                for i, root in roots if k % 2 == 0 else roots[::-1]:
                    wall, cpu, memory = map(
                        float, _process(root, _DRAWS, f"{folder}/{i}", *fit)[1].split()
                    )
                    found[f"{name}, time per proposal"][i].append(wall)
                    found[f"{name}, CPU per proposal"][i].append(cpu)
                    found[f"{name}, memory"][i].append(memory)
    for name, (before, after) in found.items():
        ratios = np.divide(after, before)
        print(f"{name:42s} {np.median(ratios):.3f}  ({ratios.min():.3f} to {ratios.max():.3f})")


if __name__ == "__main__":
    main()
