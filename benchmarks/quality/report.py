"""`make bench-report`: from the stored runs to `docs/benchmark.md`, its plots and its details."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path
from statistics import median

from benchmarks.environment import ROOT
from benchmarks.report import Cell, bars, show

from . import plots
from .registry import LEFT_OUT, METHODS
from .store import RESULTS, Record, Store
from .summary import Runs, by_problem, fifths, select, wilson
from .sweeps import SWEEPS
from .targets import columns_found, goals

PAGE = ROOT / "docs" / "benchmark.md"
DETAILS = ROOT / "docs" / "development" / "benchmark-details.md"
IMAGES = ROOT / "docs" / "images"

_INTRODUCTION = """\
Does symbayes find the right formula, how does it compare with other tools, and can its
probabilities and intervals be believed? Written by `make bench-report` from the runs in
`benchmarks/results/quality/`.

## What was compared, and how fairly

- All tools get the same rows, seeds, seconds and cores and, as far as each allows, the same
  operators. symbayes runs with its default parameters.
- **In favour of symbayes:** its search was tuned on these formulas, and that of the others was not.
- [Benchmark in detail](development/benchmark-details.md) has the settings, handicaps and version of
  each tool, the result of every problem, the single commands, and the targets.
- A formula has the **right structure** if, with its constants refitted to the truth without noise,
  it agrees with the truth to 1e-6 of its spread and has at most 1.5 times its nodes. **SRBench's**
  verdict takes the constants as they were found, rounded to three decimals, so that noise in them
  counts against a formula.
- Percentages come with 95 % intervals. A run that failed has found nothing.

The formulas of the suites `classic` and `feynman` and the tables of `real` are not shipped:
`benchmarks/quality/README.md` says where they come from. The suites `paper`, `columns` and
`calibration` need nothing."""

_DETAILS = """\
All tables behind the [benchmark](../benchmark.md), the targets that were set, and how each tool was
run. Written by `make bench-report` from the runs in `benchmarks/results/quality/`; each table names
the command that makes its runs.

The formulas of the suites `classic` and `feynman` and the tables of `real` are not shipped; without
them a command ends with a line that says so. They come from the literature, from
[SRBench](https://cavalab.org/srbench/) and from [PMLB](https://epistasislab.github.io/pmlb/):
`benchmarks/quality/README.md` says which, and in what form they are needed (`--data`).

The part of a version of symbayes after the plus sign is not a commit but the beginning of a SHA-256
hash over its source files (`benchmarks/quality/registry.py`), which distinguishes runs of different
code. The commit that has this code is named next to it.

There are two verdicts. *SRBench's*: after simplification with constants rounded to three decimals,
the difference between the formula found and the truth is constant, or their ratio is a non-zero
constant; where SymPy cannot decide within 10 s, agreement to 1e-9 of the spread on 1,000 points of
a range twice as wide counts, and is marked *numeric*. *Right structure*: with its constants
refitted in float64 to the truth without noise, the formula agrees to 1e-6 of the spread (root mean
square, on training rows and new ones), and it has at most 1.5 times the nodes of the truth. Nodes
are operators, columns and constants, counted for all methods by the same function
(`benchmarks/quality/nodes.py`). Shares come with Wilson's 95 % intervals. A run that failed has
found nothing."""


class Report:
    """The two pages, section by section.

    Parameters
    ----------
    records : list of records
    versions : mapping
        The version of a method to show, where it is not the latest.
    images : Path
    """

    def __init__(self, records: list[Record], versions: Mapping[str, str], images: Path):
        self._records = records
        self._versions = versions
        self._images = images

    def text(self) -> str:
        """Return the page for users, and draw its plots."""
        return _page(
            ["# Benchmark", "", _INTRODUCTION, ""],
            self._peers_in_short(),
            self._feynman_in_short(),
            self._known_in_short(),
            self._real_in_short(),
            self._probabilities_in_short(),
        )

    def details(self) -> str:
        """Return the page for developers."""
        return _page(
            ["# Benchmark in detail", "", _DETAILS, ""],
            self._goals(),
            self._peers(),
            self._feynman(),
            self._exact("paper", "The paper's tasks"),
            self._exact("classic", "Classic formulas"),
            self._real(),
            self._coverage(),
            self._columns(),
            self._calibration(),
            self._methods(),
        )

    def _peers_in_short(self) -> list[str]:
        sweep = SWEEPS["peers"]
        panels = {
            noise: [self._runs("peers", m).where(sweep.runs, noise=noise) for m in sweep.methods]
            for noise in sweep.noise
        }
        plots.exact_against_time(
            self._images / "exact-against-time.svg", panels, sweep.seconds, sweep.runs
        )
        columns = ["method"]
        for noise in sweep.noise:
            columns += [f"right structure, {_noise(noise)}", "nodes"]
        rows: list[list[Cell]] = [
            [parts[0].method, *(c for p in parts for c in (p.share("right"), p.median("nodes")))]
            for parts in zip(*panels.values(), strict=True)
        ]
        return [
            f"## {sweep.problems} formulas from physics, {len(sweep.methods)} tools",
            "",
            f"Every third of {SWEEPS['feynman'].problems} formulas of the Feynman set, 1,000 rows, "
            f"{sweep.seconds:g} s on one core for each. Nodes: median size of the formulas found."
            + self._ran("peers"),
            "",
            *bars(columns, rows),
            "",
            "![Share of formulas found against time](images/exact-against-time.svg)",
            "",
            "A method that does not say when it found its formula counts as having found it at "
            "the end of its run.",
            "",
            _repeat("peers"),
            "",
        ]

    def _feynman_in_short(self) -> list[str]:
        sweep = SWEEPS["feynman"]
        runs = self._runs("feynman", "symbayes")
        parts = {noise: runs.where(sweep.runs, noise=noise) for noise in sweep.noise}
        rows: list[list[Cell]] = [
            [
                _noise(noise),
                part.share("right"),
                part.share("srbench") if part.records else "-",
                _time(part),
            ]
            for noise, part in parts.items()
        ]
        columns = ["", "right structure", "SRBench", "median seconds to a right formula"]
        return [
            f"## All {sweep.problems} formulas, more and more noise",
            "",
            f"symbayes alone, 1,000 rows, {sweep.seconds:g} s on {sweep.cores} cores for each:",
            "",
            *bars(columns, rows),
            "",
            _repeat("feynman"),
            "",
        ]

    def _known_in_short(self) -> list[str]:
        paper, classic = (self._runs(name, "symbayes") for name in ("paper", "classic"))
        lines = [
            "## Formulas that others have used",
            "",
            f"Without noise, {SWEEPS['paper'].seconds:g} s on {SWEEPS['paper'].cores} cores for "
            "each:",
            "",
            f"- The six tasks of the paper, {SWEEPS['paper'].seeds} data sets each: right "
            f"structure in {paper.share('right')}.",
            f"- Nguyen, Koza, Jin and other classic problems: right structure in "
            f"{classic.share('right')}.",
            "",
            _repeat("paper", "classic"),
            "",
        ]
        return lines

    def _real_in_short(self) -> list[str]:
        sweep = SWEEPS["real"]
        parts = [self._runs("real", method) for method in sweep.methods]
        plots.r2_against_nodes(self._images / "r2-against-nodes.svg", parts)
        rows: list[list[Cell]] = [[part.method, *_real_cells(part)] for part in parts]
        return [
            "## Real data",
            "",
            f"{sweep.problems} tables of measured data, {sweep.seeds} random splits of each, "
            f"{sweep.seconds:g} s on one core for each; medians over all runs.",
            "",
            *bars(["method", "R2 on test rows", "R2 of the formula alone", "nodes"], rows),
            "",
            "![R2 against nodes](images/r2-against-nodes.svg)",
            "",
            _repeat("real"),
            "",
        ]

    def _probabilities_in_short(self) -> list[str]:
        noisy = self._runs("feynman", "symbayes").where(SWEEPS["feynman"].runs, noise=0.1)
        covered = [_percent(self._runs("real", "symbayes").mean("coverage"))]
        covered += [_percent(noisy.mean("coverage"))]
        columns = self._runs("columns", "symbayes")
        found = sum(columns_found(record) == (5, 0) for record in columns.records)
        runs = self._runs("calibration", "symbayes")
        rows: list[list[Cell]] = [
            [f"{part.low:.1f} to {part.low + 0.2:.1f}", part.formulas, f"{part.reported:.2f}",
             f"{part.share:.2f}"]
            for part in fifths(runs.records)
        ]  # fmt: skip
        heads = ["reported probability", "formulas", "mean reported", "share true"]
        return [
            "## Are probabilities and intervals right?",
            "",
            f"**Probabilities.** {SWEEPS['calibration'].problems} problems with noise, 30 to 300 "
            "rows; all formulas reported with a probability of 0.005 or more. True means the truth "
            "itself: the right structure, no superfluous term, and no more numbers estimated than "
            "the truth has.",
            "",
            *(bars(heads, rows) if rows else [runs.missing]),
            "",
            _repeat("calibration"),
            "",
            f"**Intervals.** 90 % intervals hold {covered[0]} of the new rows of the real data "
            f"above, and {covered[1]} of those of the formulas with 10 % noise.",
            "",
            "**Columns.** With 5 relevant columns among 200, 500 rows and 10 % noise, all five had "
            f"a probability above 0.5 and no other column had, in {found} of {len(columns)} runs. "
            + _repeat("columns"),
            "",
        ]

    def _runs(self, sweep: str, method: str) -> Runs:
        return select(self._records, SWEEPS[sweep], method, self._versions)

    def _goals(self) -> list[str]:
        rows: list[list[Cell]] = [
            [goal.problems, goal.measure, goal.target, goal.reached, goal.verdict]
            for goal in goals(self._runs)
        ]
        return [
            "## Targets",
            "",
            "60 s and 2 cores per problem, default parameters except for the operators; 30 s and "
            "one core where peers take part. Exact means the right structure.",
            "",
            *bars(["problems", "measure", "target", "result", "reached"], rows),
            "",
        ]

    def _peers(self) -> list[str]:
        sweep = SWEEPS["peers"]
        lines = self._head("symbayes and its peers: every third Feynman formula", "peers")
        for noise in sweep.noise:
            parts = [self._runs("peers", m).where(sweep.runs, noise=noise) for m in sweep.methods]
            rows = [
                [
                    METHODS[part.method].label,
                    part.version or "-",
                    part.share("right"),
                    part.share("srbench") if part.records else "-",
                    sum(r.get("srbench_by") == "numeric" for r in part.records)
                    if part.records
                    else "-",
                    part.median("nodes"),
                    _time(part),
                    sum(bool(r["failure"]) for r in part.records) if part.records else "-",
                ]
                for part in parts
            ]
            columns = [
                "method", "version", "right structure", "SRBench", "of these numeric",
                "median nodes", "median seconds to a right formula", "failed",
            ]  # fmt: skip
            lines += [f"Noise {noise:g}:", "", *bars(columns, rows), ""]
        return lines

    def _head(self, title: str, sweep: str) -> list[str]:
        """Return a title, the command, and which code ran on which processors."""
        ran = self._ran(sweep).strip()
        lines = [f"## {title}", "", f"Reproduce with `{SWEEPS[sweep].command}`.", ""]
        return [*lines, ran, ""] if ran else lines

    def _ran(self, sweep: str) -> str:
        """Return which version of symbayes ran, and on which processors."""
        runs = self._runs(sweep, "symbayes")
        if not runs.records:
            return ""
        processors = sorted({record["cpu"] for record in runs.records})
        code = f"symbayes {runs.version}{self._commits(runs.version)}"
        return f" {code}, on {' and '.join(processors)}."

    def _commits(self, version: str) -> str:
        """Return the commits that have the code of a version, as far as runs were made on one."""
        commits = {
            record["commit"]
            for record in self._records
            if record["method"] == "symbayes" and record["version"] == version
        }
        clean = sorted(commit for commit in commits if commit and not commit.endswith("-dirty"))
        return f" (commit {', '.join(clean)})" if clean else ""

    def _feynman(self) -> list[str]:
        sweep = SWEEPS["feynman"]
        runs = self._runs("feynman", "symbayes")
        parts = {noise: runs.where(sweep.runs, noise=noise) for noise in sweep.noise}
        rows: list[list[Cell]] = [
            [
                f"{noise:g}",
                part.share("right"),
                part.share("srbench") if part.records else "-",
                part.median("nodes"),
                _time(part),
                part.median("seconds_used"),
                sum(bool(r["failure"]) for r in part.records) if part.records else "-",
            ]
            for noise, part in parts.items()
        ]
        columns = [
            "noise", "right structure", "SRBench", "median nodes",
            "median seconds to a right formula", "median seconds used", "failed",
        ]  # fmt: skip
        lines = [*self._head("All Feynman formulas", "feynman"), *bars(columns, rows), ""]
        missed = {
            noise: [r["problem"] for r in part.records if not r.get("right")]
            for noise, part in parts.items()
        }
        for noise, names in missed.items():
            if names:
                lines += [f"Not found at noise {noise:g}: {', '.join(sorted(names))}.", ""]
        return lines

    def _exact(self, name: str, title: str) -> list[str]:
        sweep = SWEEPS[name]
        runs = self._runs(name, "symbayes")
        rows: list[list[Cell]] = []
        for problem, part in by_problem(runs, lambda part: part).items():
            rows.append(
                [
                    problem,
                    f"`{next((r['truth'] for r in part.records if 'truth' in r), '')}`",
                    f"{part.count('right')} of {sweep.seeds}",
                    f"{part.count('srbench')} of {sweep.seeds}",
                    part.median("nodes"),
                    _time(part),
                ]
            )
        columns = ["problem", "formula", "right structure", "SRBench", "median nodes", "seconds"]
        table = bars(columns, rows) if rows else [runs.missing]
        return [*self._head(title, name), *table, ""]

    def _real(self) -> list[str]:
        sweep = SWEEPS["real"]
        parts = [self._runs("real", method) for method in sweep.methods]
        columns = ["data"]
        for part in parts:
            columns += [f"{part.method}: R2", "R2 of the formula", "nodes"]
        names = sorted({record["problem"] for part in parts for record in part.records})
        rows: list[list[Cell]] = [
            [name, *(c for part in parts for c in _real_cells(part.where(0, problem=name)))]
            for name in names
        ]
        rows.append(["all runs", *(c for part in parts for c in _real_cells(part))])
        lines = [*self._head("Real data", "real"), *bars(columns, rows), ""]
        lines += [f"{p.method}: {p.missing}." for p in parts if p.missing]
        return [
            *lines,
            "",
            "Medians over the splits; R2 is that of a method's own prediction.",
            "",
        ]

    def _coverage(self) -> list[str]:
        feynman = self._runs("feynman", "symbayes")
        noisy = feynman.where(SWEEPS["feynman"].runs, noise=0.1)
        rows: list[list[Cell]] = []
        for label, part in (
            ("real data", self._runs("real", "symbayes")),
            ("Feynman formulas, noise 0.1", noisy),
        ):
            covered = [r["coverage"] for r in part.records if r.get("coverage") is not None]
            cells: list[Cell] = ["-", "-", "-"]
            if covered:
                mean = sum(covered) / len(covered)
                cells = [f"{mean:.1%}", f"{median(covered):.1%}", f"{min(covered):.1%}"]
            rows.append([label, len(covered), *cells, part.missing or "complete"])
        columns = ["problems", "runs", "mean", "median", "least", "runs missing"]
        return [
            "## Coverage of 90 % predictive intervals",
            "",
            "From the runs of the tables above: the share of new observations that lie inside.",
            "",
            *bars(columns, rows),
            "",
        ]

    def _columns(self) -> list[str]:
        runs = self._runs("columns", "symbayes")
        rows: list[list[Cell]] = [
            [record["seed"], *columns_found(record), "yes" if record.get("right") else "no"]
            for record in sorted(runs.records, key=lambda record: record["seed"])
        ]
        columns = ["seed", "relevant columns above 0.5", "others above 0.5", "right structure"]
        table = bars(columns, rows) if rows else [runs.missing]
        return [*self._head("Five relevant columns of 200", "columns"), *table, ""]

    def _calibration(self) -> list[str]:
        runs = self._runs("calibration", "symbayes")
        rows: list[list[Cell]] = []
        for part in fifths(runs.records):
            low, high = wilson(part.true, part.formulas)
            rows.append(
                [
                    f"{part.low:.1f} to {part.low + 0.2:.1f}",
                    part.formulas,
                    f"{part.reported:.2f}",
                    f"{part.share:.2f} ({low:.2f} to {high:.2f})",
                    "yes" if abs(part.share - part.reported) <= 0.1 else "no",
                ]
            )
        columns = ["reported", "formulas", "mean reported", "share true", "within 10 points"]
        table = bars(columns, rows) if rows else []
        return [
            *self._head("Reported probabilities", "calibration"),
            *table,
            *([runs.missing] if runs.missing else []),
            "",
            "All formulas reported with a probability of 0.005 or more. True means the truth "
            "itself: the right structure, no superfluous term, and no more numbers estimated than "
            "the truth has.",
            "",
        ]

    def _methods(self) -> list[str]:
        lines = [
            "## Methods, settings and handicaps",
            "",
            "A peer's fit ends when its error falls below 1e-7 of the spread of y, if it can be "
            "stopped. Constants are always allowed, which is what `lt` provides.",
            "",
        ]
        for method in METHODS.values():
            packages = " ".join(method.requirements) or "this repository"
            lines += [
                f"- **{method.label}** ({packages}). Settings: {method.settings} "
                f"Handicaps: {method.handicaps}"
            ]
        lines += ["", "Left out, after a trial:", ""]
        lines += [f"- {name}: {reason}." for name, reason in LEFT_OUT.items()]
        machines = sorted({r["cpu"] for r in self._records if r.get("cpu")})
        return [*lines, "", f"Run on: {'; '.join(machines) or 'not run'}."]


def _page(*sections: list[str]) -> str:
    return "\n".join(line for section in sections for line in section).rstrip() + "\n"


def _repeat(*sweeps: str) -> str:
    quoted = sweeps[0] if len(sweeps) == 1 else f'"{" ".join(sweeps)}"'
    return f"Repeat with `make bench-quality SWEEP={quoted}`."


def _noise(level: float) -> str:
    return f"{100 * level:g} % noise" if level else "no noise"


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.1f} %"


def _time(runs: Runs) -> Cell:
    times = [r["found_at"] for r in runs.records if r.get("right")]
    return median(times) if times else None


def _real_cells(runs: Runs) -> list[Cell]:
    if not runs.records:
        return ["not run", "-", "-"]
    r2, formula = (runs.median(name, float("-inf")) for name in ("r2", "r2_formula"))
    nodes = runs.median("nodes")
    return [_three(r2), _three(formula), show(nodes)]


def _three(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def main() -> int:
    """Write the pages."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.quality.report", description=__doc__
    )
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--page", type=Path, default=PAGE)
    parser.add_argument("--details", type=Path, default=DETAILS)
    parser.add_argument("--images", type=Path, default=IMAGES)
    parser.add_argument(
        "--version", nargs="+", default=[], metavar="METHOD=VERSION", help="instead of the latest"
    )
    options = parser.parse_args()
    suites = sorted({sweep.suite for sweep in SWEEPS.values()})
    records = [record for suite in suites for record in Store(suite, options.results).values()]
    versions = dict(choice.split("=", 1) for choice in options.version)
    report = Report(records, versions, options.images)
    for path, page in ((options.page, report.text()), (options.details, report.details())):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(page, encoding="utf-8")
    print(f"{len(records)} runs; wrote {options.page} and {options.details}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
