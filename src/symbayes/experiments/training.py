"""Figures of the training: errors and sizes at every acceptance, or by generation."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from .. import Formula
from . import DEFAULT, PAPER, POPULATIONS
from .methods import fitted, generations_of, regressor
from .records import Record
from .runs import Experiment, Job, Section, Setting, Work
from .simulated import Simulation, integer_seed, rmse, simulate

#: What is kept of each step.
MEASURES = ("train", "test_3", "nodes")

#: Number of trees tried, errors and nodes, one of each per step.
Steps = dict[str, list[float]]


def _work(job: Job, setting: Setting) -> Record:
    """Fit a task and keep how errors and size went."""
    data = simulate(job.task, job.replication, job.seed)
    seed = integer_seed(job.seed, job.task, job.replication, job.method, "training")
    if job.method in POPULATIONS:
        steps = _by_generation(data, POPULATIONS[job.method], setting.effort.generations, seed)
    else:
        model = fitted(regressor(job.method, setting.effort, seed), data.X, data.y)
        steps = _by_acceptance(data, model) if job.method == PAPER else _by_find(data, model)
    return {"steps": steps}


def _by_acceptance(data: Simulation, model: Any) -> Steps:
    history = model.history_
    X, y = data.tests["test_3"]
    return {
        "trees": history["trees"].tolist(),
        "train": history["rmse"].tolist(),
        "test_3": [rmse(prediction, y) for prediction in model.staged_predict(X)],
        "nodes": history["n_nodes"].tolist(),
    }


def _by_find(data: Simulation, model: Any) -> Steps:
    """Return what our search came upon, each better than the one before, and the answer."""
    formulas = [Formula(text, ["x0", "x1"]) for _, text in model.diagnostics_["found"]]
    formulas.append(model.best_formula_)
    X, y = data.tests["test_3"]
    return {
        # Of a find only its time is known, not the trees proposed until then.
        "trees": [np.nan] * (len(formulas) - 1) + [model.diagnostics_["proposals"]],
        "train": [rmse(formula.predict(data.X), data.y) for formula in formulas],
        "test_3": [rmse(formula.predict(X), y) for formula in formulas],
        "nodes": [formula.n_nodes for formula in formulas],
    }


def _by_generation(data: Simulation, population: int, generations: int, seed: int) -> Steps:
    X, y = data.tests["test_3"]
    steps: Steps = {name: [] for name in ("trees", *MEASURES)}
    for best in generations_of(data.X, data.y, population, generations, seed):
        steps["trees"].append(best.generation * population)
        steps["train"].append(rmse(best.predict(data.X), data.y))
        steps["test_3"].append(rmse(best.predict(X), y))
        steps["nodes"].append(best.nodes)
    return steps


class Training(Experiment):
    """Errors and sizes in the course of one run of each task."""

    name = "training"

    def jobs(self, setting: Setting) -> list[tuple[Job, Work]]:
        work = partial(_work, setting=setting)
        return [
            (setting.job("training", method, task, 0), work)
            for task in setting.tasks
            for method in setting.methods
        ]

    def summarise(self, records: list[Record], setting: Setting) -> Section:
        table = pd.concat([_long(record) for record in records], ignore_index=True)
        text = (
            "One run of each task. The paper's sampler at every acceptance, genetic programming's "
            "best individual by generation, our default whenever its search came upon something "
            "better; each evenly paced over the width of the plot. Sizes of our default count its "
            "coefficients as well. The paper's own curves are only in its pictures."
        )
        return Section(text, {"training": table}, {"training": draw(table)})


def _long(record: Record) -> pd.DataFrame:
    steps = record["steps"]
    n = len(steps["trees"])
    return pd.DataFrame(
        {
            "task": record["task"],
            "method": record["method"],
            "step": np.arange(1, n + 1),
            "pace": np.linspace(0, 1, n),
            **{name: pd.Series(steps[name], dtype=float) for name in ("trees", *MEASURES)},
        }
    )


def draw(table: pd.DataFrame) -> Any:
    """Return the figure: a row of plots per task, errors to the left and sizes to the right."""
    from matplotlib.figure import Figure

    tasks = list(dict.fromkeys(table["task"]))
    figure = Figure(figsize=(9, 2.4 * len(tasks)), layout="constrained")
    axes = figure.subplots(len(tasks), 2, squeeze=False)
    colours = {m: f"C{i}" for i, m in enumerate((PAPER, DEFAULT, *POPULATIONS))}
    for (errors, sizes), task in zip(axes, tasks, strict=True):
        for method, run in table[table["task"] == task].groupby("method", sort=False):
            colour = colours[method]
            run = _thinned(run)
            # An exact fit has an error of 1e-15; what is below 1e-6 is the same to a reader.
            errors.plot(run["pace"], run["train"].clip(lower=1e-6), color=colour, label=method)
            errors.plot(run["pace"], run["test_3"].clip(lower=1e-6), color=colour, ls=":")
            sizes.plot(run["pace"], run["nodes"], color=colour)
        errors.set(yscale="log", ylabel="RMSE", title=f"{task}: errors (dotted: test_3)")
        sizes.set(ylabel="nodes", title=f"{task}: size", ylim=(0, None))
    axes[0, 0].legend(fontsize="small")
    for ax in axes[-1]:
        ax.set_xlabel("share of the run")
    return figure


def _thinned(run: pd.DataFrame, most: int = 1000) -> pd.DataFrame:
    """Return at most `most` steps, evenly spaced: more do not fit on paper."""
    if len(run) <= most:
        return run
    return run.iloc[np.unique(np.linspace(0, len(run) - 1, most).astype(int))]
