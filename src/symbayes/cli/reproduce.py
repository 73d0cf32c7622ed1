"""`symbayes reproduce`: the experiments of the paper."""

from __future__ import annotations

import argparse

from ..experiments import reproduce as paper
from ..show.display import Display
from .messages import UsageError


def reproduce(options: argparse.Namespace) -> int:
    """Do experiments again, and print where the report is."""
    if options.prices is not None and options.experiment not in ("signals", "all"):
        raise UsageError(f"--prices is for signals and all; {options.experiment} reads no prices")
    effort = paper.QUICK if options.quick else paper.FULL
    if options.replications is not None:
        effort = effort.repeated(options.replications)
    try:
        with Display(True) as display:
            report = paper.reproduce(
                options.experiment,
                options.out,
                effort=effort,
                n_jobs=options.n_jobs,
                seed=options.seed,
                methods=options.methods,
                tasks=options.tasks,
                prices=options.prices,
                command=options.command,
                tell=display.update,
            )
    except KeyboardInterrupt:
        raise KeyboardInterrupt("stopped; the same command continues from here") from None
    print(report)
    return 0
