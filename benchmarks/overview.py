"""`docs/performance.md`: the figures that a user needs, picked from the stored measurements."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from .report import Cell, bars, show

DETAILS = "development/performance-details.md"


class Measured:
    """The stored result of one measure, looked up by row and column."""

    def __init__(self, section: dict[str, Any]):
        self.title: str = section["title"]
        self.notes: list[str] = section["notes"]
        self.machine: dict[str, Any] = section.get("machine", {})
        self._tables = section["tables"]

    def rows(self, *columns: str, table: int = 0) -> list[list[Cell]]:
        """Return some columns of a table, row by row."""
        places = [self._tables[table]["columns"].index(column) for column in columns]
        return [[row[i] for i in places] for row in self._tables[table]["rows"]]

    def cell(self, row: Cell, column: str, table: int = 0) -> str:
        """Return one figure as text; a row is named by its first cell."""
        place = self._tables[table]["columns"].index(column)
        return show(next(r[place] for r in self._tables[table]["rows"] if r[0] == row))


def overview(document: dict[str, Any]) -> str:
    """Return the page. A section whose measures were not run is left out."""
    # A measure that this machine does not allow has a section without tables.
    measured = {s["name"]: Measured(s) for s in document["sections"] if s["tables"]}
    machine = document["machine"]
    lines = [
        "# Performance",
        "",
        "How long a fit takes, what it needs, and what more cores bring. Written by `make bench`; "
        "each section names the command that repeats its measurement. [Performance in detail]"
        f"({DETAILS}) has the conditions, what was counted, the other figures, and the targets.",
        "",
        f"Measured on {machine.get('cores', '?')} cores ({machine.get('CPU', '?')}, Python "
        f"{machine.get('Python', '?')}) unless a section says otherwise.",
        "",
    ]
    for title, names, write in _SECTIONS:
        if all(name in measured for name in names):
            lines += [f"## {title}", "", *write(*(measured[name] for name in names)), ""]
            lines += [f"Repeat with `python -m benchmarks.run --only {' '.join(names)}`.", ""]
    return "\n".join(lines).rstrip() + "\n"


def _duration(default_call: Measured) -> Iterable[str]:
    rows: list[list[Cell]] = [
        [law, f"{show(least)} to {show(most)}"]
        for law, least, most in default_call.rows("y", "least, s", "most, s")
    ]
    return [
        f"{default_call.title}, without a time limit, on all cores, with three data sets for each "
        "formula. A fit ends by itself; `timeout` ends it earlier.",
        "",
        *bars(["y", "seconds"], rows),
    ]


def _first_fit(cold_start: Measured) -> Iterable[str]:
    first = cold_start.cell("first fit, nothing compiled", "median")
    draw = cold_start.cell("first draw, all compiled", "median")
    imports = cold_start.cell("`import sympy, sklearn, numba`", "median")
    return [
        f"The first fit after installation compiles the sampler: the whole process took {first} s. "
        f"From then on a new process has its first draw after {draw} s, of which importing SymPy, "
        f"scikit-learn and Numba takes {imports} s.",
    ]


def _memory(memory: Measured, large: Measured) -> Iterable[str]:
    imported = memory.cell("symbayes imported", "noise 10%")
    above = memory.cell("peak above symbayes imported", "noise 10%")
    (sizes,) = large.rows(
        "the table", "peak during the fit, the table included", "times the table", table=2
    )
    table, peak, times = map(show, sizes)
    return [
        f"An interpreter that has imported symbayes takes {imported} MB; a default fit of 100 rows "
        f"adds {above} MB. With 1,000,000 rows and 20 columns, a table of {table} MB, the peak "
        f"during the fit is {peak} MB more than before the table was made: {times} times the "
        "table.",
    ]


def _size(growth: Measured, large: Measured) -> Iterable[str]:
    columns = ["rows", "proposals/s"]
    return [
        "One chain on one core, judging every proposal on all rows:",
        "",
        *bars(["rows", "proposals per second"], growth.rows(*columns)),
        "",
        growth.notes[0],
        "",
        "With more than 5,000 rows, a proposal is judged on 1,024 of them first, and most are "
        "rejected there without a look at the others "
        "([delayed acceptance](theory.md#large-tables-delayed-acceptance)). With 1,000,000 "
        f"rows a ladder makes {large.cell('first 1,024 rows', 'proposals/s')} proposals per second "
        f"that way, and {large.cell('all rows at once', 'proposals/s')} without. The formula "
        f"`x0*x1 + x0*x2*x3*sin(x4)` with 1 % noise was found after "
        f"{large.cell(1_000_000, 'seconds', table=1)} s with 1,000,000 rows, and after "
        f"{large.cell(1_000, 'seconds', table=1)} s with 1,000.",
    ]


def _cores(cores: Measured, scaling: Measured, places: Measured) -> Iterable[str]:
    most = max(int(str(row[0])) for row in scaling.rows("cores"))
    cpu = f" ({scaling.machine['CPU']})" if scaling.machine else ""
    seconds = [row for row in places.rows("call", "where", "ratio") if row[0] == "default"]
    ratios = {str(where): show(ratio) for _, where, ratio in seconds}
    return [
        f"- Two cores make {cores.cell('search and sampling', 'ratio')} times as many proposals "
        f"per second as one, {cores.cell('the whole fit', 'ratio')} times over the whole fit.",
        f"- On a machine with {most} cores{cpu} and two chains per core, {most} cores make "
        f"{scaling.cell(most, 'effective draws per second')} effective draws per second, one makes "
        f"{scaling.cell(1, 'effective draws per second')}: {scaling.cell(most, 'of linear')} of a "
        "linear gain. One core slows down when the others are busy; measured against such a core "
        f"it is {scaling.cell(most, 'of linear, other cores busy')}.",
        f"- On one machine, two processes take {ratios.get('processes (loky)', '-')} times as long "
        f"as two threads, and two Dask workers {ratios.get('Dask, two workers', '-')} times. "
        "[Large data and clusters](clusters.md) says when they are of use.",
    ]


def _peers(throughput: Measured, operon: Measured) -> Iterable[str]:
    rows = [
        [tool, trees if tool == "symbayes" else _largest([proposals, trees]), ratio]
        for tool, proposals, trees, ratio in throughput.rows(
            "tool", "proposals/s", "evaluated trees/s", "symbayes / tool"
        )
    ]
    ours = operon.rows("rows", "symbayes, proposals/s")
    theirs = operon.rows("trees/s", "all evaluations/s, local search", table=1)
    ratios = operon.rows(
        "proposals / its fastest figure", "judged on all rows at once / the same", table=2
    )
    against = [
        [n, mine, _largest(their), *ratio]
        for (n, mine), their, ratio in zip(ours, theirs, ratios, strict=True)
    ]
    return [
        "Formulas per second on 100 rows and one core. For symbayes that is new trees evaluated "
        "on all rows and fitted; for the others it is proposals or evaluations, whichever are "
        "more.",
        "",
        *bars(["tool", "formulas per second", "symbayes / tool"], rows),
        "",
        "pyoperon is compiled as well. Its fastest figure, in single precision, against proposals "
        "of symbayes, each judged with all coefficients fitted:",
        "",
        *bars(
            ["rows", "symbayes", "pyoperon", "ratio", "ratio without delayed acceptance"], against
        ),
        "",
        "More evaluations are not more formulas found: for that see the [benchmark](benchmark.md).",
    ]


def _largest(figures: Iterable[Cell]) -> Cell:
    return max((figure for figure in figures if isinstance(figure, int | float)), default=None)


_SECTIONS: tuple[tuple[str, tuple[str, ...], Callable[..., Iterable[str]]], ...] = (
    ("How long a fit takes", ("default_call",), _duration),
    ("The first fit", ("cold_start",), _first_fit),
    ("Memory", ("memory", "large"), _memory),
    ("Rows, columns and terms", ("growth", "large"), _size),
    ("Cores, processes and clusters", ("cores", "scaling", "places"), _cores),
    ("Against other tools", ("throughput", "operon"), _peers),
)
