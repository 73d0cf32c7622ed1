"""Until when something may take: every stage that follows a run asks, and ends with what it has."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")


class OutOfTime(Exception):
    """A piece of work was given up, since its time was over."""


class Deadline:
    """A moment; without one there is all the time in the world.

    Parameters
    ----------
    at : float
        By the clock of `time.monotonic`.
    """

    def __init__(self, at: float = math.inf):
        self.at = at

    @property
    def is_set(self) -> bool:
        """Whether there is one."""
        return self.at < math.inf

    def over(self) -> bool:
        """Return whether it has passed."""
        return self.is_set and time.monotonic() >= self.at

    def share(self, part: float) -> Deadline:
        """Return the moment at which this part of the time that is left now will have passed."""
        now = time.monotonic()
        return Deadline(now + part * max(0.0, self.at - now))


def until(stop: Callable[[], bool], function: Callable[..., Result]) -> Callable[..., Result]:
    """Return a function that raises OutOfTime once it is time to stop."""

    def checked(*arguments: object) -> Result:
        if stop():
            raise OutOfTime
        return function(*arguments)

    return checked
