"""`symbayes demo`: a built-in example, from data to report."""

from __future__ import annotations

import argparse
import os

import pandas as pd

from .. import BayesianSymbolicRegressor
from ..datasets import PAPER_FORMULAS, paper_task
from ..show.display import Display
from .output import answer_text, check_destinations, deliver, print_files

TASK, NOISE, SEED = "f4", 0.05, 1
_NEW_ROWS = 3


def demo(options: argparse.Namespace) -> int:
    """Fit one of the paper's tasks, print the formulas, and write model and report."""
    os.makedirs(options.out, exist_ok=True)
    out, report = (os.path.join(options.out, name) for name in ("model.symbayes", "report.html"))
    check_destinations([], out=out, report=report)
    X, y = paper_task(TASK, noise=NOISE, random_state=SEED)
    print(f"{len(y)} rows of  y = {PAPER_FORMULAS[TASK]},  with {NOISE:.0%} noise\n", flush=True)
    table = pd.DataFrame(X, columns=["x0", "x1"])

    def run() -> BayesianSymbolicRegressor:
        with Display(True) as display:
            model = BayesianSymbolicRegressor(random_state=SEED, progress=display)
            return model.fit(table, pd.Series(y, name="y"))

    def show(model: BayesianSymbolicRegressor, written: dict[str, str | None]) -> None:
        effort = model.diagnostics_
        print(f"{effort['proposals']:,} formulas tried in {effort['seconds']:.1f} s\n")
        print(answer_text(model, 5))
        X_new, _ = paper_task(TASK, n_rows=_NEW_ROWS, random_state=SEED + 1)
        mean, std = model.predict(pd.DataFrame(X_new, columns=table.columns), return_std=True)
        print("\npredictions at new rows:")
        for (x0, x1), m, s in zip(X_new, mean, std, strict=True):
            print(f"  x0 = {x0:6.3f}, x1 = {x1:6.3f}:  y = {m:7.3f} +- {s:.3f}")
        print()
        print_files(written)

    return deliver(run, show, out, report)
