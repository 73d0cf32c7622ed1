"""The paper's six simulated tasks: 100 rows from [-3, 3]."""

from __future__ import annotations

from pathlib import Path

from symbayes.datasets import PAPER_FORMULAS, paper_task
from symbayes.formula.operators import OPERATOR_SETS

from ..problems import TEST, TRAIN, Problem, stream, synthetic

_RANGES = ((-3.0, 3.0), (-3.0, 3.0))
_TEST_ROWS = 1000


def names(data: Path) -> list[str]:
    """Return f1 to f6."""
    return list(PAPER_FORMULAS)


def load(name: str, noise: float, seed: int, data: Path) -> Problem:
    """Return a task; the noise is added here, to the same rows at every level."""
    X, _ = paper_task(name, random_state=stream("paper", name, seed, TRAIN))
    X_test, _ = paper_task(name, _TEST_ROWS, random_state=stream("paper", name, seed, TEST))
    truth, operators = PAPER_FORMULAS[name], OPERATOR_SETS["paper-simulation"]
    return synthetic("paper", name, noise, seed, truth, _RANGES, X, X_test, operators)
