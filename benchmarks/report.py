"""What a measure returns, and how it becomes text, Markdown and JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

Cell = str | int | float | None


@dataclass
class Target:
    """A figure that was aimed at."""

    figure: str
    target: str
    measured: Cell
    reached: bool | None
    """None when it could not be measured."""


@dataclass
class Table:
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    caption: str = ""


@dataclass
class Section:
    """The result of one measure."""

    name: str
    title: str
    tables: list[Table]
    targets: list[Target] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """Settings, what was counted, handicaps, remarks on the figures."""


def at_least(figure: str, target: float, measured: float | None) -> Target:
    """Return a target that is reached from `target` upwards."""
    reached = None if measured is None else measured >= target
    return Target(figure, f"at least {show(target)}", measured, reached)


def at_most(figure: str, target: float, measured: float | None) -> Target:
    """Return a target that is reached from `target` downwards."""
    reached = None if measured is None else measured <= target
    return Target(figure, f"at most {show(target)}", measured, reached)


def show(value: Cell) -> str:
    """Return a value for readers: three digits that count, thousands apart."""
    if value is None:
        return "-"
    if isinstance(value, str):
        return value
    if isinstance(value, int) or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def to_dict(section: Section, date: str, load: float | None) -> dict[str, Any]:
    """Return a section as it is kept in the JSON file."""
    command = f"python -m benchmarks.run --only {section.name}"
    return {**asdict(section), "command": command, "date": date, "load_at_start": load}


def text(section: dict[str, Any]) -> str:
    """Return a section for the terminal."""
    lines = [section["title"], "=" * len(section["title"]), ""]
    for table in section["tables"]:
        if table["caption"]:
            lines += [table["caption"]]
        lines += _aligned(table["columns"], table["rows"]) + [""]
    if section["targets"]:
        lines += _aligned(*_target_table(section["targets"])) + [""]
    lines += [f"* {note}" for note in section["notes"]] + [""]
    return "\n".join(lines)


def markdown(document: dict[str, Any]) -> str:
    """Return all sections as Markdown, with their targets."""
    lines = ["# Performance in detail", ""]
    lines += [
        "All measurements of `make bench`: how each was made, what was counted, and the targets "
        "that were set. [Performance](../performance.md) has what a user needs of it. The same "
        "figures are in `benchmarks/results/measured.json`.",
        "",
    ]
    lines += bars(("machine", ""), [[k, str(v)] for k, v in document["machine"].items()]) + [""]
    for section in document["sections"]:
        lines += [f"## {section['title']}", ""]
        lines += [
            f"Reproduce with `{section['command']}`. Measured {section['date']}, load of the "
            f"machine before the start {show(section['load_at_start'])}.",
            "",
        ]
        if section.get("machine", document["machine"]) != document["machine"]:
            parts = ", ".join(f"{key} {value}" for key, value in section["machine"].items())
            lines += [f"On another machine: {parts}.", ""]
        for table in section["tables"]:
            if table["caption"]:
                lines += [table["caption"], ""]
            lines += bars(table["columns"], table["rows"]) + [""]
        if section["targets"]:
            lines += bars(*_target_table(section["targets"])) + [""]
        lines += [f"- {note}" for note in section["notes"]]
        lines += [""] if section["notes"] else []
    return "\n".join(lines).rstrip() + "\n"


def keep(
    folder: Path,
    machine: dict[str, Any],
    sections: list[dict[str, Any]],
    order: Sequence[str],
) -> dict[str, Any]:
    """Store the results, and return them with those of other measures that were stored before.

    Older results are kept only if machine and versions are the same.
    """
    path = folder / "measured.json"
    kept: dict[str, dict[str, Any]] = {}
    if path.exists():
        old = json.loads(path.read_text())
        if old["machine"] == machine:
            kept = {section["name"]: section for section in old["sections"]}
    kept |= {section["name"]: section for section in sections}
    in_order = [kept[name] for name in order if name in kept]
    document = {"machine": machine, "sections": in_order}
    folder.mkdir(exist_ok=True)
    path.write_text(json.dumps(document, indent=1) + "\n")
    return document


def taken(path: Path, names: Sequence[str] | None) -> list[dict[str, Any]]:
    """Return sections of the results of another machine, which they then name."""
    document = json.loads(path.read_text())
    return [
        section | {"machine": document["machine"]}
        for section in document["sections"]
        if names is None or section["name"] in names
    ]


def _target_table(targets: list[dict[str, Any]]) -> tuple[list[str], list[list[Cell]]]:
    verdict = {True: "yes", False: "no", None: "not measured"}
    rows: list[list[Cell]] = [
        [t["figure"], t["target"], t["measured"], verdict[t["reached"]]] for t in targets
    ]
    return ["figure", "target", "measured", "reached"], rows


def bars(columns: Sequence[str], rows: Sequence[Sequence[Cell]]) -> list[str]:
    """Return a table in Markdown, line by line."""

    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(cells) + " |"

    numeric = _numeric(rows)
    rule = ["---:" if right else "---" for right in numeric] or ["---"] * len(columns)
    return [line(columns), line(rule)] + [line([show(cell) for cell in row]) for row in rows]


def _aligned(columns: Sequence[str], rows: Sequence[Sequence[Cell]]) -> list[str]:
    cells = [list(columns)] + [[show(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    numeric = _numeric(rows)
    cells.insert(1, ["-" * width for width in widths])
    return [
        "  ".join(
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(row, widths, numeric, strict=True)
        ).rstrip()
        for row in cells
    ]


def _numeric(rows: Sequence[Sequence[Cell]]) -> list[bool]:
    return [
        any(isinstance(cell, int | float) for cell in column) for column in zip(*rows, strict=True)
    ]
