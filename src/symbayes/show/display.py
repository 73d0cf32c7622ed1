"""What a user sees while something runs: a panel where one can be redrawn, else lines."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from .progress import SECONDS_PER_REPORT, Progress

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.panel import Panel
    from rich.text import Text

# Seconds between two lines at least, where no panel can be redrawn.
_SECONDS_PER_LINE = 10.0
# Characters of a formula in a line at most, and the width of the panel in a notebook.
_LONGEST_FORMULA, _NOTEBOOK_WIDTH = 160, 100


class Display:
    """A panel in a terminal or notebook, which leaves nothing behind, or a line now and then.

    Without a panel, the end of a phase gets a line too, so that a log shows that all went well. It
    is called with what it is to show, like any function given as `progress`.

    Parameters
    ----------
    enabled : bool
        Whether to show anything at all.
    console : rich.console.Console, optional
        The terminal to draw on; by default whatever standard error is.
    """

    def __init__(self, enabled: bool, console: Console | None = None):
        self._enabled = enabled
        self._rows: list[RenderableType] = []
        self._started = time.monotonic()
        self._screen = _screen(console, self._panel) if enabled else None
        self._next_line = self._started + _SECONDS_PER_LINE

    def __enter__(self) -> Display:
        return self

    def __exit__(self, *exception: object) -> None:
        if self._screen is not None:
            self._screen.close()

    @property
    def interval(self) -> float:
        """Seconds between two things that are worth showing."""
        return _SECONDS_PER_LINE if self._screen is None else SECONDS_PER_REPORT

    def say(self, message: str) -> None:
        """Show what is being done, until there is something else to show."""
        self._put(message, lambda: [_one_line(message)])

    def __call__(self, progress: Progress) -> None:
        """Show where a fit stands."""
        if progress.phase == "compiling":
            self.say("compiling, once (ten to thirty seconds)")
        else:
            self._put(_line(progress), lambda: _rows(progress))

    def update(self, phase: str, done: int, total: int) -> None:
        """Show how far something has come of which no more is known."""
        now = time.monotonic()
        if done == total or now >= self._next_line or self._screen is not None:
            self._next_line = now + _SECONDS_PER_LINE
            self(Progress(phase, done, total))

    def conclude(self, message: str) -> None:
        """Say how it ended; that stays on the screen."""
        if self._screen is None:
            self.say(message)
        else:
            self._screen.close()
            self._screen.conclude(f"symbayes: {message}")
        self._enabled, self._screen = False, None

    def _put(self, line: str, rows: Callable[[], list[RenderableType]]) -> None:
        if self._screen is not None:
            self._rows = rows()
            self._screen.draw()
        elif self._enabled:
            print(f"symbayes: {line}", file=sys.stderr, flush=True)

    def _panel(self) -> Panel:
        from rich.console import Group
        from rich.panel import Panel

        return Panel(
            Group(*self._rows), title="symbayes", title_align="left", border_style="dim",
            subtitle=_clock(time.monotonic() - self._started), subtitle_align="right",
        )  # fmt: skip


class _Terminal:
    """A panel at the bottom of a terminal, with a clock that ticks; wiped out in the end."""

    def __init__(self, console: Console, panel: Callable[[], Panel]):
        from rich.live import Live

        # Messages that others write to standard error go above the panel.
        self._live = Live(
            get_renderable=panel, console=console, transient=True, redirect_stdout=False
        )

    def draw(self) -> None:
        self._live.start()
        self._live.refresh()

    def close(self) -> None:
        self._live.stop()

    def conclude(self, message: str) -> None:
        from rich.text import Text

        self._live.console.print(Text(message), soft_wrap=True)


class _Notebook:
    """A panel as the output of a cell, replaced again and again; needs no widgets."""

    def __init__(self, panel: Callable[[], Panel]):
        self._panel = panel
        self._handle: Any = None

    def draw(self) -> None:
        panel = self._panel()
        panel.width = _NOTEBOOK_WIDTH
        self._put(panel._repr_mimebundle_([], []))

    def close(self) -> None:
        if self._handle is not None:
            self._put({"text/plain": ""})

    def conclude(self, message: str) -> None:
        self._put({"text/plain": message})

    def _put(self, data: dict[str, str]) -> None:
        if self._handle is None:
            from IPython.display import display

            self._handle = display(data, raw=True, display_id=True)
        else:
            self._handle.update(data, raw=True)


def _screen(console: Console | None, panel: Callable[[], Panel]) -> _Terminal | _Notebook | None:
    """Return where a panel can be redrawn, if anywhere."""
    if console is not None:
        return _Terminal(console, panel)
    ipython = sys.modules.get("IPython")
    if ipython is not None and hasattr(ipython.get_ipython(), "kernel"):
        return _Notebook(panel)
    if sys.stderr.isatty() and os.environ.get("TERM", "") not in ("dumb", "unknown"):
        from rich.console import Console

        return _Terminal(Console(stderr=True, force_jupyter=False), panel)
    return None


def _line(progress: Progress) -> str:
    formula = printable(progress.formula)
    if len(formula) > _LONGEST_FORMULA:
        formula = formula[: _LONGEST_FORMULA - 3] + "..."
    count = f"{progress.phase} {progress.done}/{progress.total}"
    parts = filter(None, [count, *_numbers(progress), _time_left(progress)])
    return ", ".join(parts) + (formula and f": {formula}")


def _rows(progress: Progress) -> list[RenderableType]:
    """Return the rows of a panel. Names of columns are data: nothing in them is a style."""
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
    rows: list[RenderableType] = [head]
    if numbers := _numbers(progress):
        rows.append(Columns(map(Text, numbers), padding=(0, 2)))
    if progress.formula:
        rows.append(_one_line(printable(progress.formula), "bold"))
    return rows


def _one_line(text: str, style: str = "") -> Text:
    from rich.text import Text

    return Text(text, style=style, no_wrap=True, overflow="ellipsis")


def _numbers(progress: Progress) -> list[str]:
    """Return the numbers that the display shows of a fit."""
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
