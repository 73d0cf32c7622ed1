"""Numbers that people write down: whole ones, simple fractions, multiples of pi."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Kind:
    """Multiples of a unit, up to a size."""

    unit: float
    most: float
    trust: float = 1.0
    """How much more often than others such a number is meant when one is close."""


#: From the plainest on. A number is of the first kind that fits.
KINDS = (
    Kind(1.0, 100.0, 5.0),
    Kind(0.5, 20.0, 2.0),
    Kind(1.0 / 3.0, 10.0),
    Kind(0.25, 10.0),
    Kind(np.pi, 10.0 * np.pi),
    Kind(np.pi / 2.0, 5.0 * np.pi),
    Kind(0.1, 20.0),
    Kind(1.0 / 6.0, 5.0),
    Kind(np.pi / 4.0, 3.0 * np.pi),
    Kind(np.pi / 3.0, 3.0 * np.pi),
)


def nearest_simple(value: float, tolerance: float, by_chance: float) -> float | None:
    """Return the plainest simple number within a tolerance of a value, if there is one.

    `by_chance` bounds the share of values that have a number of that kind so close, five times
    as much for whole numbers: among coarse measurements everything is near some fraction.

    Examples
    --------
    >>> from symbayes.fitting.simple_numbers import nearest_simple
    >>> nearest_simple(0.3334, 0.001, 0.05) == 1 / 3
    True
    >>> nearest_simple(0.41, 0.001, 0.05) is None
    True
    """
    for kind in KINDS:
        if not abs(value) <= kind.most + kind.unit:
            continue  # too large, or so large that the quotient would be no number
        candidate = round(value / kind.unit) * kind.unit
        close = abs(value - candidate) <= tolerance
        rare = 2.0 * tolerance <= by_chance * kind.trust * kind.unit
        if close and rare and abs(candidate) <= kind.most:
            return float(candidate)
    return None


def is_simple(value: float) -> bool:
    """Return whether a value is one of the simple numbers, to the last bit.

    Examples
    --------
    >>> from symbayes.fitting.simple_numbers import is_simple
    >>> is_simple(1 / 3), is_simple(0.333)
    (True, False)
    """
    return any(
        abs(value) <= kind.most and round(value / kind.unit) * kind.unit == value for kind in KINDS
    )
