"""Where a run stopped: what a later one needs, besides its draws, to go on as if it had not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .ladder_state import LadderState
from .trace import Find, Trace


@dataclass(frozen=True)
class Pause:
    """The state of a run between two draws."""

    ladders: list[LadderState]
    made: int
    """Draws a chain so far, as the parameter `draws` counts them."""
    spent: float = 0.0
    """What the draws have cost until the last full look at them, in units of ordinary ones."""
    exact: bool = False
    """Whether the search has found an exact formula."""
    may_restart: bool = True
    """Whether draws have been cheap enough so far to go through warm-up again."""


@dataclass(frozen=True)
class SearchState:
    """A search between two rounds of a stage, apart from what its problem and its seeds tell."""

    done: int
    """Draws a ladder so far."""
    spent: float
    """What they have cost, in units of ordinary ones."""
    stage: int
    in_stage: int
    """Draws a ladder in this stage."""
    ladders: list[LadderState]
    """Those on y, one for each seeker."""
    others: dict[int, LadderState]
    """Those on other targets, by the number of the seeker that has one."""
    stages: list[int]
    """How long each seeker has been on y since its start."""
    spawned: list[int]
    """How many seeds were taken from that of each seeker."""
    best: Find
    history: list[Find]
    ends: list[Find]
    """The ends that starts have come to."""
    counts: np.ndarray
    """Proposals made, evaluated and accepted, by move, of ladders that are gone."""


@dataclass(frozen=True)
class Point:
    """A moment between two rounds of a run, from which it can be gone on with."""

    trace: Trace | None = None
    """What there is so far, with the states of the ladders in its pause; None during a search."""
    settling: tuple[int, int] | None = None
    """Parts of settling that are over, and draws made in the next; None once drawing has begun."""
    search: SearchState | None = None
    finished: bool = False
    """Whether the trace is that of the whole run."""


#: Is told of every moment at which a run could be kept, and makes a point of it when it wants one.
Save = Callable[[Callable[[], Point]], None]


def save_nothing(make: Callable[[], Point]) -> None:
    """Let all moments pass."""
