"""What a run shows while it runs."""

from __future__ import annotations

import sys
import time
from typing import Any

from .samplers.running import Progress

# Without a terminal, a line at most every so many seconds.
_SECONDS_A_LINE = 10.0


class Display:
    """A progress bar in a terminal or notebook, a line now and then elsewhere.

    Without a bar, the end of a phase gets a line too, so that a log shows that all went well.
    """

    def __init__(self, enabled: bool):
        self._enabled = enabled
        self._bar: Any = None
        self._tasks: dict[str, Any] = {}
        self._last_line = time.monotonic()

    def __enter__(self) -> Display:
        if self._enabled and (sys.stderr.isatty() or "ipykernel" in sys.modules):
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

            self._bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                TextColumn("{task.completed}/{task.total}"),
                TimeElapsedColumn(),
                console=Console(stderr=True),
                transient=True,
            )
            self._bar.start()
        return self

    def __exit__(self, *exception: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def say(self, message: str) -> None:
        """Show a line."""
        if not self._enabled:
            return
        if self._bar is not None:
            self._bar.console.print(message)
        else:
            print(message, file=sys.stderr, flush=True)

    def update(self, phase: str, done: int, total: int) -> None:
        """Show how far a phase has come."""
        if not self._enabled:
            return
        if self._bar is not None:
            if phase not in self._tasks:
                self._tasks[phase] = self._bar.add_task(phase, total=total)
            self._bar.update(self._tasks[phase], completed=done)
        elif done >= total or time.monotonic() - self._last_line >= _SECONDS_A_LINE:
            self._last_line = time.monotonic()
            print(f"symbayes: {phase} {done}/{total}", file=sys.stderr, flush=True)

    @property
    def callback(self) -> Progress:
        """The function that samplers report to."""
        return self.update
