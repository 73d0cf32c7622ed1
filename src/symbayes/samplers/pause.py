"""Where a run stopped: what a later one needs, besides its draws, to go on as if it had not."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .ladder_state import LadderState


@dataclass(frozen=True)
class Pause:
    """The state of a run between two draws."""

    ladders: list[LadderState]
    made: int
    """Draws a chain so far, as the parameter `draws` counts them."""
    exchanges: np.random.Generator | None = None
    """What exchanges between ladders are drawn from; None without them."""
    spent: float = 0.0
    """What the draws have cost until the last full look at them, in units of ordinary ones."""
    exact: bool = False
    """Whether the search has found an exact formula."""
