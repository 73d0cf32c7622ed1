"""The end of a fit: write what was asked for, show the answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..samplers.run.clock import Watch
from .destinations import rescue_path
from .messages import say
from .statuses import INTERRUPTED


def deliver(
    model: Any,
    out: str | None,
    report: str | None,
    show: Callable[[dict[str, str | None]], None],
) -> int:
    """Write the model and its report, and return the exit status.

    A run that was interrupted is saved in any case. Files come before what is shown: Ctrl-C may
    have ended who reads it. What is shown does not depend on whether files could be written.

    Parameters
    ----------
    model : BayesianSymbolicRegressor
        Fitted, perhaps only in part.
    out, report : str or None
        Where to write them.
    show : callable
        Called with the files that were written.
    """
    interrupted = model.diagnostics_["interrupted"]
    written: dict[str, str | None] = {"model": None, "report": None}
    try:
        if interrupted and out is None:
            out = rescue_path()
        if out is not None:
            _save(model, out)
            written["model"] = out
            if interrupted:
                say(f"interrupted; what there is was saved to {out}")
        if report is not None:
            model.report(report)
            written["report"] = report
    finally:
        show(written)
    return INTERRUPTED if interrupted else 0


def _save(model: Any, path: str) -> None:
    """Save a model; a Ctrl-C that comes too late to end the fit does not cost its result."""
    with Watch(None) as watch:
        model.save(path)
    if watch.interrupted:
        raise KeyboardInterrupt(f"stopped; the model was saved to {path}")
