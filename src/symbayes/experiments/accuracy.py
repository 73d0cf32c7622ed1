"""Tables of the simulated tasks: errors, sizes, typical expressions, number of terms, noise."""

from __future__ import annotations

import math
import statistics
from functools import partial

import pandas as pd

from .. import Formula
from ..datasets import PAPER_FORMULAS
from . import published as paper
from .experiment import Experiment, Section, Setting
from .jobs import Job, Work
from .methods import DEFAULT, PAPER, POPULATIONS, solve
from .published import DATASETS
from .records import Record
from .simulation import TASKS, integer_seed, simulate
from .tables import mean_and_spread, number, over, published, wide

_COUNTS = (2, 4, 8)
_NOISES = (0.01, 0.05, 0.1)
# An RMSE below this on all rows is rounding.
_EXACT = 1e-6
# Longer formulas would keep SymPy busy for minutes; it still collects equal terms of them.
_MOST_OPERATIONS = 60


def _work(job: Job, setting: Setting) -> Record:
    """Fit a replication of a task; keep errors, size and formula."""
    data = simulate(job.task, job.replication, job.seed, job.noise)
    seed = integer_seed(job.seed, job.task, job.replication, job.method, job.terms)
    answer = solve(job.method, data.X, data.y, setting.effort, seed, job.terms or None)
    return {
        "rmse": data.errors(answer.predict),
        "nodes": answer.nodes,
        "formula": answer.formula,
        "seconds": answer.seconds,
    }


def _jobs(
    setting: Setting,
    replications: int,
    methods: tuple[str, ...],
    terms: tuple[int, ...] = (0,),
    noises: tuple[float, ...] = (0.0,),
) -> list[Job]:
    return [
        setting.job("simulation", method, task, replication, terms=k, noise=noise)
        for replication in range(replications)
        for noise in noises
        for task in setting.tasks
        for method in methods
        for k in terms
    ]


class _Simulated(Experiment):
    """An experiment on the simulated tasks."""

    def jobs(self, setting: Setting) -> list[tuple[Job, Work]]:
        return [(job, partial(_work, setting=setting)) for job in self.chosen(setting)]

    def chosen(self, setting: Setting) -> list[Job]:
        return _jobs(setting, setting.effort.replications, setting.methods)


class Accuracy(_Simulated):
    """RMSE on training and test rows."""

    name = "accuracy"
    title = "Errors on training and test rows"

    def summarise(self, records: list[Record], setting: Setting) -> Section:
        rows = [
            {"task": task, "dataset": dataset, "method": method, **published(figure)}
            for method, figures in paper.RMSE.items()
            for task in setting.tasks
            for dataset, figure in zip(DATASETS, figures[task], strict=True)
        ]
        rows += _errors(records)
        table = _sorted(pd.DataFrame(rows))
        text = (
            f"RMSE, mean ± standard deviation ({over(setting.effort.replications)}); each has "
            "fresh rows, the same for all methods run here.\n\n"
            + wide(table, ["task", "dataset"], "method")
            + "\n\nBeyond the training range a few runs that take off decide the mean. So here is "
            f"how many runs were exact (RMSE below {_EXACT:g} on all four data sets), and the "
            "median RMSE on test_3_6:\n\n" + _exact(records, setting)
        )
        return Section(text, {"accuracy": table})


class Complexity(_Simulated):
    """Number of nodes."""

    name = "complexity"
    title = "Size of the formulas"

    def summarise(self, records: list[Record], setting: Setting) -> Section:
        rows = [
            {"task": task, "method": method, **published(figures[task])}
            for method, figures in paper.NODES.items()
            for task in setting.tasks
        ]
        groups = _grouped(records, "task", "method")
        rows += [
            {"task": task, "method": method, **mean_and_spread(r["nodes"] for r in group)}
            for (task, method), group in groups.items()
        ]
        table = _sorted(pd.DataFrame(rows))
        text = (
            "Nodes of all trees of the formula, counted as the paper does: operators and columns, "
            "lt as one node, without the coefficients of the sum. gplearn's count includes its "
            f"constants. Mean ± standard deviation ({over(setting.effort.replications)}).\n\n"
            + wide(table, ["task"], "method")
        )
        return Section(text, {"complexity": table})


class Expressions(_Simulated):
    """Typical formulas beside the truth."""

    name = "expressions"
    title = "Typical formulas"

    def summarise(self, records: list[Record], setting: Setting) -> Section:
        rows = [
            {"task": task, "method": "truth", "expression": PAPER_FORMULAS[task], "rmse": 0.0}
            for task in setting.tasks
        ]
        rows += [
            {"task": task, "method": method, "expression": texts[task], "rmse": None}
            for method, texts in paper.EXPRESSIONS.items()
            for task in setting.tasks
        ]
        for (task, method), group in _grouped(records, "task", "method").items():
            typical = _typical(group)
            rows.append(
                {
                    "task": task,
                    "method": method,
                    "expression": simplified(typical["formula"]),
                    "rmse": typical["rmse"]["test_3"],
                }
            )
        table = _sorted(pd.DataFrame(rows), first=("truth",))
        lines = [f"| {r.task} | {r.method} | `{r.expression}` |" for r in table.itertuples()]
        text = (
            "Of each method the formula whose error on test_3 is the median of its "
            "replications, simplified by SymPy.\n\n| task | method | formula |\n| --- | --- | --- "
            "|\n" + "\n".join(lines)
        )
        return Section(text, {"expressions": table})


class Terms(_Simulated):
    """Sensitivity to the number of terms."""

    name = "terms"
    title = "Sensitivity to the number of terms K"

    def chosen(self, setting: Setting) -> list[Job]:
        methods = tuple(method for method in setting.methods if method not in POPULATIONS)
        return _jobs(setting, setting.effort.replications, methods, _COUNTS)

    def summarise(self, records: list[Record], setting: Setting) -> Section:
        rows = [
            {"task": task, "method": paper.BSR, "terms": k, **published(figures[task])}
            for k, figures in paper.TERMS.items()
            for task in setting.tasks
        ]
        rows += [
            {
                "task": task,
                "method": method,
                "terms": k,
                **mean_and_spread(r["rmse"]["test_3"] for r in group),
            }
            for (task, method, k), group in _grouped(records, "task", "method", "terms").items()
        ]
        table = _sorted(pd.DataFrame(rows))
        named = table.assign(K=[f"{r.method}, K={r.terms}" for r in table.itertuples()])
        text = (
            f"RMSE on test_3 ({over(setting.effort.replications)}). The paper's sampler has K "
            "terms, our default at most K; these are runs of their own, with other random numbers "
            "than those of `accuracy`. Genetic programming has no K.\n\n"
            + wide(named, ["task"], "K")
        )
        return Section(text, {"terms": table})


class Robustness(_Simulated):
    """Errors with noise on the training rows."""

    name = "robustness"
    title = "Errors with noise"

    def chosen(self, setting: Setting) -> list[Job]:
        return _jobs(setting, setting.effort.noisy_replications, setting.methods, noises=_NOISES)

    def summarise(self, records: list[Record], setting: Setting) -> Section:
        table = _sorted(pd.DataFrame(_errors(records, "noise")))
        text = (
            "Our addition: Gaussian noise on the training rows, its standard deviation a part of "
            "the root mean square of y; test rows have none, so that their RMSE tells how far the "
            f"truth is ({over(setting.effort.noisy_replications)} at each noise). The paper has no "
            "figures for this.\n\n" + wide(table, ["noise", "task", "dataset"], "method")
        )
        return Section(text, {"robustness": table})


def simplified(text: str) -> str:
    """Return a formula simplified by SymPy, its constants with four digits."""
    import sympy

    expression = Formula(text, ["x0", "x1"]).sympy()
    if expression.count_ops() <= _MOST_OPERATIONS:
        expression = sympy.simplify(expression)
    numbers = {number: sympy.Float(number, 4) for number in expression.atoms(sympy.Float)}
    return str(expression.xreplace(numbers))


def _errors(records: list[Record], *more: str) -> list[dict]:
    """Return mean and spread of the errors by task, data set and method."""
    rows = []
    for key, group in _grouped(records, *more, "task", "method").items():
        named = dict(zip((*more, "task", "method"), key, strict=True))
        rows += [
            {
                **{name: named[name] for name in more},
                "task": named["task"],
                "dataset": dataset,
                "method": named["method"],
                **mean_and_spread(record["rmse"][dataset] for record in group),
            }
            for dataset in DATASETS
        ]
    return rows


def _exact(records: list[Record], setting: Setting) -> str:
    """Return a table in Markdown: exact runs, and the median beyond the training range."""
    lines = [["task", *setting.methods], ["---"] + ["---:"] * len(setting.methods)]
    groups = _grouped(records, "task", "method")
    for task in setting.tasks:
        cells = []
        for method in setting.methods:
            group = groups.get((task, method), [])
            exact = sum(max(map(_error, r["rmse"].values())) < _EXACT for r in group)
            beyond = sorted(_error(r["rmse"]["test_3_6"]) for r in group)
            median = number(statistics.median(beyond)) if beyond else "-"
            cells.append(f"{exact} of {len(group)}, {median}")
        lines.append([task, *cells])
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _error(value: float | None) -> float:
    """Return an error; one that is not finite is the worst."""
    return math.inf if value is None else value


def _grouped(records: list[Record], *names: str) -> dict[tuple, list[Record]]:
    groups: dict[tuple, list[Record]] = {}
    for record in records:
        groups.setdefault(tuple(record[name] for name in names), []).append(record)
    return groups


def _typical(group: list[Record]) -> Record:
    """Return the record with the median error."""
    return sorted(group, key=lambda r: _error(r["rmse"]["test_3"]))[(len(group) - 1) // 2]


def _sorted(table: pd.DataFrame, first: tuple[str, ...] = ()) -> pd.DataFrame:
    """Return a table by noise, task, data set, method and K, in the order of the paper."""
    methods = [*first, paper.BSR, paper.GP, PAPER, DEFAULT, *POPULATIONS]
    ranks = {
        "noise": lambda v: v,
        "task": lambda v: v.map(TASKS.index),
        "dataset": lambda v: v.map(DATASETS.index),
        "method": lambda v: v.map(methods.index),
        "terms": lambda v: v,
    }
    by = [name for name in ranks if name in table]
    return table.sort_values(by, key=lambda v: ranks[v.name](v), kind="stable", ignore_index=True)
