"""What a user sees while something runs: a panel where one can be redrawn, else lines."""

from __future__ import annotations

import io
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from .progress import SECONDS_PER_REPORT, Progress, Reporter, silent

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from ..posterior.table import FormulaWriter
    from ..samplers.run.clock import Watch
    from ..samplers.run.context import Report

# Seconds between two lines at least, where no panel can be redrawn.
_SECONDS_PER_LINE = 10.0
# Characters of a formula in a line at most, and the width of the panel in a notebook.
_LONGEST_FORMULA, _NOTEBOOK_WIDTH = 160, 100


class Display:
    """A panel in a terminal or notebook, which leaves nothing behind, or a line now and then.

    Without a panel, the end of a phase gets a line too, so that a log shows that all went well.

    Parameters
    ----------
    enabled : bool
        Whether to show anything at all.
    console : rich.console.Console, optional
        The terminal to draw on; by default whatever standard error is.
    """

    def __init__(self, enabled: bool, console: Console | None = None):
        self._surface: _Lines | _Terminal | _Notebook | None = None
        if enabled:
            self._surface = _surface(console)
        self._next_line = time.monotonic() + _SECONDS_PER_LINE

    def __enter__(self) -> Display:
        return self

    def __exit__(self, *exception: object) -> None:
        if self._surface is not None:
            self._surface.close()

    @property
    def interval(self) -> float:
        """Seconds between two things that are worth showing."""
        return _SECONDS_PER_LINE if isinstance(self._surface, _Lines) else SECONDS_PER_REPORT

    def say(self, message: str) -> None:
        """Show what is being done, until there is something else to show."""
        if self._surface is not None:
            self._surface.say(message)

    def show(self, progress: Progress) -> None:
        """Show where a fit stands."""
        if self._surface is not None:
            view = _View(progress.phase, progress.done, progress.total, progress.seconds_left)
            self._surface.show(view, _numbers(progress), printable(progress.formula))

    def update(self, phase: str, done: int, total: int) -> None:
        """Show how far something has come of which no more is known."""
        if self._surface is None:
            return
        now = time.monotonic()
        if isinstance(self._surface, _Lines) and done < total and now < self._next_line:
            return
        self._next_line = now + _SECONDS_PER_LINE
        self._surface.show(_View(phase, done, total, None), [], "")

    def conclude(self, message: str) -> None:
        """Say how it ended; that stays on the screen."""
        if self._surface is not None:
            self._surface.close()
            self._surface.conclude(message)
            self._surface = None


def reporter_for(
    progress: bool | Callable[[Progress], object],
    display: Display,
    writer: FormulaWriter,
    watch: Watch,
) -> Report:
    """Return what samplers report to, given the estimator's parameter `progress`."""
    if callable(progress):
        return Reporter(progress, SECONDS_PER_REPORT, writer, watch)
    if progress:
        return Reporter(display.show, display.interval, writer, watch)
    return silent


@dataclass(frozen=True)
class _View:
    """How far a phase has come."""

    phase: str
    done: int
    total: int
    left: float | None

    @property
    def count(self) -> str:
        return f"{self.done}/{self.total}"

    @property
    def time_left(self) -> str:
        """Empty where it is not known, or nothing is left to do."""
        return f"{_clock(self.left)} left" if self.left else ""


class _Lines:
    """Lines on standard error."""

    def say(self, message: str) -> None:
        print(f"symbayes: {message}", file=sys.stderr, flush=True)

    def show(self, view: _View, numbers: list[str], formula: str) -> None:
        parts = [f"{view.phase} {view.count}", *numbers, *filter(None, [view.time_left])]
        if len(formula) > _LONGEST_FORMULA:
            formula = formula[: _LONGEST_FORMULA - 3] + "..."
        self.say(", ".join(parts) + (f": {formula}" if formula else ""))

    def conclude(self, message: str) -> None:
        self.say(message)

    def close(self) -> None:
        pass


class _Panel:
    """A panel, redrawn whenever there is something to show."""

    def __init__(self) -> None:
        self._started = time.monotonic()
        self._parts: list[RenderableType] = []

    def say(self, message: str) -> None:
        self._parts = [_one_line(message)]
        self._draw()

    def show(self, view: _View, numbers: list[str], formula: str) -> None:
        self._parts = _parts(view, numbers, formula)
        self._draw()

    def _framed(self) -> RenderableType:
        from rich.console import Group
        from rich.panel import Panel

        return Panel(
            Group(*self._parts), title="symbayes", title_align="left", border_style="dim",
            subtitle=_clock(time.monotonic() - self._started), subtitle_align="right",
        )  # fmt: skip

    def _draw(self) -> None:
        raise NotImplementedError


class _Terminal(_Panel):
    """At the bottom of a terminal, with a clock that ticks; wiped out in the end."""

    def __init__(self, console: Console):
        from rich.live import Live

        super().__init__()
        self._running = False
        # Messages that others write to standard error go above the panel.
        self._live = Live(
            get_renderable=self._framed, console=console, transient=True, redirect_stdout=False
        )

    def _draw(self) -> None:
        if not self._running:
            self._running = True
            self._live.start()
        self._live.refresh()

    def conclude(self, message: str) -> None:
        from rich.text import Text

        self._live.console.print(Text(f"symbayes: {message}"), soft_wrap=True)

    def close(self) -> None:
        if self._running:
            self._running = False
            self._live.stop()


class _Notebook(_Panel):
    """An output of the cell, replaced again and again; needs no widgets."""

    def __init__(self) -> None:
        super().__init__()
        self._handle: Any = None

    def _draw(self) -> None:
        from rich.console import Console
        from rich.jupyter import JUPYTER_HTML_FORMAT

        paper = Console(
            file=io.StringIO(), record=True, width=_NOTEBOOK_WIDTH, force_jupyter=False,
            color_system="truecolor",
        )  # fmt: skip
        paper.print(self._framed())
        html = paper.export_html(code_format=JUPYTER_HTML_FORMAT, inline_styles=True, clear=False)
        self._put({"text/html": html, "text/plain": paper.export_text()})

    def _put(self, data: dict[str, str]) -> None:
        if self._handle is None:
            from IPython.display import display

            self._handle = display(data, raw=True, display_id=True)
        else:
            self._handle.update(data, raw=True)

    def conclude(self, message: str) -> None:
        self._put({"text/plain": f"symbayes: {message}"})

    def close(self) -> None:
        if self._handle is not None:
            self._put({"text/plain": ""})


def _surface(console: Console | None) -> _Lines | _Terminal | _Notebook:
    """Return the best that can be done where this runs."""
    if console is not None:
        return _Terminal(console)
    if _in_notebook():
        return _Notebook()
    if sys.stderr.isatty() and os.environ.get("TERM", "") not in ("dumb", "unknown"):
        from rich.console import Console

        return _Terminal(Console(stderr=True, force_jupyter=False))
    return _Lines()


def _in_notebook() -> bool:
    ipython = sys.modules.get("IPython")
    return ipython is not None and hasattr(ipython.get_ipython(), "kernel")


def _parts(view: _View, numbers: list[str], formula: str) -> list[RenderableType]:
    """Return the rows of a panel. Names of columns are data: nothing in them is a style."""
    from rich.columns import Columns
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    head = Table.grid(padding=(0, 1), expand=True)
    for ratio in (None, 1, None, None):
        head.add_column(ratio=ratio, no_wrap=True)
    bar = ProgressBar(total=max(1, view.total), completed=view.done)
    head.add_row(Text(view.phase), bar, Text(view.count), Text(view.time_left))
    rows: list[RenderableType] = [head]
    if numbers:
        rows.append(Columns([Text(number) for number in numbers], padding=(0, 2)))
    if formula:
        rows.append(_one_line(formula, "bold"))
    return rows


def _one_line(text: str, style: str = "") -> RenderableType:
    from rich.text import Text

    return Text(text, style=style, no_wrap=True, overflow="ellipsis")


def _numbers(progress: Progress) -> list[str]:
    """Return what there is to tell of a fit in numbers."""
    rate = progress.proposals / max(progress.seconds, 1e-9)
    numbers = [f"{_short(rate)} proposals/s"]
    if progress.formula:
        numbers += [f"rmse {progress.rmse:.3g}", f"{progress.n_nodes} nodes"]
    if progress.swap_rate is not None:
        numbers.append(f"swaps {progress.swap_rate:.0%}")
    return numbers


def _clock(seconds: float) -> str:
    """Return a time as 01:05, with hours where there are any."""
    return str(timedelta(seconds=int(seconds))).removeprefix("0:")


def _short(number: float) -> str:
    """Return a number with two or three digits and a unit, such as 1.1M."""
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if number >= size:
            return f"{number / size:.{0 if number >= 10 * size else 1}f}{unit}"
    return f"{number:.0f}"


def printable(text: str) -> str:
    """Return text without line breaks and control characters, which a column name may have."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
