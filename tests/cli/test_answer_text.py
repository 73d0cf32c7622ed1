"""A model as text: tables that fit on a screen, whatever formulas and names are like."""

from __future__ import annotations

import pandas as pd
import pytest

from symbayes import Formula
from symbayes.cli.output import formulas_text, wrapped
from symbayes.formula.printing import quoted


def table(*formulas):
    return pd.DataFrame(
        [
            {"probability": 0.9 * 0.0004**i, "n_nodes": 11 + i, "r2": 0.99712, "formula": formula}
            for i, formula in enumerate(formulas)
        ]
    )


def test_a_table():
    assert formulas_text(table("a + 1", "b", "c"), 2) == (
        "probability  nodes      R2  formula\n"
        "      0.900     11  0.9971  a + 1\n"
        "     <0.001     12  0.9971  b\n"
        "... and 1 more"
    )


def test_a_fit_that_is_not_exact_does_not_look_so():
    formulas = table("a", "b", "c")
    formulas["r2"] = [0.99998, 0.9999999997, 1 - 1e-15]
    lines = formulas_text(formulas, 3).splitlines()
    assert [line.split()[2] for line in lines[1:]] == ["0.99998", "0.9999999997", "1.0000"]
    assert len({line.index(name) for line, name in zip(lines[1:], "abc", strict=True)}) == 1
    assert lines[0].index("formula") == lines[1].index("a")


@pytest.mark.parametrize(("columns", "widest"), [(80, 80), (200, 160), (10, 60)])
def test_a_long_formula_goes_on_below_itself(monkeypatch, columns, widest):
    monkeypatch.setenv("COLUMNS", str(columns))
    formula = " + ".join(f"{i}.2345*exp(x{i})" for i in range(20))
    lines = formulas_text(table(formula), 1).splitlines()[1:]
    assert widest - 20 < max(map(len, lines)) <= widest
    assert all(line[:28].isspace() for line in lines[1:])
    assert " ".join(" ".join(lines).split()[3:]) == formula


def test_a_name_moves_no_cursor():
    assert wrapped("`a\x1b[2J\n` + 1", "best: ") == "best: `a\\x1b[2J\\n` + 1"


def test_names_in_backticks_are_not_broken(monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    names = ["air speed (m/s)", "a  b", "tick ` and \\ stroke"]
    formula = Formula(" + ".join([quoted(name) for name in names] * 5), names)
    lines = wrapped(str(formula), "best: ").splitlines()
    assert len(lines) == 5
    for line in lines:
        assert len(line) <= 60
        # Each line has whole names only.
        Formula(line.removeprefix("best: ").strip(" +"), names)
    again = Formula("\n".join(lines).removeprefix("best: "), names)
    assert again == formula
