"""All experiments: make the runs, write tables, figures and the report."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from .. import __version__
from ..datasets import PAPER_FORMULAS
from ..formula.operators import OPERATOR_SETS
from ..storage.atomic import replacing
from . import ALL, DEFAULT, METHODS, PAPER, POPULATIONS, TASKS
from .memory import Memory
from .methods import OPERATORS, TERMS, check_gplearn
from .records import Records
from .runs import FULL, KEY, QUICK, Effort, Experiment, Section, Setting, run_all, select
from .signals import Signals
from .simulated import Accuracy, Complexity, Expressions, Length, Robustness, Terms
from .training import Training

_EXPERIMENTS: tuple[Experiment, ...] = (
    Accuracy(), Complexity(), Expressions(), Terms(), Training(), Memory(), Robustness(), Length(),
    Signals(),
)  # fmt: skip
_RUNS = "runs.jsonl"

#: Told what is being done, how much of it is done, and how much there is.
Tell = Callable[[str, int, int], None]


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
    tell: Tell = lambda what, done, total: None,
) -> Path:
    """Do experiments of the paper again: one of `EXPERIMENTS`, or "all".

    What is finished is kept in ``out/runs.jsonl`` at once and never done again, so that the same
    call continues one that was stopped. `command` is what the report says to have been made by,
    and `tell` is called with what is being done, how much is done, and how much there is.
    Return the report; tables (CSV) and figures (SVG, PNG) lie beside it.
    """
    chosen = [one for one in _EXPERIMENTS if experiment in (one.name, ALL)]
    names = [*(one.name for one in _EXPERIMENTS), ALL]
    for kind, asked, known in (
        ("experiment", [experiment], names), ("method", methods, METHODS), ("task", tasks, TASKS),
    ):  # fmt: skip
        unknown = [name for name in asked if name not in known]
        if unknown:
            raise ValueError(f"no {kind} {unknown[0]!r}; there are {', '.join(known)}")
    # In the order of the paper, whatever the order they were asked for.
    setting = Setting(
        effort, seed,
        tuple(name for name in METHODS if name in methods),
        tuple(name for name in TASKS if name in tasks),
        prices,
    )  # fmt: skip
    start = time.monotonic()
    jobs = {one.name: one.jobs(setting) for one in chosen}
    out.mkdir(parents=True, exist_ok=True)
    records = Records(out / _RUNS, KEY)
    every = [job for some in jobs.values() for job in some]
    if any(
        job.method in POPULATIONS and records.key_of(asdict(job)) not in records for job, _ in every
    ):
        check_gplearn()
    run_all(every, records, n_jobs, lambda done, total: tell("runs", done, total))
    sections = {}
    spent: dict[tuple[Any, ...], float] = {}
    for i, one in enumerate(chosen):
        found = select(records, [job for job, _ in jobs[one.name]])
        spent |= {records.key_of(record): record["seconds"] for record in found}
        sections[one] = one.summarise(found, setting)
        _write(sections[one], out)
        tell("tables", i + 1, len(chosen))
    report = out / ("report.md" if experiment == ALL else f"{experiment}.md")
    made_by = _made_by(command, time.monotonic() - start, spent.values())
    with replacing(str(report)) as file:
        file.write(_report(sections, setting, made_by).encode())
    return report


def _write(section: Section, out: Path) -> None:
    """Write tables and figures, each of them whole or not at all."""
    import matplotlib

    for name, table in section.tables.items():
        text = table.to_csv(index=False, float_format="%.10g", lineterminator="\n")
        with replacing(str(out / f"{name}.csv")) as file:
            file.write(text.encode())
    # The same figure is the same file: no date in it, and names that do not change.
    with matplotlib.rc_context({"svg.hashsalt": "symbayes", "svg.fonttype": "path"}):
        for name, figure in section.figures.items():
            with replacing(str(out / f"{name}.svg")) as file:
                figure.savefig(file, format="svg", metadata={"Date": None})
            with replacing(str(out / f"{name}.png")) as file:
                figure.savefig(file, format="png", dpi=150, metadata={"Software": None})


def _made_by(command: str, seconds: float, spent: Collection[float]) -> str:
    """Return the command, and how long it took with all calls before that were stopped."""
    return (
        f"Made by `{command}` with symbayes {__version__}. The last call took "
        f"{_duration(seconds)}; all {len(spent):,} runs, those kept from earlier calls among them, "
        f"took {_duration(sum(spent))} of one core."
    )


def _report(sections: dict[Experiment, Section], setting: Setting, made_by: str) -> str:
    names = "" if len(sections) > 1 else "".join(f": {one.name}" for one in sections)
    said = "".join(f" ({section.headline})" for section in sections.values() if section.headline)
    lines = [
        f"# The paper, reproduced{names}{said}",
        "",
        f"{made_by} Seed {setting.seed}. Published figures are from Jin, Fu, Kang, Guo and Guo, "
        '"Bayesian Symbolic Regression", [arXiv:1910.08892](https://arxiv.org/abs/1910.08892).',
    ]
    if any(one.name != Signals.name for one in sections):
        lines += ["", _methods(setting)]
    for one, section in sections.items():
        files = ", ".join(f"[{name}.csv]({name}.csv)" for name in section.tables)
        lines += ["", f"## {one.title}", "", f"{_again(one, setting)}", "", section.text]
        lines += [f"\n![{one.title}]({name}.svg)" for name in section.figures]
        lines += ["", f"Data: {files}."] if files else []
    return "\n".join(lines) + "\n"


def _again(one: Experiment, setting: Setting) -> str:
    """Return how to make one of the tables."""
    effort = setting.effort
    size = {FULL: "", QUICK: " --quick"}.get(effort)
    if size is None:
        return f"Seed {setting.seed}, replications: {effort.replications}."
    command = f"symbayes reproduce {one.name}{size} --seed {setting.seed}"
    if setting.prices and one.name == Signals.name:
        command += f" --prices {setting.prices.name}"
    elif one.name != Signals.name:
        if setting.methods != METHODS:
            command += " --methods " + " ".join(f'"{name}"' for name in setting.methods)
        if setting.tasks != TASKS:
            command += " --tasks " + " ".join(setting.tasks)
    return f"Reproduce with `{command}`."


def _methods(setting: Setting) -> str:
    effort = setting.effort
    told = {
        PAPER: f'`sampler="paper"`, {effort.trees:,} trees, K = {TERMS}',
        DEFAULT: f"the default sampler, number of terms learned, at most {effort.draws:,} draws "
        "per chain",
        **{
            name: f"genetic programming by gplearn, {effort.generations} generations of "
            f"{size:,}, its defaults otherwise"
            for name, size in POPULATIONS.items()
        },
    }
    lines = [f"- *{method}*: {told[method]}." for method in setting.methods]
    gp = '- *published GP*: 200 generations of 100, "a total of 200,000 trees", the paper says; '
    gp += "200 times 100 is 20,000"
    if any(method in POPULATIONS for method in setting.methods):
        gp += ", so that gplearn is run with populations of 100 and of 1,000"
    lines.append(f"{gp}.")
    lines.append(f"\nOperators for all: {', '.join(OPERATOR_SETS[OPERATORS])}.")
    tasks = "; ".join(f"{task} = `{PAPER_FORMULAS[task]}`" for task in setting.tasks)
    lines.append(
        f"\nThe simulated tasks: {tasks}. They are fitted to 100 rows with both columns uniform on "
        "[-3, 3] (*train*) and tested on 30 rows each of [-3, 3] (*test_3*), [-6, 6] (*test_6*) "
        "and [3, 6] (*test_3_6*)."
    )
    return "\n".join(lines)


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
