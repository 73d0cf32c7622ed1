"""From a state of the chains to a fitted model: least squares on the training rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..formula import expression as ex
from ..formula.rewriting import collected, split
from ..formula.trees import evaluate_trees, to_expression
from ..inputs.problem import ROWS_AT_ONCE, Problem
from ..inputs.validation import LARGE
from ..kernels import opcodes
from .block_fitting import BlockFitter, LeastSquares
from .fitted import Model, State, freedom
from .polish import polish, tidied
from .refine import free_constants, newton_step
from .refit import MOST_ROWS

# An intercept or a term below this part of the spread of y is a rounding error.
_ROUNDING = 1.0e-12
# Rows on which fitted values are compared.
_PROBE_ROWS = 500
# Steps to the best constants on all rows, and the gain below which there is nothing left to gain.
_MOST_STEPS, _CONVERGED = 5, 1.0e-13


class Fitter:
    """Fits states to the training rows.

    Parameters
    ----------
    problem : Problem
    y, weights : ndarray
        The response in its own units, and the row weights.
    plug_in : bool
        Whether coefficients and noise are plugged in, as the paper does, or integrated out.
    """

    def __init__(self, problem: Problem, y: np.ndarray, weights: np.ndarray, plug_in: bool):
        self.problem = problem
        self.weights = weights
        self.plug_in = plug_in
        self._y = y
        self.columns = problem.data.x.reshape(-1, len(problem.data.y))
        self._blocks: BlockFitter | None = None
        if len(y) > LARGE and not plug_in:
            self._blocks = BlockFitter(problem, self.scaled_y)

    @property
    def scaled_y(self) -> np.ndarray:
        """The response about its mean, in units of its spread; made when it is asked for."""
        return self._y / self.problem.y_scale - self.problem.y_mean / self.problem.y_scale

    def fit(self, state: State) -> Model | None:
        """Return a state with its fit; None if a coefficient is too large or small for a number.

        The known terms are the first of its trees.
        """
        solved = None if self._blocks is None else self._blocks.fit(state.trees)
        if solved is None:
            solved = self._solve(state)
        return None if solved is None else self._model(state, solved)

    def _solve(self, state: State) -> LeastSquares | None:
        """Return the fit on all rows at once."""
        y = self.scaled_y
        columns = evaluate_trees(state.trees, self.columns)[:, : len(y)]
        root = np.sqrt(self.weights)
        design, centre, length = _standardise(columns, self.weights)
        if not np.isfinite(design).all():
            return None
        weighted = design * root[:, None]
        q, r = np.linalg.qr(weighted)
        diagonal = np.abs(np.diag(r))
        if len(state.trees) > len(y) or not (np.isfinite(r).all() and (diagonal > 1e-13).all()):
            # A redundant term, which the paper's likelihood allows: the shortest solution.
            beta = np.linalg.lstsq(weighted, y * root, rcond=1e-10)[0]
            inverse_root = np.linalg.pinv(r, rcond=1e-10)
        else:
            inverse_root = np.linalg.inv(r)
            beta = inverse_root @ (q.T @ (y * root))
        fitted = design @ beta
        if not np.isfinite(fitted).all():
            return None
        rss = float(np.sum(self.weights * (y - fitted) ** 2))
        return LeastSquares(centre, length, beta, inverse_root, rss)

    def _model(self, state: State, solved: LeastSquares) -> Model | None:
        problem, n = self.problem, self.problem.data.n
        centre, length, beta, inverse_root, rss = solved
        # Every so manieth row, few enough to be cheap.
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
            state=state,
            intercept=intercept,
            coefficients=coefficients,
            centre=centre,
            length=length,
            beta=beta,
            inverse_root=inverse_root,
            probe=fitted,
            mse=rss / n,
            noise_variance=float(noise),
            coefficient_spread=spread,
        )

    def fit_trees(self, trees: Sequence[np.ndarray]) -> Model | None:
        """Return the fit of trees that are not a draw, beside the known terms."""
        with np.errstate(all="ignore"):
            return self.fit(State((*self.problem.known, *trees), 0.0, 0.0, 0.0))

    def residuals(self, model: Model) -> np.ndarray:
        """Return the scaled residuals of a model on the training rows."""
        result = self.scaled_y
        for start in range(0, len(result), ROWS_AT_ONCE):
            rows = slice(start, min(start + ROWS_AT_ONCE, len(result)))
            values = evaluate_trees(model.state.trees, self.columns[:, rows])
            design = (values - model.centre[:, None]) / model.length[:, None]
            result[rows] -= model.beta @ design
        return result

    def work(self, state: State) -> float:
        """Return how much work the constants of a formula are."""
        constants = 1 + sum(int((tree["op"] == opcodes.LT).sum()) for tree in state.trees)
        return float(state.n_nodes * min(len(self._y), MOST_ROWS) * constants**2)

    def tidied(self, state: State) -> State:
        """Return a state with what coefficients and intercept can take over left out."""
        known = self.problem.known
        trees = tidied(state.trees[len(known) :], *self._data())
        return replace(state, trees=(*known, *trees))

    def polished(self, model: Model, stop: Callable[[], bool] = lambda: False) -> Model:
        """Return a model with the best constants for its structure, as far as it gets."""
        known, state = self.problem.known, model.state
        free = state.trees[len(known) :]
        if not any((tree["op"] == opcodes.LT).any() for tree in free):
            return model
        trees = polish(free, *self._data(), stop)
        # It looks at a part of the rows; what does not hold on all of them is dropped.
        polished = self.fit(replace(state, trees=(*known, *trees)))
        return model if polished is None else self._refined(polished, stop)

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
            done = better.mse > (1.0 - _CONVERGED) * model.mse
            model = better
            if done:
                break
        return model

    def _data(self) -> tuple[Any, Any, Any, Any, Any]:
        """Return what constants are looked after with."""
        problem = self.problem
        return (
            self.columns, self.scaled_y, self.weights, problem.data.noise_prior, problem.known,
        )  # fmt: skip


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


def _standardise(
    columns: np.ndarray, weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return columns centred and scaled to weighted length one, as rows, their means and lengths.

    It works in units of the largest value of a column, so that no square overflows or vanishes.
    """
    unit = np.abs(columns).max(axis=1, initial=0.0)
    scaled = columns / unit[:, None]
    centre = scaled @ weights / weights.sum()
    design = scaled - centre[:, None]
    length = np.sqrt(design**2 @ weights)
    return (design / length[:, None]).T, centre * unit, length * unit
