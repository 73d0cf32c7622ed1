"""Nguyen, Koza, Jin and others, with the rows and operators under which each is known."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np

from ..formulas import rename
from ..problems import TEST, TRAIN, Problem, entries, stream, synthetic, uniform

# Where the file gives no test rows.
_TEST_ROWS = 1000
#: Names of the file for operators; "const" corresponds to `lt` and the coefficients.
_OPERATORS = {
    "add": "+",
    "sub": "-",
    "mul": "*",
    "div": "/",
    "n2": "square",
    "n3": "cube",
    "sin": "sin",
    "cos": "cos",
    "exp": "exp",
    "log": "log",
}


def names(data: Path) -> list[str]:
    """Return the formulas in the order of the file."""
    return list(entries(data / "classic_dev.json"))


def load(name: str, noise: float, seed: int, data: Path) -> Problem:
    """Return the problem of a formula."""
    entry = entries(data / "classic_dev.json")[name]
    n_columns = entry["n_vars"]
    features = [f"x{i + 1}" for i in range(n_columns)]
    truth = rename(entry["formula"], {old: f"x{i}" for i, old in enumerate(features)})
    train = entry["train"]["all"]
    test = entry["test"]["all"] if entry["test"] else {**train, "dist": "uniform", "n": _TEST_ROWS}
    X, X_test = (
        _rows(spec, n_columns, stream("classic", name, seed, purpose))
        for spec, purpose in ((train, TRAIN), (test, TEST))
    )
    ranges = [(train["low"], train["high"])] * n_columns
    return synthetic(
        "classic", name, noise, seed, truth, ranges, X, X_test, operators(entry), features
    )


def operators(entry: dict[str, Any]) -> list[str]:
    """Return symbayes' names for the operators of a formula, and `lt`."""
    return [_OPERATORS[name] for name in entry["function_set"] if name != "const"] + ["lt"]


def _rows(spec: dict[str, Any], n_columns: int, rng: np.random.Generator) -> np.ndarray:
    if spec["dist"] == "uniform":
        return uniform(rng, [(spec["low"], spec["high"])] * n_columns, spec["n"])
    if spec["dist"] != "grid":
        raise ValueError(f"rows of the kind {spec['dist']!r} are not known")
    points = spec["n_per_axis"]
    if points <= 2:
        # R1a to R3a: 20 points are intended, but their source took the 20 for a step wherever it
        # is not larger than the range. Two rows determine nothing.
        points = spec["step"]
    axis = np.linspace(spec["low"], spec["high"], points)
    return np.array(list(itertools.product(axis, repeat=n_columns)))
