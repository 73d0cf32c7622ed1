"""Large tables: delayed acceptance, time until the formula is found, and memory."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import warnings
from statistics import median

import numpy as np

from benchmarks.chains import ladder_at, problem_for
from benchmarks.report import Section, Table, at_least, at_most
from symbayes import (
    BayesianSymbolicRegressor,
    Formula,
    SamplingWarning,
    TemperedSampler,
    TermsPrior,
)
from symbayes.inputs.problem import Problem
from symbayes.kernels.chain import PROPOSED

_FEW, _MANY = 1_000, 1_000_000
# Problem I.12.11 of the Feynman collection: the force on a charge.
_TRUTH = "x0*x1 + x0*x2*x3*sin(x4)"
_NAMES = [f"x{i}" for i in range(5)]
_NOISE = 0.01
# What counts as found: an error without noise below this part of the spread of y.
_FOUND = 1.0e-3
_COLUMNS = 20
_CHILD = f"""
import json, warnings
import numpy as np
from benchmarks.environment import megabytes
from symbayes import BayesianSymbolicRegressor

warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
X = rng.uniform(1, 3, (100, 5))
BayesianSymbolicRegressor(draws=10, tune=100).fit(X, X[:, 0] * X[:, 1] + rng.normal(size=100))
before = megabytes("VmRSS")
X = rng.uniform(1, 3, ({_MANY}, {_COLUMNS}))
y = X[:, 0] * X[:, 1] + X[:, 2] * np.sin(X[:, 3]) + 0.1 * rng.normal(size=len(X))
open("/proc/self/clear_refs", "w").write("5")
BayesianSymbolicRegressor(random_state=0, timeout=SECONDS).fit(X, y)
print(json.dumps([X.nbytes / 1e6, megabytes("VmHWM") - before - y.nbytes / 1e6]))
"""


def measure(quick: bool) -> Section:
    """Measure all three, alternating between with and without delayed acceptance."""
    rounds = 1 if quick else 3
    speeds = _speeds(rounds, 5.0 if quick else 20.0)
    seconds = {n: median(_until_found(n, seed) for seed in range(rounds)) for n in (_FEW, _MANY)}
    table, peak = _memory(30 if quick else 120)
    ratio = speeds["first 1,024 rows"] / speeds["all rows at once"]
    return Section(
        "large",
        "Large tables",
        [
            Table(
                ["proposals are judged on", "proposals/s"],
                [list(item) for item in speeds.items()],
                f"Delayed acceptance, {_MANY:,} rows:",
            ),
            Table(
                ["rows", "seconds"],
                [list(item) for item in seconds.items()],
                f"Until the formula is found, noise {_NOISE:.0%}:",
            ),
            Table(
                ["the table", "peak during the fit, the table included", "times the table"],
                [[table, peak, peak / table]],
                f"Memory, {_MANY:,} rows and {_COLUMNS} columns, megabytes:",
            ),
        ],
        [
            at_least("proposals/s, delayed acceptance / without", 10.0, ratio),
            at_most(
                f"time to the formula, {_MANY:,} / {_FEW:,} rows", 30.0,
                seconds[_MANY] / seconds[_FEW],
            ),
            at_most("peak memory / memory of the table", 2.5, peak / table),
        ],
        [
            f"The data are those of {_TRUTH} (I.12.11 of the Feynman collection, columns uniform "
            "between 1 and 3). Proposals per second: one ladder of 12 temperatures on one core, "
            f"started at the formula; with and without alternately, median of {rounds}. Time: the "
            "default call on all cores, from the call of `fit` until the search found a formula "
            f"whose error without noise is below {_FOUND:g} of the spread of y; work before and "
            f"after sampling counts as time; median of {rounds} data sets. Memory: a fresh process "
            "that has fitted a small table before, with a time limit; y is not counted.",
        ],
    )  # fmt: skip


def _data(n_rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.uniform(1.0, 3.0, (n_rows, len(_NAMES)))
    y = Formula(_TRUTH, _NAMES).predict(X)
    return X, y + _NOISE * y.std() * rng.normal(size=n_rows)


def _speeds(rounds: int, seconds: float) -> dict[str, float]:
    whole = problem_for(*_data(_MANY, 0), TermsPrior(), operators="default")
    sampler = TemperedSampler()
    staged = sampler.in_stages(whole)
    names = ("first 1,024 rows", "all rows at once")
    runs: dict[str, list[float]] = {name: [] for name in names}
    for seed in range(rounds):
        for name, problem in zip(names, (staged, whole), strict=True):
            runs[name].append(_speed(problem, sampler.powers(_MANY), seed, seconds))
    return {name: median(speeds) for name, speeds in runs.items()}


def _speed(problem: Problem, powers: np.ndarray, seed: int, seconds: float) -> float:
    """Return proposals per second of a ladder that starts at the truth."""
    ladder = ladder_at(_TRUTH, _NAMES, problem, powers, seed)
    ladder.run(50, 1, 1)
    before, started = ladder.chains.counts[:, PROPOSED].sum(), time.perf_counter()
    while time.perf_counter() < started + seconds:
        ladder.run(50, 1, 1)
    made = ladder.chains.counts[:, PROPOSED].sum() - before
    return float(made / (time.perf_counter() - started))


def _until_found(n_rows: int, seed: int) -> float:
    X, y = _data(n_rows, seed)
    rows = np.random.default_rng(99).uniform(1.0, 3.0, (1_000, len(_NAMES)))
    expected = Formula(_TRUTH, _NAMES).predict(rows)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SamplingWarning)
        started = time.perf_counter()
        model = BayesianSymbolicRegressor(random_state=seed, timeout=60).fit(X, y)
        beside = time.perf_counter() - started - model.diagnostics_["seconds"]
    for seconds, text in model.diagnostics_["found"]:
        error = Formula(text, _NAMES).predict(rows) - expected
        if np.sqrt(np.mean(error**2)) < _FOUND * expected.std():
            return beside + seconds
    raise RuntimeError(f"not found within a minute: {n_rows} rows, seed {seed}")


def _memory(seconds: int) -> tuple[float, float]:
    """Return the size of the table and the peak above it and the interpreter, in megabytes."""
    command = [sys.executable, "-c", _CHILD.replace("SECONDS", str(seconds))]
    table, peak = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    return table, peak
