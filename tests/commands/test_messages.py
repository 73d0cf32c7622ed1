"""What is said on standard error: one line each, whatever happens."""

from __future__ import annotations

import sys
import warnings

import pytest

from symbayes import DataWarning, SamplingWarning
from symbayes.cli import info, main, statuses
from symbayes.cli.messages import explain, say, warnings_as_lines

from .calling import complaint


def raising(error):
    def installation():
        raise error

    return installation


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (ValueError("x is 0"), "x is 0"),
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
    monkeypatch.setattr(info, "installation", raising(error))
    assert complaint(capsys, ["info"]) == message


@pytest.mark.parametrize(("words", "variable"), [(["--debug"], ""), ([], "1")])
def test_a_traceback_for_who_asks_for_it(monkeypatch, capsys, words, variable):
    monkeypatch.setattr(info, "installation", raising(ValueError("x is 0")))
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
    monkeypatch.setattr(info, "installation", raising(stop))
    assert complaint(capsys, ["info"], 130) == message


def test_a_reader_that_has_gone_is_nobody_to_complain_to(monkeypatch, capsys):
    monkeypatch.setattr(info, "installation", raising(BrokenPipeError(32, "Broken pipe")))
    assert main(["info"]) == statuses.BROKEN_PIPE
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


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Raise timeout, or lower tune", "Raise --time, or lower --tune"),
        ("1 of 4 draws. Raise draws and tune", "1 of 4 draws. Raise --draws and --tune"),
        ("raise tune, or compare another random_state", "raise --tune, or compare another --seed"),
        ("Use more (chains=4)", "Use more (--chains 4)"),
        ("(sampler=TemperedSampler(temperatures=5))",
         "(in Python: sampler=TemperedSampler(temperatures=5))"),
        ("columns 'raise draws', \"a'timeout\"", "columns 'raise draws', \"a'timeout\""),
        ("are too narrow. This is said once for each fit.", "are too narrow."),
    ],
)  # fmt: skip
def test_parameters_become_options(capsys, text, words):
    with warnings_as_lines():
        warnings.warn(text, SamplingWarning)
    assert capsys.readouterr().err == f"symbayes: warning: {words}\n"


def test_an_error_without_a_file():
    assert explain(OSError(5, "Input/output error")) == "Input/output error"


def test_ctrl_c_while_modules_are_still_imported(monkeypatch, capsys):
    class Stopped:
        def __getattr__(self, name):
            raise KeyboardInterrupt

    monkeypatch.setitem(sys.modules, "symbayes.cli.running", Stopped())
    assert main(["info"]) == 130
    assert capsys.readouterr().err == "symbayes: stopped\n"
