"""All experiments: make the runs, write tables, figures and the report."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from .. import __version__
from ..datasets import PAPER_FORMULAS
from ..formula.operators import OPERATOR_SETS
from ..storage.atomic import replacing
from . import ALL, DEFAULT, EXPERIMENTS, METHODS, PAPER, POPULATIONS, TASKS, signals, simulated
from .methods import OPERATORS, TERMS
from .records import Records
from .runs import FULL, QUICK, Effort, Experiment, Job, Section, Setting, run_all

_EXPERIMENTS = {
    "accuracy": Experiment(simulated.accuracy, simulated.fit),
    "complexity": Experiment(simulated.complexity, simulated.fit),
    "expressions": Experiment(simulated.expressions, simulated.fit),
    "terms": Experiment(
        simulated.terms, simulated.fit, methods=(PAPER, DEFAULT), terms=(2, 4, 8)
    ),
    "training": Experiment(simulated.training, simulated.follow, "training", lambda effort: 1),
    "memory": Experiment(
        simulated.memory, simulated.fit_in_fresh_process, "memory",
        lambda effort: effort.memory_replications,
    ),
    "robustness": Experiment(
        simulated.robustness, simulated.fit, replications=lambda effort: effort.noisy_replications,
        noises=(0.01, 0.05, 0.1),
    ),
    "length": Experiment(simulated.length, simulated.fit_in_stages, "length", methods=(PAPER,)),
    "signals": signals.Signals(signals.signals, signals.fit),
}  # fmt: skip


def reproduce(
    experiment: str,
    out: Path,
    *,
    effort: Effort = FULL,
    n_jobs: int = -1,
    seed: int = 0,
    methods: Sequence[str] = METHODS,
    tasks: Sequence[str] = TASKS,
    prices: Path | None = None,
    command: str = "symbayes.experiments.reproduce",
    tell: Callable[[str, int, int], None] = lambda what, done, total: None,
) -> Path:
    """Repeat experiments of the paper: one of `EXPERIMENTS`, or "all".

    What is finished is kept in ``out/runs.jsonl`` at once and never repeated, so that the same
    call continues one that was stopped. `command` is what the report says it was made by,
    and `tell` is called with what is being done, how much is done, and how much there is.
    Return the report; tables (CSV) and figures (SVG, PNG) lie beside it.
    """
    # In the order of the paper, whatever the order they were asked for.
    methods = tuple(name for name in METHODS if name in methods)
    tasks = tuple(name for name in TASKS if name in tasks)
    setting = Setting(effort, seed, methods, tasks, prices)
    start = time.monotonic()
    chosen = list(EXPERIMENTS) if experiment == ALL else [experiment]
    runs = {name: _EXPERIMENTS[name].runs(setting) for name in chosen}
    out.mkdir(parents=True, exist_ok=True)
    records = Records(out / "runs.jsonl", Job._fields)
    every = {job: work for some in runs.values() for job, work in some.items()}
    run_all(every, records, n_jobs, tell)
    sections = {}
    for i, name in enumerate(chosen, 1):
        found = [records[job] for job in runs[name]]
        sections[name] = _EXPERIMENTS[name].summarise(found, setting)
        _write(name, sections[name], out)
        tell("tables", i, len(chosen))
    spent = [records[job]["seconds"] for job in every]
    report = out / ("report.md" if experiment == ALL else f"{experiment}.md")
    made_by = (
        f"Made by `{command}` with symbayes {__version__}. The last call took "
        f"{_duration(time.monotonic() - start)}; all {len(spent):,} runs, those kept from earlier "
        f"calls among them, took {_duration(sum(spent))} of one core. Seed {seed}."
    )
    with replacing(str(report)) as file:
        file.write(_report(sections, setting, made_by).encode())
    return report


def _write(name: str, section: Section, out: Path) -> None:
    """Write tables and figures, each of them whole or not at all."""
    import matplotlib

    for title, table in section.tables.items():
        text = table.to_csv(index=False, float_format="%.10g", lineterminator="\n")
        with replacing(str(out / f"{title}.csv")) as file:
            file.write(text.encode())
    # The same figure is the same file: no date in it, and names that do not change.
    with matplotlib.rc_context({"svg.hashsalt": "symbayes", "svg.fonttype": "path"}):
        for kind, unwanted in (("svg", "Date"), ("png", "Software")) if section.figure else ():
            with replacing(str(out / f"{name}.{kind}")) as file:
                section.figure.savefig(file, format=kind, dpi=150, metadata={unwanted: None})


def _report(sections: dict[str, Section], setting: Setting, made_by: str) -> str:
    of = "" if len(sections) > 1 else f": {next(iter(sections))}"
    said = "".join(f" ({section.headline})" for section in sections.values() if section.headline)
    lines = [
        f"# The paper, reproduced{of}{said}",
        "",
        f"{made_by} Published figures are from Jin, Fu, Kang, Guo and Guo, "
        '"Bayesian Symbolic Regression", [arXiv:1910.08892](https://arxiv.org/abs/1910.08892).',
    ]
    if list(sections) != ["signals"]:
        lines += ["", _methods(setting)]
    for name, section in sections.items():
        title = EXPERIMENTS[name]
        files = ", ".join(f"[{table}.csv]({table}.csv)" for table in section.tables)
        lines += ["", f"## {title}", "", _again(name, setting), "", section.text]
        lines += [f"\n![{title}]({name}.svg)"] if section.figure else []
        lines += ["", f"Data: {files}."] if files else []
    return "\n".join(lines) + "\n"


def _again(name: str, setting: Setting) -> str:
    """Return how to make one of the tables."""
    effort = setting.effort
    if effort not in (FULL, QUICK):
        return f"Seed {setting.seed}, replications: {effort.replications}."
    command = f"symbayes reproduce {name}{' --quick' * (effort == QUICK)} --seed {setting.seed}"
    if name == "signals" and setting.prices:
        command += f" --prices {setting.prices.name}"
    if setting.methods != METHODS:
        command += " --methods " + " ".join(f'"{method}"' for method in setting.methods)
    if name != "signals" and setting.tasks != TASKS:
        command += " --tasks " + " ".join(setting.tasks)
    return f"Reproduce with `{command}`."


def _methods(setting: Setting) -> str:
    effort = setting.effort
    told = {
        PAPER: f'`sampler="paper"`, {effort.trees:,} trees, K = {TERMS}',
        DEFAULT: f"the default sampler, number of terms learned, at most {effort.draws:,} draws "
        "per chain",
    }
    for name, size in POPULATIONS.items():
        told[name] = (
            f"genetic programming by gplearn, {effort.generations} generations of {size:,}, its "
            "defaults otherwise"
        )
    genetic = any(method in POPULATIONS for method in setting.methods)
    why = ", so that gplearn is run with populations of 100 and of 1,000" if genetic else ""
    lines = [f"- *{method}*: {told[method]}." for method in setting.methods]
    tasks = "; ".join(f"{task} = `{PAPER_FORMULAS[task]}`" for task in setting.tasks)
    lines += [
        '- *published GP*: 200 generations of 100, "a total of 200,000 trees", the paper says; 200 '
        f"times 100 is 20,000{why}.",
        f"\nOperators for all: {', '.join(OPERATOR_SETS[OPERATORS])}.",
        f"\nThe simulated tasks: {tasks}. They are fitted to 100 rows with both columns uniform on "
        "[-3, 3] (*train*) and tested on 30 rows each of [-3, 3] (*test_3*), [-6, 6] (*test_6*) "
        "and [3, 6] (*test_3_6*).",
    ]
    return "\n".join(lines)


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
