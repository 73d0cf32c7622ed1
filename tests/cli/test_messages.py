"""What is said on standard error: one line each, whatever happens."""

from __future__ import annotations

import sys
import warnings

import pytest

from symbayes import DataWarning, SamplingWarning
from symbayes.cautions import Remedy
from symbayes.cli import main, show
from symbayes.cli.messages import BROKEN_PIPE, say
from symbayes.cli.wording import verdict_text, warnings_as_lines
from symbayes.posterior.verdict import Note, Reason, Verdict

from .calling import complaint


def raising(error):
    def installation():
        raise error

    return installation


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (ValueError("x is 0"), "x is 0"),
        (ValueError("n_terms is 40, and known_terms"), "--terms is 40, and known_terms"),
        (TypeError("x must be\n  a number"), "x must be a number"),
        (FileNotFoundError(2, "No such file", "a.csv"), "a.csv: No such file"),
        (OSError(28, "No space left"), "No space left"),
        (OSError("went wrong"), "went wrong"),
        (MemoryError(), "there is not enough memory"),
        (ValueError(), "unexpected ValueError:  (--debug shows where)"),
        (KeyError("x"), "unexpected KeyError: 'x' (--debug shows where)"),
        (RecursionError("too deep"), "unexpected RecursionError: too deep (--debug shows where)"),
    ],
)
def test_every_error_is_a_line(monkeypatch, capsys, error, message):
    monkeypatch.setattr(show, "installation", raising(error))
    assert complaint(capsys, ["info"]) == message


@pytest.mark.parametrize(("words", "variable"), [(["--debug"], ""), ([], "1")])
def test_a_traceback_for_who_asks_for_it(monkeypatch, capsys, words, variable):
    monkeypatch.setattr(show, "installation", raising(ValueError("x is 0")))
    monkeypatch.setenv("SYMBAYES_DEBUG", variable)
    assert main(["info", *words]) == 1
    error = capsys.readouterr().err
    assert error.startswith("Traceback")
    assert error.endswith("symbayes: x is 0\n")


@pytest.mark.parametrize(
    ("stop", "message"),
    [(KeyboardInterrupt(), "stopped"), (KeyboardInterrupt("stopped; so far"), "stopped; so far")],
)
def test_ctrl_c(monkeypatch, capsys, stop, message):
    monkeypatch.setattr(show, "installation", raising(stop))
    assert complaint(capsys, ["info"], 130) == message


def test_a_reader_that_has_gone_is_nobody_to_complain_to(monkeypatch, capsys):
    monkeypatch.setattr(show, "installation", raising(BrokenPipeError(32, "Broken pipe")))
    assert main(["info"]) == BROKEN_PIPE
    assert capsys.readouterr() == ("", "")


def test_no_standard_output(monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdout", None)
    assert main(["info"]) == 0


def test_nothing_in_a_message_moves_the_cursor(capsys):
    say("column 'a\x1b[2J'\n\n  of t.csv\r")
    assert capsys.readouterr().err == "symbayes: column 'a\\x1b[2J' of t.csv\n"


def test_warnings_are_lines(capsys):
    with warnings_as_lines():
        for category in (DataWarning, SamplingWarning, SamplingWarning):
            warnings.warn("a\nb", category)
    assert capsys.readouterr().err == "symbayes: warning: a b\n" * 3
    with pytest.raises(DataWarning):
        warnings.warn("as before", DataWarning)


def test_warnings_name_options(capsys):
    with warnings_as_lines():
        warnings.warn(SamplingWarning("too short; ", Remedy.RAISE_TIMEOUT))
        warnings.warn(SamplingWarning("stopped; ", Remedy.RESUME, path="a b"))
        # Names of columns are nobody's to change, and once is not said where each call is one.
        warnings.warn(SamplingWarning("columns 'raise timeout', \"a'draws\"", once=True))
    assert capsys.readouterr().err.splitlines() == [
        "symbayes: warning: too short; raise --time",
        "symbayes: warning: stopped; symbayes resume 'a b' continues from its checkpoint",
        "symbayes: warning: columns 'raise timeout', \"a'draws\"",
    ]


def test_verdicts_name_options():
    facts = {"chains": 4, "quantity": "uses timeout", "high": 0.9, "low": 0.1, "temperatures": 18}
    verdict = Verdict(
        Reason.CONTRADICTION, facts, None, Note.HARDLY_SWAPS,
        (Remedy.ADD_TEMPERATURES, Remedy.FEWER_OPERATORS), 20.0,
    )  # fmt: skip
    start = (
        "Not converged: the chains do not agree: the probability that the formula uses timeout is "
        "90% in one of them and 10% in another. Its temperatures hardly swap states: use more of "
    )
    assert verdict.text() == (
        f"{start}them (sampler=TemperedSampler(temperatures=18)), or fewer operators. "
        "formulas_by_chain() shows what each chain found. Stacked instead of pooled, "
        "combined('stack'), they predict left-out rows better, by 20 nats."
    )
    assert verdict_text(verdict.entries()) == (
        f"{start}them (in Python: sampler=TemperedSampler(temperatures=18)), or fewer operators. "
        "symbayes show lists what each chain found. Stacked instead of pooled, --combine stack, "
        "they predict left-out rows better, by 20 nats."
    )
    # Files of before have the text only.
    assert verdict_text({"verdict": "Raise timeout."}) == "Raise timeout."


def test_ctrl_c_while_modules_are_still_imported(monkeypatch, capsys):
    class Stopped:
        def __getattr__(self, name):
            raise KeyboardInterrupt

    monkeypatch.setitem(sys.modules, "symbayes.cli.arguments", Stopped())
    assert main(["info"]) == 130
    assert capsys.readouterr().err == "symbayes: stopped\n"
