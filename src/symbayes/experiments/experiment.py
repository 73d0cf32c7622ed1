"""What an experiment is: runs to make, and what their results say."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from .. import __version__
from .effort import Effort
from .jobs import Job, Work
from .methods import DEFAULT, PAPER
from .records import Record


@dataclass(frozen=True)
class Setting:
    """What the user asked for."""

    effort: Effort
    seed: int
    methods: tuple[str, ...]
    tasks: tuple[str, ...]
    prices: Path | None = None
    """The index study's table; without one a generated series is used."""

    def job(self, kind: str, method: str, task: str, replication: int, **more: Any) -> Job:
        """Return a run of this size, seed and version."""
        return Job(
            kind, method, task, replication, self.seed,
            size=self.size(method), version=__version__, **more,
        )  # fmt: skip

    def signal_job(self, method: str, prices: str, run: int) -> Job:
        """Return a run of the index study."""
        size = f"{self.effort.signal_trees} trees" if method == PAPER else self.size(method)
        return Job("signals", method, prices, run, self.seed, size=size, version=__version__)

    def size(self, method: str) -> str:
        """Return how much work a run of a method is."""
        if method == PAPER:
            return f"{self.effort.trees} trees"
        if method == DEFAULT:
            tune = "" if self.effort.tune is None else f", {self.effort.tune} of tuning"
            return f"{self.effort.draws} draws{tune}"
        return f"{self.effort.generations} generations"


@dataclass(frozen=True)
class Section:
    """What an experiment found."""

    text: str
    """Markdown, without a heading."""
    tables: dict[str, pd.DataFrame]
    """Long form, by name of the file."""
    figures: dict[str, Any] = field(default_factory=dict)
    """Matplotlib figures, by name of the file."""
    headline: str = ""
    """What the first line of the report has to say."""


class Experiment(ABC):
    """One table or figure of the paper."""

    name: str
    title: str

    @abstractmethod
    def jobs(self, setting: Setting) -> list[tuple[Job, Work]]:
        """Return the runs it needs; those of other experiments are shared."""

    @abstractmethod
    def summarise(self, records: list[Record], setting: Setting) -> Section:
        """Return what its runs say."""
