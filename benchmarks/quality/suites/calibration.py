"""Noisy problems whose truth can be found, to see whether reported probabilities are right.

Truths are drawn at random: one or two terms of a few nodes, each worth 1 to 3 standard deviations.
Few rows with much noise leave doubt, many with little leave none; together, reported
probabilities spread over [0, 1].
"""

from __future__ import annotations

import itertools
from functools import cache
from pathlib import Path

import numpy as np

from ..formulas import Unreadable, evaluate, symbols, to_sympy
from ..nodes import count
from ..problems import FORMULA, TEST, TRAIN, Problem, stream, synthetic, uniform

_PROBLEMS, _COLUMNS, _TEST_ROWS = 360, 3, 200
_RANGES = ((-2.0, 2.0),) * _COLUMNS
#: Problems cycle through these.
SETTINGS = tuple(itertools.product((30, 60, 120, 300), (0.05, 0.1, 0.2, 0.4, 0.7)))
_UNARY, _BINARY = ("sin", "exp", "square"), ("+", "*")
OPERATORS = (*_BINARY, *_UNARY)
_ALPHA, _BETA, _MOST_NODES = 0.6, 0.8, 15


def names(data: Path) -> list[str]:
    """Return c000 to c359."""
    return [f"c{i:03d}" for i in range(_PROBLEMS)]


def own_noise(name: str) -> float:
    """Return the problem's own level."""
    return _settings(name)[1]


def load(name: str, noise: float, seed: int, data: Path) -> Problem:
    """Return a problem: the formula depends on its name only, rows and noise on the seed too."""
    X, X_test = (
        uniform(stream("calibration", name, seed, purpose), _RANGES, n_rows)
        for purpose, n_rows in ((TRAIN, _settings(name)[0]), (TEST, _TEST_ROWS))
    )
    return synthetic("calibration", name, noise, seed, truth(name), _RANGES, X, X_test, OPERATORS)


def _settings(name: str) -> tuple[int, float]:
    return SETTINGS[int(name[1:]) % len(SETTINGS)]


@cache
def truth(name: str) -> str:
    """Return the formula of a problem."""
    rng = stream("calibration", name, 0, FORMULA)
    X = uniform(rng, _RANGES, 1000)
    while True:
        terms = [_draw(rng, 0) for _ in range(rng.integers(1, 3))]
        values = np.array([evaluate(term, X) for term in terms])
        # Written this way a nan is refused too.
        if not (np.abs(values) < 1e3).all() or not (values.std(axis=1) > 1e-2).all():
            continue
        if len(terms) > 1 and abs(np.corrcoef(values)[0, 1]) > 0.95:
            continue
        sizes = rng.uniform(1, 3, len(terms)) * rng.choice([-1, 1], len(terms))
        coefficients = sizes / values.std(axis=1)
        parts = [f"{b:.4g}*{term}" for b, term in zip(coefficients, terms, strict=True)]
        text = " + ".join([*parts, f"{rng.normal():.4g}"])
        try:
            if count(to_sympy(text, symbols(_COLUMNS))) <= _MOST_NODES:
                return text
        except Unreadable:
            continue


def _draw(rng: np.random.Generator, depth: int) -> str:
    """Return a term from a tree prior, as text."""
    if rng.random() >= _ALPHA * (1 + depth) ** -_BETA:
        return f"x{rng.integers(_COLUMNS)}"
    operator = rng.choice(OPERATORS)
    if operator in _UNARY:
        return f"{operator}({_draw(rng, depth + 1)})"
    return f"({_draw(rng, depth + 1)} {operator} {_draw(rng, depth + 1)})"
