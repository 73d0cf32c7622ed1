"""Reports of a running fit: how far it has come, now and then, with the leading formula."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..posterior.table import FormulaWriter
    from ..samplers.run.clock import Watch
    from ..samplers.run.context import Status

#: Seconds between two reports, at least.
SECONDS_PER_REPORT = 0.25
# On large tables a report takes long: the run goes without one for this many times as long.
_LEAST_REST = 20.0
# A phase is taken to have lasted this long at least.
_LEAST_SECONDS = 1.0e-6


@dataclass(frozen=True)
class Progress:
    """Where a fit stands: what a function given as `progress` is called with.

    Attributes
    ----------
    phase : str
        "search", "settling" and "drawing"; "trees" with the paper's sampler. Settling and drawing
        begin again where a chain comes upon something far better. Before them it is "compiling",
        once, where compiled code is not on disk yet.
    done, total : int
        How far the phase has come, in draws (trees with the paper's sampler). A phase may end
        before `total`, which with a `timeout` is what can be reached in time at the pace so far.
    seconds : float
        Time since the start, without compilation.
    seconds_left : float or None
        How long the phase may still take, judged by its pace so far and by `timeout`.
    proposals : int
        Formulas tried so far, by all chains together.
    formula : str
        The leading formula: the best so far in a search, later a state of the best chain. Empty
        where a coefficient of it is too large or too small for a number.
    rmse : float
        Its root mean squared error on the training rows, in units of y.
    n_nodes : int
        Its number of operators, columns and constants.
    swap_rate : float or None
        Mean probability of accepting a swap between neighbouring temperatures, while settling and
        drawing.

    Examples
    --------
    >>> from symbayes import BayesianSymbolicRegressor
    >>> from symbayes.datasets import paper_task
    >>> X, y = paper_task("f2", random_state=0)
    >>> seen = []
    >>> model = BayesianSymbolicRegressor(draws=50, random_state=0, progress=seen.append)
    >>> model.fit(X, y).best_formula_.text(digits=4)
    '8*x1**3 + 8*x0**2 - 15'
    >>> seen[-1].phase, seen[-1].done, seen[-1].rmse < 1e-6
    ('drawing', 50, True)
    """

    phase: str
    done: int
    total: int
    seconds: float = 0.0
    seconds_left: float | None = None
    proposals: int = 0
    formula: str = ""
    rmse: float = float("nan")
    n_nodes: int = 0
    swap_rate: float | None = None


class Reporter:
    """Makes a `Progress` of what samplers report, now and then, and hands it on.

    It ends the run when the receiver returns something true. Nothing it does has an influence on
    the draws. A receiver that has an `interval` wants that many seconds between two reports.
    """

    def __init__(self, receiver: Callable[[Progress], object], writer: FormulaWriter, watch: Watch):
        self._receiver, self._writer, self._watch = receiver, writer, watch
        self._interval = getattr(receiver, "interval", SECONDS_PER_REPORT)
        self._phase = ""
        self._began = self._last = watch.seconds
        self._next = self._last + self._interval

    def __call__(self, status: Status) -> None:
        """Take the status that a sampler reports."""
        seconds = self._watch.seconds
        if status.phase != self._phase:
            self._phase, self._began = status.phase, self._last
        self._last = seconds
        if seconds < self._next and not status.ended:
            return
        before = time.perf_counter()
        look = status.look()
        formula, error = self._writer.formula_and_rmse(look.trees)
        left, total = self._left(status, seconds)
        progress = Progress(
            phase=status.phase,
            done=status.done,
            total=total,
            seconds=seconds,
            seconds_left=left,
            proposals=look.proposals,
            formula="" if formula is None else str(formula),
            rmse=error,
            n_nodes=0 if formula is None else formula.n_nodes,
            swap_rate=look.swap_rate,
        )
        spent = time.perf_counter() - before
        self._next = seconds + max(self._interval, _LEAST_REST * spent)
        if self._receiver(progress):
            self._watch.interrupted = True

    def _left(self, status: Status, seconds: float) -> tuple[float | None, int]:
        """Return how long the phase may still take, and how far it will come by then."""
        if status.ended:
            return 0.0, status.total
        if status.done == 0:
            return None, status.total
        seconds_per_draw = max(seconds - self._began, _LEAST_SECONDS) / status.done
        left = seconds_per_draw * (status.total - status.done)
        if self._watch.timeout is not None:
            left = min(left, max(0.0, self._watch.timeout - seconds))
        total = status.done + round(left / seconds_per_draw)
        return left, min(total, status.total)
