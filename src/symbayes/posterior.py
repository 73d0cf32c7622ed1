"""From draws to answers: fitted models, formulas with their probabilities, predictions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from . import expression as ex
from .formula import Formula
from .kernels.chain import LOG_LIKELIHOOD, NOISE_VARIANCE
from .kernels.evaluate import BLOCK, stack_slots
from .kernels.units import load_evaluate
from .problem import Problem
from .skeleton import skeleton
from .trace import Trace, split_terms

# Fitted values that agree to this part of the spread of y are the same function of the data.
_SAME_FIT = 1.0e-7
# An intercept or a term below this part of the spread of y is a rounding error.
_ROUNDING = 1.0e-12
# Share of the posterior on either side that a prediction leaves out.
_TAIL = 0.002
# Models times rows that are predicted at once.
_PREDICTIONS_AT_ONCE = 2_000_000
# Rows on which fitted values are compared.
_PROBE_ROWS = 500
# Rows times models to fit after a run, and the fewest models whatever the number of rows.
_MOST_WORK, _FEWEST_FITS = 100_000_000, 200


@dataclass(frozen=True, eq=False)
class State:
    """One state of the chains, as often as they were in it."""

    trees: tuple[np.ndarray, ...]
    """Nodes of each term."""
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
    """One state of the chain with its least-squares fit.

    "Scaled" is y less its mean, in units of its spread: squares of it are safe whatever y is.
    """

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
    """Scaled fitted values on some of the rows."""
    mse: float
    """Scaled mean square of the residuals."""
    noise_variance: float
    """Posterior mean of the scaled noise variance."""
    coefficient_spread: float
    """Factor g / (1 + g) on the variance of the coefficients; 0 where they are plugged in."""


class NoFiniteModel(RuntimeError):
    """Every formula found has a coefficient that is too large or too small for a number."""


class Posterior:
    """The distinct models that a run visited, with their weights."""

    def __init__(
        self, problem: Problem, trace: Trace, y: np.ndarray, weights: np.ndarray, plug_in: bool
    ):
        self._problem = problem
        self._scaled_y = y / problem.y_scale - problem.y_mean / problem.y_scale
        self._row_weights = weights
        self._plug_in = plug_in
        self._training = problem.data.x.reshape(-1, len(problem.data.y))
        # Fits cost time with the number of rows; for large tables only so many are made.
        most = max(_FEWEST_FITS, _MOST_WORK // len(y))
        states = self._collect(trace)
        with np.errstate(all="ignore"):
            self.models = self._fit_all(_thin(states, most))
            self.formula_models = self._group(states, most)
        if not self.models or not self.formula_models:
            raise NoFiniteModel

    def _collect(self, trace: Trace) -> list[State]:
        """Return the distinct states, most probable first."""
        total: dict[tuple[int, bytes], list] = {}
        for chain, weights in zip(trace.chains, trace.weights, strict=True):
            share = weights / (weights.sum() * len(trace.chains))
            for i in np.flatnonzero(weights):
                key = (chain.n_terms[i], chain.nodes[i].tobytes())
                entry = total.setdefault(key, [chain, i, 0.0, 0.0])
                entry[2] += share[i]
                entry[3] += share[i] * chain.numbers[i][NOISE_VARIANCE]
        states = [
            State(
                trees=tuple(split_terms(chain.nodes[i], chain.n_terms[i])),
                weight=weight,
                log_likelihood=float(chain.numbers[i][LOG_LIKELIHOOD]),
                noise_variance=weighted_noise / weight,
            )
            for chain, i, weight, weighted_noise in total.values()
        ]
        return sorted(states, key=lambda state: -state.weight)

    def _fit_all(self, states: list[State]) -> list[tuple[float, Model]]:
        """Return the fits of the states with their weights, which sum to 1."""
        fits = [(state.weight, self._fit(state)) for state in states]
        kept = [(weight, model) for weight, model in fits if model is not None]
        total = sum(weight for weight, _ in kept)
        return [(weight / total, model) for weight, model in kept]

    def _group(self, states: list[State], most: int) -> list[tuple[float, Model]]:
        """Return the distinct formulas with their probabilities, most probable first.

        Draws that are the same formula are one: the same structure up to constants, or the same
        fitted function. It is shown by its simplest member, with the best constants seen.
        """
        by_skeleton: dict[tuple, list[State]] = {}
        for state in states:
            key = tuple(sorted(skeleton(tree) for tree in state.trees))
            by_skeleton.setdefault(key, []).append(state)
        ranked = sorted(by_skeleton.values(), key=lambda group: -sum(s.weight for s in group))
        shown, lost = [], 0.0
        for group in ranked[:most]:
            fewest = min(state.n_nodes for state in group)
            best = max(
                (state for state in group if state.n_nodes == fewest),
                key=lambda state: state.log_likelihood,
            )
            model, weight = self._fit(best), sum(state.weight for state in group)
            if model is None:
                lost += weight
            else:
                shown.append((weight, model))
        return _merge_equal_fits([(weight / (1.0 - lost), model) for weight, model in shown])

    def _fit(self, state: State) -> Model | None:
        """Return a state with its fit; None if a coefficient is too large or small for a number."""
        problem, y = self._problem, self._scaled_y
        columns = self.evaluate(state.trees, self._training)[:, : len(y)]
        n = problem.data.n
        root = np.sqrt(self._row_weights)
        design, centre, length = _standardise(columns, self._row_weights)
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
        rss = float(np.sum(self._row_weights * (y - fitted) ** 2))
        nu, lam = problem.data.noise_prior
        if self._plug_in:
            noise, spread = state.noise_variance, 0.0
        else:
            # The mean of the inverse gamma, finite for all but the smallest tables.
            noise = (nu * lam + rss) / max(n - 3.0 + nu, 1.0)
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
            probe=fitted[:: max(1, len(y) // _PROBE_ROWS)].copy(),
            mse=rss / n,
            noise_variance=float(noise),
            coefficient_spread=spread,
        )

    def evaluate(self, trees: Sequence[np.ndarray], columns: np.ndarray) -> np.ndarray:
        """Return the value of each tree on a table given as columns."""
        evaluate = load_evaluate()
        n_rows = columns.shape[1]
        # Compiled code is made for writable arrays; those of a model loaded from disk may not be.
        flat = np.require(columns, np.float64, ["C", "W"]).reshape(-1)
        values = np.empty((len(trees), n_rows))
        size = max((len(tree) for tree in trees), default=1)
        stack = np.empty(stack_slots(size) * BLOCK)
        where = np.empty(2 * size + 4, np.int64)
        target = values.reshape(-1)
        for k, tree in enumerate(trees):
            evaluate(np.array(tree), 0, flat, n_rows, target, k * n_rows, stack, where)
        return values

    def formulas(
        self, names: Sequence[str], used: np.ndarray
    ) -> tuple[pd.DataFrame, list[Formula]]:
        """Return the table of formulas, most probable first, and the formulas themselves.

        `used` gives the position among all columns, named `names`, of the columns of the problem.
        """
        rows, formulas = [], []
        for probability, shown in self.formula_models:
            order = np.argsort(-np.abs(shown.beta), kind="stable")  # largest contribution first
            expression = ex.linear_combination(
                shown.intercept,
                shown.coefficients[order].tolist(),
                [ex.from_nodes(shown.state.trees[k], used.tolist()) for k in order],
            )
            formula = Formula._from_expression(expression, names)
            formulas.append(formula)
            rows.append(
                {
                    "probability": min(1.0, probability),
                    "formula": str(formula),
                    "n_terms": len(shown.state.trees),
                    "n_nodes": formula.n_nodes,
                    "rmse": np.sqrt(shown.mse) * self._problem.y_scale,
                    "r2": 1.0 - shown.mse,
                }
            )
        return pd.DataFrame(rows), formulas

    def predict(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return mean, standard deviation and share of draws left out, for each row.

        Draws that are not finite at a row are left out there. So are the most extreme ones, 0.2
        per cent of the posterior on either side: a formula of no weight may take off just
        outside the training rows, and a plain mean would follow it.
        """
        chunk = max(1, _PREDICTIONS_AT_ONCE // len(self.models))
        parts = [self._predict_some(X[i : i + chunk]) for i in range(0, len(X), chunk)]
        mean, std, left_out = (np.concatenate(part) for part in zip(*parts, strict=True))
        return mean, std, left_out

    def _predict_some(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        columns = np.ascontiguousarray(X.T)
        weights = np.array([weight for weight, _ in self.models])
        means, variances = np.empty((2, len(weights), len(X)))
        # The intercept has a flat prior, so that nothing shrinks its variance.
        intercept_variance = 0.0 if self._plug_in else 1.0 / self._problem.data.n
        with np.errstate(all="ignore"):
            for i, (_, model) in enumerate(self.models):
                values = self.evaluate(model.state.trees, columns)
                design = (values - model.centre[:, None]) / model.length[:, None]
                leverage = np.sum((model.inverse_root.T @ design) ** 2, axis=0)
                means[i] = model.beta @ design
                variances[i] = model.noise_variance * (
                    1.0 + intercept_variance + model.coefficient_spread * leverage
                )
            good = np.isfinite(means) & np.isfinite(variances)
            finite = weights @ good
            kept = np.where(good & _central(means, good, weights), weights[:, None], 0.0)
            kept /= kept.sum(axis=0)
            mean = np.sum(kept * np.where(kept > 0, means, 0.0), axis=0)
            squares = np.where(kept > 0, (means - mean) ** 2 + variances, 0.0)
            std = np.sqrt(np.sum(kept * squares, axis=0))
            y_mean, y_scale = self._problem.y_mean, self._problem.y_scale
            mean = np.where(finite > 0, y_mean + y_scale * mean, np.nan)
            return mean, np.where(finite > 0, y_scale * std, np.nan), 1.0 - finite

    def sample(
        self, X: np.ndarray, n_draws: int, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return draws of the mean of y at each row, one row a draw, and of the noise.

        Given a model, noise and coefficients come from their exact posterior; the noise is a
        standard deviation. Adding it to the mean gives draws of new observations.
        """
        columns = np.ascontiguousarray(X.T)
        nu, lam = self._problem.data.noise_prior
        n = self._problem.data.n
        weights = np.array([weight for weight, _ in self.models])
        times = np.bincount(
            rng.choice(len(weights), n_draws, p=weights / weights.sum()), minlength=len(weights)
        )
        means, noises = [], []
        with np.errstate(all="ignore"):
            for i in np.flatnonzero(times):
                model, m = self.models[i][1], times[i]
                values = self.evaluate(model.state.trees, columns)
                design = (values - model.centre[:, None]) / model.length[:, None]
                if self._plug_in:
                    noise = np.full(m, np.sqrt(model.noise_variance))
                    intercept = np.zeros(m)
                else:
                    scale = 0.5 * (nu * lam + model.mse * n)
                    noise = np.sqrt(scale / rng.gamma(0.5 * (n - 1.0 + nu), size=m))
                    intercept = noise / np.sqrt(n) * rng.normal(size=m)
                step = rng.normal(size=(m, len(model.beta))) @ model.inverse_root.T
                beta = model.beta + np.sqrt(model.coefficient_spread) * noise[:, None] * step
                means.append(intercept[:, None] + beta @ design)
                noises.append(noise)
        y_mean, y_scale = self._problem.y_mean, self._problem.y_scale
        return y_mean + y_scale * np.concatenate(means), y_scale * np.concatenate(noises)


def _central(values: np.ndarray, good: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return which values lie, by weight, in the central part of each column of `values`."""
    order = np.argsort(np.where(good, values, np.inf), axis=0)
    ranked = np.take_along_axis(np.where(good, weights[:, None], 0.0), order, axis=0)
    middle = (np.cumsum(ranked, axis=0) - 0.5 * ranked) / ranked.sum(axis=0)
    central = np.empty_like(good)
    inside = (middle >= _TAIL) & (middle <= 1.0 - _TAIL)
    np.put_along_axis(central, order, inside, axis=0)
    return central


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


def _thin(states: list[State], most: int) -> list[State]:
    """Return at most so many states, by systematic sampling: each in proportion to its weight."""
    if len(states) <= most:
        return states
    edges = np.cumsum([state.weight for state in states])
    picks = np.searchsorted(edges, (np.arange(most) + 0.5) / most * edges[-1])
    kept, times = np.unique(picks, return_counts=True)
    return [replace(states[i], weight=float(n) / most) for i, n in zip(kept, times, strict=True)]


def _merge_equal_fits(models: list[tuple[float, Model]]) -> list[tuple[float, Model]]:
    """Merge models that fit the same values: the same function, written otherwise.

    The simplest of them is kept.
    """
    merged: list[tuple[float, Model]] = []
    # A mean of the values with random weights tells most functions apart at once.
    shadows = np.empty(len(models))
    for weight, model in models:
        direction = np.random.default_rng(0).normal(size=len(model.probe))
        shadow = direction @ model.probe / np.abs(direction).sum()
        for i in np.flatnonzero(np.abs(shadows[: len(merged)] - shadow) <= 2.0 * _SAME_FIT):
            total, other = merged[i]
            if np.max(np.abs(model.probe - other.probe)) <= _SAME_FIT:
                simplest = min(other, model, key=lambda m: m.state.n_nodes)
                merged[i] = (total + weight, simplest)
                break
        else:
            shadows[len(merged)] = shadow
            merged.append((weight, model))
    return sorted(merged, key=lambda entry: -entry[0])
