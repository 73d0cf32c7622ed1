"""The command line: `symbayes`."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from . import __version__
from .progress import Display

_EXAMPLES = """\
examples:
  symbayes reproduce accuracy --quick             a rough look at the table of errors
  symbayes reproduce all --out results            everything the paper shows, hours
  symbayes reproduce signals --prices index.csv   date, open, high, low, close

A call that was stopped goes on where it was: what is finished is kept in DIR/runs.jsonl.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit status."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    options = _parser().parse_args(words)
    options.command = shlex.join(["symbayes", *words])
    try:
        return options.run(options)
    except KeyboardInterrupt:
        print("symbayes: stopped; the same command goes on from here", file=sys.stderr)
        return 130
    except (ValueError, OSError, ImportError) as error:
        print(f"symbayes: {error}", file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="symbayes", description="Bayesian symbolic regression.", allow_abbrev=False
    )
    parser.add_argument("--version", action="version", version=f"symbayes {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    _add_reproduce(commands)
    return parser


def _add_reproduce(commands: argparse._SubParsersAction) -> None:
    from .experiments.reproduce import ALL, EXPERIMENTS, METHODS, TASKS

    what = "\n".join(f"  {name:<12} {one.title}" for name, one in EXPERIMENTS.items())
    command = commands.add_parser(
        "reproduce",
        help="do the experiments of the paper again",
        description="Do the experiments of the paper again, beside its published figures.\n\n"
        f"experiments:\n{what}\n  {ALL:<12} everything, into one report",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    command.add_argument("experiment", choices=[*EXPERIMENTS, ALL], metavar="EXPERIMENT")
    command.add_argument(
        "--replications", type=_count, metavar="N",
        help="fresh data sets for each task, also the number of signals (default: the paper's)",
    )  # fmt: skip
    command.add_argument("--quick", action="store_true", help="a rough look in a few minutes")
    command.add_argument(
        "--n-jobs", type=int, default=-1, metavar="N", help="processes (default: one a core)"
    )
    command.add_argument("--seed", type=_natural, default=0, metavar="S", help="(default: 0)")
    command.add_argument(
        "--out", type=Path, default=Path("reproduced"), metavar="DIR",
        help="folder for tables and figures (default: reproduced)",
    )  # fmt: skip
    command.add_argument(
        "--methods", nargs="+", choices=METHODS, default=list(METHODS), metavar="METHOD",
        help=f"some of: {', '.join(METHODS)}",
    )  # fmt: skip
    command.add_argument(
        "--tasks", nargs="+", choices=TASKS, default=list(TASKS), metavar="TASK",
        help=f"some of: {', '.join(TASKS)}",
    )  # fmt: skip
    command.add_argument(
        "--prices", type=Path, metavar="CSV",
        help="prices for signals: date, open, high, low, close (default: a generated series)",
    )  # fmt: skip
    command.set_defaults(run=_reproduce)


def _reproduce(options: argparse.Namespace) -> int:
    from .experiments.effort import FULL, QUICK
    from .experiments.reproduce import reproduce

    if options.n_jobs == 0:
        raise ValueError("--n-jobs is 0; use 1 for one process or -1 for one a core")
    effort = QUICK if options.quick else FULL
    if options.replications is not None:
        effort = effort.repeated(options.replications)
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
    print(os.fspath(report))
    return 0


def _natural(text: str) -> int:
    value = int(text)
    if value < 0:
        raise argparse.ArgumentTypeError(f"{text} is below 0")
    return value


def _count(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is below 1")
    return value
