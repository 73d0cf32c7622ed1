"""Why the paper's sampler differs from its published figures: how long its chain is."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd

from . import published as paper
from .experiment import Experiment, Section, Setting
from .jobs import Job, Work
from .methods import PAPER, fitted, regressor
from .published import DATASETS
from .records import Record
from .simulation import integer_seed, rmse, simulate
from .tables import mean_and_spread, published, wide

#: The authors' code ends a chain after so many rejections in a row.
PATIENCE = 100
_STOPPED = f"until {PATIENCE} rejections in a row"
_SHORTEST = 1_000
_SHOWN = ("train", "test_3")


def _lengths(trees: int) -> list[int]:
    """Return the powers of ten up to the whole chain, and the whole chain."""
    return [n for n in (_SHORTEST * 10**i for i in range(6)) if n < trees] + [trees]


def stopped_at(trees: np.ndarray, total: int) -> int:
    """Return the acceptance at which a chain without patience ends.

    Parameters
    ----------
    trees : ndarray
        Number of trees proposed at each acceptance, ascending.
    total : int
        Of the whole chain.
    """
    waits = np.diff(np.append(trees, total))
    return int(np.argmax(waits > PATIENCE)) if (waits > PATIENCE).any() else len(trees) - 1


def _work(job: Job, setting: Setting) -> Record:
    """Run the chain of `accuracy` again, and keep the errors of the model it had at each length."""
    data = simulate(job.task, job.replication, job.seed)
    seed = integer_seed(job.seed, job.task, job.replication, job.method, job.terms)
    effort = setting.effort
    model = fitted(regressor(job.method, effort, seed), data.X, data.y)
    trees = model.history_["trees"]
    at = {str(n): int(np.searchsorted(trees, n, "right")) - 1 for n in _lengths(effort.trees)}
    at[_STOPPED] = stopped_at(trees, effort.trees)
    wanted = set(at.values())
    errors: dict[int, dict[str, float]] = {step: {} for step in wanted}
    for name, (X, y) in {"train": (data.X, data.y), **data.tests}.items():
        for step, prediction in enumerate(model.staged_predict(X)):
            if step in wanted:
                errors[step][name] = rmse(prediction, y)
    return {
        "stopped": int(trees[at[_STOPPED]]) + PATIENCE,
        "rmse": {length: errors[step] for length, step in at.items()},
    }


class Length(Experiment):
    """Errors of the paper's sampler by length of its chain."""

    name = "length"
    title = "The paper's sampler by length of its chain"

    def jobs(self, setting: Setting) -> list[tuple[Job, Work]]:
        if PAPER not in setting.methods:
            return []
        work = partial(_work, setting=setting)
        return [
            (setting.job("length", PAPER, task, replication), work)
            for replication in range(setting.effort.replications)
            for task in setting.tasks
        ]

    def summarise(self, records: list[Record], setting: Setting) -> Section:
        if not records:
            return Section(f"{PAPER} was not asked for.", {})
        lengths = {_STOPPED: _STOPPED}
        lengths |= {str(n): f"{n:,} trees" for n in _lengths(setting.effort.trees)}
        rows = []
        for task in setting.tasks:
            group = [record for record in records if record["task"] == task]
            for dataset, figure in zip(DATASETS, paper.RMSE[paper.BSR][task], strict=True):
                cell = {"task": task, "dataset": dataset}
                rows.append({**cell, "length": paper.BSR, **published(figure)})
                for length, name in lengths.items():
                    errors = (record["rmse"][length][dataset] for record in group)
                    rows.append({**cell, "length": name, **mean_and_spread(errors)})
        table = pd.DataFrame(rows)
        median = np.median([record["stopped"] for record in records])
        shown = table[table["dataset"].isin(_SHOWN)]
        text = (
            "Our addition: the chains of *symbayes paper* in `accuracy`, and the RMSE of the state "
            "that each was in after so many trees; `accuracy` has the most probable formula of all "
            "their draws instead. The paper does not say how long its chains were in effect. "
            f"The authors' public code ends a chain after {PATIENCE} rejections in a row, which "
            f"happens here after {median:.0f} trees (median), and begins again.\n\n"
            + wide(shown, ["task", "dataset"], "length")
        )
        return Section(text, {"length": table})
