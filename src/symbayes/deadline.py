"""Until when something may take: every stage that follows a run asks, and ends with what it has."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

Result = TypeVar("Result")


class OutOfTime(Exception):
    """A piece of work was given up, since its time was over."""


@dataclass(frozen=True)
class Deadline:
    """When work has to be done; by default there is all the time in the world."""

    at: float = math.inf
    """By the clock of `time.monotonic`."""
    interrupted: Callable[[], bool] = lambda: False
    """Whether the user has pressed Ctrl-C, and wants no more than what is needed for an answer."""

    @property
    def is_set(self) -> bool:
        """Whether there is one."""
        return self.at < math.inf

    def over(self) -> bool:
        """Return whether it has passed."""
        return time.monotonic() >= self.at

    def cut_short(self) -> bool:
        """Return whether work that an answer can do without is to be left undone."""
        return self.interrupted() or self.over()

    def earlier(self, seconds: float) -> Deadline:
        """Return the deadline that lies this number of seconds earlier."""
        return Deadline(self.at - seconds, self.interrupted)

    def share(self, part: float) -> Deadline:
        """Return the moment at which this part of the time that is left now will have passed."""
        now = time.monotonic()
        return Deadline(now + part * max(0.0, self.at - now), self.interrupted)


def until(stop: Callable[[], bool], function: Callable[..., Result]) -> Callable[..., Result]:
    """Return a function that raises OutOfTime once it is time to stop."""

    def checked(*arguments: object) -> Result:
        if stop():
            raise OutOfTime
        return function(*arguments)

    return checked
