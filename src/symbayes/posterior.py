"""From draws to answers: fitted models, formulas with their probabilities, predictions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from . import expression as ex
from . import prediction
from .evaluation import evaluate_trees
from .fitted import Model, State
from .formula import Formula
from .kernels import opcodes
from .kernels.chain import LOG_LIKELIHOOD, NOISE_VARIANCE
from .kernels.tree import NODE
from .polish import polish
from .problem import Problem
from .refit import MOST_ROWS
from .rounding import rounded
from .skeleton import skeleton
from .trace import Trace, split_terms

# Fitted values that agree to this part of the spread of y are the same function of the data.
_SAME_FIT = 1.0e-7
# An intercept or a term below this part of the spread of y is a rounding error.
_ROUNDING = 1.0e-12
# Rows on which fitted values are compared.
_PROBE_ROWS = 500
# Formulas, from the most probable on, whose constants are polished, and simple ones offered. Long
# formulas take their time, with the square of the number of constants: after so much work (nodes
# times rows times squared transforms, two seconds) no further one is begun.
_POLISHED, _ROUNDED, _MOST_POLISHING = 20, 5, 6_000_000
# Rows times models to fit after a run, and the fewest and most models whatever the number of rows.
_MOST_WORK, _FEWEST_FITS, _MOST_FITS = 100_000_000, 200, 1500
# Formulas that are listed; what is left is spread thinly over many.
_LISTED = 300


class NoFiniteModel(RuntimeError):
    """Every formula found has a coefficient that is too large or too small for a number."""


class Posterior:
    """The distinct models that a run visited, with their weights."""

    def __init__(
        self,
        problem: Problem,
        trace: Trace,
        y: np.ndarray,
        weights: np.ndarray,
        plug_in: bool,
        out_of_time: Callable[[], bool] = lambda: False,
    ):
        self._problem = problem
        self._scaled_y = y / problem.y_scale - problem.y_mean / problem.y_scale
        self._row_weights = weights
        self._plug_in = plug_in
        # Of the paper's sampler, whose path is of interest as well as where it led.
        self._path = trace.chains if plug_in else []
        self._training = problem.data.x.reshape(-1, len(problem.data.y))
        # Fits cost time with the number of rows; for large tables only so many are made.
        most = min(_MOST_FITS, max(_FEWEST_FITS, _MOST_WORK // len(y)))
        states = self._collect(trace)
        self._uses = self._count_uses(states)
        with np.errstate(all="ignore"):
            self.models = self._fit_all(_thin(states, most))
            self.formula_models = self._group(states, min(most, _LISTED), out_of_time)
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

    def _count_uses(self, states: list[State]) -> np.ndarray:
        uses = np.zeros(len(self._problem.feature_weights))
        for state in states:
            nodes = np.concatenate([np.empty(0, NODE), *state.trees])
            uses[np.unique(nodes["feature"][nodes["op"] == opcodes.FEATURE])] += state.weight
        return np.minimum(uses, 1.0)

    def inclusion(self) -> np.ndarray:
        """Return the probability that a formula uses it, for each column of the problem."""
        return self._uses

    def _fit_all(self, states: list[State]) -> list[tuple[float, Model]]:
        """Return the fits of the states with their weights, which sum to 1."""
        fits = [(state.weight, self._fit(state)) for state in states]
        kept = [(weight, model) for weight, model in fits if model is not None]
        total = sum(weight for weight, _ in kept)
        return [(weight / total, model) for weight, model in kept]

    def _group(
        self, states: list[State], most: int, out_of_time: Callable[[], bool]
    ) -> list[tuple[float, Model]]:
        """Return the distinct formulas with their probabilities, most probable first.

        Draws that are the same formula are one: the same structure up to constants, or the same
        fitted function. It is shown by its simplest member, with the best constants seen.
        """
        by_skeleton: dict[tuple, list[State]] = {}
        for state in states:
            key = tuple(sorted(skeleton(tree) for tree in state.trees))
            by_skeleton.setdefault(key, []).append(state)
        ranked = sorted(by_skeleton.values(), key=lambda group: -sum(s.weight for s in group))
        shown: list[tuple[float, Model]] = []
        lost = work = 0.0
        for group in ranked[:most]:
            fewest = min(state.n_nodes for state in group)
            best = max(
                (state for state in group if state.n_nodes == fewest),
                key=lambda state: state.log_likelihood,
            )
            model, weight = self._fit(best), sum(state.weight for state in group)
            if model is not None and _is_worth_it(len(shown), _POLISHED, work, out_of_time):
                work += self._work(best)
                model = self._polished(model)
            if model is None:
                lost += weight
            else:
                shown.append((weight, model))
        return _merge_equal_fits([(weight / (1.0 - lost), model) for weight, model in shown])

    def _work(self, state: State) -> float:
        """Return how much work the constants of a formula are."""
        constants = 1 + sum(int((tree["op"] == opcodes.LT).sum()) for tree in state.trees)
        return float(state.n_nodes * min(len(self._scaled_y), MOST_ROWS) * constants**2)

    def _polished(self, model: Model) -> Model:
        """Return a model with the best constants for its structure."""
        state = model.state
        if not any((tree["op"] == opcodes.LT).any() for tree in state.trees):
            return model
        trees = polish(
            state.trees,
            self._training,
            self._scaled_y,
            self._row_weights,
            self._problem.data.noise_prior,
        )
        # It looks at a part of the rows; what does not hold on all of them is dropped.
        return self._fit(replace(state, trees=trees)) or model

    def _fit(self, state: State) -> Model | None:
        """Return a state with its fit; None if a coefficient is too large or small for a number."""
        problem, y = self._problem, self._scaled_y
        columns = evaluate_trees(state.trees, self._training)[:, : len(y)]
        n = problem.data.n
        root = np.sqrt(self._row_weights)
        design, centre, length = _standardise(columns, self._row_weights)
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

    def formulas(
        self,
        names: Sequence[str],
        used: np.ndarray,
        out_of_time: Callable[[], bool] = lambda: False,
    ) -> tuple[pd.DataFrame, list[Formula]]:
        """Return the table of formulas, most probable first, and the formulas themselves.

        `used` gives the position among all columns, named `names`, of the columns of the problem.
        """
        rows: list[dict[str, float | str]] = []
        formulas: list[Formula] = []
        work = 0.0
        for probability, shown in self.formula_models:
            formula = simple = _formula(shown, names, used)
            if _is_worth_it(len(formulas), _ROUNDED, work, out_of_time):
                work += self._work(shown.state)
                simple = self._rounded(shown, names, used)
            formulas.append(formula)
            rows.append(
                {
                    "probability": min(1.0, probability),
                    "formula": str(formula),
                    "n_terms": len(shown.state.trees),
                    "n_nodes": formula.n_nodes,
                    "rmse": np.sqrt(shown.mse) * self._problem.y_scale,
                    "r2": 1.0 - shown.mse,
                    "rounded": str(simple),
                }
            )
        return pd.DataFrame(rows), formulas

    def _rounded(self, model: Model, names: Sequence[str], used: np.ndarray) -> Formula:
        """Return a formula with simple constants where the data do not object."""
        problem = self._problem
        n_rows = len(self._scaled_y)
        table = np.zeros((len(names), n_rows))
        table[used] = self._training[:, :n_rows]
        simple = rounded(
            _expression(model, used),
            table,
            problem.y_mean + problem.y_scale * self._scaled_y,
            self._row_weights,
            (float(problem.data.noise_prior[0]), float(problem.data.noise_prior[1])),
            problem.y_scale,
        )
        return Formula._from_expression(simple, names)

    def formula_of(
        self, trees: Sequence[np.ndarray], names: Sequence[str], used: np.ndarray
    ) -> Formula | None:
        """Return trees with their least-squares fit as a formula, None if there is no such fit."""
        with np.errstate(all="ignore"):
            model = self._fit(State(tuple(trees), 0.0, 0.0, 0.0))
        return None if model is None else _formula(model, names, used)

    def predict(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return mean, standard deviation and share of draws left out, for each row."""
        return prediction.predict(self.models, X, self._problem, self._plug_in)

    def stages(self, X: np.ndarray) -> Iterator[np.ndarray]:
        """Yield what each model on the way predicts, chain after chain."""
        columns = np.ascontiguousarray(X.T)
        with np.errstate(all="ignore"):
            for chain in self._path:
                for nodes, n_terms in zip(chain.nodes, chain.n_terms, strict=True):
                    trees = tuple(split_terms(nodes, n_terms))
                    model = self._fit(State(trees, 0.0, 0.0, 0.0))
                    if model is None:
                        yield np.full(len(X), np.nan)
                    else:
                        yield model.intercept + model.coefficients @ evaluate_trees(trees, columns)

    def sample(
        self, X: np.ndarray, n_draws: int, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return draws of the mean of y at each row, one row a draw, and of the noise."""
        return prediction.sample(self.models, X, n_draws, rng, self._problem, self._plug_in)


def _is_worth_it(place: int, most: int, work: float, out_of_time: Callable[[], bool]) -> bool:
    """Return whether constants of one more formula are looked after; those of the first always."""
    return place == 0 or (place < most and work < _MOST_POLISHING and not out_of_time())


def _expression(model: Model, used: np.ndarray) -> ex.Expression:
    """Return a fitted model as an expression, its largest contribution first."""
    order = np.argsort(-np.abs(model.beta), kind="stable")
    return ex.linear_combination(
        model.intercept,
        model.coefficients[order].tolist(),
        [ex.from_nodes(model.state.trees[k], used.tolist()) for k in order],
    )


def _formula(model: Model, names: Sequence[str], used: np.ndarray) -> Formula:
    return Formula._from_expression(_expression(model, used), names)


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
