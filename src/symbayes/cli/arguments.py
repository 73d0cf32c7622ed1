"""The words of the command line: every command, its options, its help, and kinds of values.

Nothing slow is imported here, so that help and mistakes are answered at once.
"""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

from ..experiments import ALL, EXPERIMENTS, METHODS, TASKS
from ..formula.operators import OPERATOR_SETS, OPERATORS, operator_hint, operator_weights
from ..inputs.prior import NoisePrior
from ..version import __version__
from .messages import USAGE, one_line

_TABLE = (
    "CSV (commas, semicolons or tabs; the first line names the columns), .tsv, either also as .gz, "
    ".parquet, or - for CSV from standard input"
)
_RULES, _WAYS = ("probability", "one_standard_error", "accuracy"), ("pool", "stack")
_LARGEST_SEED = 2**32 - 1


class _Help(argparse.RawDescriptionHelpFormatter):
    """Help with options on the left and what they mean beside them, not below."""

    def __init__(self, prog: str, **options: Any):
        super().__init__(prog, max_help_position=30, **options)


class _Parser(argparse.ArgumentParser):
    """A parser that complains in one line and keeps the line breaks of its texts."""

    def __init__(self, **options: Any):
        super().__init__(allow_abbrev=False, formatter_class=_Help, **options)

    def error(self, message: str) -> NoReturn:
        """Complain and leave."""
        self.exit(USAGE, f"symbayes: {one_line(message)} (see {self.prog} --help)\n")


def parser() -> argparse.ArgumentParser:
    """Return the parser of all commands; what it returns has `run`, if there is a command."""
    result = _Parser(
        prog="symbayes",
        description="Bayesian symbolic regression: formulas that explain a table, and how\n"
        "probable each is.",
        epilog="examples:\n"
        "  symbayes demo                        see it work\n"
        "  symbayes fit data.csv --target y     find formulas for the column y\n"
        "  symbayes fit --help                  see all options of a fit",
    )
    result.add_argument("--version", action="version", version=f"symbayes {__version__}")
    _add_debug(result)
    commands = result.add_subparsers(title="commands", metavar="COMMAND")
    _add_fit(commands)
    _add_resume(commands)
    _add_predict(commands)
    _add_show(commands)
    _add_others(commands)
    _add_reproduce(commands)
    return result


def _add(
    commands: argparse._SubParsersAction, name: str, summary: str, description: str, examples: str
) -> argparse.ArgumentParser:
    """Add a command, which the module of its name carries out."""

    def run(options: argparse.Namespace) -> int:
        return import_module(f".{name}", __package__).run(options)

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


def _add_model(command: argparse.ArgumentParser, nargs: str | None = None) -> None:
    command.add_argument("model", metavar="MODEL", nargs=nargs, help="a file made by fit --out")


# fmt: off
def _add_fit(commands: argparse._SubParsersAction) -> None:
    command = _add(
        commands, "fit", "find formulas for a table",
        "Find formulas for a column of a table, and how probable each is.\n\n"
        "Formulas are printed on standard output, progress on standard error. Ctrl-C ends\n"
        "a run early: what it has found so far is shown and saved, to the file of --out\n"
        "or to symbayes-interrupted.symbayes, and the exit status is 130; a second Ctrl-C\n"
        "stops at once.",
        "  symbayes fit data.csv --target y --out model.symbayes --report page.html\n"
        "  symbayes fit data.tsv --target y --features 'mass kg' speed --time 60\n"
        '  symbayes fit data.parquet --target y --operators "+,*,/,sqrt" --noise 0.05\n'
        '  symbayes fit data.csv --target y --operators "sin:2,+,*" --known "a*b"\n'
        "  cat data.csv | symbayes fit - --target y --json --quiet | jq -r .best.formula\n\n"
        "A name that begins with a dash is written --target=-x. In formulas, a name that\n"
        "is not a plain word stands in backticks: --known '`mass kg`*speed'.",
    )
    command.usage = "symbayes fit FILE --target NAME [options]"
    add = command.add_argument_group("data").add_argument
    add("file", metavar="FILE", help=_TABLE)
    add("--target", metavar="NAME", help="the column to explain (required)")
    add("--features", nargs="+", action="extend", metavar="NAME",
        help="columns to explain it by (default: all other columns of numbers)")
    add("--weights", metavar="NAME", help="the column of row weights")
    add("--drop-missing", action="store_true", help="leave out rows with missing values")

    add = command.add_argument_group("formulas").add_argument
    add("--operators", type=operators, default="default", metavar="OPERATORS",
        help=f"a set ({', '.join(OPERATOR_SETS)}), operators (+,*,sin) or weights (sin:2,+:1)")
    add("--terms", type=_terms, default="auto", metavar="N",
        help="number of terms in the sum (default: auto, learned)")
    add("--known", nargs="+", action="extend", metavar="FORMULA",
        help="terms that are in the model, such as 'x0*x1'; their coefficients are learned")
    add("--initial", nargs="+", action="extend", metavar="FORMULA", help="formulas to start from")
    add("--noise", type=_noise, metavar="SHARE",
        help="belief about the noise: 0.05 is about 5%% of the spread of the target, or small")
    add("--select", choices=_RULES, default="probability", metavar="RULE",
        help=f"what makes the best formula: {', '.join(_RULES)} (default: probability)")
    add("--combine", choices=_WAYS, default="pool", metavar="HOW",
        help="how chains count: pool, all the same, or stack, by how well they predict rows left "
        "out, for chains that do not agree (default: pool)")

    add = command.add_argument_group("effort").add_argument
    add("--time", "--timeout", type=_positive, metavar="SECONDS",
        help="end the fit after this time, with what it has found; that depends on the machine, "
        "whatever the seed")
    add("--draws", type=_count, default=1000, metavar="N",
        help="formulas that each chain draws from the posterior, at most: it ends earlier when the "
        "chains agree (default: 1000)")
    add("--tune", type=_natural, metavar="N",
        help="draws of each chain for warm-up, at most (default: 15000)")
    add("--chains", type=_count, default=4, metavar="N",
        help="independent runs, which are compared with each other (default: 4)")
    add("--seed", type=_seed, metavar="S",
        help="the same seed gives the same result, unless --time ends the fit (default: any)")
    add("--jobs", "--n-jobs", type=_jobs, default=-1, metavar="N",
        help="cores to use (default: -1, all)")

    add = command.add_argument_group("results").add_argument
    add("--out", metavar="FILE", help="save the model, such as model.symbayes")
    add("--report", metavar="FILE", help="write a page about it, such as page.html")
    add("--checkpoint", metavar="FILE",
        help="keep the state of the run, every minute or so, for symbayes resume")
    add("--json", action="store_true", help="print one JSON object")
    add("--quiet", action="store_true", help="show neither progress nor notes, only warnings")


def _add_resume(commands: argparse._SubParsersAction) -> None:
    command = _add(
        commands, "resume", "resume a fit that was stopped",
        "Resume a fit from its checkpoint. It makes the same draws as if it had not been\n"
        "stopped, and writes the files it was to write. The table has to be as it was.",
        "  symbayes fit data.csv --target y --checkpoint run.checkpoint --out model.symbayes\n"
        "  symbayes resume run.checkpoint\n"
        "  symbayes resume run.checkpoint moved/data.csv --out elsewhere.symbayes",
    )
    add = command.add_argument
    add("checkpoint", metavar="CHECKPOINT", help="the file of symbayes fit --checkpoint")
    add("file", metavar="FILE", nargs="?", help="the table, if it is no longer where it was")
    add("--jobs", "--n-jobs", type=_jobs, metavar="N", help="cores to use")
    add("--out", metavar="FILE", help="save the model there instead")
    add("--report", metavar="FILE", help="write the page about it there instead")
    add("--json", action="store_true", default=None, help="print one JSON object")
    add("--quiet", action="store_true", default=None,
        help="show neither progress nor notes, only warnings")


def _add_predict(commands: argparse._SubParsersAction) -> None:
    command = _add(
        commands, "predict", "predict new rows",
        "Predict new rows: a table with a line for each, in their order, with the columns\n"
        "prediction, lower and upper. Columns are found by name; others do no harm.",
        "  symbayes predict model.symbayes new.csv\n"
        "  symbayes predict model.symbayes new.csv --std --out predictions.csv\n"
        "  cat new.csv | symbayes predict model.symbayes - --kind mean",
    )
    _add_model(command)
    add = command.add_argument
    add("file", metavar="FILE", help=_TABLE)
    add("--out", metavar="FILE", help="write a CSV file (default: standard output)")
    add("--level", type=_probability, default=0.9, metavar="P",
        help="probability that the interval holds the value (default: 0.9)")
    add("--kind", choices=("observation", "mean"), default="observation",
        help="what the interval is for: a new observation, with its noise, or the mean")
    add("--std", action="store_true", help="add the standard deviation of a new observation")


def _add_show(commands: argparse._SubParsersAction) -> None:
    command = _add(
        commands, "show", "print the formulas of a model",
        "Print the formulas of a model: as a table, or the best one in another notation.",
        "  symbayes show model.symbayes\n"
        "  symbayes show model.symbayes --latex\n"
        "  symbayes show model.symbayes --n 3 --sympy\n"
        "  symbayes show model.symbayes --pareto\n"
        "  symbayes show model.symbayes --json | jq '.formulas[].probability'",
    )
    _add_model(command)
    command.add_argument(
        "--n", type=_count, metavar="N",
        help="formulas at most (default: 10, one in another notation, all in JSON)")
    command.add_argument(
        "--pareto", action="store_true",
        help="only formulas to which no other is both shorter and closer")
    form = command.add_mutually_exclusive_group()
    for name, what in (
        ("latex", "the best formula in LaTeX"),
        ("sympy", "as code that makes it a SymPy expression"),
        ("numpy", "as a Python function of NumPy arrays"),
        ("mathml", "in MathML, for web pages"),
    ):
        form.add_argument(f"--{name}", dest="form", action="store_const", const=name, help=what)
    form.add_argument("--json", action="store_true", help="print one JSON object")


def _add_others(commands: argparse._SubParsersAction) -> None:
    command = _add(
        commands, "report", "write a page about a model",
        "Write a page about a model: one HTML file that needs nothing else.",
        "  symbayes report model.symbayes --out page.html",
    )
    _add_model(command)
    command.add_argument("--out", required=True, metavar="FILE", help="the page, such as page.html")
    command = _add(
        commands, "info", "tell what is installed, or how a model was made",
        "Tell versions, cores and whether compiled code is at hand; of a model its\n"
        "columns, settings and verdict.",
        "  symbayes info\n  symbayes info model.symbayes",
    )
    _add_model(command, nargs="?")
    command = _add(
        commands, "demo", "fit a built-in example",
        "Fit a built-in example, print its formulas, and write model and report.",
        "  symbayes demo\n  symbayes demo --out /tmp/demo",
    )
    command.add_argument(
        "--out", default="symbayes-demo", metavar="DIR",
        help="folder for model and report (default: symbayes-demo)")


def _add_reproduce(commands: argparse._SubParsersAction) -> None:
    what = "\n".join(f"  {name:<12} {title}" for name, title in EXPERIMENTS.items())
    command = _add(
        commands, "reproduce", "do the experiments of the paper again",
        "Do the experiments of the paper again, beside its published figures.\n\n"
        f"experiments:\n{what}\n  {ALL:<12} everything, into one report",
        "  symbayes reproduce accuracy --quick            a look at the table of errors\n"
        "  symbayes reproduce all --out results           everything there is, for hours\n"
        "  symbayes reproduce signals --prices index.csv  date, open, high, low, close\n\n"
        "A call that was stopped continues where it was: what is finished is kept in\n"
        "DIR/runs.jsonl.",
    )
    add = command.add_argument
    add("experiment", choices=[*EXPERIMENTS, ALL], metavar="EXPERIMENT")
    add("--replications", type=_count, metavar="N",
        help="fresh data sets for each task, also the number of signals (default: the paper's)")
    add("--quick", action="store_true", help="a rough look in a few minutes")
    add("--n-jobs", "--jobs", type=_jobs, default=-1, metavar="N",
        help="processes (default: -1, one per core)")
    add("--seed", type=_natural, default=0, metavar="S", help="(default: 0)")
    add("--out", type=Path, default=Path("reproduced"), metavar="DIR",
        help="folder for tables and figures (default: reproduced)")
    add("--methods", nargs="+", choices=METHODS, default=list(METHODS), metavar="METHOD",
        help=f"some of: {', '.join(METHODS)}")
    add("--tasks", nargs="+", choices=TASKS, default=list(TASKS), metavar="TASK",
        help=f"some of: {', '.join(TASKS)}")
    add("--prices", type=Path, metavar="CSV",
        help="prices for signals: date, open, high, low, close (default: a generated series)")
# fmt: on


# Kinds of values.


def _whole(least: int, most: float = math.inf) -> Callable[[str], int]:

    def kind(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number") from None
        if value < least:
            raise argparse.ArgumentTypeError(f"{text} is below {least}")
        if value > most:
            raise argparse.ArgumentTypeError(f"{text} is above {most}")
        return value

    return kind


_natural, _count, _seed = _whole(0), _whole(1), _whole(0, _LARGEST_SEED)


def _jobs(text: str) -> int:
    """Return a number of cores; those below 0 count from all of them, as in joblib."""
    value = _whole(-(2**31), 2**31)(text)
    if value == 0:
        raise argparse.ArgumentTypeError("use 1 for one core or -1 for all")
    return value


def _positive(text: str) -> float:
    value = _number(text)
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"{text} is not a finite number above 0")
    return value


def _probability(text: str) -> float:
    value = _number(text)
    if not 0 < value < 1:
        raise argparse.ArgumentTypeError(f"{text} does not lie strictly between 0 and 1")
    return value


def _terms(text: str) -> str | int:
    return text if text == "auto" else _count(text)


def _noise(text: str) -> str | float:
    """Return the noise as a part of the spread of the target, or "small"."""
    if text == "small":
        return text
    try:
        value = _positive(text)
        NoisePrior.about(value)
    except argparse.ArgumentTypeError as error:
        raise argparse.ArgumentTypeError(
            f"{error}; say 0.05 for about 5 % of the spread of the target, or small"
        ) from None
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error).removeprefix("noise_prior: ")) from None
    return value


def operators(text: str) -> str | list[str] | dict[str, float]:
    """Return operators as the estimator takes them: a set, names, or weights.

    Examples
    --------
    >>> from symbayes.cli.arguments import operators
    >>> operators("arithmetic"), operators("+,*,sin"), operators("sin:2, +")
    ('arithmetic', ['+', '*', 'sin'], {'sin': 2.0, '+': 1.0})
    """
    if text in OPERATOR_SETS:
        return text
    weights: dict[str, float] = {}
    for word in filter(None, re.split(r"[,\s]+", text)):
        name, _, weight = word.partition(":")
        if name in weights:
            raise argparse.ArgumentTypeError(
                f"{name!r} occurs twice; to prefer an operator, give it a weight, such as {name}:2"
            )
        weights[name] = _number(weight) if weight else 1.0
    if not weights:
        raise argparse.ArgumentTypeError(
            f"there is none; name a set, {', '.join(OPERATOR_SETS)}, or operators, such as +,*,sin"
        )
    if len(weights) == 1 and not weights.keys() & OPERATORS.keys():
        raise argparse.ArgumentTypeError(
            f"{text!r} is neither an operator nor a set of them{operator_hint(text)}; the sets are "
            f"{', '.join(OPERATOR_SETS)}, the operators {' '.join(OPERATORS)}"
        )
    try:
        operator_weights(weights)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error).removeprefix("operators: ")) from None
    return weights if ":" in text else list(weights)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number") from None
