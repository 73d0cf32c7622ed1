"""Rounds of draws whose length does not depend on the clock."""

from __future__ import annotations

import time
from collections.abc import Callable

from .ladder import LARGEST_ROUND
from .run.running import Watch

# Rows up to which rounds have their full length.
_ROWS_A_ROUND = 5000
# Draws that take this long are made without a look at the clock. How many these are is not known at
# first; where there is a time limit, it begins with few.
_SECONDS_AT_ONCE, _LEAST_SECONDS, _FIRST_DRAWS = 0.5, 1.0e-5, 4


def round_length(n_rows: int) -> int:
    """Return draws a round: fewer for large tables, so that a time limit can be kept."""
    return max(1, min(LARGEST_ROUND, LARGEST_ROUND * _ROWS_A_ROUND // n_rows))


def run_even_rounds(
    advance: Callable[[list[int]], object],
    total: int,
    length: int,
    watch: Watch,
    share: float,
    progress: Callable[[int], None],
) -> int:
    """Advance all ladders by `total` draws in rounds of `length`; return how many were done.

    `advance` is called with the draws of as many rounds at once as take little time together, or
    with a part of a round that takes long.
    """
    done = 0
    at_once = length if watch.timeout is None else min(length, _FIRST_DRAWS)
    while done < total and not watch.should_stop(share):
        n = min(at_once, total - done)
        if length < n < total - done:
            n -= n % length  # no round is left unfinished without need
        began = time.monotonic()
        advance([min(length, n - i) for i in range(0, n, length)])
        seconds = max(time.monotonic() - began, _LEAST_SECONDS) / n
        done += n
        at_once = max(1, int(_SECONDS_AT_ONCE / seconds))
        progress(done)
    return done
