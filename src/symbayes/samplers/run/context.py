"""What every phase of a run is given: where its chains run, when it stops, whom it tells."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..trace import RunState
from .clock import Watch
from .workers import Workers


@dataclass(frozen=True)
class Look:
    """What the display shows of a run at one moment."""

    trees: list[np.ndarray]
    """The terms of the leading state."""
    proposals: int
    """Proposals made so far, by all chains together."""
    swap_rate: float | None = None
    """Mean probability of accepting a swap between neighbouring temperatures, if there are any."""


@dataclass(frozen=True)
class Status:
    """How far a phase has come."""

    phase: str
    done: int
    total: int
    look: Callable[[], Look]
    """Takes time, so it is called only for what is shown, and at once: states move on."""
    ended: bool = False
    """Whether this is the last report of its phase."""


Report = Callable[[Status], object]


@dataclass(frozen=True)
class RunContext:
    """Where a run is carried out, until when, and what hears of it."""

    workers: Workers
    watch: Watch
    report: Report = lambda status: None
    """Is told how far each phase has come."""
    save: Callable[[Callable[[], RunState]], object] | None = None
    """Is told of every moment from which the run could be resumed; when it wants to keep that
    moment, it calls what it is given. None where nothing is kept."""

    def offer_state(self, make: Callable[[], RunState]) -> None:
        """Let this moment of the run be kept, if anybody wants to."""
        if self.save is not None:
            self.save(make)
