"""The simulated tasks f1 to f6: their rows, and tables of what the methods make of them."""

from __future__ import annotations

import math
import statistics
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from .. import Formula
from ..datasets import PAPER_FORMULAS, paper_task
from . import DEFAULT, PAPER, POPULATIONS, TASKS, published
from .methods import fitted, regressor, solve
from .published import BSR, DATASETS, GP, REPLICATIONS
from .records import Record
from .runs import Experiment, Job, Section, Setting, Work

_TRAINING_ROWS, _TEST_ROWS = 100, 30
_TRAINING_RANGE = (-3.0, 3.0)
_TEST_RANGES = {"test_3": (-3.0, 3.0), "test_6": (-6.0, 6.0), "test_3_6": (3.0, 6.0)}


@dataclass(frozen=True)
class Simulation:
    """One replication of a task: fresh rows, drawn as the paper says."""

    X: np.ndarray
    y: np.ndarray
    tests: dict[str, tuple[np.ndarray, np.ndarray]]
    """Without noise, whatever the training rows have."""

    @property
    def sets(self) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        return {"train": (self.X, self.y), **self.tests}


def simulate(task: str, replication: int, seed: int, noise: float = 0.0) -> Simulation:
    """Return a replication; all methods get the same rows."""
    rng = np.random.default_rng(_stream(seed, task, replication))
    X, y = paper_task(task, _TRAINING_ROWS, *_TRAINING_RANGE, random_state=rng)
    tests = {
        name: paper_task(task, _TEST_ROWS, low, high, random_state=rng)
        for name, (low, high) in _TEST_RANGES.items()
    }
    # Last, so that the rows are the same at every noise level.
    y = y + noise * np.sqrt(np.mean(y**2)) * rng.normal(size=len(y))
    return Simulation(X, y, tests)


def rmse(prediction: np.ndarray, y: np.ndarray) -> float:
    """Return the root of the mean squared error, not finite where a prediction is not."""
    with np.errstate(all="ignore"):
        return float(np.sqrt(np.mean((prediction - y) ** 2)))


def _stream(seed: int, *names: str | int) -> np.random.SeedSequence:
    """Return random numbers of their own for each combination of names."""
    return np.random.SeedSequence([seed, *(zlib.crc32(str(name).encode()) for name in names)])


def integer_seed(seed: int, *names: str | int) -> int:
    """Return a seed of its own for each combination of names."""
    return int(_stream(seed, *names).generate_state(1)[0])


# Figures of many runs as tables: long form for programs, wide form for readers.


def mean_and_spread(values: Iterable[float | None]) -> dict[str, Any]:
    """Return mean and standard deviation (of a sample) of the values that are finite."""
    given = [np.nan if value is None else float(value) for value in values]
    finite = np.array([value for value in given if np.isfinite(value)])
    return {
        "mean": finite.mean() if len(finite) else np.nan,
        "std": finite.std(ddof=1) if len(finite) > 1 else np.nan,
        "replications": len(given),
        "not_finite": len(given) - len(finite),
    }


def _as_published(figure: tuple[float, float]) -> dict[str, Any]:
    return {"mean": figure[0], "std": figure[1], "replications": REPLICATIONS, "not_finite": 0}


def markdown(lines: Iterable[Sequence[Any]]) -> str:
    """Return cells as a table."""
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def wide(
    table: pd.DataFrame, rows: Sequence[str], columns: str, first: Sequence[str] = (BSR, GP)
) -> str:
    """Return a long table of means in Markdown.

    `rows` tell the lines apart and `columns` the columns, of which those of `first` come first.
    """
    names = list(dict.fromkeys(table[columns]))
    names = [name for name in first if name in names] + [n for n in names if n not in first]
    lines = [[*rows, *names], ["---"] * len(rows) + ["---:"] * len(names)]
    for key, group in table.groupby(list(rows), sort=False):
        cells = {row[columns]: _cell(row) for _, row in group.iterrows()}
        lines.append([*key, *(cells.get(name, "-") for name in names)])
    return markdown(lines)


def _cell(row: pd.Series) -> str:
    text = _number(row["mean"])
    if np.isfinite(row["std"]):
        text += f" ± {_number(row['std'])}"
    if row["not_finite"]:
        text += f" ({row['not_finite']} of {row['replications']} not finite)"
    return text


def _number(value: float) -> str:
    """Return a figure with as many digits as a reader wants."""
    if not np.isfinite(value):
        return "-"
    if value == 0:
        return "0"
    return f"{value:.2f}" if 0.005 <= abs(value) < 1e4 else f"{value:.1e}"


def over(replications: int) -> str:
    """Return how many replications a table is about, in words."""
    return f"{replications} replications" if replications > 1 else "one replication"


def grouped(
    records: Sequence[Record], *names: str
) -> Iterator[tuple[dict[str, Any], list[Record]]]:
    """Yield what records have in common, and those that do, in the order they came."""
    for key in dict.fromkeys(tuple(record[name] for name in names) for record in records):
        group = [record for record in records if tuple(record[name] for name in names) == key]
        yield dict(zip(names, key, strict=True)), group


def _table(rows: list[dict[str, Any]]) -> pd.DataFrame:
    """Return rows by noise, task, data set, method and K, in the order of the paper."""
    table = pd.DataFrame(rows)
    orders: dict[str, Sequence[Any]] = {
        "task": TASKS,
        "dataset": DATASETS,
        "method": ["truth", BSR, GP, PAPER, DEFAULT, *POPULATIONS],
    }
    by = [name for name in ("noise", "task", "dataset", "method", "terms") if name in table]
    return table.sort_values(
        by,
        key=lambda v: v.map(orders[v.name].index) if v.name in orders else v,
        kind="stable",
        ignore_index=True,
    )


# The experiments.

_COUNTS = (2, 4, 8)
_NOISES = (0.01, 0.05, 0.1)
# An RMSE below this on all rows is rounding.
_EXACT = 1e-6
# Longer formulas would keep SymPy busy for minutes; it still collects equal terms of them.
_MOST_OPERATIONS = 60


def _fit(job: Job, setting: Setting) -> Record:
    """Fit a replication of a task; keep errors, size and formula."""
    data = simulate(job.task, job.replication, job.seed, job.noise)
    seed = integer_seed(job.seed, job.task, job.replication, job.method, job.terms)
    answer = solve(job.method, data.X, data.y, setting.effort, seed, job.terms or None)
    return {
        "rmse": {name: rmse(answer.predict(X), y) for name, (X, y) in data.sets.items()},
        "nodes": answer.nodes,
        "formula": answer.formula,
        "seconds": answer.seconds,
    }


class Accuracy(Experiment):
    """RMSE on training and test rows."""

    name = "accuracy"
    terms: tuple[int, ...] = (0,)
    noises: tuple[float, ...] = (0.0,)

    def jobs(self, setting: Setting) -> list[tuple[Job, Work]]:
        effort = setting.effort
        return [
            (setting.job("simulation", method, task, i, terms=k, noise=noise),
             partial(_fit, setting=setting))
            for i in range(effort.noisy_replications if any(self.noises) else effort.replications)
            for noise in self.noises
            for task in setting.tasks
            for method in setting.methods
            for k in self.terms
            if not (k and method in POPULATIONS)
        ]  # fmt: skip

    def summarise(self, records: list[Record], setting: Setting) -> Section:
        rows = [
            {"task": task, "dataset": dataset, "method": method, **_as_published(figure)}
            for method, figures in published.RMSE.items()
            for task in setting.tasks
            for dataset, figure in zip(DATASETS, figures[task], strict=True)
        ]
        table = _table(rows + _errors(records))
        text = (
            f"RMSE, mean ± standard deviation ({over(setting.effort.replications)}); each has "
            "fresh rows, the same for all methods run here.\n\n"
            + wide(table, ["task", "dataset"], "method")
            + "\n\nBeyond the training range a few runs that take off decide the mean. So here is "
            f"how many runs were exact (RMSE below {_EXACT:g} on all four data sets), and the "
            "median RMSE on test_3_6:\n\n" + _exact(records, setting)
        )
        return Section(text, {self.name: table})


class Complexity(Accuracy):
    """Number of nodes."""

    name = "complexity"

    def summarise(self, records: list[Record], setting: Setting) -> Section:
        rows = [
            {"task": task, "method": method, **_as_published(figures[task])}
            for method, figures in published.NODES.items()
            for task in setting.tasks
        ]
        rows += [
            {**common, **mean_and_spread(record["nodes"] for record in group)}
            for common, group in grouped(records, "task", "method")
        ]
        table = _table(rows)
        text = (
            "Nodes of all trees of the formula, counted as the paper does: operators and columns, "
            "lt as one node, without the coefficients of the sum. gplearn's count includes its "
            f"constants. Mean ± standard deviation ({over(setting.effort.replications)}).\n\n"
            + wide(table, ["task"], "method")
        )
        return Section(text, {self.name: table})


class Expressions(Accuracy):
    """Typical formulas beside the truth."""

    name = "expressions"

    def summarise(self, records: list[Record], setting: Setting) -> Section:
        texts = {"truth": PAPER_FORMULAS, **published.EXPRESSIONS}
        rows = [
            {"task": task, "method": method, "expression": texts[method][task],
             "rmse": 0.0 if method == "truth" else None}
            for method in texts
            for task in setting.tasks
        ]  # fmt: skip
        for common, group in grouped(records, "task", "method"):
            by_error = sorted(group, key=lambda record: _error(record["rmse"]["test_3"]))
            typical = by_error[(len(group) - 1) // 2]
            expression = simplified(typical["formula"])
            rows.append({**common, "expression": expression, "rmse": typical["rmse"]["test_3"]})
        table = _table(rows)
        lines = [(row.task, row.method, f"`{row.expression}`") for row in table.itertuples()]
        text = (
            "Of each method the formula whose error on test_3 is the median of its "
            "replications, simplified by SymPy.\n\n"
            + markdown([("task", "method", "formula"), ["---"] * 3, *lines])
        )
        return Section(text, {self.name: table})


class Terms(Accuracy):
    """Sensitivity to the number of terms."""

    name = "terms"
    terms = _COUNTS

    def summarise(self, records: list[Record], setting: Setting) -> Section:
        rows = [
            {"task": task, "method": BSR, "terms": k, **_as_published(figures[task])}
            for k, figures in published.TERMS.items()
            for task in setting.tasks
        ]
        rows += [
            {**common, **mean_and_spread(record["rmse"]["test_3"] for record in group)}
            for common, group in grouped(records, "task", "method", "terms")
        ]
        table = _table(rows)
        named = table.assign(K=[f"{r.method}, K={r.terms}" for r in table.itertuples()])
        text = (
            f"RMSE on test_3 ({over(setting.effort.replications)}). The paper's sampler has K "
            "terms, our default at most K; these are runs of their own, with other random numbers "
            "than those of `accuracy`. Genetic programming has no K.\n\n"
            + wide(named, ["task"], "K")
        )
        return Section(text, {self.name: table})


class Robustness(Accuracy):
    """Errors with noise on the training rows."""

    name = "robustness"
    noises = _NOISES

    def summarise(self, records: list[Record], setting: Setting) -> Section:
        table = _table(_errors(records, "noise"))
        text = (
            "Our addition: Gaussian noise on the training rows, its standard deviation a part of "
            "the root mean square of y; test rows have none, so that their RMSE tells how far the "
            f"truth is ({over(setting.effort.noisy_replications)} at each noise). The paper has no "
            "figures for this.\n\n" + wide(table, ["noise", "task", "dataset"], "method")
        )
        return Section(text, {self.name: table})


def simplified(text: str) -> str:
    """Return a formula simplified by SymPy, its constants with four digits."""
    import sympy

    expression = Formula(text, ["x0", "x1"]).sympy()
    if expression.count_ops() <= _MOST_OPERATIONS:
        expression = sympy.simplify(expression)
    numbers = {number: sympy.Float(number, 4) for number in expression.atoms(sympy.Float)}
    return str(expression.xreplace(numbers))


def _errors(records: list[Record], *more: str) -> list[dict[str, Any]]:
    """Return mean and spread of the errors by task, data set and method."""
    return [
        {
            **{name: common[name] for name in more},
            "task": common["task"],
            "dataset": dataset,
            "method": common["method"],
            **mean_and_spread(record["rmse"][dataset] for record in group),
        }
        for common, group in grouped(records, *more, "task", "method")
        for dataset in DATASETS
    ]


def _exact(records: list[Record], setting: Setting) -> str:
    """Return a table in Markdown: exact runs, and the median beyond the training range."""
    lines = [["task", *setting.methods], ["---"] + ["---:"] * len(setting.methods)]
    for task in setting.tasks:
        cells = []
        for method in setting.methods:
            errors = [r["rmse"] for r in records if (r["task"], r["method"]) == (task, method)]
            exact = sum(max(map(_error, one.values())) < _EXACT for one in errors)
            beyond = [_error(one["test_3_6"]) for one in errors]
            median = _number(statistics.median(beyond)) if beyond else "-"
            cells.append(f"{exact} of {len(errors)}, {median}")
        lines.append([task, *cells])
    return markdown(lines)


def _error(value: float | None) -> float:
    """Return an error; one that is not finite is the worst."""
    return math.inf if value is None else value


# Why the paper's sampler differs from its published figures: how long its chain is.

#: The authors' code ends a chain after this many rejections in a row.
PATIENCE = 100
_STOPPED = f"until {PATIENCE} rejections in a row"
_SHOWN = ("train", "test_3")


def _lengths(trees: int) -> list[int]:
    """Return the powers of ten up to the whole chain, and the whole chain."""
    return [n for n in (10**i for i in range(3, 9)) if n < trees] + [trees]


def stopped_at(trees: np.ndarray, total: int) -> int:
    """Return the acceptance at which a chain without patience ends.

    `trees` are the numbers of trees proposed until each acceptance, of `total` in the whole chain.
    """
    waits = np.diff(np.append(trees, total))
    return int(np.argmax(waits > PATIENCE)) if (waits > PATIENCE).any() else len(trees) - 1


def _staged_errors(job: Job, setting: Setting) -> Record:
    """Run the chain of `accuracy` again, and keep the errors of the model it had at each length."""
    data = simulate(job.task, job.replication, job.seed)
    seed = integer_seed(job.seed, job.task, job.replication, job.method, job.terms)
    effort = setting.effort
    model = fitted(regressor(job.method, effort, seed), data.X, data.y)
    trees = model.history_["trees"]
    at = {str(n): int(np.searchsorted(trees, n, "right")) - 1 for n in _lengths(effort.trees)}
    at[_STOPPED] = stopped_at(trees, effort.trees)
    errors: dict[int, dict[str, float]] = {step: {} for step in at.values()}
    for name, (X, y) in data.sets.items():
        for step, prediction in enumerate(model.staged_predict(X)):
            if step in errors:
                errors[step][name] = rmse(prediction, y)
    return {
        "stopped": int(trees[at[_STOPPED]]) + PATIENCE,
        "rmse": {length: errors[step] for length, step in at.items()},
    }


class Length(Experiment):
    """Errors of the paper's sampler by length of its chain."""

    name = "length"

    def jobs(self, setting: Setting) -> list[tuple[Job, Work]]:
        work = partial(_staged_errors, setting=setting)
        return [
            (setting.job("length", PAPER, task, replication), work)
            for replication in range(setting.effort.replications)
            for task in setting.tasks
            if PAPER in setting.methods
        ]

    def summarise(self, records: list[Record], setting: Setting) -> Section:
        if not records:
            return Section(f"{PAPER} was not asked for.", {})
        lengths = {_STOPPED: _STOPPED}
        lengths |= {str(n): f"{n:,} trees" for n in _lengths(setting.effort.trees)}
        rows = []
        for task in setting.tasks:
            group = [record for record in records if record["task"] == task]
            for dataset, figure in zip(DATASETS, published.RMSE[BSR][task], strict=True):
                cell = {"task": task, "dataset": dataset}
                rows.append({**cell, "length": BSR, **_as_published(figure)})
                for length, name in lengths.items():
                    errors = (record["rmse"][length][dataset] for record in group)
                    rows.append({**cell, "length": name, **mean_and_spread(errors)})
        table = pd.DataFrame(rows)
        median = np.median([record["stopped"] for record in records])
        shown = table[table["dataset"].isin(_SHOWN)]
        text = (
            "Our addition: the chains of *symbayes paper* in `accuracy`, and the RMSE of the state "
            "that each was in after a number of trees; `accuracy` has the most probable formula of "
            "all their draws instead. The paper does not say how long its chains were in effect. "
            f"The authors' public code ends a chain after {PATIENCE} rejections in a row, which "
            f"happens here after {median:.0f} trees (median), and begins again.\n\n"
            + wide(shown, ["task", "dataset"], "length")
        )
        return Section(text, {self.name: table})
