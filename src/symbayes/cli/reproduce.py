"""`symbayes reproduce`: the experiments of the paper."""

from __future__ import annotations

import argparse
import os

from ..experiments.reproduce import FULL, QUICK, reproduce
from ..show.display import Display


def run(options: argparse.Namespace) -> int:
    """Do experiments again, and print where the report is."""
    effort = QUICK if options.quick else FULL
    if options.replications is not None:
        effort = effort.repeated(options.replications)
    try:
        with Display(True) as display:
            report = reproduce(
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
    print(os.fspath(report))
    return 0
