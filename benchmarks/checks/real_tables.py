"""What a default fit says of real tables: converged or not and why, sizes, predictions, effort.

    python -m benchmarks.checks.real_tables --timeout 60 --jobs 1

Each table is split at random, with three quarters for training. One line per fit, then a summary.
With `--records` finished fits are kept, and a sweep that was stopped continues with the next one.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed

from benchmarks.quality.problems import DATA, MissingData, Problem
from benchmarks.quality.suites import real
from symbayes import BayesianSymbolicRegressor, TreePrior
from symbayes.experiments.records import Record, Records

KEY = ("table", "split", "timeout", "label")
#: Six tables of 500 to 2,000 rows, for effective draws per second.
SIX = (
    "1028_SWD", "599_fri_c2_1000_5", "609_fri_c0_1000_5", "631_fri_c1_500_5", "AirfoilSelfNoise",
    "Concrete",
)  # fmt: skip


def measured(problem: Problem, timeout: float, cores: int, options: dict) -> Record:
    """Return what one fit says, and how good it is."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = BayesianSymbolicRegressor(
            timeout=timeout, n_jobs=cores, random_state=problem.seed, **options
        )
        model.fit(problem.X, problem.y)
        predicted = model.predict(problem.X_test)
        lower, upper = model.predict_interval(problem.X_test, 0.9)
        best = model.best_formula_.predict(problem.X_test)
    about, y = model.diagnostics_, problem.y_test
    wholes = {
        name: value
        for name, value in about["effective_draws"].items()
        if name in ("log_likelihood", "n_nodes") or name.startswith("prediction")
    }
    return {
        "table": problem.name,
        "split": problem.seed,
        "timeout": timeout,
        "rows": len(problem.y),
        "converged": about["converged"],
        "reason": about["verdict_data"]["reason"],
        "quantity": about["verdict_data"]["facts"].get("quantity"),
        "seconds": about["seconds"],
        "draws": sum(map(len, about["log_likelihood"])) * about["thinning"],
        "effective": min(wholes.values()),
        "r_hat": max(about["r_hat"].values()),
        "round_trips": list(map(int, about["round_trips"])),
        "swap_rate": float(np.nanmin([np.nanmin(rates) for rates in about["swap_rates"]])),
        "restarts": about["restarts"],
        "probability": float(model.formulas_["probability"][0]),
        "nodes": int(model.best_formula_.n_nodes),
        "front": model.pareto_["n_nodes"].tolist(),
        "r2": r2(predicted, y),
        "r2_best": r2(best, y),
        "covered": float(np.mean((lower <= y) & (y <= upper))),
        "formula": str(model.best_formula_)[:400],
        "found": [round(seconds, 1) for seconds, _ in about["found"]][-3:],
    }


def r2(predicted: np.ndarray, y: np.ndarray) -> float:
    """Return R2; a row without a prediction counts as if the mean were predicted."""
    predicted = np.where(np.isfinite(predicted), predicted, y.mean())
    return float(1.0 - np.mean((predicted - y) ** 2) / np.var(y))


def line(record: Record) -> str:
    """Return a record in one line."""
    return (
        f"{record['table'][:26]:26} {record['rows']:5} "
        f"{'yes' if record['converged'] else 'no':3} {record['reason'][:26]:26} "
        f"{record['draws']:6} draws, {record['effective']:6.0f} effective, trips "
        f"{sum(record['round_trips']):4} (least {min(record['round_trips']):3}), "
        f"{record['nodes']:3} nodes (front {record['front'][0]} to {record['front'][-1]}), R2 "
        f"{record['r2']:.3f} {record['r2_best']:.3f}, covered {record['covered']:.2f}, "
        f"{record['seconds']:.0f} s"
    )


def summary(records: list[Record]) -> str:
    """Return what all records say together."""
    reasons = Counter(record["reason"] for record in records)
    median = {name: np.median([r[name] for r in records]) for name in ("nodes", "r2", "r2_best")}
    six = {r["table"]: r["effective"] / r["seconds"] for r in records if r["table"] in SIX}
    worse = [r["table"] for r in records if r["r2"] < r["r2_best"] - 0.05]
    return "\n".join([
        f"converged: {sum(r['converged'] for r in records)} of {len(records)}; "
        + ", ".join(f"{reason} {n}" for reason, n in reasons.most_common()),
        f"median nodes {median['nodes']:.0f}, R2 {median['r2']:.4f}, of the best formula "
        f"{median['r2_best']:.4f}, worst {min(r['r2'] for r in records):.2f}",
        f"worse than the best formula by more than 0.05: {', '.join(worse) or 'none'}",
        # Of 100 rows three quarters are for training.
        f"covered by 90 % intervals: {np.mean([r['covered'] for r in records]):.3f}, least on "
        f"100 rows or more {min(r['covered'] for r in records if r['rows'] >= 75):.2f}",
        "effective draws per second on six tables: "
        + ", ".join(f"{name} {rate:.2f}" for name, rate in six.items()),
    ])  # fmt: skip


def main(words: list[str] | None = None) -> int:
    """Run the sweep."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--timeout", type=float, default=60.0, help="seconds per fit (default: 60)")
    parser.add_argument("--tables", nargs="*", help="names of tables (default: all)")
    parser.add_argument("--first-split", type=int, default=0)
    parser.add_argument("--splits", type=int, default=1)
    parser.add_argument("--cores", type=int, default=2, help="cores per fit (default: 2)")
    parser.add_argument("--jobs", type=int, default=1, help="fits at a time (default: 1)")
    parser.add_argument("--label", default="", help="what tells these fits apart in the records")
    parser.add_argument("--options", type=json.loads, default={}, help="parameters, as JSON")
    parser.add_argument("--any-terms", action="store_true", help="terms need not be sensible")
    parser.add_argument("--data", type=Path, default=DATA, help="folder with the folder 'real'")
    parser.add_argument("--records", type=Path, help="where finished fits are kept")
    options = parser.parse_args(words)
    if options.any_terms:
        options.options["tree_prior"] = TreePrior(sensible=False, nesting_price=0)
    try:
        names = options.tables or real.names(options.data)
    except MissingData as error:
        print(error)
        return 2
    kept = None if options.records is None else Records(options.records, KEY)
    splits = range(options.first_split, options.first_split + options.splits)
    todo = [(split, name) for split in splits for name in names]
    records = []
    if kept is not None:
        keys = [(name, split, options.timeout, options.label) for split, name in todo]
        records = [kept[key] for key in keys if key in kept]
        todo = [one for one, key in zip(todo, keys, strict=True) if key not in kept]
    # The longest first, so that nobody waits for them at the end.
    problems = [real.load(name, 0.0, split, options.data) for split, name in todo]
    problems.sort(key=lambda problem: -problem.X.size)
    for record in Parallel(options.jobs, return_as="generator_unordered")(
        delayed(measured)(problem, options.timeout, options.cores, options.options)
        for problem in problems
    ):
        record["label"] = options.label
        records.append(record)
        if kept is not None:
            kept.append(record)
        print(line(record), flush=True)
    print(summary(sorted(records, key=lambda record: record["table"])))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
