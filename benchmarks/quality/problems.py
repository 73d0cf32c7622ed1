"""The problems: what a method sees, and what it is judged by.

A problem is a function of its suite, name, noise level and seed, on any machine. The rows of a
problem are the same at every noise level.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.environment import ROOT

from .formulas import evaluate

#: Where the data of the suites is unless `--data` says otherwise.
DATA = ROOT.parent / "shared" / "data"

#: What a stream of random numbers is for; each has its own, so that none depends on another.
TRAIN, TEST, NOISE, TEST_NOISE, FORMULA = range(5)


@dataclass(frozen=True, eq=False)
class Problem:
    """A training table, a test table, and the truth where it is known."""

    suite: str
    name: str
    noise: float
    """Standard deviation of the noise, in units of the root mean square of y."""
    seed: int
    feature_names: tuple[str, ...]
    """As the data names them; methods see x0, x1, ..."""
    operators: tuple[str, ...]
    """The same for all methods, by symbayes' names."""
    truth: str | None
    """In x0, x1, ..."""
    ranges: tuple[tuple[float, float], ...] | None
    """From which the columns are drawn, where the truth is known."""
    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    """Without noise where the truth is known, held out otherwise."""
    y_test_observed: np.ndarray
    """With noise: what an interval for new observations should cover."""

    @property
    def column_names(self) -> list[str]:
        """What methods see."""
        return [f"x{i}" for i in range(self.X.shape[1])]


def stream(
    suite: str, name: str, seed: int, purpose: int, noise: float = 0.0
) -> np.random.Generator:
    """Return the generator of one purpose for one problem."""
    digest = hashlib.sha256(f"{suite}/{name}".encode()).digest()
    words = np.frombuffer(digest[:16], dtype="<u4").tolist()
    return np.random.default_rng(
        np.random.SeedSequence([*words, seed, purpose, round(noise * 10**9)])
    )


def synthetic(
    suite: str,
    name: str,
    noise: float,
    seed: int,
    truth: str,
    ranges: Sequence[tuple[float, float]],
    X: np.ndarray,
    X_test: np.ndarray,
    operators: Sequence[str],
    feature_names: Sequence[str] | None = None,
) -> Problem:
    """Return the problem of a known formula: values and noise are added here."""
    y, y_test = evaluate(truth, X), evaluate(truth, X_test)
    if not (np.isfinite(y).all() and np.isfinite(y_test).all()):
        raise ValueError(f"{suite}/{name}: {truth} has no value on some rows of its ranges")
    deviation = noise * float(np.sqrt(np.mean(y**2)))
    noises = [
        deviation * stream(suite, name, seed, purpose, noise).normal(size=size)
        for purpose, size in ((NOISE, len(y)), (TEST_NOISE, len(y_test)))
    ]
    return Problem(
        suite,
        name,
        noise,
        seed,
        tuple(feature_names or (f"x{i}" for i in range(X.shape[1]))),
        tuple(operators),
        truth,
        tuple((float(low), float(high)) for low, high in ranges),
        X,
        y + noises[0],
        X_test,
        y_test,
        y_test + noises[1],
    )


def uniform(
    rng: np.random.Generator, ranges: Sequence[tuple[float, float]], n_rows: int
) -> np.ndarray:
    """Return rows with independent uniform columns."""
    low, high = np.array(ranges, dtype=float).T
    return rng.uniform(low, high, (n_rows, len(low)))


class MissingData(FileNotFoundError):
    """The folder with the data of a suite is not there."""


def need(path: Path) -> Path:
    """Return a path that has to exist."""
    if not path.exists():
        raise MissingData(
            f"{path} is not there; the data of this suite is not shipped: "
            "benchmarks/quality/README.md says what it is and where it comes from, --data where it "
            "lies"
        )
    return path


@cache
def entries(path: Path) -> dict[str, dict[str, Any]]:
    """Return the formulas of a file by name, in its order."""
    return {entry["name"]: entry for entry in json.loads(need(path).read_text(encoding="utf-8"))}
