"""What a user sees while something runs: a panel where one can be redrawn, else lines."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from .progress import SECONDS_PER_REPORT, Progress, Reporter

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.panel import Panel
    from rich.text import Text

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
        self._surface = _surface(console) if enabled else _Surface()
        self._next_line = time.monotonic() + _SECONDS_PER_LINE

    def __enter__(self) -> Display:
        return self

    def __exit__(self, *exception: object) -> None:
        self._surface.close()

    @property
    def interval(self) -> float:
        """Seconds between two things that are worth showing."""
        return _SECONDS_PER_LINE if isinstance(self._surface, _Lines) else SECONDS_PER_REPORT

    def say(self, message: str) -> None:
        """Show what is being done, until there is something else to show."""
        self._surface.say(message)

    def show(self, progress: Progress) -> None:
        """Show where a fit stands."""
        self._surface.show(progress)

    def update(self, phase: str, done: int, total: int) -> None:
        """Show how far something has come of which no more is known."""
        now = time.monotonic()
        if done == total or now >= self._next_line or not isinstance(self._surface, _Lines):
            self._next_line = now + _SECONDS_PER_LINE
            self._surface.show(Progress(phase, done, total))

    def conclude(self, message: str) -> None:
        """Say how it ended; that stays on the screen."""
        self._surface.close()
        self._surface.conclude(message)
        self._surface = _Surface()


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
    return lambda status: None


class _Surface:
    """Where things are shown; this one shows nothing."""

    def say(self, message: str) -> None: ...

    def show(self, progress: Progress) -> None: ...

    def conclude(self, message: str) -> None: ...

    def close(self) -> None: ...


class _Lines(_Surface):
    """Lines on standard error."""

    def say(self, message: str) -> None:
        print(f"symbayes: {message}", file=sys.stderr, flush=True)

    conclude = say

    def show(self, progress: Progress) -> None:
        formula = printable(progress.formula)
        if len(formula) > _LONGEST_FORMULA:
            formula = formula[: _LONGEST_FORMULA - 3] + "..."
        count = f"{progress.phase} {progress.done}/{progress.total}"
        parts = filter(None, [count, *_numbers(progress), _time_left(progress)])
        self.say(", ".join(parts) + (formula and f": {formula}"))


class _Panel(_Surface):
    """A panel, redrawn whenever there is something to show."""

    _width: int | None = None

    def __init__(self) -> None:
        self._started = time.monotonic()
        self._rows: list[RenderableType] = []

    def say(self, message: str) -> None:
        self._rows = [_one_line(message)]
        self._draw()

    def show(self, progress: Progress) -> None:
        """Names of columns are data: nothing in them is a style."""
        from rich.columns import Columns
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        head = Table.grid(padding=(0, 1), expand=True)
        for ratio in (None, 1, None, None):
            head.add_column(ratio=ratio, no_wrap=True)
        bar = ProgressBar(total=max(1, progress.total), completed=progress.done)
        count = f"{progress.done}/{progress.total}"
        head.add_row(Text(progress.phase), bar, Text(count), Text(_time_left(progress)))
        self._rows = [head]
        if numbers := _numbers(progress):
            self._rows.append(Columns(map(Text, numbers), padding=(0, 2)))
        if progress.formula:
            self._rows.append(_one_line(printable(progress.formula), "bold"))
        self._draw()

    def _draw(self) -> None: ...

    def _framed(self) -> Panel:
        from rich.console import Group
        from rich.panel import Panel

        return Panel(
            Group(*self._rows), title="symbayes", title_align="left", border_style="dim",
            subtitle=_clock(time.monotonic() - self._started), subtitle_align="right",
            width=self._width,
        )  # fmt: skip


class _Terminal(_Panel):
    """At the bottom of a terminal, with a clock that ticks; wiped out in the end."""

    def __init__(self, console: Console):
        from rich.live import Live

        super().__init__()
        # Messages that others write to standard error go above the panel.
        self._live = Live(
            get_renderable=self._framed, console=console, transient=True, redirect_stdout=False
        )

    def _draw(self) -> None:
        self._live.start()
        self._live.refresh()

    def conclude(self, message: str) -> None:
        from rich.text import Text

        self._live.console.print(Text(f"symbayes: {message}"), soft_wrap=True)

    def close(self) -> None:
        self._live.stop()


class _Notebook(_Panel):
    """An output of the cell, replaced again and again; needs no widgets."""

    _width = _NOTEBOOK_WIDTH
    _handle: Any = None

    def _draw(self) -> None:
        self._put(self._framed()._repr_mimebundle_([], []))

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


def _surface(console: Console | None) -> _Surface:
    """Return the best that can be done where this runs."""
    if console is not None:
        return _Terminal(console)
    ipython = sys.modules.get("IPython")
    if ipython is not None and hasattr(ipython.get_ipython(), "kernel"):
        return _Notebook()
    if sys.stderr.isatty() and os.environ.get("TERM", "") not in ("dumb", "unknown"):
        from rich.console import Console

        return _Terminal(Console(stderr=True, force_jupyter=False))
    return _Lines()


def _one_line(text: str, style: str = "") -> Text:
    from rich.text import Text

    return Text(text, style=style, no_wrap=True, overflow="ellipsis")


def _numbers(progress: Progress) -> list[str]:
    """Return what there is to tell of a fit in numbers."""
    numbers = []
    if progress.proposals:
        numbers.append(f"{_short(progress.proposals / max(progress.seconds, 1e-9))} proposals/s")
    if progress.formula:
        numbers += [f"rmse {progress.rmse:.3g}", f"{progress.n_nodes} nodes"]
    if progress.swap_rate is not None:
        numbers.append(f"swaps {progress.swap_rate:.0%}")
    return numbers


def _time_left(progress: Progress) -> str:
    """Return nothing where it is not known, or nothing is left to do."""
    return f"{_clock(progress.seconds_left)} left" if progress.seconds_left else ""


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
