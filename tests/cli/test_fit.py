"""`symbayes fit`: what it prints, what it writes, and what it complains about before it starts."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import symbayes
from symbayes import BayesianSymbolicRegressor
from symbayes.cli import main
from symbayes.cli.messages import INTERRUPTED
from symbayes.show.display import Display

from .calling import ODD_NAMES, QUICK, complaint, odd_table, plain_table


def fit(*words, file="data.csv", target="y"):
    return main(["fit", file, "--target", target, *QUICK, *map(str, words)])


def fit_json(capsys, *words, **where):
    assert fit("--json", "--quiet", *words, **where) == 0
    captured = capsys.readouterr()
    assert captured.err == ""

    def refuse(name):
        raise AssertionError(f"{name} is no JSON")

    return json.loads(captured.out, parse_constant=refuse)


@pytest.fixture
def no_fit(monkeypatch):
    """Nothing may begin to fit."""
    monkeypatch.setattr(
        BayesianSymbolicRegressor, "fit", lambda *_: pytest.fail("this should not have started")
    )


@pytest.fixture
def ctrl_c(monkeypatch):
    """Ctrl-C before the draws."""
    real = Display.__call__

    def show(self, progress):
        real(self, progress)
        if progress.phase == "settling":
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(Display, "__call__", show)


def test_the_answer_is_text(capsys):
    assert fit() == 0
    captured = capsys.readouterr()
    lines = captured.out.splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[0].split() == ["probability", "nodes", "R2", "formula"]
    assert re.fullmatch(r" +0\.\d{3} +\d+  0\.9\d{3}  .*", lines[1])
    assert "best formula (the most probable):" in lines
    assert re.search(r"^error: 0\.\d+ \(root mean square", captured.out, flags=re.MULTILINE)
    assert re.search(r"^verdict: (Not c|C)onverged", captured.out, flags=re.MULTILINE)
    assert re.fullmatch(r"seconds: \d+\.\d", lines[-2])
    assert lines[-1] == "seed: 0"
    assert "symbayes: drawing 50/50" in captured.err
    assert "onverged" not in captured.err  # once is enough
    assert sorted(os.listdir()) == ["data.csv"]


def test_the_answer_is_json(capsys):
    answer = fit_json(capsys)
    assert answer["version"] == symbayes.__version__
    assert answer["columns"] == ["a", "b"]
    assert (answer["target"], answer["weights"], answer["data"]) == ("y", None, "data.csv")
    assert (answer["rows"], answer["rows_left_out"], answer["seed"]) == (30, 0, 0)
    assert (answer["model"], answer["report"]) == (None, None)
    assert answer["seconds"] > 0
    assert sum(row["probability"] for row in answer["formulas"]) == pytest.approx(1)
    best = answer["best"]
    assert best["rule"] == "auto"
    assert {**answer["formulas"][0], "rule": "auto"} == best
    assert symbayes.Formula(best["formula"], ["a", "b"]).features == ["a", "b"]
    assert best["rmse"] < 0.2
    assert set(answer["inclusion_probability"]) == {"a", "b"}
    assert isinstance(answer["diagnostics"]["converged"], bool)
    assert answer["diagnostics"]["interrupted"] is False


def test_json_has_the_words_of_the_command_line(capsys):
    verdict = fit_json(capsys)["diagnostics"]["verdict"]
    assert verdict.startswith("Not converged: ")
    assert "aise --draws" in verdict


def test_json_has_no_nan(capsys):
    # R-hat needs more draws than this.
    answer = fit_json(capsys, "--draws", "2")
    assert answer["diagnostics"]["r_hat"].keys() >= {"log_likelihood", "n_nodes"}
    assert {*answer["diagnostics"]["r_hat"].values()} == {None}


def test_the_same_as_the_library(capsys):
    answer = fit_json(capsys, "--noise", "0.05", "--terms", "2", "--select", "accuracy")
    table = pd.read_csv("data.csv")
    model = BayesianSymbolicRegressor(
        ["+", "*", "square"], n_terms=2, noise_prior=0.05, model_selection="accuracy",
        draws=50, tune=100, chains=1, random_state=0,
    ).fit(table[["a", "b"]], table["y"])  # fmt: skip
    assert [row["formula"] for row in answer["formulas"]] == list(model.formulas_["formula"])
    assert answer["best"]["formula"] == str(model.best_formula_)


def test_stacked_chains(capsys):
    answer = fit_json(capsys, "--combine", "stack", "--chains", "2", "--draws", "20")
    assert answer["chains"]["combined"] == "stack"
    assert answer["chains"]["weights"] == answer["diagnostics"]["stacking_weights"]
    assert sum(answer["chains"]["weights"]) == pytest.approx(1.0)


def test_standard_input(capsys, monkeypatch):
    content = io.BytesIO(Path("data.csv").read_bytes())
    expected = fit_json(capsys)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(content))
    answer = fit_json(capsys, file="-")
    assert answer["data"] == "standard input"
    assert answer["formulas"] == expected["formulas"]


def test_odd_names(capsys):
    odd_table().assign(city="Rome").to_csv("odd.csv", index=False)
    answer = fit_json(capsys, file="odd.csv")
    assert answer["columns"] == list(ODD_NAMES)
    assert answer["best"]["formula"] == "3*`a b`**2 + λ"
    assert fit_json(capsys, "--features", "λ", "a b", file="odd.csv")["columns"] == ["λ", "a b"]
    for name in ODD_NAMES:
        words = ["--features", "y", "--draws", "5", "--tune", "10"]
        assert fit_json(capsys, *words, file="odd.csv", target=name)["target"] == name


def test_notes_and_warnings_are_lines(capsys):
    table = plain_table(7).assign(city="Rome", same=1.0, gap=[np.nan] + [1.0] * 6)
    table.to_csv("data.csv", index=False)
    assert fit("--drop-missing") == 0
    error = capsys.readouterr().err
    assert "symbayes: note: left out what is not made of numbers: 'city' ('Rome' in" in error
    assert "symbayes: note: left out 1 row with missing values\n" in error
    assert "symbayes: warning: Columns that cannot matter are left out: constant: 'same'" in error
    assert "symbayes: warning: 6 rows are too few to tell formulas apart" in error
    assert all(line.startswith("symbayes: ") for line in error.splitlines())
    assert fit("--drop-missing", "--quiet") == 0
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2
    assert all(line.startswith("symbayes: warning: ") for line in lines)


def test_weights(capsys):
    table = plain_table()
    table.assign(w=np.arange(30) % 3).to_csv("data.csv", index=False)
    answer = fit_json(capsys, "--weights", "w")
    assert (answer["columns"], answer["weights"]) == (["a", "b"], "w")
    assert complaint(capsys, ["fit", "data.csv", "--target", "y", "--weights", "a"]).startswith(
        "--weights contains"
    )


def test_known_and_initial(capsys):
    answer = fit_json(capsys, "--known", "b*b", "--initial", "2*a", "a + b")
    assert "b" in answer["best"]["formula"]
    assert answer["inclusion_probability"]["b"] == 1


def test_a_seed_is_chosen_and_told(capsys):
    words = ["fit", "data.csv", "--target", "y", *QUICK[: QUICK.index("--seed")], "--json"]
    answers = []
    for _ in range(2):
        assert main([*words, "--quiet", "--operators", "+"]) == 0
        answers.append(json.loads(capsys.readouterr().out))
    assert answers[0]["seed"] != answers[1]["seed"]
    again = fit_json(capsys, "--operators", "+", "--seed", answers[0]["seed"])
    assert again["formulas"] == answers[0]["formulas"]


@pytest.mark.usefixtures("no_fit")
@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        ([], 2, "--target is missing: name the column to explain; data.csv has 'a', 'b', 'y'"),
        (["--target", "Y"], 1, "data.csv has no column 'Y' (did you mean 'y'?), which --target"),
        (["--target", "y", "--features", "c"], 1, "no column 'c'"),
        (
            ["--target", "y", "--features", "y"],
            2,
            "'y' can be only one of --target, --weights and --features",
        ),
        (["--target", "y", "--out", "no/m"], 1, "no: no file can be made in this folder"),
        (["--target", "y", "--report", "no/p.html"], 1, "no: no file can be made in this folder"),
        (["--target", "y", "--out", "data.csv"], 2, "would replace another file"),
        (["--target", "y", "--out", "m", "--report", "m"], 2, "would replace another file"),
        (["--target", "y", "--out", "-"], 2, "--out needs the name of a file"),
    ],
)
def test_mistakes_that_show_before_the_fit(capsys, words, status, message):
    assert message in complaint(capsys, ["fit", "data.csv", *words], status)
    assert sorted(os.listdir()) == ["data.csv"]


@pytest.mark.parametrize(
    ("change", "words", "message"),
    [
        (lambda t: t.assign(y=1.0), [], "y is constant (every value is 1)"),
        (lambda t: t.assign(a=np.inf), [], "data.csv has infinite values in 30 rows of 30"),
        (lambda t: t[:2], [], "Found 2 rows"),
        (lambda t: t, ["--known", "a - a"], "--known"),
        (lambda t: t, ["--known", "a*"], "--known: expected a value"),
        (lambda t: t, ["--initial", "c+1"], "--initial: 'c' is not a column"),
        (lambda t: t, ["--terms", "40"], "--terms is 40 and there are 30 rows"),
    ],
)
def test_mistakes_that_the_library_finds(capsys, change, words, message):
    change(plain_table()).to_csv("data.csv", index=False)
    assert message in complaint(capsys, ["fit", "data.csv", "--target", "y", "--quiet", *words])


def test_the_model_and_the_report_are_written(capsys):
    answer = fit_json(capsys, "--out", "m.symbayes", "--report", "page.html")
    assert (answer["model"], answer["report"]) == ("m.symbayes", "page.html")
    model = symbayes.load("m.symbayes")
    assert str(model.best_formula_) == answer["best"]["formula"]
    assert model.progress is False
    page = Path("page.html").read_text(encoding="utf-8")
    assert "<html" in page
    assert sorted(os.listdir()) == ["data.csv", "m.symbayes", "page.html"]
    # What is there is replaced, and the text tells where it is.
    assert fit("--out", "m.symbayes", "--report", "page.html", "--quiet") == 0
    assert capsys.readouterr().out.splitlines()[-2:] == ["model: m.symbayes", "report: page.html"]


@pytest.mark.usefixtures("ctrl_c")
@pytest.mark.parametrize(
    ("there", "name"),
    [
        ([], "symbayes-interrupted.symbayes"),
        (["symbayes-interrupted.symbayes"], "symbayes-interrupted-2.symbayes"),
    ],
)
def test_what_was_interrupted_is_saved(capsys, there, name):
    for other in there:
        Path(other).touch()
    assert fit() == INTERRUPTED
    captured = capsys.readouterr()
    assert f"symbayes: interrupted; the result so far was saved to {name}\n" in captured.err
    assert "symbayes: warning: interrupted: the model is fitted on the " in captured.err
    assert captured.out.splitlines()[-1] == f"model: {name}"
    assert symbayes.load(name).diagnostics_["interrupted"]
    assert all(Path(other).stat().st_size == 0 for other in there)


@pytest.mark.usefixtures("ctrl_c")
def test_what_was_interrupted_is_saved_where_it_should_be(capsys):
    assert fit("--json", "--out", "m.symbayes", "--report", "p.html") == INTERRUPTED
    answer = json.loads(capsys.readouterr().out)
    assert answer["diagnostics"]["interrupted"] is True
    assert (answer["model"], answer["report"]) == ("m.symbayes", "p.html")
    assert sorted(os.listdir()) == ["data.csv", "m.symbayes", "p.html"]


def test_a_second_ctrl_c_stops_at_once(capsys, monkeypatch):
    def show(self, progress):
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(Display, "__call__", show)
    assert fit() == INTERRUPTED
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == "symbayes: stopped; there was nothing to save\n"
    assert sorted(os.listdir()) == ["data.csv"]


def test_ctrl_c_that_comes_too_late_costs_nothing(capsys, monkeypatch):
    real, calls = BayesianSymbolicRegressor.save, []

    def save(self, path):
        calls.append(path)
        if len(calls) == 1:
            # Not `raise_signal`: a process started in the background may ignore the signal.
            signal.default_int_handler(signal.SIGINT, None)
        real(self, path)

    monkeypatch.setattr(BayesianSymbolicRegressor, "save", save)
    assert fit("--quiet", "--out", "m.symbayes") == INTERRUPTED
    captured = capsys.readouterr()
    assert "best formula" in captured.out
    assert captured.err == "symbayes: stopped; the model was saved to m.symbayes\n"
    assert not symbayes.load("m.symbayes").diagnostics_["interrupted"]


@pytest.mark.parametrize("words", [[], ["--json"]])
def test_the_answer_is_shown_where_it_cannot_be_written(capsys, monkeypatch, words):
    def save(self, path):
        raise OSError(28, "No space left on device", path)

    monkeypatch.setattr(BayesianSymbolicRegressor, "save", save)
    assert fit("--out", "m.symbayes", "--quiet", *words) == 1
    captured = capsys.readouterr()
    assert "probability" in captured.out
    assert "model: m.symbayes" not in captured.out
    assert captured.err == "symbayes: m.symbayes: No space left on device\n"
