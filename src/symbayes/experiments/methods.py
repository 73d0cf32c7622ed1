"""The methods that the experiments compare: our two samplers, and gplearn."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from .. import BayesianSymbolicRegressor, PaperSampler, SamplingWarning, TermsPrior
from . import PAPER
from .runs import Effort

OPERATORS = "paper-simulation"
#: The paper's number of additive components.
TERMS = 2


def fitted(
    method: str,
    effort: Effort,
    seed: int,
    X: Any,
    y: np.ndarray,
    terms: int = 0,
    operators: str | list[str] = OPERATORS,
) -> BayesianSymbolicRegressor:
    """Return one of our samplers after its fit, with the settings of the experiments.

    Ctrl-C stops the experiment, as half a fit is no result.
    """
    options: dict[str, Any] = {
        "n_terms": TermsPrior(most=terms) if terms else "auto",
        "draws": effort.draws,
        "tune": effort.tune,
    }
    if method == PAPER:
        # One chain, until all its trees are proposed.
        options = {"n_terms": terms or TERMS, "sampler": PaperSampler(effort.trees), "chains": 1}
        options["tune"] = options["draws"] = effort.trees
    model = BayesianSymbolicRegressor(operators, **options, n_jobs=1, random_state=seed)
    with warnings.catch_warnings():
        # Nobody sees the draws made so far.
        warnings.filterwarnings("ignore", "interrupted|Not converged", SamplingWarning)
        model.fit(X, y)
    if model.diagnostics_["interrupted"]:
        raise KeyboardInterrupt
    return model


# Genetic programming as the paper ran it.

# Operators that gplearn lacks. exp is cut off, since gplearn wants functions without limits.
_ADDED = {
    "exp": lambda x: np.exp(np.minimum(x, 100.0)),
    "square": lambda x: x * x,
    "cube": lambda x: x * x * x,
}
_TEXT = {
    "add": "({} + {})", "sub": "({} - {})", "mul": "({}*{})", "div": "({}/{})",
    "square": "({})**2", "cube": "({})**3",
}  # fmt: skip


class Program(NamedTuple):
    """An individual."""

    predict: Callable[[np.ndarray], np.ndarray]
    n_nodes: int  # operators, columns and constants
    text: str  # which does not tell that division is protected


def evolve(
    X: np.ndarray, y: np.ndarray, population: int, generations: int, seed: int
) -> Iterator[Program]:
    """Yield the best individual of each generation."""
    model = gplearn_regressor(population, seed).set_params(low_memory=True, warm_start=True)
    for generation in range(1, generations + 1):
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            program = model.set_params(generations=generation).fit(X, y)._program
        predict = np.errstate(all="ignore")(program.execute)
        yield Program(predict, int(program.length_), _infix(iter(program.program)))


def gplearn_regressor(population: int, seed: int) -> Any:
    """Return gplearn's estimator: its defaults, the paper's operators, RMSE."""
    from gplearn.fitness import make_fitness
    from gplearn.functions import make_function
    from gplearn.genetic import SymbolicRegressor

    added = [
        make_function(function=f, name=name, arity=1, wrap=False) for name, f in _ADDED.items()
    ]
    return SymbolicRegressor(
        population_size=population,
        function_set=("add", "sub", "mul", "div", "sin", "cos", *added),
        metric=make_fitness(function=_rmse, greater_is_better=False, wrap=False),
        stopping_criteria=-1.0,  # never
        n_jobs=1,
        random_state=seed % 2**31,
    )


def _rmse(y: np.ndarray, prediction: np.ndarray, weight: np.ndarray) -> float:
    """Return gplearn's "rmse" except for NaN, which would win its tournaments."""
    error = np.sqrt(np.average((prediction - y) ** 2, weights=weight))
    return float(error) if np.isfinite(error) else 1e300


def _infix(nodes: Iterator[Any]) -> str:
    """Return a program, which is kept in prefix order, as a formula."""
    node = next(nodes)
    if isinstance(node, int | np.integer):
        return f"x{node}"
    if isinstance(node, float):
        return f"({node:.6g})" if node < 0 else f"{node:.6g}"
    arguments = [_infix(nodes) for _ in range(node.arity)]
    return _TEXT.get(node.name, node.name + "({})").format(*arguments)
