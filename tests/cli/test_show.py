"""`symbayes show`, `report` and `info`: a saved model on the screen or as a page."""

from __future__ import annotations

import json
import platform
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
import sympy

import symbayes
from symbayes import BayesianSymbolicRegressor, Formula, PaperSampler
from symbayes.cli import main
from symbayes.cli.show import about_model
from symbayes.kernels import units

from .calling import ODD_NAMES, complaint

# There is only one way to write it.
TRUTH = "3*`a b`**2 + λ"


def call(capsys, *words):
    assert main([str(word) for word in words]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    return captured.out


def test_formulas_as_a_table(capsys, model_file):
    text = call(capsys, "show", model_file)
    assert text.splitlines()[0].split() == ["probability", "nodes", "R2", "formula"]
    assert f"best formula (the most probable):\n  {TRUTH}\n" in text
    assert "verdict: " in text
    assert max(map(len, text.splitlines())) <= 80


def test_the_best_formula_in_other_notations(capsys, model_file):
    def shown(form):
        return call(capsys, "show", model_file, f"--{form}").strip()

    best = symbayes.load(model_file).best_formula_
    assert shown("latex") == Formula(TRUTH, ODD_NAMES).latex()
    assert shown("mathml") == Formula(TRUTH, ODD_NAMES).mathml()
    assert shown("numpy") == best.numpy_code().strip()
    assert sympy.sympify(shown("sympy")) == best.sympy()


def test_several_formulas(capsys, noisy_file):
    model = symbayes.load(noisy_file)
    lines = call(capsys, "show", noisy_file, "--latex", "--n", 2).splitlines()
    assert lines == [formula.latex() for formula in model.formula_objects_[:2]]
    names: dict = {}
    exec(call(capsys, "show", noisy_file, "--numpy", "--n", 2), names)
    assert [name for name in names if name.startswith("formula")] == ["formula", "formula_2"]
    front = call(capsys, "show", noisy_file, "--sympy", "--pareto").splitlines()
    assert list(map(sympy.sympify, front)) == [formula.sympy() for formula in model.pareto_objects_]


def test_the_front(capsys, noisy_file):
    lines = call(capsys, "show", noisy_file, "--front").splitlines()
    assert call(capsys, "show", noisy_file, "--pareto").splitlines() == lines
    front = symbayes.load(noisy_file).pareto_
    rows = [line.split() for line in lines[1:] if line[:11].strip()]
    assert [int(row[1]) for row in rows] == list(front["n_nodes"])


def test_json(capsys, noisy_file):
    answer = json.loads(call(capsys, "show", noisy_file, "--json"))
    model = symbayes.load(noisy_file)
    assert answer["columns"] == ["a", "b"]
    assert (answer["target"], answer["rows"], answer["seed"]) == ("y", 30, 0)
    assert answer["best"]["formula"] == str(model.best_formula_)
    assert len(answer["formulas"]) == len(model.formulas_)
    front = json.loads(call(capsys, "show", noisy_file, "--json", "--pareto", "--n", "1"))
    assert [row["formula"] for row in front["formulas"]] == [model.pareto_["formula"].iloc[0]]


def test_a_report(capsys, model_file):
    assert call(capsys, "report", model_file, "--out", "page.html") == "page.html\n"
    page = Path("page.html").read_text(encoding="utf-8")
    assert "<html" in page
    # Every `<` of a column's name is written out.
    assert "<script>" not in page


def test_info_about_a_model(capsys, model_file):
    text = call(capsys, "info", model_file)
    assert "columns: " in text
    for name in ("'<script>'", "'a b'", "'λ'", "''"):
        assert name in text
    for fact in ("target: +'y'", "rows: +30", "random_state: +0"):
        assert re.search(f"^{fact}$", text, flags=re.MULTILINE)
    assert "['+', '*', 'square']" in text
    assert "onverged" in text
    assert max(map(len, text.splitlines())) <= 80


def test_info_tells_the_tune_that_is_meant(noisy_file):
    model = symbayes.load(noisy_file).set_params(tune=None)
    assert about_model(model)["tune"] == "15000"
    assert about_model(model.set_params(sampler="paper"))["tune"] == str(PaperSampler.tune)


@pytest.mark.parametrize(("weights", "rows"), [(1.0, 12_000), (2.0, None)])
def test_rows_of_a_large_table(weights, rows):
    X = np.arange(12_000.0)[:, None]
    model = BayesianSymbolicRegressor(["+"], draws=2, tune=2, chains=1, n_terms=1, random_state=0)
    model.fit(X, 2 * X[:, 0], np.full(12_000, weights))
    assert model.result_.n_rows == rows


def test_info_about_the_installation(capsys, monkeypatch):
    text = call(capsys, "info")
    about = dict(line.split(":", 1) for line in text.splitlines())
    assert about["symbayes"].strip() == symbayes.__version__
    assert about["Python"].strip() == platform.python_version()
    assert about["compiled code"].strip() == "ready" or "not there yet" in about["compiled code"]
    assert int(about["cores"]) >= 1
    assert about["kept in"].strip()
    monkeypatch.setattr(units, "is_cached", lambda sampler: False)
    monkeypatch.setattr(units, "cache_folder", lambda: None)
    text = call(capsys, "info")
    assert "not there yet; the first fit compiles it" in text
    assert "nowhere (no folder can be written to" in text


@pytest.mark.parametrize("words", [["show"], ["info"], ["report", "--out", "page.html"]])
def test_complaints_about_models(capsys, model_file, words):
    command, *rest = words
    assert "no.symbayes: No such file" in complaint(capsys, [command, "no.symbayes", *rest])
    assert "'data.csv' is not a symbayes file" in complaint(capsys, [command, "data.csv", *rest])
    Path("cut.symbayes").write_bytes(model_file.read_bytes()[:-100])
    assert "cut.symbayes" in complaint(capsys, [command, "cut.symbayes", *rest])
    assert not Path("page.html").exists()


def test_complaints_about_pages(capsys, model_file, folder):
    words = ["report", model_file, "--out"]
    assert "no: no file can be made" in complaint(capsys, [*words, "no/page.html"])
    copy = shutil.copy(model_file, folder / "m.symbayes")
    assert "would replace" in complaint(capsys, ["report", copy, "--out", "m.symbayes"], 2)
