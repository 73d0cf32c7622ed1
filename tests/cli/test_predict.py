"""`symbayes predict`: rows in, rows out, in their order."""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import symbayes
from symbayes import BayesianSymbolicRegressor
from symbayes.cli import main

from .calling import ODD_NAMES, complaint, odd_table


@pytest.fixture(autouse=True)
def new_rows(folder):
    """Rows whose columns stand in another order, with a column that the model does not know."""
    rows = odd_table(6)[["y", *reversed(ODD_NAMES)]].assign(city="Rome")
    rows.to_csv("new.csv", index=False)
    return odd_table(6)


def predict(capsys, *words):
    assert main(["predict", *map(str, words)]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    return captured.out


def test_predictions_are_those_of_the_model(capsys, model_file, new_rows):
    answer = pd.read_csv(io.StringIO(predict(capsys, model_file, "new.csv", "--std")))
    model, X = symbayes.load(model_file), new_rows[list(ODD_NAMES)]
    mean, std = model.predict(X, return_std=True)
    lower, upper = model.predict_interval(X)
    expected = pd.DataFrame({"prediction": mean, "lower": lower, "upper": upper, "std": std})
    pd.testing.assert_frame_equal(answer, expected, rtol=1e-15)
    np.testing.assert_allclose(answer["prediction"], new_rows["y"])


def test_levels_and_kinds(capsys, noisy_file):
    wide, narrow, mean = (
        pd.read_csv(io.StringIO(predict(capsys, noisy_file, "data.csv", *words)))
        for words in ([], ["--level", "0.5"], ["--kind", "mean"])
    )
    assert list(wide) == ["prediction", "lower", "upper"]
    for other in (narrow, mean):
        np.testing.assert_array_equal(other["prediction"], wide["prediction"])
        assert (other["upper"] - other["lower"] < wide["upper"] - wide["lower"]).all()


def test_into_a_file_and_from_standard_input(capsys, model_file, monkeypatch):
    expected = predict(capsys, model_file, "new.csv")
    content = io.BytesIO(Path("new.csv").read_bytes())
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(content))
    assert predict(capsys, model_file, "-", "--out", "p.csv") == "p.csv\n"
    assert Path("p.csv").read_text() == expected


def test_a_model_of_columns_without_names(capsys):
    X = odd_table()[["a b", "λ"]].to_numpy()
    model = BayesianSymbolicRegressor(["+", "square"], draws=20, tune=50, chains=1, random_state=0)
    model.fit(X, odd_table()["y"].to_numpy()).save("nameless.symbayes")
    pd.DataFrame(X, columns=["x0", "x1"]).to_csv("x.csv", index=False)
    answer = pd.read_csv(io.StringIO(predict(capsys, "nameless.symbayes", "x.csv")))
    np.testing.assert_array_equal(answer["prediction"], model.predict(X))


def test_no_rows_get_no_predictions(capsys, model_file):
    odd_table()[:0].to_csv("new.csv", index=False)
    assert predict(capsys, model_file, "new.csv", "--std") == "prediction,lower,upper,std\n"


def test_where_there_is_no_value_there_is_none(capsys):
    x = np.linspace(1, 2, 20)
    model = BayesianSymbolicRegressor(["log"], draws=20, tune=50, chains=1, random_state=0)
    model.fit(pd.DataFrame({"x": x}), np.log(x)).save("log.symbayes")
    Path("x.csv").write_text("x\n1.5\n-1\n")
    assert main(["predict", "log.symbayes", "x.csv"]) == 0
    captured = capsys.readouterr()
    assert captured.out.splitlines()[2] == ",,"
    lines = captured.err.splitlines()
    assert all(line.startswith("symbayes: warning: ") for line in lines)
    assert any("no finite value on 1 of 2 rows" in line for line in lines)


def test_complaints_about_rows(capsys, model_file, new_rows):
    def say_about(table):
        table.to_csv("new.csv", index=False)
        return complaint(capsys, ["predict", model_file, "new.csv"])

    line = say_about(new_rows.rename(columns={"a b": "A b"}))
    assert line.startswith("new.csv has no column 'a b' (did you mean 'A b'?), which the model")
    assert "has no column '<script>', 'λ'" in say_about(new_rows.drop(columns=["<script>", "λ"]))
    assert "'λ' of new.csv is not made of numbers ('l' in row 1)" in say_about(
        new_rows.assign(λ="l")
    )
    assert "missing values in 6 rows of 6" in say_about(new_rows.assign(λ=np.nan))
    assert "infinite values in 6 rows of 6" in say_about(new_rows.assign(λ=np.inf))


def test_other_complaints(capsys, model_file):
    def say_about(*words, status=1):
        return complaint(capsys, ["predict", *words], status)

    assert "nowhere.symbayes: No such file" in say_about("nowhere.symbayes", "new.csv")
    assert "data.csv" in say_about("data.csv", "new.csv")
    assert "nowhere.csv: No such file" in say_about(model_file, "nowhere.csv")
    assert "no: no file can be made" in say_about(model_file, "new.csv", "--out", "no/p.csv")
    replacing = say_about(model_file, "new.csv", "--out", "new.csv", status=2)
    assert "--out new.csv would replace another file" in replacing
    both = say_about(model_file, "new.csv", "--std", "--kind", "mean", status=2)
    assert "--std is that of an observation" in both
    assert sorted(os.listdir()) == ["data.csv", "new.csv"]
