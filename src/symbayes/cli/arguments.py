"""The words of the command line: every command, its options, its help."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from .. import __version__
from ..experiments.reproduce import ALL, EXPERIMENTS, METHODS, TASKS
from ..formula.operators import OPERATOR_SETS
from ..inputs.parameters import RULES, WAYS
from . import demo, fit, info, predict, report, reproduce, resume, show
from .parsing import (
    Parser,
    count,
    jobs,
    natural,
    noise,
    operators,
    positive,
    probability,
    seed,
    terms,
)

_TABLE = (
    "CSV (commas, semicolons or tabs; the first line names the columns), .tsv, either also as .gz, "
    ".parquet, or - for CSV from standard input"
)


def parser() -> argparse.ArgumentParser:
    """Return the parser of all commands; what it returns has `run`, if there is a command."""
    result = Parser(
        prog="symbayes",
        description="Bayesian symbolic regression: formulas that explain a table, and how\n"
        "probable each is.",
        epilog="examples:\n"
        "  symbayes demo                        see it work\n"
        "  symbayes fit data.csv --target y     find formulas for the column y\n"
        "  symbayes fit --help                  all that can be said about a fit",
    )
    result.add_argument("--version", action="version", version=f"symbayes {__version__}")
    _add_debug(result)
    commands = result.add_subparsers(title="commands", metavar="COMMAND")
    _add_fit(commands)
    _add_resume(commands)
    _add_predict(commands)
    _add_show(commands)
    _add_report(commands)
    _add_info(commands)
    _add_demo(commands)
    _add_reproduce(commands)
    return result


def _add(
    commands: argparse._SubParsersAction,
    name: str,
    run: Callable[[argparse.Namespace], int],
    summary: str,
    description: str,
    examples: str,
) -> argparse.ArgumentParser:
    command = commands.add_parser(
        name, help=summary, description=description, epilog=f"examples:\n{examples}"
    )
    command.set_defaults(run=run, parser=command)
    _add_debug(command)
    return command


def _add_debug(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--debug", action="store_true", help="show where an error comes from (or SYMBAYES_DEBUG=1)"
    )


def _add_fit(commands: argparse._SubParsersAction) -> None:
    command = _add(
        commands, "fit", fit.run, "find formulas for a table",
        "Find formulas for a column of a table, and how probable each is.\n\n"
        "The formulas go to standard output, how the run goes to standard error. Ctrl-C\n"
        "ends a run early: what there is is shown and saved, to the file of --out or to\n"
        "symbayes-interrupted.symbayes, and the exit status is 130; a second Ctrl-C stops\n"
        "at once.",
        "  symbayes fit data.csv --target y --out model.symbayes --report page.html\n"
        "  symbayes fit data.tsv --target y --features 'mass kg' speed --time 60\n"
        '  symbayes fit data.parquet --target y --operators "+,*,/,sqrt" --noise 0.05\n'
        '  symbayes fit data.csv --target y --operators "sin:2,+,*" --known "a*b"\n'
        "  cat data.csv | symbayes fit - --target y --json --quiet | jq -r .best.formula\n\n"
        "A name that begins with a dash is written --target=-x. In formulas, a name that\n"
        "is not a plain word stands in backticks: --known '`mass kg`*speed'.",
    )  # fmt: skip
    command.usage = "symbayes fit FILE --target NAME [options]"
    data = command.add_argument_group("data")
    data.add_argument("file", metavar="FILE", help=_TABLE)
    data.add_argument("--target", metavar="NAME", help="the column to explain (required)")
    data.add_argument(
        "--features", nargs="+", action="extend", metavar="NAME",
        help="columns to explain it by (default: all other columns of numbers)",
    )  # fmt: skip
    data.add_argument("--weights", metavar="NAME", help="the column of row weights")
    data.add_argument(
        "--drop-missing", action="store_true", help="leave out rows with missing values"
    )
    beliefs = command.add_argument_group("formulas")
    beliefs.add_argument(
        "--operators", type=operators, default="default", metavar="OPERATORS",
        help=f"a set ({', '.join(OPERATOR_SETS)}), operators (+,*,sin) or weights (sin:2,+:1)",
    )  # fmt: skip
    beliefs.add_argument(
        "--terms", type=terms, default="auto", metavar="N",
        help="number of terms in the sum (default: auto, learned)",
    )  # fmt: skip
    beliefs.add_argument(
        "--known", nargs="+", action="extend", metavar="FORMULA",
        help="terms that are in the model, such as 'x0*x1'; their coefficients are learned",
    )  # fmt: skip
    beliefs.add_argument(
        "--initial", nargs="+", action="extend", metavar="FORMULA", help="formulas to start from"
    )
    beliefs.add_argument(
        "--noise", type=noise, metavar="SHARE",
        help="belief about the noise: 0.05 is about 5%% of the spread of the target, or small",
    )  # fmt: skip
    beliefs.add_argument(
        "--select", choices=RULES, default="probability", metavar="RULE",
        help=f"what makes the best formula: {', '.join(RULES)} (default: probability)",
    )  # fmt: skip
    beliefs.add_argument(
        "--combine", choices=WAYS, default="pool", metavar="HOW",
        help="how chains count: pool, all the same, or stack, by how well they predict rows left "
        "out, for chains that do not agree (default: pool)",
    )  # fmt: skip
    effort = command.add_argument_group("effort")
    effort.add_argument(
        "--time", "--timeout", type=positive, metavar="SECONDS",
        help="end the fit after this time, with what it has; that depends on the machine, whatever "
        "the seed",
    )  # fmt: skip
    effort.add_argument(
        "--draws", type=count, default=1000, metavar="N",
        help="formulas to draw from the posterior, by each chain, at most: it ends earlier when\n"
        "the chains agree (default: 1000)",
    )  # fmt: skip
    effort.add_argument(
        "--tune", type=natural, metavar="N",
        help="draws for warm-up, at most, by each chain (default: 15000)",
    )  # fmt: skip
    effort.add_argument(
        "--chains", type=count, default=4, metavar="N",
        help="independent runs, which are compared with each other (default: 4)",
    )  # fmt: skip
    effort.add_argument(
        "--seed", type=seed, metavar="S",
        help="the same seed gives the same result, unless --time ends the fit (default: any)",
    )  # fmt: skip
    effort.add_argument(
        "--jobs", "--n-jobs", type=jobs, default=-1, metavar="N",
        help="cores to use (default: -1, all)",
    )  # fmt: skip
    results = command.add_argument_group("results")
    results.add_argument("--out", metavar="FILE", help="save the model, such as model.symbayes")
    results.add_argument("--report", metavar="FILE", help="write a page about it, page.html")
    results.add_argument(
        "--checkpoint", metavar="FILE",
        help="keep the state of the run, every minute or so, for symbayes resume",
    )  # fmt: skip
    results.add_argument("--json", action="store_true", help="print one JSON object")
    results.add_argument(
        "--quiet", action="store_true", help="show neither progress nor notes, only warnings"
    )


def _add_resume(commands: argparse._SubParsersAction) -> None:
    command = _add(
        commands, "resume", resume.run, "go on with a fit that was stopped",
        "Go on with a fit from its checkpoint, to the same draws as if it had not been\n"
        "stopped, and write what it was to write. The table has to be as it was.",
        "  symbayes fit data.csv --target y --checkpoint run.checkpoint --out model.symbayes\n"
        "  symbayes resume run.checkpoint\n"
        "  symbayes resume run.checkpoint moved/data.csv --out elsewhere.symbayes",
    )  # fmt: skip
    command.add_argument(
        "checkpoint", metavar="CHECKPOINT", help="the file of symbayes fit --checkpoint"
    )
    command.add_argument(
        "file", metavar="FILE", nargs="?", help="the table, if it is no longer where it was"
    )
    command.add_argument("--jobs", "--n-jobs", type=jobs, metavar="N", help="cores to use")
    command.add_argument("--out", metavar="FILE", help="save the model there instead")
    command.add_argument("--report", metavar="FILE", help="write the page about it there instead")
    for option, what in (
        ("json", "print one JSON object"),
        ("quiet", "show neither progress nor notes, only warnings"),
    ):
        command.add_argument(f"--{option}", action="store_true", default=None, help=what)


def _add_predict(commands: argparse._SubParsersAction) -> None:
    command = _add(
        commands, "predict", predict.run, "predict new rows",
        "Predict new rows: a table with a line for each, in their order, with the columns\n"
        "prediction, lower and upper. Columns are found by name; others do no harm.",
        "  symbayes predict model.symbayes new.csv\n"
        "  symbayes predict model.symbayes new.csv --std --out predictions.csv\n"
        "  cat new.csv | symbayes predict model.symbayes - --kind mean",
    )  # fmt: skip
    _add_model(command)
    command.add_argument("file", metavar="FILE", help=_TABLE)
    command.add_argument(
        "--out", metavar="FILE", help="write a CSV file (default: standard output)"
    )
    command.add_argument(
        "--level", type=probability, default=0.9, metavar="P",
        help="probability that the interval holds the value (default: 0.9)",
    )  # fmt: skip
    command.add_argument(
        "--kind", choices=("observation", "mean"), default="observation",
        help="of what the interval is: a new observation, with its noise, or the mean",
    )  # fmt: skip
    command.add_argument(
        "--std", action="store_true", help="add the standard deviation of a new observation"
    )


def _add_show(commands: argparse._SubParsersAction) -> None:
    command = _add(
        commands, "show", show.run, "print the formulas of a model",
        "Print the formulas of a model: as a table, or the best one in another notation.",
        "  symbayes show model.symbayes\n"
        "  symbayes show model.symbayes --latex\n"
        "  symbayes show model.symbayes --n 3 --sympy\n"
        "  symbayes show model.symbayes --pareto\n"
        "  symbayes show model.symbayes --json | jq '.formulas[].probability'",
    )  # fmt: skip
    _add_model(command)
    command.add_argument(
        "--n", type=count, metavar="N",
        help="formulas at most (default: 10, one in another notation, all in JSON)",
    )  # fmt: skip
    command.add_argument(
        "--pareto", action="store_true",
        help="only formulas to which no other is both shorter and closer",
    )  # fmt: skip
    form = command.add_mutually_exclusive_group()
    for name, what in (
        ("latex", "the best formula in LaTeX"),
        ("sympy", "as code that makes it a SymPy expression"),
        ("numpy", "as a Python function of NumPy arrays"),
        ("mathml", "in MathML, for web pages"),
    ):
        form.add_argument(f"--{name}", dest="form", action="store_const", const=name, help=what)
    form.add_argument("--json", action="store_true", help="print one JSON object")


def _add_report(commands: argparse._SubParsersAction) -> None:
    command = _add(
        commands, "report", report.run, "write a page about a model",
        "Write a page about a model: one HTML file that needs nothing else.",
        "  symbayes report model.symbayes --out page.html",
    )  # fmt: skip
    _add_model(command)
    command.add_argument("--out", required=True, metavar="FILE", help="the page, such as page.html")


def _add_info(commands: argparse._SubParsersAction) -> None:
    command = _add(
        commands, "info", info.run, "tell what is installed, or how a model was made",
        "Tell versions, cores and whether compiled code is at hand; of a model its\n"
        "columns, settings and verdict.",
        "  symbayes info\n  symbayes info model.symbayes",
    )  # fmt: skip
    _add_model(command, nargs="?")


def _add_demo(commands: argparse._SubParsersAction) -> None:
    command = _add(
        commands, "demo", demo.run, "fit a built-in example",
        "Fit a built-in example, print its formulas, and write model and report.",
        "  symbayes demo\n  symbayes demo --out /tmp/demo",
    )  # fmt: skip
    command.add_argument(
        "--out", default="symbayes-demo", metavar="DIR",
        help="folder for model and report (default: symbayes-demo)",
    )  # fmt: skip


def _add_model(command: argparse.ArgumentParser, nargs: str | None = None) -> None:
    command.add_argument(
        "model", metavar="MODEL", nargs=nargs, help="a file that fit --out has written"
    )


def _add_reproduce(commands: argparse._SubParsersAction) -> None:
    what = "\n".join(f"  {name:<12} {one.title}" for name, one in EXPERIMENTS.items())
    command = _add(
        commands, "reproduce", reproduce.run, "do the experiments of the paper again",
        "Do the experiments of the paper again, beside its published figures.\n\n"
        f"experiments:\n{what}\n  {ALL:<12} everything, into one report",
        "  symbayes reproduce accuracy --quick            a look at the table of errors\n"
        "  symbayes reproduce all --out results           everything there is, for hours\n"
        "  symbayes reproduce signals --prices index.csv  date, open, high, low, close\n\n"
        "A call that was stopped goes on where it was: what is finished is kept in\n"
        "DIR/runs.jsonl.",
    )  # fmt: skip
    command.add_argument("experiment", choices=[*EXPERIMENTS, ALL], metavar="EXPERIMENT")
    command.add_argument(
        "--replications", type=count, metavar="N",
        help="fresh data sets for each task, also the number of signals (default: the paper's)",
    )  # fmt: skip
    command.add_argument("--quick", action="store_true", help="a rough look in a few minutes")
    command.add_argument(
        "--n-jobs",
        "--jobs",
        type=jobs,
        default=-1,
        metavar="N",
        help="processes (default: -1, one a core)",
    )
    command.add_argument("--seed", type=natural, default=0, metavar="S", help="(default: 0)")
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
