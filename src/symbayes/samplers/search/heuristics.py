"""What the ways of suggesting states share: the state they see, the data, and their switches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ...inputs.problem import Problem


class State(Protocol):
    """Where the search is now."""

    def trees(self) -> list[np.ndarray]:
        """Return its terms."""


class FittedState(State, Protocol):
    """A state of a ladder, whose coefficients are known."""

    def residual(self) -> np.ndarray:
        """Return the weighted residuals on all rows of its problem."""

    def coefficients(self) -> tuple[float, np.ndarray]:
        """Return the intercept and the coefficients of its terms."""


@dataclass(frozen=True)
class Heuristics:
    """Which heuristics a search uses: all of them, unless an experiment turns one off."""

    power_law: bool = True
    rational: bool = True
    targets: bool = True
    """Ladders on transformations of y, and power laws of them."""
    common_factor: bool = True
    """Ladders on y divided by a product of powers."""
    library: bool = True
    pairs: bool = True
    """Products and ratios of two columns where they are too many for the library."""
    equal_parts: bool = True
    shortening: bool = True
    """Rounds around an exact formula, for a shorter one that is exact as well."""
    noise_floor: bool = True
    """Agreement of several starts ends the search only if the residuals look like noise."""


#: Read when a search or a library is made. Not a public setting: experiments replace it, in their
#: own process (`benchmarks/quality/ablation.py`).
in_use = Heuristics()


def all_columns(problem: Problem) -> np.ndarray:
    """Return the columns on the rows that count, one row of the array per column."""
    data = problem.data
    return data.x.reshape(-1, len(data.y))[:, data.root_weight > 0]


def usable_columns(problem: Problem) -> np.ndarray:
    """Return the same with zeros for columns that may not be used."""
    return all_columns(problem) * (problem.feature_weights > 0)[:, None]


def response(problem: Problem) -> np.ndarray:
    """Return y on the rows that count, with its sign changed where no value is positive."""
    y = problem.response(problem.data.root_weight > 0)
    return y if y.max() > 0 else -y
