"""The simulated tasks f1 to f6: their rows, what the methods make of them, tables and figures."""

from __future__ import annotations

import json
import pickle
import re
import subprocess
import sys
import zlib
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from .. import Formula
from ..datasets import PAPER_FORMULAS, paper_task
from ..kernels import units
from . import METHODS, PAPER, POPULATIONS, TASKS, published
from .methods import evolve, fitted, gplearn_regressor
from .published import BSR, DATASETS, GP, REPLICATIONS
from .records import Record
from .runs import Job, Section, Setting

#: Rows drawn for each data set, and the range of both columns.
_DRAWN = dict(zip(DATASETS, [(100, -3, 3), (30, -3, 3), (30, -6, 6), (30, 3, 6)], strict=True))
# Long tables are in this order.
_ORDER = {name: i for i, name in enumerate((*TASKS, *DATASETS, "truth", BSR, GP, *METHODS))}


def simulate(
    task: str, replication: int, seed: int, noise: float = 0.0
) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return X and y of each data set, the same for all methods; the training rows have noise."""
    rng = np.random.default_rng(_stream(seed, task, replication))
    sets = {name: paper_task(task, *drawn, random_state=rng) for name, drawn in _DRAWN.items()}
    # Last, so that the rows are the same at every noise level.
    X, y = sets["train"]
    sets["train"] = X, y + noise * np.sqrt(np.mean(y**2)) * rng.normal(size=len(y))
    return sets


def rmse(prediction: np.ndarray, y: np.ndarray) -> float:
    """Return the root of the mean squared error, not finite where a prediction is not."""
    with np.errstate(all="ignore"):
        return float(np.sqrt(np.mean((prediction - y) ** 2)))


def _stream(seed: int, *names: str | int) -> np.random.SeedSequence:
    return np.random.SeedSequence([seed, *(zlib.crc32(str(name).encode()) for name in names)])


def integer_seed(seed: int, *names: str | int) -> int:
    """Return a seed of its own for each combination of names."""
    return int(_stream(seed, *names).generate_state(1)[0])


# Figures of many runs as tables: long form for programs, wide form for readers.


def summary(
    labels: Sequence[str],
    values: Iterable[tuple[Any, ...]],
    reported: Iterable[tuple[Any, ...]] = (),
) -> pd.DataFrame:
    """Return mean and standard deviation (of a sample) of the values that are finite, by labels.

    Each of `values` is labels and a number or None, each of `reported` labels and a figure of the
    paper.
    """
    groups: dict[tuple[Any, ...], list[float]] = {}
    for *key, value in values:
        groups.setdefault(tuple(key), []).append(np.nan if value is None else value)
    rows: list[tuple[Any, ...]] = [
        (*key, mean, std, REPLICATIONS, 0) for *key, (mean, std) in reported
    ]
    for group, given in groups.items():
        finite = np.array(given)[np.isfinite(given)]
        mean = finite.mean() if len(finite) else np.nan
        std = finite.std(ddof=1) if len(finite) > 1 else np.nan
        rows.append((*group, mean, std, len(given), len(given) - len(finite)))
    numbers = ["mean", "std", "replications", "not_finite"]
    return _in_order(pd.DataFrame(rows, columns=[*labels, *numbers]))


def _in_order(table: pd.DataFrame) -> pd.DataFrame:
    by = [name for name in ("noise", "task", "dataset", "method", "terms") if name in table]
    return table.sort_values(
        by, key=lambda v: v.map(lambda name: _ORDER.get(name, name)), kind="stable",
        ignore_index=True,
    )  # fmt: skip


def markdown(head: Sequence[str], lines: Iterable[Sequence[Any]], right: Iterable[str] = ()) -> str:
    """Return a table; the columns of `right` are aligned to that side."""
    rule = ["---:" if name in right else "---" for name in head]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in (head, rule, *lines))


def wide(table: pd.DataFrame, rows: Sequence[str], columns: str) -> str:
    """Return a long table of means in Markdown; `rows` distinguish the lines."""
    names = list(dict.fromkeys(table[columns]))
    lines: dict[tuple[Any, ...], list[str]] = {}
    for entry in table.to_dict("records"):
        text = _number(entry["mean"])
        if np.isfinite(entry["std"]):
            text += f" ± {_number(entry['std'])}"
        if entry["not_finite"]:
            text += f" ({entry['not_finite']} of {entry['replications']} not finite)"
        line = lines.setdefault(tuple(entry[name] for name in rows), ["-"] * len(names))
        line[names.index(entry[columns])] = text
    return markdown([*rows, *names], [(*key, *line) for key, line in lines.items()], names)


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


# What the experiments do, and what their tables say.

# An RMSE below this on all rows is rounding.
_EXACT = 1e-6
# Longer formulas would keep SymPy busy for minutes; it still collects equal terms of them.
_MOST_OPERATIONS = 60


def fit(job: Job, setting: Setting) -> Record:
    """Fit a replication of a task; return errors, size and formula."""
    sets = simulate(job.task, job.replication, job.seed, job.noise)
    seed = integer_seed(job.seed, job.task, job.replication, job.method, job.terms)
    found: Any
    if job.method in POPULATIONS:
        population = POPULATIONS[job.method]
        *_, found = evolve(*sets["train"], population, setting.effort.generations, seed)
        nodes, text = found.n_nodes, found.text
    else:
        model = fitted(job.method, setting.effort, seed, *sets["train"], job.terms)
        found = model.best_formula_
        # Counted as the paper does: operators and columns of all trees, lt as one, and neither
        # the coefficients nor the intercept of the sum.
        nodes = model.result_.posterior.formula_models[0][1].state.n_nodes
        text = str(found)
    errors = {name: rmse(found.predict(X), y) for name, (X, y) in sets.items()}
    return {"rmse": errors, "nodes": nodes, "formula": text}


def accuracy(records: list[Record], setting: Setting) -> Section:
    """Return RMSE on training and test rows."""
    reported = [
        (task, dataset, method, figure)
        for method, figures in published.RMSE.items()
        for task in setting.tasks
        for dataset, figure in zip(DATASETS, figures[task], strict=True)
    ]
    values = [(r["task"], name, r["method"], r["rmse"][name]) for r in records for name in DATASETS]
    table = summary(("task", "dataset", "method"), values, reported)
    exact = [[task, *(_exact(records, task, m) for m in setting.methods)] for task in setting.tasks]
    text = (
        f"RMSE, mean ± standard deviation ({over(setting.effort.replications)}); each has "
        "fresh rows, the same for all methods run here.\n\n"
        + wide(table, ["task", "dataset"], "method")
        + "\n\nBeyond the training range a few runs that take off decide the mean. So here is "
        f"how many runs were exact (RMSE below {_EXACT:g} on all four data sets), and the "
        "median RMSE on test_3_6:\n\n"
        + markdown(["task", *setting.methods], exact, setting.methods)
    )
    return Section(text, {"accuracy": table})


def _exact(records: list[Record], task: str, method: str) -> str:
    """Return how many runs were exact, and their median beyond the training range."""
    runs = [r["rmse"] for r in records if (r["task"], r["method"]) == (task, method)]
    errors = np.array([[run[name] for name in DATASETS] for run in runs], float)
    errors[np.isnan(errors)] = np.inf
    exact = (errors < _EXACT).all(axis=1).sum()
    return f"{exact} of {len(errors)}, {_number(np.median(errors[:, -1]))}"


def complexity(records: list[Record], setting: Setting) -> Section:
    """Return numbers of nodes."""
    reported = [(t, method, of[t]) for method, of in published.NODES.items() for t in setting.tasks]
    values = [(r["task"], r["method"], r["nodes"]) for r in records]
    table = summary(("task", "method"), values, reported)
    text = (
        "Nodes of all trees of the formula, counted as the paper does: operators and columns, "
        "lt as one node, without the coefficients of the sum. gplearn's count includes its "
        f"constants. Mean ± standard deviation ({over(setting.effort.replications)}).\n\n"
        + wide(table, ["task"], "method")
    )
    return Section(text, {"complexity": table})


def expressions(records: list[Record], setting: Setting) -> Section:
    """Return typical formulas beside the truth."""
    texts = {"truth": PAPER_FORMULAS, **published.EXPRESSIONS}
    rows: list[tuple[str, str, str, float | None]] = [
        (task, method, of[task], 0.0 if method == "truth" else None)
        for method, of in texts.items()
        for task in setting.tasks
    ]
    for task in setting.tasks:
        for method in setting.methods:
            runs = [r for r in records if (r["task"], r["method"]) == (task, method)]
            runs.sort(key=lambda r: np.inf if r["rmse"]["test_3"] is None else r["rmse"]["test_3"])
            typical = runs[(len(runs) - 1) // 2]
            error = typical["rmse"]["test_3"]
            rows.append((task, method, simplified(typical["formula"]), error))
    table = _in_order(pd.DataFrame(rows, columns=["task", "method", "expression", "rmse"]))
    lines = [(row.task, row.method, f"`{row.expression}`") for row in table.itertuples()]
    text = (
        "Of each method the formula whose error on test_3 is the median of its "
        "replications, simplified by SymPy.\n\n" + markdown(("task", "method", "formula"), lines)
    )
    return Section(text, {"expressions": table})


def simplified(text: str) -> str:
    """Return a formula simplified by SymPy, its constants with four digits."""
    import sympy

    expression = Formula(text, ["x0", "x1"]).sympy()
    if expression.count_ops() <= _MOST_OPERATIONS:
        expression = sympy.simplify(expression)
    numbers = {number: sympy.Float(number, 4) for number in expression.atoms(sympy.Float)}
    return str(expression.xreplace(numbers))


def terms(records: list[Record], setting: Setting) -> Section:
    """Return the sensitivity to the number of terms."""
    reported = [(t, BSR, k, of[t]) for k, of in published.TERMS.items() for t in setting.tasks]
    values = [(r["task"], r["method"], r["terms"], r["rmse"]["test_3"]) for r in records]
    table = summary(("task", "method", "terms"), values, reported)
    named = table.assign(K=[f"{r.method}, K={r.terms}" for r in table.itertuples()])
    text = (
        f"RMSE on test_3 ({over(setting.effort.replications)}). The paper's sampler has K "
        "terms, our default at most K; these are runs of their own, with other random numbers "
        "than those of `accuracy`. Genetic programming has no K.\n\n" + wide(named, ["task"], "K")
    )
    return Section(text, {"terms": table})


def robustness(records: list[Record], setting: Setting) -> Section:
    """Return errors with noise on the training rows."""
    values = [
        (r["noise"], r["task"], name, r["method"], r["rmse"][name])
        for r in records
        for name in DATASETS
    ]
    table = summary(("noise", "task", "dataset", "method"), values)
    text = (
        "Our addition: Gaussian noise on the training rows, its standard deviation a part of "
        "the root mean square of y; test rows have none, so that their RMSE tells how far the "
        f"truth is ({over(setting.effort.noisy_replications)} at each noise). The paper has no "
        "figures for this.\n\n" + wide(table, ["noise", "task", "dataset"], "method")
    )
    return Section(text, {"robustness": table})


# Errors and sizes in the course of a run: at every acceptance, find or generation.

_COLUMNS = ("trees", "train", "test_3", "nodes")
# More steps of a run do not fit on paper.
_MOST_STEPS = 1000


def follow(job: Job, setting: Setting) -> Record:
    """Fit a task; return trees tried, errors and nodes at each step."""
    sets = simulate(job.task, job.replication, job.seed)
    seed = integer_seed(job.seed, job.task, job.replication, job.method, "training")
    (X, y), (X_test, y_test) = sets["train"], sets["test_3"]
    if job.method in POPULATIONS:
        size = POPULATIONS[job.method]
        found: list[Any] = list(evolve(X, y, size, setting.effort.generations, seed))
        trees = [size * (i + 1) for i in range(len(found))]
    else:
        model = fitted(job.method, setting.effort, seed, X, y)
        if job.method == PAPER:
            steps = model.history_
            test = [rmse(prediction, y_test) for prediction in model.staged_predict(X_test)]
            return _kept(steps["trees"], steps["rmse"], test, steps["n_nodes"])
        # What our search came upon, each better than the one before, and the answer. Of a find
        # only its time is known, not the trees proposed until then.
        found = [Formula(text, ["x0", "x1"]) for _, text in model.diagnostics_["found"]]
        trees = [np.nan] * len(found) + [model.diagnostics_["proposals"]]
        found.append(model.best_formula_)
    train = [rmse(one.predict(X), y) for one in found]
    test = [rmse(one.predict(X_test), y_test) for one in found]
    return _kept(trees, train, test, [one.n_nodes for one in found])


def _kept(*columns: Any) -> Record:
    named = zip(_COLUMNS, columns, strict=True)
    return {"steps": {name: np.asarray(column).tolist() for name, column in named}}


def training(records: list[Record], setting: Setting) -> Section:
    """Return errors and sizes in the course of one run of each task."""
    parts = []
    for record in records:
        steps = {name: np.array(record["steps"][name], float) for name in _COLUMNS}
        n = len(steps["trees"])
        numbers = {"step": np.arange(1, n + 1), "pace": np.linspace(0, 1, n), **steps}
        parts.append(pd.DataFrame({"task": record["task"], "method": record["method"], **numbers}))
    table = pd.concat(parts, ignore_index=True)
    text = (
        "One run of each task. The paper's sampler at every acceptance, genetic programming's "
        "best individual by generation, our default whenever its search came upon something "
        "better; each evenly paced over the width of the plot. Sizes of our default count its "
        "coefficients as well. The paper's own curves are only in its pictures."
    )
    return Section(text, {"training": table}, draw(table))


def draw(table: pd.DataFrame) -> Any:
    """Return the figure: a row of plots per task, errors to the left and sizes to the right."""
    from matplotlib.figure import Figure

    tasks = list(dict.fromkeys(table["task"]))
    figure = Figure(figsize=(9, 2.4 * len(tasks)), layout="constrained")
    axes = figure.subplots(len(tasks), 2, squeeze=False)
    for (errors, sizes), task in zip(axes, tasks, strict=True):
        for method, run in table[table["task"] == task].groupby("method", sort=False):
            run = run.iloc[np.linspace(0, len(run) - 1, min(len(run), _MOST_STEPS)).astype(int)]
            colour = f"C{METHODS.index(method)}"
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


# Peak memory.

_CHILD = f"""
import json, pickle, sys
from {__name__} import measure
print(json.dumps(measure(*pickle.load(sys.stdin.buffer))))
"""


def fit_in_fresh_process(job: Job, setting: Setting) -> Record:
    """Fit a task; return the peak memory of the process before and after, in megabytes."""
    done = subprocess.run(
        [sys.executable, "-c", _CHILD], input=pickle.dumps((job, setting)), capture_output=True
    )
    if done.returncode:
        raise RuntimeError(f"measuring the memory of {job.method} failed:\n{done.stderr.decode()}")
    return json.loads(done.stdout.splitlines()[-1])


def measure(job: Job, setting: Setting) -> Record:
    """Do the same in this process."""
    X, y = simulate(job.task, job.replication, job.seed)["train"]
    seed = integer_seed(job.seed, job.task, job.replication, job.method, "memory")
    if job.method in POPULATIONS:
        # Its defaults: without low_memory it keeps the ancestors of the last generation.
        model = gplearn_regressor(POPULATIONS[job.method], seed)
        fit = model.set_params(generations=setting.effort.generations).fit
    else:
        fit = partial(fitted, job.method, setting.effort, seed)
        # Load the compiled code first: it is there before any data.
        units.load("paper" if job.method == PAPER else "tempered")
    before = _peak()
    fit(X, y)
    peak = _peak()
    return {"before": before, "peak": peak, "fit": peak - before}


def _peak() -> float:
    """Return the most memory this process has held so far, in megabytes."""
    status = Path("/proc/self/status")
    # Not getrusage, which on Linux starts with the peak of the process that started this one.
    found = re.search(r"VmHWM:\s+(\d+) kB", status.read_text()) if status.exists() else None
    if found is not None:
        return int(found[1]) * 1024 / 1e6
    try:
        import resource
    except ImportError:
        raise RuntimeError(
            "peak memory can only be measured on Linux and macOS; leave out the experiment memory"
        ) from None
    unit = 1e6 if sys.platform == "darwin" else 1e3  # bytes there, kilobytes elsewhere
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def memory(records: list[Record], setting: Setting) -> Section:
    """Return peak memory by task and method."""
    values = [(r["task"], name, r["method"], r[name]) for r in records for name in ("fit", "peak")]
    table = summary(("task", "measure", "method"), values)
    text = (
        f"Megabytes ({over(setting.effort.memory_replications)} of each task): by how much the "
        "peak of a fresh process grew during the fit (`fit`), and the peak itself (`peak`), "
        "which is mostly Python, NumPy and compiled code. The paper claims less memory than "
        "genetic programming without figures.\n\n" + wide(table, ["task", "measure"], "method")
    )
    return Section(text, {"memory": table})


# Why the paper's sampler differs from its published figures: how long its chain is.

#: The authors' code ends a chain after this many rejections in a row.
PATIENCE = 100
_STOPPED = f"until {PATIENCE} rejections in a row"


def _lengths(trees: int) -> list[int]:
    """Return the powers of ten up to the whole chain, and the whole chain."""
    return [n for n in (10**i for i in range(3, 9)) if n < trees] + [trees]


def stopped_at(trees: np.ndarray, total: int) -> int:
    """Return the acceptance at which a chain without patience ends.

    `trees` are the numbers of trees proposed until each acceptance, of `total` in the whole chain.
    """
    waits = np.diff(np.append(trees, total)) > PATIENCE
    return int(np.argmax(waits)) if waits.any() else len(trees) - 1


def fit_in_stages(job: Job, setting: Setting) -> Record:
    """Run the chain of `accuracy` again; return the errors of the model it had at each length."""
    sets = simulate(job.task, job.replication, job.seed)
    seed = integer_seed(job.seed, job.task, job.replication, job.method, job.terms)
    total = setting.effort.trees
    model = fitted(job.method, setting.effort, seed, *sets["train"])
    trees = model.history_["trees"]
    at = {str(n): int(np.searchsorted(trees, n, "right")) - 1 for n in _lengths(total)}
    at[_STOPPED] = stopped_at(trees, total)
    errors: dict[str, dict[str, float]] = {key: {} for key in at}
    for name, (X, y) in sets.items():
        predictions = list(model.staged_predict(X))
        for key, step in at.items():
            errors[key][name] = rmse(predictions[step], y)
    return {"stopped": int(trees[at[_STOPPED]]) + PATIENCE, "rmse": errors}


def length(records: list[Record], setting: Setting) -> Section:
    """Return errors of the paper's sampler by length of its chain."""
    if not records:
        return Section(f"{PAPER} was not asked for.", {})
    names = {_STOPPED: _STOPPED}
    names |= {str(n): f"{n:,} trees" for n in _lengths(setting.effort.trees)}
    reported = [
        (task, dataset, BSR, figure)
        for task in setting.tasks
        for dataset, figure in zip(DATASETS, published.RMSE[BSR][task], strict=True)
    ]
    values = [
        (r["task"], dataset, name, r["rmse"][key][dataset])
        for r in records
        for dataset in DATASETS
        for key, name in names.items()
    ]
    table = summary(("task", "dataset", "length"), values, reported)
    median = np.median([record["stopped"] for record in records])
    shown = table[table["dataset"].isin(["train", "test_3"])]
    text = (
        "Our addition: the chains of *symbayes paper* in `accuracy`, and the RMSE of the state "
        "that each was in after a number of trees; `accuracy` has the most probable formula of "
        "all their draws instead. The paper does not say how long its chains were in effect. "
        f"The authors' public code ends a chain after {PATIENCE} rejections in a row, which "
        f"happens here after {median:.0f} trees (median), and begins again.\n\n"
        + wide(shown, ["task", "dataset"], "length")
    )
    return Section(text, {"length": table})
