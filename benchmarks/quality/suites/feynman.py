"""Formulas of the Feynman set: 1,000 training rows, 1,000 test rows, columns uniform."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from ..formulas import rename
from ..problems import TEST, TRAIN, Problem, need, stream, synthetic, uniform

_ROWS = 1000

#: One set for the whole suite, not tailored to a formula.
OPERATORS = (
    "+", "-", "*", "/", "lt", "exp", "log", "sqrt", "square", "cube", "sin", "cos", "arcsin",
    "arccos", "tanh",
)  # fmt: skip


def names(data: Path) -> list[str]:
    """Return the formulas in the order of the file."""
    return list(_entries(data))


def noises(name: str, asked: Sequence[float]) -> list[float]:
    """Return the levels asked for."""
    return list(asked)


def load(name: str, noise: float, seed: int, data: Path) -> Problem:
    """Return the problem of a formula."""
    entry = _entries(data)[name]
    features = entry["features"]
    truth = rename(entry["formula"], {old: f"x{i}" for i, old in enumerate(features)})
    ranges = [tuple(entry["ranges"][feature]) for feature in features]
    X, X_test = (
        uniform(stream("feynman", name, seed, purpose), ranges, _ROWS) for purpose in (TRAIN, TEST)
    )
    return synthetic("feynman", name, noise, seed, truth, ranges, X, X_test, OPERATORS, features)


@cache
def _entries(data: Path) -> dict[str, dict[str, Any]]:
    entries = json.loads(need(data / "feynman_dev.json").read_text(encoding="utf-8"))
    return {entry["name"]: entry for entry in entries}
