"""`symbayes reproduce`."""

from __future__ import annotations

import pandas as pd
import pytest

from symbayes.cli import main


def test_reproduce_writes_and_says_where(tmp_path, capsys):
    out = tmp_path / "out"
    words = ["reproduce", "accuracy", "--quick", "--tasks", "f5", "--methods", "symbayes default"]
    assert main([*words, "--replications", "1", "--n-jobs", "1", "--out", str(out)]) == 0
    captured = capsys.readouterr()
    assert captured.out.strip() == str(out / "accuracy.md")
    assert "runs 1/1" in captured.err
    assert len(pd.read_csv(out / "accuracy.csv")) == 4 * 3
    assert "--replications 1" in (out / "accuracy.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["reproduce", "speed"], "invalid choice"),
        (["reproduce", "accuracy", "--methods", "magic"], "invalid choice"),
        (["reproduce", "accuracy", "--tasks", "f7"], "invalid choice"),
        (
            ["reproduce", "accuracy", "--replications", "0"],
            "'0' is not a whole number of at least 1",
        ),
        (["reproduce", "accuracy", "--seed", "-1"], "'-1' is not a whole number of at least 0"),
        (
            ["reproduce", "accuracy", "--n-jobs", "0"],
            "--n-jobs/--jobs: '0' is not a number of cores",
        ),
    ],
)
def test_mistakes_of_usage(words, complaint, capsys):
    with pytest.raises(SystemExit) as stop:
        main(words)
    assert stop.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("symbayes: ")
    assert complaint in line


def test_prices_are_for_signals_only(capsys):
    assert main(["reproduce", "accuracy", "--prices", "a.csv"]) == 2
    assert "accuracy reads no prices" in capsys.readouterr().err


def test_other_mistakes_are_one_line(capsys, tmp_path):
    words = ["reproduce", "signals", "--prices", "nowhere.csv"]
    assert main([*words, "--out", str(tmp_path / "out")]) == 1
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("symbayes: ")
    assert "cannot be read" in lines[0]
    assert not (tmp_path / "out").exists()
