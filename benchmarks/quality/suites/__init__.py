"""The suites: one module each, with `names(data)` and `load(...)`, and with `own_noise(name)` where
a problem has a noise level of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

from ..problems import DATA, Problem
from . import calibration, classic, columns, feynman, paper, real

SUITES: dict[str, ModuleType] = {
    "paper": paper,
    "classic": classic,
    "feynman": feynman,
    "real": real,
    "columns": columns,
    "calibration": calibration,
}


def names(suite: str, data: Path = DATA) -> list[str]:
    """Return the problems of a suite, in their order."""
    return SUITES[suite].names(data)


def noises(suite: str, name: str, asked: Sequence[float]) -> list[float]:
    """Return the noise levels to run a problem at: those asked for, or its own."""
    own = getattr(SUITES[suite], "own_noise", None)
    return list(asked) if own is None else [own(name)]


def load(suite: str, name: str, noise: float, seed: int, data: Path = DATA) -> Problem:
    """Return a problem.

    Parameters
    ----------
    suite, name : str
    noise : float
        One of `noises(suite, name, ...)`.
    seed : int
        Of the rows and of the noise.
    data : Path
    """
    return SUITES[suite].load(name, noise, seed, data)
