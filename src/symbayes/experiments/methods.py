"""The methods that the experiments compare: our two samplers, and gplearn."""

from __future__ import annotations

import importlib.util
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import BayesianSymbolicRegressor, PaperSampler, SamplingWarning, TermsPrior
from . import PAPER, POPULATIONS
from .runs import Effort

OPERATORS = "paper-simulation"
#: The paper's number of additive components.
TERMS = 2


@dataclass(frozen=True)
class Answer:
    """What a method found."""

    predict: Callable[[np.ndarray], np.ndarray]
    nodes: int
    """Counted as the paper does: operators and columns of all trees, lt as one, and neither the
    coefficients nor the intercept of the sum. For genetic programming, constants count as well."""
    formula: str
    seconds: float


def solve(
    method: str, X: np.ndarray, y: np.ndarray, effort: Effort, seed: int, terms: int | None = None
) -> Answer:
    """Return a method's formula for a table.

    With `terms` the paper's sampler has that many and ours at most as many; without, the paper's
    has two and ours learns how many.
    """
    start = time.perf_counter()
    if method in POPULATIONS:
        program = evolve(X, y, POPULATIONS[method], effort.generations, seed)
        return Answer(program.predict, program.nodes, program.text, time.perf_counter() - start)
    model = fitted(regressor(method, effort, seed, terms), X, y)
    formula = model.best_formula_
    return Answer(formula.predict, tree_nodes(model), str(formula), time.perf_counter() - start)


def regressor(
    method: str,
    effort: Effort,
    seed: int,
    terms: int | None = None,
    operators: str | list[str] = OPERATORS,
    trees: int | None = None,
) -> BayesianSymbolicRegressor:
    """Return one of our samplers with the settings of the experiments."""
    if method == PAPER:
        trees = effort.trees if trees is None else trees
        # One chain, until all its trees are proposed.
        return BayesianSymbolicRegressor(
            operators, n_terms=terms or TERMS, sampler=PaperSampler(trees), chains=1,
            tune=trees, draws=trees, n_jobs=1, random_state=seed,
        )  # fmt: skip
    return BayesianSymbolicRegressor(
        operators,
        n_terms=TermsPrior(most=terms) if terms else "auto",
        draws=effort.draws,
        tune=effort.tune,
        n_jobs=1,
        random_state=seed,
    )


def fitted(model: BayesianSymbolicRegressor, X: Any, y: np.ndarray) -> BayesianSymbolicRegressor:
    """Return a model after its fit; Ctrl-C stops the experiment, as half a fit is no result."""
    with warnings.catch_warnings():
        # Nobody sees the draws made so far.
        warnings.filterwarnings("ignore", "interrupted", SamplingWarning)
        warnings.filterwarnings("ignore", "Not converged", SamplingWarning)
        model.fit(X, y)
    if model.diagnostics_["interrupted"]:
        raise KeyboardInterrupt
    return model


def tree_nodes(model: BayesianSymbolicRegressor) -> int:
    """Return the nodes of all trees of the best formula."""
    return model.result_.posterior.formula_models[0][1].state.n_nodes


# Genetic programming as the paper ran it.

# What gplearn has not of its own. exp is cut off, since gplearn wants functions without limits.
_MADE = {
    "exp": lambda x: np.exp(np.minimum(x, 100.0)),
    "square": lambda x: x * x,
    "cube": lambda x: x * x * x,
}
_BUILT_IN = ("add", "sub", "mul", "div", "sin", "cos")
_TEXT = {
    "add": "({} + {})", "sub": "({} - {})", "mul": "({}*{})", "div": "({}/{})",
    "square": "({})**2", "cube": "({})**3",
}  # fmt: skip


def check_gplearn() -> None:
    """Complain if gplearn is not installed."""
    if importlib.util.find_spec("gplearn") is None:
        raise ImportError(
            "genetic programming needs gplearn: pip install gplearn, or leave it out (--methods)"
        )


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
    model = gplearn_regressor(population, generations, seed)
    return Program(_evolved(model, X, y), generations)


def generations_of(
    X: np.ndarray, y: np.ndarray, population: int, generations: int, seed: int
) -> Iterator[Program]:
    """Yield the best individual of each generation."""
    model = gplearn_regressor(population, generations, seed)
    for generation in range(1, generations + 1):
        yield Program(_evolved(model.set_params(generations=generation), X, y), generation)


def _evolved(model: Any, X: np.ndarray, y: np.ndarray) -> Any:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return model.fit(X, y)._program


def gplearn_regressor(population: int, generations: int, seed: int, low_memory: bool = True) -> Any:
    """Return gplearn's estimator: its defaults, the paper's operators, RMSE."""
    check_gplearn()
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
