"""Used by the scripts: the clock, and the best formula over time. Standard library only."""

from __future__ import annotations

from time import perf_counter

PERFECT = 1e-7
"""The error, in standard deviations of the response, below which a fit is perfect: it ends."""


class Progress:
    """The clock of a fit, started when made, and the formulas that led."""

    def __init__(self, seconds: float):
        self.limit = seconds
        self.history: list[tuple[float, str]] = []
        self._start = perf_counter()

    @property
    def seconds(self) -> float:
        return perf_counter() - self._start

    @property
    def left(self) -> float:
        return self.limit - self.seconds

    def leads(self, text: str) -> None:
        """Note the leading formula, if it is another than before."""
        if not self.history or self.history[-1][1] != text:
            self.history.append((self.seconds, text))
