"""What is wrong with numbers and names that a user passes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any


def repeated(names: Iterable[Any]) -> list[str]:
    """Return the names that occur more than once, in quotes."""
    return [repr(name) for name, n in sorted(Counter(map(str, names)).items()) if n > 1]


def require_type(what: str, value: Any, kind: type, noun: str) -> None:
    """Complain about anything but a kind of number; True and False are none."""
    if isinstance(value, bool) or not isinstance(value, kind):
        raise TypeError(f"{what} must be {noun}, not {type(value).__name__}")


def require_whole(what: str, value: Any, least: int) -> int:
    """Return an integer as int; complain about anything else, and what is less than `least`."""
    require_type(what, value, Integral, "an integer")
    if value < least:
        raise ValueError(f"{what} is {value}; it must be at least {least}")
    return int(value)


def require_count(owner: str, name: str, value: Any) -> None:
    """Complain about anything but an integer from 1 on."""
    require_whole(f"{owner}: {name}", value, 1)


def require_real(owner: str, name: str, value: Any) -> float:
    """Return a finite number as float; complain about anything else."""
    require_type(f"{owner}: {name}", value, Real, "a number")
    if not math.isfinite(value):
        raise ValueError(f"{owner}: {name} is {value}; it must be finite")
    return float(value)


def require_positive(owner: str, name: str, value: Any) -> None:
    """Complain about anything but a finite number above 0."""
    if require_real(owner, name, value) <= 0:
        raise ValueError(f"{owner}: {name} is {value}; it must be above 0")
