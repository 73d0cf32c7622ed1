"""`symbayes demo`: it finds what it says, and ends with a report."""

from __future__ import annotations

import os
from functools import partial

import pytest

import symbayes
from symbayes import BayesianSymbolicRegressor
from symbayes.cli import demo, main
from symbayes.datasets import PAPER_FORMULAS

from .calling import complaint


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(
        demo,
        "BayesianSymbolicRegressor",
        partial(BayesianSymbolicRegressor, draws=50, tune=200, chains=2),
    )


@pytest.mark.usefixtures("quick")
def test_it_ends_with_a_report(capsys):
    assert main(["demo", "--out", "here/there"]) == 0
    out = capsys.readouterr().out
    assert PAPER_FORMULAS[demo.TASK] in out
    found = out.partition("best formula")[2].splitlines()[1]
    assert "exp(x0)" in found
    assert "cos(x1)" in found
    assert "predictions at new rows" in out
    model, report = (os.path.join("here/there", name) for name in ("model.symbayes", "report.html"))
    assert out.splitlines()[-2:] == [f"model: {model}", f"report: {report}"]
    assert sorted(os.listdir("here/there")) == ["model.symbayes", "report.html"]
    assert "exp(x0)" in str(symbayes.load(model).best_formula_)


def test_complaints(capsys):
    assert "data.csv: File exists" in complaint(capsys, ["demo", "--out", "data.csv"])
    assert "Not a directory" in complaint(capsys, ["demo", "--out", "data.csv/demo"])
