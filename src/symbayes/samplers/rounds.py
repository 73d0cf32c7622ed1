"""Rounds that have a part in the result: what happens between them comes after certain draws."""

from __future__ import annotations

import time
from collections.abc import Callable

from .ladder import LARGEST_ROUND
from .running import Watch

# Rows up to which rounds have their full length.
_ROWS_A_ROUND = 5000
# Rounds that take so long are gone through without a look at the clock.
_SECONDS_AT_ONCE, _LEAST_SECONDS = 0.5, 1.0e-3


def round_length(n_rows: int) -> int:
    """Return draws a round: fewer for large tables, so that a time limit can be kept."""
    return max(1, min(LARGEST_ROUND, LARGEST_ROUND * _ROWS_A_ROUND // n_rows))


def run_even_rounds(
    advance: Callable[[list[tuple[int, int | None]]], object],
    total: int,
    length: int,
    watch: Watch,
    share: float,
    progress: Callable[[int], None],
    first: int = 0,
    last: int | None = None,
) -> int:
    """Advance all ladders by `total` draws in rounds; return how many were done.

    Rounds have a length that does not depend on the clock, unlike those of `running.run_rounds`:
    what happens after them is part of the result. They end after multiples of their length and at
    the `last` draw of all; where `first` draws were made before, the one begun is gone through
    with.

    `advance` is called with some rounds at once, as many as take little time: their draws, and
    their numbers. A round that is left unfinished has no number, and nothing happens after it.
    """
    done, last, seconds = 0, first + total if last is None else last, _SECONDS_AT_ONCE
    while done < total and not watch.should_stop(share):
        rounds: list[tuple[int, int | None]] = []
        for _ in range(max(1, int(_SECONDS_AT_ONCE / seconds))):
            if done == total:
                break
            at = first + done
            end = min(at - at % length + length, last)
            n = min(end - at, total - done)
            rounds.append((n, -(-end // length) if at + n == end else None))
            done += n
        began = time.monotonic()
        advance(rounds)
        seconds = max(time.monotonic() - began, _LEAST_SECONDS) / len(rounds)
        progress(done)
    return done
