"""The words of the command line: every command, its options, its help, and kinds of values.

Nothing slow is imported here, so that help and mistakes are answered at once.
"""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

from ..experiments import ALL, EXPERIMENTS, METHODS, TASKS
from ..formula.operators import OPERATOR_SETS, OPERATORS, operator_hint, operator_weights
from ..version import __version__
from .messages import USAGE, one_line

_TABLE = (
    "CSV (commas, semicolons or tabs; the first line names the columns), .tsv, either also as .gz, "
    ".parquet, or - for CSV from standard input"
)
_RULES = ("auto", "probability", "one_standard_error", "accuracy")
# Options on the left and what they mean beside them, not below.
_Help = partial(argparse.RawDescriptionHelpFormatter, max_help_position=30)


class _Parser(argparse.ArgumentParser):
    """A parser that complains in one line and keeps the line breaks of its texts."""

    def __init__(self, **options: Any):
        super().__init__(allow_abbrev=False, formatter_class=_Help, **options)

    def error(self, message: str) -> NoReturn:
        self.exit(USAGE, f"symbayes: {one_line(message)} (see {self.prog} --help)\n")


# Kinds of values.


def _rule(text: str) -> str:
    if text in _RULES:
        return text
    from ..inputs.parameters import most_lost, wanted_rule  # which takes a while to import

    if most_lost(text) is None:
        raise argparse.ArgumentTypeError(f"{text!r} is no rule; {wanted_rule(text)}")
    return text


def _kind(
    convert: Callable[[str], Any], is_fine: Callable[[Any], bool], wanted: str, word: str = ""
) -> Callable[[str], Any]:
    """Return what argparse makes a value with; `wanted` says in complaints what it has to be.

    A `word` that stands for a value stays as it is.
    """

    def kind(text: str) -> Any:
        if word and text == word:
            return text
        with suppress(ValueError):
            if is_fine(value := convert(text)):
                return value
        raise argparse.ArgumentTypeError(f"{text!r} is not {wanted}")

    return kind


_natural = _kind(int, lambda n: n >= 0, "a whole number of at least 0")
_count = _kind(int, lambda n: n >= 1, "a whole number of at least 1")
_seed = _kind(int, lambda n: 0 <= n < 2**32, f"a whole number from 0 to {2**32 - 1}")
_jobs = _kind(int, lambda n: 0 < abs(n) < 2**31, "a number of cores, such as 1, or -1 for all")
_seconds = _kind(float, lambda x: 0 < x < math.inf, "a finite number above 0")
_weight = _kind(float, lambda x: 0 <= x < math.inf, "a weight, which is 0 or more")
_probability = _kind(float, lambda x: 0 < x < 1, "a number strictly between 0 and 1")
_tolerance = _kind(float, lambda x: 0 <= x <= 0.05, "a number from 0 to 0.05, such as 0.005")
_terms = _kind(int, lambda n: n >= 1, "a whole number of at least 1, or auto", word="auto")
_noise = _kind(
    float,
    lambda x: 0 < x < 1,
    "a number between 0 and 1, such as 0.05 for about 5 % of the spread of the target, or small",
    word="small",
)


def operators(text: str) -> str | list[str] | dict[str, float]:
    """Return operators as the estimator takes them: a set, names, or weights."""
    if text in OPERATOR_SETS:
        return text
    weights: dict[str, float] = {}
    for word in filter(None, re.split(r"[,\s]+", text)):
        name, _, weight = word.partition(":")
        if name in weights:
            raise argparse.ArgumentTypeError(
                f"{name!r} occurs twice; to prefer an operator, give it a weight, such as {name}:2"
            )
        weights[name] = _weight(weight or "1")
    if len(weights) < 2 and not weights.keys() & OPERATORS.keys():
        raise argparse.ArgumentTypeError(
            f"{text!r} is neither an operator nor a set of them{operator_hint(text)}; the sets are "
            f"{', '.join(OPERATOR_SETS)}, the operators {' '.join(OPERATORS)}"
        )
    try:
        operator_weights(weights)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error).removeprefix("operators: ")) from None
    return weights if ":" in text else list(weights)


# Options of several commands.

# fmt: off
_DEBUG: dict[str, Any] = {
    "action": "store_true", "help": "show where an error comes from (or SYMBAYES_DEBUG=1)"}
_JOBS: dict[str, Any] = {"dest": "n_jobs", "type": _jobs, "metavar": "N"}
_JSON: dict[str, Any] = {"action": "store_true", "help": "print one JSON object"}
_QUIET: dict[str, Any] = {
    "action": "store_true", "help": "show neither progress nor notes, only warnings"}
_MODEL: dict[str, Any] = {"metavar": "MODEL", "help": "a file made by fit --out"}


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
    result.add_argument("--debug", **_DEBUG)
    commands = result.add_subparsers(title="commands", metavar="COMMAND")

    def define(module: str, name: str, summary: str, text: str, examples: str) -> _Parser:
        """Add a command, which the function of its name in a module beside this one carries out."""
        added = commands.add_parser(
            name, help=summary, description=text, epilog=f"examples:\n{examples}")
        added.set_defaults(run=partial(_run, module, name), parser=added)
        added.add_argument("--debug", **_DEBUG)
        return added

    # Options that are parameters of the estimator are stored under their names there.
    fit = define(
        "fit", "fit", "find formulas for a table",
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
    fit.usage = "symbayes fit FILE --target NAME [options]"
    add = fit.add_argument_group("data").add_argument
    add("file", metavar="FILE", help=_TABLE)
    add("--target", metavar="NAME", help="the column to explain (required)")
    add("--features", nargs="+", action="extend", metavar="NAME",
        help="columns to explain it by (default: all other columns of numbers)")
    add("--weights", metavar="NAME", help="the column of row weights")
    add("--drop-missing", action="store_true", help="leave out rows with missing values")

    add = fit.add_argument_group("formulas").add_argument
    add("--operators", type=operators, default="default", metavar="OPERATORS",
        help=f"a set ({', '.join(OPERATOR_SETS)}), operators (+,*,sin) or weights (sin:2,+:1)")
    add("--terms", dest="n_terms", type=_terms, default="auto", metavar="N",
        help="number of terms in the sum (default: auto, learned)")
    add("--known", dest="known_terms", nargs="+", action="extend", metavar="FORMULA",
        help="terms that are in the model, such as 'x0*x1'; their coefficients are learned")
    add("--initial", dest="initial_formulas", nargs="+", action="extend", metavar="FORMULA",
        help="formulas to start from")
    add("--noise", dest="noise_prior", type=_noise, metavar="SHARE",
        help="belief about the noise: 0.05 is about 5%% of the spread of the target, or small")
    add("--tolerance", type=_tolerance, default=0.0, metavar="SHARE",
        help="for short formulas of many rows, from 0 to 0.05: with 0.005, another operator or "
        "column has to lower the error by about 1%% (default: 0)")
    add("--select", dest="model_selection", type=_rule, default=_RULES[0], metavar="RULE",
        help=f"what makes the best formula: {', '.join(_RULES)}, or 'simplest within 0.01', which "
        "may lose that much of R2 (default: auto, the most probable, or a shorter one where "
        "none stands out)")
    add("--combine", choices=("pool", "stack"), default="pool", metavar="HOW",
        help="how chains count: pool, all the same, or stack, by how well they predict rows left "
        "out, for chains that do not agree (default: pool)")

    add = fit.add_argument_group("effort").add_argument
    add("--time", "--timeout", dest="timeout", type=_seconds, metavar="SECONDS",
        help="end the fit after this time, with what it has found; that depends on the machine, "
        "whatever the seed")
    add("--draws", type=_count, metavar="N",
        help="formulas that each chain draws from the posterior, at most: it ends earlier when the "
        "chains agree (default: 4000, or as many as --time allows)")
    add("--tune", type=_natural, metavar="N",
        help="draws of each chain for warm-up, at most (default: 15000)")
    add("--chains", type=_count, default=4, metavar="N",
        help="independent runs, which are compared with each other (default: 4)")
    add("--seed", dest="random_state", type=_seed, metavar="S",
        help="the same seed gives the same result, unless --time ends the fit (default: any)")
    add("--jobs", "--n-jobs", default=-1, help="cores to use (default: -1, all)", **_JOBS)

    add = fit.add_argument_group("results").add_argument
    add("--out", metavar="FILE", help="save the model, such as model.symbayes")
    add("--report", metavar="FILE", help="write a page about it, such as page.html")
    add("--checkpoint", metavar="FILE",
        help="keep the state of the run, every minute or so, for symbayes resume")
    add("--json", **_JSON)
    add("--quiet", **_QUIET)

    add = define(
        "fit", "resume", "resume a fit that was stopped",
        "Resume a fit from its checkpoint. It makes the same draws as if it had not been\n"
        "stopped, and writes the files it was to write. The table has to be as it was.",
        "  symbayes fit data.csv --target y --checkpoint run.checkpoint --out model.symbayes\n"
        "  symbayes resume run.checkpoint\n"
        "  symbayes resume run.checkpoint moved/data.csv --out elsewhere.symbayes",
    ).add_argument
    add("checkpoint", metavar="CHECKPOINT", help="the file of symbayes fit --checkpoint")
    add("file", metavar="FILE", nargs="?", help="the table, if it is no longer where it was")
    add("--jobs", "--n-jobs", help="cores to use", **_JOBS)
    add("--out", metavar="FILE", help="save the model there instead")
    add("--report", metavar="FILE", help="write the page about it there instead")
    add("--json", default=None, **_JSON)
    add("--quiet", default=None, **_QUIET)

    add = define(
        "predict", "predict", "predict new rows",
        "Predict new rows: a table with a line for each, in their order, with the columns\n"
        "prediction, lower and upper. Columns are found by name; others do no harm.",
        "  symbayes predict model.symbayes new.csv\n"
        "  symbayes predict model.symbayes new.csv --std --out predictions.csv\n"
        "  cat new.csv | symbayes predict model.symbayes - --kind mean",
    ).add_argument
    add("model", **_MODEL)
    add("file", metavar="FILE", help=_TABLE)
    add("--out", metavar="FILE", help="write a CSV file (default: standard output)")
    add("--level", type=_probability, default=0.9, metavar="P",
        help="probability that the interval holds the value (default: 0.9)")
    add("--kind", choices=("observation", "mean"), default="observation",
        help="what the interval is for: a new observation, with its noise, or the mean")
    add("--std", action="store_true", help="add the standard deviation of a new observation")

    show = define(
        "show", "show", "print the formulas of a model",
        "Print the formulas of a model: as a table, or the best one in another notation.",
        "  symbayes show model.symbayes\n"
        "  symbayes show model.symbayes --latex\n"
        "  symbayes show model.symbayes --n 3 --sympy\n"
        "  symbayes show model.symbayes --front\n"
        "  symbayes show model.symbayes --json | jq '.formulas[].probability'",
    )
    add = show.add_argument
    add("model", **_MODEL)
    add("--n", type=_count, metavar="N",
        help="formulas at most (default: 10, one in another notation, all in JSON, and all of the "
        "front)")
    add("--front", "--pareto", dest="pareto", action="store_true",
        help="the best formula of each size: those to which no other is both shorter and closer")
    add = show.add_mutually_exclusive_group().add_argument
    for name, what in (
        ("latex", "the best formula in LaTeX"),
        ("sympy", "as code that makes it a SymPy expression"),
        ("numpy", "as a Python function of NumPy arrays"),
        ("mathml", "in MathML, for web pages"),
    ):
        add(f"--{name}", dest="form", action="store_const", const=name, help=what)
    add("--json", **_JSON)

    add = define(
        "show", "report", "write a page about a model",
        "Write a page about a model: one HTML file that needs nothing else.",
        "  symbayes report model.symbayes --out page.html",
    ).add_argument
    add("model", **_MODEL)
    add("--out", required=True, metavar="FILE", help="the page, such as page.html")

    define(
        "show", "info", "tell what is installed, or how a model was made",
        "Tell versions, cores and whether compiled code is at hand; of a model its\n"
        "columns, settings and verdict.",
        "  symbayes info\n  symbayes info model.symbayes",
    ).add_argument("model", nargs="?", **_MODEL)

    define(
        "demo", "demo", "fit a built-in example",
        "Fit a built-in example, print its formulas, and write model and report.",
        "  symbayes demo\n  symbayes demo --out /tmp/demo",
    ).add_argument(
        "--out", default="symbayes-demo", metavar="DIR",
        help="folder for model and report (default: symbayes-demo)")

    what = "\n".join(f"  {name:<12} {title}" for name, title in EXPERIMENTS.items())
    add = define(
        "reproduce", "reproduce", "do the experiments of the paper again",
        "Do the experiments of the paper again, beside its published figures.\n\n"
        f"experiments:\n{what}\n  {ALL:<12} everything, into one report",
        "  symbayes reproduce accuracy --quick            a look at the table of errors\n"
        "  symbayes reproduce all --out results           everything there is, for hours\n"
        "  symbayes reproduce signals --prices index.csv  date, open, high, low, close\n\n"
        "A call that was stopped continues where it was: what is finished is kept in\n"
        "DIR/runs.jsonl.",
    ).add_argument
    add("experiment", choices=[*EXPERIMENTS, ALL], metavar="EXPERIMENT")
    add("--replications", type=_count, metavar="N",
        help="fresh data sets for each task, also the number of signals (default: the paper's)")
    add("--quick", action="store_true", help="a rough look in a few minutes")
    add("--n-jobs", "--jobs", default=-1, help="processes (default: -1, one per core)", **_JOBS)
    add("--seed", type=_natural, default=0, metavar="S", help="(default: 0)")
    add("--out", type=Path, default=Path("reproduced"), metavar="DIR",
        help="folder for tables and figures (default: reproduced)")
    add("--methods", nargs="+", choices=METHODS, default=list(METHODS), metavar="METHOD",
        help=f"some of: {', '.join(METHODS)}")
    add("--tasks", nargs="+", choices=TASKS, default=list(TASKS), metavar="TASK",
        help=f"some of: {', '.join(TASKS)}")
    add("--prices", type=Path, metavar="CSV",
        help="prices for signals: date, open, high, low, close (default: a generated series)")
    return result
# fmt: on


def _run(module: str, name: str, options: argparse.Namespace) -> int:
    return getattr(import_module(f".{module}", __package__), name)(options)
