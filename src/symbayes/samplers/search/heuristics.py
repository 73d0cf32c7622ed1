"""Switches of the search's heuristics, for experiments that turn one off; not a public setting."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Heuristics:
    """Which heuristics a search uses; all of them unless an experiment says otherwise."""

    power_law: bool = True
    """Products of powers, found by regression on a logarithmic scale before the first draw."""
    rational: bool = True
    """Ratios of polynomials of one column, found by regression before the first draw."""
    targets: bool = True
    """Ladders on y^2, 1/y, log y, ...; power laws of them as well."""
    common_factor: bool = True
    """Ladders on y divided by a power of some columns."""
    library: bool = True
    """Small expressions that explain the residual of a state, offered as a further term."""
    pairs: bool = True
    """Products and ratios of two columns where they are too many for the library."""
    equal_parts: bool = True
    """Parts of the best state are replaced by shorter ones with the same values."""
    shortening: bool = True
    """Rounds around an exact formula, for a shorter one that is as exact."""
    new_starts: bool = True
    """New starts after a long exact formula, for another one that is shorter."""
    noise_floor: bool = True
    """Agreement of several starts ends the search only if the residuals look like noise."""


#: What a search looks at when it is made. An experiment may replace it, in its own process.
in_use = Heuristics()
