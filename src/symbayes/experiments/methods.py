"""The methods that the experiments compare, each behind one function."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import BayesianSymbolicRegressor, PaperSampler, SamplingWarning, TermsPrior
from .effort import Effort
from .genetic import evolve

OPERATORS = "paper-simulation"
PAPER, DEFAULT = "symbayes paper", "symbayes default"
#: Genetic programming, by the size of its population.
POPULATIONS = {"gplearn 100": 100, "gplearn 1000": 1000}
METHODS = (PAPER, DEFAULT, *POPULATIONS)
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

    With `terms` the paper's sampler has so many and ours at most so many; without, the paper's has
    two and ours learns how many.
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
        # One chain that goes on until all its trees are proposed.
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
