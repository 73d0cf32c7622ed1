"""Genetic programming as the paper ran it, by gplearn."""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from .quick_gplearn import SharedParts

# What gplearn has not of its own. exp is cut off, since gplearn wants functions without limits.
_MADE = {
    "exp": lambda x: np.exp(np.minimum(x, 100.0)),
    "square": lambda x: x * x,
    "cube": lambda x: x * x * x,
}
_BUILT_IN = ("add", "sub", "mul", "div", "sin", "cos")
_TEXT = {
    "add": "({} + {})",
    "sub": "({} - {})",
    "mul": "({}*{})",
    "div": "({}/{})",
    "square": "({})**2",
    "cube": "({})**3",
}


class Missing(ImportError):
    """gplearn is not installed."""

    def __init__(self) -> None:
        super().__init__(
            "genetic programming needs gplearn: pip install gplearn, or leave it out (--methods)"
        )


def check_installed() -> None:
    """Complain if gplearn is not there."""
    if importlib.util.find_spec("gplearn") is None:
        raise Missing


@dataclass(frozen=True)
class Program:
    """An individual."""

    _program: Any
    generation: int

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Return its values; division is protected."""
        with np.errstate(all="ignore"):
            return np.asarray(self._program.execute(X), dtype=float)

    @property
    def nodes(self) -> int:
        """Operators, columns and constants."""
        return int(self._program.length_)

    @property
    def text(self) -> str:
        """Return it as a formula; where its division is protected, the formula is not."""
        return _read(iter(self._program.program))


def evolve(X: np.ndarray, y: np.ndarray, population: int, generations: int, seed: int) -> Program:
    """Return the best individual of the last generation."""
    *_, last = generations_of(X, y, population, generations, seed)
    return last


def generations_of(
    X: np.ndarray, y: np.ndarray, population: int, generations: int, seed: int
) -> Iterator[Program]:
    """Yield the best individual of each generation."""
    model = regressor(population, generations, seed)
    shared = SharedParts()
    for generation in range(1, generations + 1):
        with warnings.catch_warnings(), np.errstate(all="ignore"), shared.generation():
            warnings.simplefilter("ignore")
            model.set_params(generations=generation).fit(X, y)
        yield Program(model._program, generation)


def regressor(population: int, generations: int, seed: int, low_memory: bool = True) -> Any:
    """Return gplearn's estimator: its defaults, the paper's operators, RMSE."""
    check_installed()
    from gplearn.fitness import make_fitness
    from gplearn.functions import make_function
    from gplearn.genetic import SymbolicRegressor

    made = [make_function(function=f, name=name, arity=1, wrap=False) for name, f in _MADE.items()]
    return SymbolicRegressor(
        population_size=population,
        generations=generations,
        function_set=(*_BUILT_IN, *made),
        metric=make_fitness(function=_rmse, greater_is_better=False, wrap=False),
        stopping_criteria=-1.0,  # never
        warm_start=low_memory,
        low_memory=low_memory,
        n_jobs=1,
        random_state=seed % 2**31,
    )


def _rmse(y: np.ndarray, prediction: np.ndarray, weight: np.ndarray) -> float:
    """Its "rmse", but for NaN, which would win its tournaments."""
    error = np.sqrt(np.average((prediction - y) ** 2, weights=weight))
    return float(error) if np.isfinite(error) else 1e300


def _read(nodes: Iterator[Any]) -> str:
    """Return a program, which is kept in prefix order, as text."""
    node = next(nodes)
    if isinstance(node, int | np.integer):
        return f"x{node}"
    if isinstance(node, float):
        return f"({node:.6g})" if node < 0 else f"{node:.6g}"
    arguments = [_read(nodes) for _ in range(node.arity)]
    return _TEXT.get(node.name, node.name + "({})").format(*arguments)
