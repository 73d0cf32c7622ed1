"""Formulas of the Feynman set: 1,000 training rows, 1,000 test rows, columns uniform."""

from __future__ import annotations

from pathlib import Path

from ..formulas import rename
from ..problems import TEST, TRAIN, Problem, entries, stream, synthetic, uniform

_ROWS = 1000

#: One set for the whole suite, not tailored to a formula.
OPERATORS = (
    "+", "-", "*", "/", "lt", "exp", "log", "sqrt", "square", "cube", "sin", "cos", "arcsin",
    "arccos", "tanh",
)  # fmt: skip


def names(data: Path) -> list[str]:
    """Return the formulas in the order of the file."""
    return list(entries(data / "feynman_dev.json"))


def load(name: str, noise: float, seed: int, data: Path) -> Problem:
    """Return the problem of a formula."""
    entry = entries(data / "feynman_dev.json")[name]
    features = entry["features"]
    truth = rename(entry["formula"], {old: f"x{i}" for i, old in enumerate(features)})
    ranges = [tuple(entry["ranges"][feature]) for feature in features]
    X, X_test = (
        uniform(stream("feynman", name, seed, purpose), ranges, _ROWS) for purpose in (TRAIN, TEST)
    )
    return synthetic("feynman", name, noise, seed, truth, ranges, X, X_test, OPERATORS, features)
