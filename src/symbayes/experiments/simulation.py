"""The simulated tasks: rows to fit and rows to test on, and the errors there."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..datasets import PAPER_FORMULAS, paper_task

TASKS = tuple(PAPER_FORMULAS)
_TRAINING_ROWS, _TEST_ROWS = 100, 30
_TRAINING_RANGE = (-3.0, 3.0)
_TEST_RANGES = {"test_3": (-3.0, 3.0), "test_6": (-6.0, 6.0), "test_3_6": (3.0, 6.0)}


@dataclass(frozen=True)
class Simulation:
    """One replication of a task: fresh rows, drawn as the paper says."""

    X: np.ndarray
    y: np.ndarray
    tests: dict[str, tuple[np.ndarray, np.ndarray]]
    """Without noise, whatever the training rows have."""

    def errors(self, predict: Callable[[np.ndarray], np.ndarray]) -> dict[str, float]:
        """Return the RMSE on each data set; it is not finite where a prediction is not."""
        sets = {"train": (self.X, self.y), **self.tests}
        return {name: rmse(predict(X), y) for name, (X, y) in sets.items()}


def simulate(task: str, replication: int, seed: int, noise: float = 0.0) -> Simulation:
    """Return a replication; all methods get the same rows."""
    rng = np.random.default_rng(stream(seed, task, replication))
    X, y = paper_task(task, _TRAINING_ROWS, *_TRAINING_RANGE, random_state=rng)
    tests = {
        name: paper_task(task, _TEST_ROWS, low, high, random_state=rng)
        for name, (low, high) in _TEST_RANGES.items()
    }
    # Last, so that the rows are the same at every noise level.
    y = y + noise * np.sqrt(np.mean(y**2)) * rng.normal(size=len(y))
    return Simulation(X, y, tests)


def rmse(prediction: np.ndarray, y: np.ndarray) -> float:
    """Return the root of the mean squared error."""
    with np.errstate(all="ignore"):
        return float(np.sqrt(np.mean((prediction - y) ** 2)))


def stream(seed: int, *names: str | int) -> np.random.SeedSequence:
    """Return random numbers of their own for each combination of names."""
    return np.random.SeedSequence([seed, *(zlib.crc32(str(name).encode()) for name in names)])


def integer_seed(seed: int, *names: str | int) -> int:
    """Return a seed for those who want an integer."""
    return int(stream(seed, *names).generate_state(1)[0])
