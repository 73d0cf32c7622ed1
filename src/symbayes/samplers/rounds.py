"""Rounds that have a part in the result: what happens between them comes after certain draws."""

from __future__ import annotations

from collections.abc import Callable

from .ladder import LARGEST_ROUND
from .running import Watch

# Rows up to which rounds have their full length.
_ROWS_A_ROUND = 5000


def round_length(n_rows: int) -> int:
    """Return draws a round: fewer for large tables, so that a time limit can be kept."""
    return max(1, min(LARGEST_ROUND, LARGEST_ROUND * _ROWS_A_ROUND // n_rows))


def run_even_rounds(
    advance: Callable[[int], object],
    total: int,
    length: int,
    watch: Watch,
    share: float,
    progress: Callable[[int], None],
    between: Callable[[int], object] = lambda turn: None,
    first: int = 0,
    last: int | None = None,
) -> int:
    """Advance all ladders by `total` draws in rounds; return how many were done.

    Rounds have a length that does not depend on the clock, unlike those of `running.run_rounds`:
    what happens `between` them, called with their number, is part of the result. They end after
    multiples of their length and at the `last` draw of all; where `first` draws were made before,
    the one begun is gone through with, and one that is left unfinished has nothing after it.
    """
    done, last = 0, first + total if last is None else last
    while done < total and not watch.should_stop(share):
        at = first + done
        end = min(at - at % length + length, last)
        n = min(end - at, total - done)
        advance(n)
        done += n
        if at + n == end:
            between(-(-end // length))
        progress(done)
    return done
