"""From draws to answers: fitted models, formulas with their probabilities, predictions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from . import expression as ex
from .formula import Formula
from .kernels.evaluate import BLOCK, stack_slots
from .kernels.units import load_evaluate
from .problem import Problem
from .skeleton import skeleton
from .trace import Trace, split_terms

# Fitted values that agree to this part of the spread of y are the same function of the data.
_SAME_FIT = 1.0e-7
# An intercept below this part of the spread of y is a rounding error.
_ROUNDING = 1.0e-12


@dataclass(frozen=True)
class Model:
    """One state of the chain with its least-squares fit, in units of y."""

    trees: tuple[np.ndarray, ...]
    """Nodes of each term."""
    weight: float
    """Posterior probability of this very state among the draws."""
    log_likelihood: float
    intercept: float
    coefficients: np.ndarray
    centre: np.ndarray
    """Means of the terms on the training rows."""
    inverse_root: np.ndarray
    """R^-1 of the QR factorisation of the centred terms: (G'G)^-1 = R^-1 R^-T."""
    fitted: np.ndarray
    noise_variance: float
    """Posterior mean of the noise variance."""
    coefficient_spread: float
    """Factor g / (1 + g) on the variance of the coefficients; 0 where they are plugged in."""

    @property
    def n_nodes(self) -> int:
        """Nodes of all trees together."""
        return sum(len(tree) for tree in self.trees)


class Posterior:
    """The distinct models that a run visited, with their weights."""

    def __init__(
        self, problem: Problem, trace: Trace, y: np.ndarray, weights: np.ndarray, plug_in: bool
    ):
        self._problem = problem
        self._y = y
        self._row_weights = weights
        self._plug_in = plug_in
        self._training = problem.data.x.reshape(-1, len(problem.data.y))
        self.models = self._fit(trace)

    def _fit(self, trace: Trace) -> list[Model]:
        """Return the distinct states, most probable first."""
        total: dict[bytes, list] = {}
        for chain, weights in zip(trace.chains, trace.weights, strict=True):
            share = weights / (weights.sum() * len(trace.chains))
            for i in np.flatnonzero(weights):
                key = bytes([chain.n_terms[i]]) + chain.nodes[i].tobytes()
                entry = total.setdefault(key, [chain, i, 0.0, 0.0])
                entry[2] += share[i]
                entry[3] += share[i] * chain.numbers[i][2]
        entries = sorted(total.values(), key=lambda entry: -entry[2])
        models = [self._fit_one(*entry) for entry in entries]
        return [model for model in models if model is not None]

    def _fit_one(self, chain, i, weight, weighted_noise) -> Model | None:
        problem, n_rows = self._problem, len(self._y)
        trees = tuple(split_terms(chain.nodes[i], chain.n_terms[i]))
        columns = self.evaluate(trees, self._training)[:, :n_rows]
        n = problem.data.n
        root = np.sqrt(self._row_weights)
        y = (self._y - problem.y_mean) / problem.y_scale
        with np.errstate(all="ignore"):
            centre = columns @ self._row_weights / n if len(trees) else np.zeros(0)
            design = (columns - centre[:, None]).T
            length = np.sqrt(np.sum((design * root[:, None]) ** 2, axis=0))
            # In units of the largest value where squares overflow or vanish.
            if not np.all((length > 1e-150) & (length < 1e150)):
                unit = np.abs(columns).max(axis=1)
                scaled = columns / unit[:, None]
                centre = (scaled @ self._row_weights / n) * unit
                design = (scaled - (centre / unit)[:, None]).T
                length = np.sqrt(np.sum((design * root[:, None]) ** 2, axis=0))
                design, length = design / length, length * unit
            else:
                design = design / length
        q, r = np.linalg.qr(design * root[:, None])
        diagonal = np.abs(np.diag(r))
        if diagonal.size and not (np.isfinite(r).all() and diagonal.min() > 1e-13):
            # A redundant term, which the paper's likelihood allows: the shortest solution.
            beta = np.linalg.lstsq(design * root[:, None], y * root, rcond=1e-10)[0]
            inverse_root = np.linalg.pinv(r, rcond=1e-10)
        else:
            inverse_root = np.linalg.inv(r)
            beta = inverse_root @ (q.T @ (y * root))
        coefficients = beta / length * problem.y_scale
        fitted = problem.y_mean + problem.y_scale * (design @ beta)
        residual = y - design @ beta
        rss = float(np.sum(self._row_weights * residual**2))
        nu, lam = problem.data.noise_prior
        if self._plug_in:
            noise, spread = weighted_noise / weight, 0.0
        else:
            # The mean of the inverse gamma, finite for all but the smallest tables.
            noise = (nu * lam + rss) / max(n - 3.0 + nu, 1.0)
            spread = n / (1.0 + n)
        if not (np.isfinite(coefficients).all() and np.isfinite(fitted).all()):
            return None
        return Model(
            trees=trees,
            weight=weight,
            log_likelihood=float(chain.numbers[i][0]),
            intercept=float(problem.y_mean - coefficients @ centre),
            coefficients=coefficients,
            centre=centre,
            inverse_root=inverse_root / length[:, None] if len(trees) else inverse_root,
            fitted=fitted,
            noise_variance=float(noise) * problem.y_scale**2,
            coefficient_spread=spread,
        )

    def evaluate(self, trees: Sequence[np.ndarray], columns: np.ndarray) -> np.ndarray:
        """Return the value of each tree on a table given as columns."""
        evaluate = load_evaluate()
        n_rows = columns.shape[1]
        flat = np.ascontiguousarray(columns, dtype=np.float64).reshape(-1)
        values = np.empty((len(trees), n_rows))
        size = max((len(tree) for tree in trees), default=1)
        stack = np.empty(stack_slots(size) * BLOCK)
        where = np.empty(2 * size + 4, np.int64)
        target = values.reshape(-1)
        for k, tree in enumerate(trees):
            evaluate(np.ascontiguousarray(tree), 0, flat, n_rows, target, k * n_rows, stack, where)
        return values

    def formulas(
        self, names: Sequence[str], used: np.ndarray
    ) -> tuple[pd.DataFrame, list[Formula]]:
        """Return the table of formulas, most probable first, and the formulas themselves.

        `used` gives the position among all columns, named `names`, of the columns of the problem.

        Draws that are the same formula are one row: the same structure up to constants, or the
        same fitted function. A row shows its simplest member, with the best constants seen.
        """
        groups = _merge_equal_fits(_group_by_skeleton(self.models), float(np.std(self._y)))
        rows, formulas = [], []
        spread = float(np.average((self._y - self._problem.y_mean) ** 2, weights=self._row_weights))
        for group in sorted(groups, key=lambda group: -sum(m.weight for m in group)):
            fewest = min(model.n_nodes for model in group)
            shown = max(
                (model for model in group if model.n_nodes == fewest),
                key=lambda model: model.log_likelihood,
            )
            intercept = shown.intercept
            if abs(intercept) < _ROUNDING * self._problem.y_scale:
                intercept = 0.0
            expression = ex.linear_combination(
                intercept,
                shown.coefficients.tolist(),
                [ex.from_nodes(tree, used.tolist()) for tree in shown.trees],
            )
            formula = Formula._from_expression(expression, names)
            mse = float(np.average((self._y - shown.fitted) ** 2, weights=self._row_weights))
            formulas.append(formula)
            rows.append(
                {
                    "probability": sum(model.weight for model in group),
                    "formula": str(formula),
                    "n_terms": len(shown.trees),
                    "n_nodes": formula.n_nodes,
                    "rmse": np.sqrt(mse),
                    "r2": 1.0 - mse / spread,
                }
            )
        return pd.DataFrame(rows), formulas

    def predict(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return mean, standard deviation and share of draws left out, for each row.

        Draws that are not finite at a row are left out there.
        """
        columns = np.ascontiguousarray(X.T)
        n_rows = columns.shape[1]
        total = np.zeros(n_rows)
        first, second, noise = np.zeros(n_rows), np.zeros(n_rows), np.zeros(n_rows)
        reference = self._problem.y_mean  # keeps the second moment free of cancellation
        with np.errstate(all="ignore"):
            for model in self.models:
                design = self.evaluate(model.trees, columns) - model.centre[:, None]
                mean = model.coefficients @ design + self._problem.y_mean
                leverage = np.sum((model.inverse_root.T @ design) ** 2, axis=0)
                variance = model.noise_variance * (
                    1.0 + model.coefficient_spread * (leverage + 1.0 / self._problem.data.n)
                )
                good = np.isfinite(mean) & np.isfinite(variance)
                deviation = np.where(good, mean - reference, 0.0)
                total += model.weight * good
                first += model.weight * deviation
                second += model.weight * deviation**2
                noise += model.weight * np.where(good, variance, 0.0)
            mean = first / total
            between = np.maximum(second / total - mean**2, 0.0)
            std = np.sqrt(noise / total + between)
        return reference + mean, std, 1.0 - total


def _group_by_skeleton(models: list[Model]) -> list[list[Model]]:
    groups: dict[tuple, list[Model]] = {}
    for model in models:
        key = tuple(sorted(skeleton(tree) for tree in model.trees))
        groups.setdefault(key, []).append(model)
    return list(groups.values())


def _merge_equal_fits(groups: list[list[Model]], spread: float) -> list[list[Model]]:
    """Merge groups whose best members fit the same values: the same function, written otherwise."""
    merged: list[list[Model]] = []
    fits: list[np.ndarray] = []
    for group in sorted(groups, key=lambda group: -sum(model.weight for model in group)):
        fit = max(group, key=lambda model: model.log_likelihood).fitted
        for i, other in enumerate(fits):
            if np.max(np.abs(fit - other)) <= _SAME_FIT * spread:
                merged[i] = merged[i] + group
                break
        else:
            merged.append(group)
            fits.append(fit)
    return merged
