"""Calls of the command line that several test files make."""

from __future__ import annotations

import numpy as np
import pandas as pd

from symbayes.cli import main

#: What makes a fit a matter of a second.
QUICK = (
    "--draws", "50", "--tune", "100", "--chains", "1", "--jobs", "1", "--seed", "0",
    "--operators", "+,*,square",
)  # fmt: skip
#: Names that mean something elsewhere.
ODD_NAMES = ("<script>", "a b", "x^2", "sin", "λ", "$x_1$", "")


def odd_table(n_rows=30):
    """A table of odd names, with the target `y` = 3 * `a b`**2 + `λ`."""
    X = np.random.default_rng(0).uniform(1, 2, (n_rows, len(ODD_NAMES)))
    table = pd.DataFrame(X, columns=ODD_NAMES)
    return table.assign(y=3 * table["a b"] ** 2 + table["λ"])


def plain_table(n_rows=30):
    """The columns `a` and `b`, with the target `y` = 2 * a + b**2 and some noise."""
    rng = np.random.default_rng(1)
    a, b = rng.uniform(-2, 2, (2, n_rows))
    return pd.DataFrame({"a": a, "b": b, "y": 2 * a + b**2 + rng.normal(0, 0.1, n_rows)})


def complaint(capsys, words, status=1):
    """The one line that a mistake gets, without its beginning."""
    try:
        answered = main([str(word) for word in words])
    except SystemExit as stop:
        answered = stop.code
    assert answered == status
    captured = capsys.readouterr()
    assert captured.out == ""
    (line,) = captured.err.splitlines()
    assert line.startswith("symbayes: ")
    return line.removeprefix("symbayes: ")
