"""Used by the scripts that run in a peer's own environment: counting calls, stopping on time.

Standard library only: nothing else is common to these environments.
"""

from __future__ import annotations

import functools
import json
import sys
from collections import Counter
from pathlib import Path
from time import perf_counter
from typing import Any


class TimeUp(BaseException):
    """The measurement is over. Not an Exception: no peer's handler may swallow it."""


class Tally:
    """Counts of calls, and the clock that starts with the first one.

    Starting late is in the peer's favour: imports and set-up are not its speed.
    """

    def __init__(self, seconds: float):
        self.counts: Counter[str] = Counter()
        self._limit = seconds
        self._start: float | None = None

    @property
    def seconds(self) -> float:
        return 0.0 if self._start is None else perf_counter() - self._start

    def watch(self, owner: Any, name: str, label: str, when=lambda *a, **k: True) -> None:
        """Replace `owner.name` by a function that counts the calls for which `when` is true."""
        original = getattr(owner, name)

        @functools.wraps(original)
        def counted(*args, **kwargs):
            if self._start is None:
                self._start = perf_counter()
            elif self.seconds > self._limit:
                raise TimeUp
            result = original(*args, **kwargs)
            self.counts[label] += bool(when(*args, **kwargs))
            return result

        setattr(owner, name, counted)


def arguments() -> tuple[Path, float, int, Path]:
    """Return where the data is, how many seconds to run, the seed, and where the result goes."""
    data, seconds, seed, result = sys.argv[1:]
    return Path(data), float(seconds), int(seed), Path(result)


def finish(path: Path, proposals: int, evaluated: int, seconds: float, **remarks: float) -> None:
    """Write the result.

    Parameters
    ----------
    path : Path
    proposals : int
        New formulas that were proposed.
    evaluated : int
        Formulas whose fit to the data was computed.
    seconds : float
    **remarks
        Further figures, shown with the result.
    """
    counts = {"proposals": proposals, "evaluated": evaluated, "seconds": seconds}
    path.write_text(json.dumps({**counts, "remarks": remarks}))
