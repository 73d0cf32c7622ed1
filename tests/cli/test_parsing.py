"""Words and options: kinds of values, help, and mistakes of usage."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys

import pytest

from symbayes import OPERATOR_SETS, __version__
from symbayes.cli import main
from symbayes.cli.arguments import operators, parser

from .calling import complaint

COMMANDS = ("fit", "predict", "show", "report", "info", "demo", "reproduce")


def fit_options(*words):
    return parser().parse_args(["fit", "data.csv", "--target", "y", *words])


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        *((name, name) for name in OPERATOR_SETS),
        ("+", ["+"]),
        ("+,*,sin", ["+", "*", "sin"]),
        (" + * , sin ", ["+", "*", "sin"]),
        ("sin:2,+:1", {"sin": 2.0, "+": 1.0}),
        ("sin:0.5,+", {"sin": 0.5, "+": 1.0}),
        ("sin:3", {"sin": 3.0}),
    ],
)
def test_operators(text, meaning):
    assert operators(text) == meaning


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--operators", "snn"], "'snn' is neither an operator nor a set of them (did you mean"),
        (["--operators", "add"], "(did you mean '+'?)"),
        (["--operators", "+,snn"], "'snn' is not an operator"),
        (["--operators", "+,*,+"], "'+' occurs twice; to prefer an operator, give it a weight"),
        (["--operators", "sin:x"], "'x' is not a weight, which is 0 or more"),
        (["--operators", "sin:-1,+"], "'-1' is not a weight, which is 0 or more"),
        (["--operators", "sin:0"], "must have a positive, finite sum"),
        (["--operators", ""], "the sets are default, paper, "),
        (["--operators", " , "], "' , ' is neither an operator nor a set"),
        (["--terms", "0"], "'0' is not a whole number of at least 1, or auto"),
        (["--terms", "some"], "'some' is not a whole number"),
        (["--noise", "tiny"], "'tiny' is not a number between 0 and 1, such as 0.05 for about 5 %"),
        (["--noise", "tiny"], "of the target, or small"),
        (["--noise", "0"], "'0' is not a number between 0 and 1"),
        (["--noise", "2"], "--noise: '2' is not a number between 0 and 1, such as 0.05"),
        (["--time", "-1"], "'-1' is not a finite number above 0"),
        (["--time", "inf"], "'inf' is not a finite number above 0"),
        (["--time", "nan"], "'nan' is not a finite number above 0"),
        (["--draws", "0"], "'0' is not a whole number of at least 1"),
        (["--draws", "2.5"], "'2.5' is not a whole number"),
        (["--tune", "-1"], "'-1' is not a whole number of at least 0"),
        (["--chains", "0"], "'0' is not a whole number of at least 1"),
        (["--seed", "4294967296"], "'4294967296' is not a whole number from 0 to 4294967295"),
        (["--seed", "-1"], "'-1' is not a whole number from 0 to 4294967295"),
        (["--jobs", "0"], "'0' is not a number of cores, such as 1, or -1 for all"),
        (["--select", "best"], "'best' is no rule; it must be one of 'auto'"),
        (["--select", "simplest within 2"], "goes how much of R2 may be lost, from 0 to below 1"),
        (["--combine", "mean"], "invalid choice: 'mean'"),
        (["--sed", "1"], "unrecognized arguments: --sed"),
        (["--target"], "--target: expected one argument"),
        (["--features"], "--features: expected at least one argument"),
    ],
)
def test_mistakes_about_a_fit(capsys, words, message):
    line = complaint(capsys, ["fit", "data.csv", "--target", "y", *words], 2)
    assert message in line
    assert line.endswith("(see symbayes fit --help)")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["ftt"], "invalid choice: 'ftt'"),
        (["fit"], "the following arguments are required: FILE"),
        (["predict", "m.symbayes"], "required: FILE"),
        (
            ["predict", "m.symbayes", "-", "--level", "1"],
            "'1' is not a number strictly between 0 and 1",
        ),
        (["predict", "m.symbayes", "-", "--level", "high"], "'high' is not a number"),
        (["predict", "m.symbayes", "-", "--kind", "median"], "invalid choice: 'median'"),
        (["show"], "required: MODEL"),
        (["show", "m.symbayes", "--n", "0"], "'0' is not a whole number of at least 1"),
        (["show", "m.symbayes", "--latex", "--json"], "not allowed with argument"),
        (["report", "m.symbayes"], "required: --out"),
        (["info", "a", "b"], "unrecognized arguments: b (see symbayes info --help)"),
        (["--foo"], "unrecognized arguments: --foo (see symbayes --help)"),
        (["demo", "--out"], "--out: expected one argument"),
        (["fit", "a\nb\x1b[31m", "--target", "y", "\x1b[32m"], r"unrecognized arguments: \x1b[32m"),
    ],
)
def test_mistakes_about_other_commands(capsys, words, message):
    assert message in complaint(capsys, words, 2)


def test_the_names_of_options_are_lists():
    options = fit_options("--features", "a b", "λ", "--features=-x", "--known", "a", "--known", "b")
    assert options.features == ["a b", "λ", "-x"]
    assert options.known_terms == ["a", "b"]


@pytest.mark.parametrize("option", ["--jobs", "--n-jobs"])
def test_cores_go_by_two_names(option):
    assert fit_options(option, "3").n_jobs == 3
    words = ["reproduce", "accuracy", option, "3"]
    assert parser().parse_args(words).n_jobs == 3


def test_no_command_is_answered_with_help(capsys):
    assert main([]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "examples:" in captured.err
    for name in COMMANDS:
        assert re.search(rf"^    {name}\b", captured.err, flags=re.MULTILINE)


def test_version(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["--version"])
    assert stop.value.code == 0
    assert capsys.readouterr().out == f"symbayes {__version__}\n"


@pytest.mark.parametrize("words", [["--version"], ["--help"], ["fit", "--help"]], ids=str)
def test_help_waits_for_nothing_slow(words):
    program = (
        "import atexit, sys\nfrom symbayes.cli import main\n"
        "slow = {'numba', 'pandas', 'scipy', 'sklearn', 'sympy'}\n"
        "atexit.register(lambda: print(slow & {*sys.modules}, file=sys.stderr))\n"
        f"main({words!r})"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60
    )
    assert done.stdout
    assert done.stderr == "set()\n"


@pytest.mark.parametrize("name", ["", *COMMANDS])
def test_help_has_examples_that_can_be_called(capsys, name):
    with pytest.raises(SystemExit) as stop:
        main([*filter(None, [name]), "--help"])
    assert stop.value.code == 0
    text = capsys.readouterr().out
    assert max(map(len, text.splitlines())) <= 80
    examples = text.partition("examples:")[2]
    # Between a pipe or the margin, and a pipe or what it is about.
    pattern = r"^  (?:.*\| )?symbayes (.*?)(?:  .*| \|.*)?$"
    calls = re.findall(pattern, examples, flags=re.MULTILINE)
    assert calls
    for call in calls:
        if "--help" not in call:
            assert callable(parser().parse_args(shlex.split(call)).run)
