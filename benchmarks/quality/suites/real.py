"""Measured data: random splits, three quarters for training and one for testing."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

from symbayes.formula.operators import OPERATOR_SETS

from ..problems import TRAIN, Problem, need, stream

_TEST_SHARE = 0.25
#: Headers of the response; the last column if there is none of them.
_RESPONSES = ("target", "Y")


def names(data: Path) -> list[str]:
    """Return the data sets, by file name."""
    folder = need(data / "real")
    return sorted(path.stem for path in folder.iterdir() if path.suffix in (".tsv", ".csv"))


def own_noise(name: str) -> float:
    """Return 0: no noise is added to measured data."""
    return 0.0


def load(name: str, noise: float, seed: int, data: Path) -> Problem:
    """Return a split of a data set."""
    header, table = _read(data, name)
    response = next((header.index(r) for r in _RESPONSES if r in header), len(header) - 1)
    X, y = np.delete(table, response, axis=1), table[:, response]
    order = stream("real", name, seed, TRAIN).permutation(len(y))
    test, train = np.split(order, [round(_TEST_SHARE * len(y))])
    return Problem(
        "real",
        name,
        0.0,
        seed,
        tuple(h for i, h in enumerate(header) if i != response),
        OPERATOR_SETS["default"],
        None,
        None,
        X[train],
        y[train],
        X[test],
        y[test],
        y[test],
    )


def _read(data: Path, name: str) -> tuple[list[str], np.ndarray]:
    path = next(p for p in (data / "real").iterdir() if p.stem == name)
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file, delimiter="\t" if path.suffix == ".tsv" else ","))
    return rows[0], np.array(rows[1:], dtype=float)
