"""What ladders tell about their run."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..kernels.chain import PROPOSED
from .ladder import Replicas
from .run.running import Look, Report, Status


def teller(ladders: list[Replicas], searched: int, progress: Report) -> Callable[..., None]:
    """Return what reports how far a phase of ladders has come, after so many proposals before."""

    def tell(phase: str, done: int, total: int, ended: bool = False) -> None:
        progress(Status(phase, done, total, lambda: _look(ladders, searched), ended))

    return tell


def _look(ladders: list[Replicas], searched: int) -> Look:
    """Return the coldest state of the best ladder, and how it goes with all of them."""
    proposed = sum(int(ladder.chains.counts[:, PROPOSED].sum()) for ladder in ladders)
    tried = np.concatenate([ladder.ladder.tried for ladder in ladders])
    rejected = np.concatenate([ladder.ladder.rejected for ladder in ladders])
    swapped = 1.0 - rejected[tried > 0] / tried[tried > 0]
    best = max(ladders, key=lambda ladder: ladder.score)
    return Look(best.trees(), searched + proposed, float(swapped.mean()) if len(swapped) else None)
