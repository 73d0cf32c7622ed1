"""`make demo`: fit a built-in example and show what was found."""

from __future__ import annotations

import sys

from . import BayesianSymbolicRegressor
from .datasets import PAPER_FORMULAS, paper_task

TASK = "f4"
NOISE = 0.05


def main() -> int:
    """Fit one of the paper's tasks, with 5 % noise, and print the formulas with probabilities."""
    X, y = paper_task(TASK, noise=NOISE, random_state=1)
    print(f"100 rows of  y = {PAPER_FORMULAS[TASK]},  with {NOISE:.0%} noise")
    model = BayesianSymbolicRegressor(random_state=1, n_jobs=-1, progress=True)
    model.fit(X, y)
    effort = model.diagnostics_
    print(f"{effort['proposals']:,} formulas tried in {effort['seconds']:.1f} s\n")
    print("probability  nodes  R2      formula")
    for row in model.formulas_.head(5).itertuples():
        print(f"{row.probability:11.3f}  {row.n_nodes:5d}  {row.r2:.4f}  {row.formula}")
    X_new, _ = paper_task(TASK, n_rows=3, random_state=2)
    mean, std = model.predict(X_new, return_std=True)
    print("\npredictions at new rows:")
    for row, m, s in zip(X_new, mean, std, strict=True):
        print(f"  x0 = {row[0]:6.3f}, x1 = {row[1]:6.3f}:  y = {m:7.3f} +- {s:.3f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
