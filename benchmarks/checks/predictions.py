"""How far predictions stray from the training values of y, on real tables.

    python -m benchmarks.checks.predictions

Each table is split five times, with three quarters for training. At test rows that lie within the
training range of every column, a prediction has to stay within three ranges of y of the interval
that the training values span, and inside its own intervals of 50 and 90 per cent. Finished fits are
kept, so that a sweep that was stopped continues with the next one.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import numpy as np

from benchmarks.environment import ROOT
from benchmarks.quality.problems import DATA, MissingData, Problem
from benchmarks.quality.suites import real
from symbayes import BayesianSymbolicRegressor
from symbayes.experiments.records import Record, Records

RESULTS = ROOT / "benchmarks" / "results" / "checks" / "predictions.jsonl"
KEY = ("table", "split", "timeout")
# Ranges of y that a prediction may lie outside of the interval that the training values span.
MOST = 3.0
_LEVELS = (0.5, 0.9)


def measured(problem: Problem, timeout: float) -> Record:
    """Return how far the predictions of one fit stray, and how good they are."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = BayesianSymbolicRegressor(timeout=timeout, n_jobs=1, random_state=problem.seed)
        model.fit(problem.X, problem.y)
        low, high = problem.X.min(axis=0), problem.X.max(axis=0)
        inside = ((problem.X_test >= low) & (problem.X_test <= high)).all(axis=1)
        X, y = problem.X_test[inside], problem.y_test[inside]
        record = {"table": problem.name, "split": problem.seed, "timeout": timeout, "rows": len(y)}
        if not len(y):
            return record | {"ranges": 0.0, "outside": 0}
        predicted, std = model.predict(X, return_std=True)
        intervals = [model.predict_interval(X, level) for level in _LEVELS]
    outside = np.zeros(len(y), bool)
    for lower, upper in intervals:
        outside |= ~((lower <= predicted) & (predicted <= upper))
    lower, upper = intervals[-1]
    return record | {
        "ranges": strayed(predicted, problem.y),
        "outside": int(outside.sum()),
        "finite": bool(np.isfinite([predicted, std]).all()),
        "r2": float(1.0 - np.mean((predicted - y) ** 2) / max(np.var(y), 1e-300)),
        "covered": float(np.mean((lower <= y) & (y <= upper))),
    }


def strayed(predicted: np.ndarray, y: np.ndarray) -> float:
    """Return how far the worst prediction lies outside the values of y, in ranges of them.

    A row where no formula has a value has no prediction, and cannot stray.
    """
    known = predicted[~np.isnan(predicted)]
    beyond = np.maximum(y.min() - known, known - y.max())
    return float(np.max(beyond, initial=0.0) / (y.max() - y.min()))


def is_bad(record: Record) -> bool:
    """Return whether a prediction strays too far, or lies outside its own intervals."""
    ranges = record["ranges"]  # None where it is infinite
    return ranges is None or ranges > MOST or record["outside"] > 0


def main(arguments: list[str] | None = None) -> int:
    """Run the sweep; return 1 if a prediction is bad."""
    parser = argparse.ArgumentParser(description="How far predictions stray on real tables.")
    parser.add_argument("--timeout", type=float, default=5.0, help="seconds per fit (default: 5)")
    parser.add_argument("--tables", nargs="*", help="names of tables (default: all)")
    parser.add_argument("--splits", type=int, default=5, help="splits of each (default: 5)")
    parser.add_argument("--data", type=Path, default=DATA, help="folder with the folder 'real'")
    parser.add_argument("--records", type=Path, default=RESULTS, help="where finished fits are")
    options = parser.parse_args(arguments)
    try:
        names = options.tables or real.names(options.data)
    except MissingData as error:
        print(error)
        return 2
    records = Records(options.records, KEY)
    bad = 0
    for split in range(options.splits):
        for name in names:
            key = (name, split, options.timeout)
            if key not in records:
                problem = real.load(name, 0.0, split, options.data)
                records.append(measured(problem, options.timeout))
            record = records[key]
            bad += is_bad(record)
            mark = "  <-- bad" if is_bad(record) else ""
            ranges = float("inf") if record["ranges"] is None else record["ranges"]
            print(
                f"{name:32} split {split}  {record['rows']:5} rows  {ranges:8.3g} ranges  "
                f"{record['outside']} outside their intervals{mark}",
                flush=True,
            )
    print(f"{bad} of {options.splits * len(names)} fits have bad predictions")
    return int(bad > 0)


if __name__ == "__main__":
    raise SystemExit(main())
