"""Fitted models: a state of the chains with its least-squares fit on the training rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..formula import expression as ex
from ..formula.rewriting import collected, split
from ..formula.trees import evaluate_trees, to_expression
from ..inputs.problem import ROWS_AT_ONCE, Problem
from ..inputs.validation import LARGE
from ..kernels import opcodes
from .constants import Terms, free_constants, newton_step, polish
from .least_squares import MOST_ROWS, BlockFitter, LeastSquares, fit_standardised

# A guess at the noise below this part of the variance of y is no belief about it: it is there so
# that the noise of an exact fit is above zero.
_NO_BELIEF = 1.0e-9
# An intercept or a term below this part of the spread of y is a rounding error.
_ROUNDING = 1.0e-12
# Rows on which fitted values are compared.
_PROBE_ROWS = 500
# Steps to the best constants on all rows, and the gain below which it has converged.
_MOST_STEPS, _CONVERGED = 5, 1.0e-13


def freedom(
    n: float | np.ndarray, fitted: float, noise_prior: tuple[float, float]
) -> float | np.ndarray:
    """Return the degrees of freedom of the noise: what is left of rows and belief, at least one.

    `n` is the sum of the row weights, `fitted` the number of constants at their best values, the
    intercept included. The shape of the prior is what the belief is worth in rows.
    """
    shape, scale = noise_prior
    return np.maximum(n + (shape if scale > _NO_BELIEF else 0.0) - fitted, 1.0)


@dataclass(frozen=True, eq=False)
class State:
    """One state of the chains, as often as they were in it."""

    trees: tuple[np.ndarray, ...]
    """Nodes of each term, the known ones first."""
    weight: float
    """Posterior probability of this very state among the draws."""
    log_likelihood: float
    noise_variance: float
    """Mean of the scaled noise variance drawn with it, by the paper's sampler."""

    @property
    def n_nodes(self) -> int:
        """Nodes of all trees together."""
        return sum(len(tree) for tree in self.trees)


@dataclass(frozen=True, eq=False)
class Model:
    """A state with its least-squares fit; "scaled" is y less its mean, in units of its spread."""

    state: State
    intercept: float
    """In units of y."""
    coefficients: np.ndarray
    """In units of y; 0 for a term that is a rounding error."""
    centre: np.ndarray
    """Means of the terms on the training rows."""
    length: np.ndarray
    """Lengths of the centred terms."""
    beta: np.ndarray
    """Scaled coefficients of the terms centred and scaled to length one."""
    inverse_root: np.ndarray
    """R^-1 of the QR factorisation of those terms: (G'G)^-1 = R^-1 R^-T."""
    probe: np.ndarray
    """Scaled fitted values on some of the rows; none in a model from a file."""
    mse: float
    """Scaled mean square of the residuals."""
    noise_variance: float
    """Posterior mean of the scaled noise variance."""
    coefficient_spread: float
    """Factor g / (1 + g) on the variance of the coefficients; 0 where they are plugged in."""

    def design(self, columns: np.ndarray) -> np.ndarray:
        """Return the terms on a table given as columns, centred and scaled as in the fit."""
        values = evaluate_trees(self.state.trees, columns)
        return (values - self.centre[:, None]) / self.length[:, None]

    @property
    def n_fitted(self) -> int:
        """Coefficients and intercept; a redundant term of the paper's sampler does not count."""
        redundant = self.coefficient_spread == 0.0 and len(self.beta) > 1
        rank = int(np.linalg.matrix_rank(self.inverse_root)) if redundant else len(self.beta)
        return 1 + rank


class Fitter:
    """Fits states to the training rows.

    `y` is in its own units. With `plug_in` coefficients and noise are plugged in, as by the paper,
    else integrated out.
    """

    def __init__(self, problem: Problem, y: np.ndarray, weights: np.ndarray, plug_in: bool):
        self.problem, self.weights, self.plug_in, self._y = problem, weights, plug_in, y
        self.columns = problem.data.x.reshape(-1, len(problem.data.y))
        self._blocks: BlockFitter | None = None
        if len(y) > LARGE and not plug_in:
            self._blocks = BlockFitter(problem, self.scaled_y)

    @property
    def scaled_y(self) -> np.ndarray:
        """The response about its mean, in units of its spread; made when it is asked for."""
        return self._y / self.problem.y_scale - self.problem.y_mean / self.problem.y_scale

    def fit(self, state: State) -> Model | None:
        """Return a state with its fit; None if a coefficient is too large or small for a number."""
        solved = None if self._blocks is None else self._blocks.fit(state.trees)
        if solved is None:
            y = self.scaled_y
            values = evaluate_trees(state.trees, self.columns)[:, : len(y)]
            solved = fit_standardised(values, y, self.weights)
        return None if solved is None else self._model(state, solved)

    def _model(self, state: State, solved: LeastSquares) -> Model | None:
        problem, n = self.problem, self.problem.data.n
        centre, length, beta, _, rss = solved
        # Evenly spaced rows, few enough to be cheap.
        rows = self.columns[:, : len(self._y) : max(1, len(self._y) // _PROBE_ROWS)]
        design = (evaluate_trees(state.trees, rows) - centre[:, None]) / length[:, None]
        fitted = beta @ design
        nu, lam = problem.data.noise_prior
        if self.plug_in:
            noise, spread = state.noise_variance, 0.0
        else:
            # The mean of the inverse gamma, finite for all but the smallest tables.
            left = float(freedom(n, 1 + len(state.trees), (nu, lam)))
            noise = (nu * lam + rss) / max(left - 2.0, 1.0)
            spread = n / (1.0 + n)
        shown = np.where(np.abs(beta) < _ROUNDING * np.sqrt(n), 0.0, beta)
        coefficients = shown * (problem.y_scale / length)
        intercept = problem.y_mean - problem.y_scale * float(shown @ (centre / length))
        if abs(intercept) < _ROUNDING * problem.y_scale:
            intercept = 0.0
        vanished = np.abs(coefficients) < np.finfo(float).tiny
        if not np.isfinite([intercept, *coefficients, *fitted]).all() or vanished[shown != 0].any():
            return None
        return Model(
            state, intercept, coefficients, *solved[:4], probe=fitted, mse=rss / n,
            noise_variance=float(noise), coefficient_spread=spread,
        )  # fmt: skip

    def fit_trees(self, trees: Sequence[np.ndarray]) -> Model | None:
        """Return the fit of trees that no chain has drawn, beside the known terms."""
        with np.errstate(all="ignore"):
            return self.fit(State((*self.problem.known, *trees), 0.0, 0.0, 0.0))

    def fit_tidied(self, trees: Sequence[np.ndarray]) -> Model | None:
        """Return the fit of trees that no chain has drawn, in their normal form if that holds."""
        with np.errstate(all="ignore"):
            state = State((*self.problem.known, *trees), 0.0, 0.0, 0.0)
            return self.fit(self.tidied(state)) or self.fit(state)

    def residuals(self, model: Model) -> np.ndarray:
        """Return the scaled residuals of a model on the training rows."""
        result = self.scaled_y
        for start in range(0, len(result), ROWS_AT_ONCE):
            rows = slice(start, min(start + ROWS_AT_ONCE, len(result)))  # behind them is padding
            result[rows] -= model.beta @ model.design(self.columns[:, rows])
        return result

    def work(self, state: State) -> float:
        """Return how much work the constants of a formula are."""
        constants = 1 + sum(int((tree["op"] == opcodes.LT).sum()) for tree in state.trees)
        return float(state.n_nodes * min(len(self._y), MOST_ROWS) * constants**2)

    def tidied(self, state: State) -> State:
        """Return a state with what coefficients and intercept can take over left out."""
        terms = self.terms(state)
        terms.tidy()
        return self._with_terms(state, terms.trees)

    def polished(self, model: Model, stop: Callable[[], bool] = lambda: False) -> Model:
        """Return a model with the best constants for its structure, as far as it gets."""
        free = model.state.trees[len(self.problem.known) :]
        if not any((tree["op"] == opcodes.LT).any() for tree in free):
            return model
        # It looks at a part of the rows; what does not hold on all of them is dropped.
        trees = polish(self.terms(model.state), stop)
        polished = self.fit(self._with_terms(model.state, trees))
        if polished is None or not self._stays_sensible(trees, polished, model):
            return model
        return self._refined(polished, stop)

    def _stays_sensible(self, trees: Sequence[np.ndarray], polished: Model, model: Model) -> bool:
        """Return whether the best constants have not led where no chain may go."""
        most = max(self.problem.data.most_size, np.abs(model.beta).sum())
        return bool(np.abs(polished.beta).sum() <= most) and (
            self.problem.are_sensible(trees)
            or not self.problem.are_sensible(model.state.trees[len(self.problem.known) :])
        )

    def _refined(self, model: Model, stop: Callable[[], bool]) -> Model:
        """Return a model whose constants, the best on some rows, are the best on all."""
        places = free_constants(model.state.trees, len(self.problem.known))
        if len(self._y) <= MOST_ROWS or not places:
            return model
        columns, y = self.columns[:, : len(self._y)], self.scaled_y
        for _ in range(_MOST_STEPS):
            if stop():
                break
            trees = newton_step(model.state.trees, places, columns, y, self.weights)
            better = None if trees is None else self.fit(replace(model.state, trees=trees))
            if better is None or not better.mse < model.mse:
                break
            before, model = model.mse, better
            if model.mse > (1.0 - _CONVERGED) * before:
                break
        return model

    def terms(self, state: State) -> Terms:
        """Return the terms of a state, on some rows, with constants that can be changed."""
        problem = self.problem
        return Terms(
            state.trees[len(problem.known) :], self.columns, self.scaled_y, self.weights,
            problem.data.noise_prior, problem.known,
        )  # fmt: skip

    def _with_terms(self, state: State, trees: Sequence[np.ndarray]) -> State:
        return replace(state, trees=(*self.problem.known, *trees))


def expression_of(model: Model, used: np.ndarray) -> ex.Expression:
    """Return a fitted model as an expression, its largest contribution first.

    It is for reading: powers of the same thing are collected, so that it may have a value at
    single points where the trees, which predictions are made of, have none.
    """
    intercept, coefficients, terms = model.intercept, [], []
    for k in np.argsort(-np.abs(model.beta), kind="stable"):
        tree = to_expression(model.state.trees[k], used.tolist())
        factor, term, offset = 1.0, collected(tree), 0.0
        if term != tree:
            # What has cancelled may have left a factor or a summand.
            factor, term, offset = split(term)
        coefficients.append(float(model.coefficients[k]) * factor)
        intercept += float(model.coefficients[k]) * offset
        terms.append(term)
    return ex.linear_combination(intercept, coefficients, terms)
