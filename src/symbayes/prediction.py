"""Predictions: means, spreads and draws over the models of a posterior."""

from __future__ import annotations

import numpy as np

from .evaluation import evaluate_trees
from .fitted import Model
from .problem import Problem

# Share of the posterior on either side that a prediction leaves out.
_TAIL = 0.002
# Models times rows that are predicted at once.
_PREDICTIONS_AT_ONCE = 2_000_000

#: Models with their probabilities.
Models = list[tuple[float, Model]]


def predict(
    models: Models, X: np.ndarray, problem: Problem, plug_in: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return mean, standard deviation and share of draws left out, for each row.

    Draws that are not finite at a row are left out there. So are the most extreme ones, 0.2
    per cent of the posterior on either side: a formula of no weight may take off just
    outside the training rows, and a plain mean would follow it.
    """
    chunk = max(1, _PREDICTIONS_AT_ONCE // len(models))
    parts = [
        _predict_some(models, X[i : i + chunk], problem, plug_in) for i in range(0, len(X), chunk)
    ]
    mean, std, left_out = (np.concatenate(part) for part in zip(*parts, strict=True))
    return mean, std, left_out


def _predict_some(
    models: Models, X: np.ndarray, problem: Problem, plug_in: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    columns = np.ascontiguousarray(X.T)
    weights = np.array([weight for weight, _ in models])
    means, variances = np.empty((2, len(weights), len(X)))
    # The intercept has a flat prior, so that nothing shrinks its variance.
    intercept_variance = 0.0 if plug_in else 1.0 / problem.data.n
    with np.errstate(all="ignore"):
        for i, (_, model) in enumerate(models):
            values = evaluate_trees(model.state.trees, columns)
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
        y_mean, y_scale = problem.y_mean, problem.y_scale
        mean = np.where(finite > 0, y_mean + y_scale * mean, np.nan)
        return mean, np.where(finite > 0, y_scale * std, np.nan), 1.0 - finite


def sample(
    models: Models,
    X: np.ndarray,
    n_draws: int,
    rng: np.random.Generator,
    problem: Problem,
    plug_in: bool,
) -> tuple[np.ndarray, np.ndarray]:
    """Return draws of the mean of y at each row, one row a draw, and of the noise.

    Given a model, noise and coefficients come from their exact posterior; the noise is a
    standard deviation. Adding it to the mean gives draws of new observations.
    """
    columns = np.ascontiguousarray(X.T)
    nu, lam = problem.data.noise_prior
    n = problem.data.n
    weights = np.array([weight for weight, _ in models])
    times = np.bincount(
        rng.choice(len(weights), n_draws, p=weights / weights.sum()), minlength=len(weights)
    )
    means, noises = [], []
    with np.errstate(all="ignore"):
        for i in np.flatnonzero(times):
            model, m = models[i][1], times[i]
            values = evaluate_trees(model.state.trees, columns)
            design = (values - model.centre[:, None]) / model.length[:, None]
            if plug_in:
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
    y_mean, y_scale = problem.y_mean, problem.y_scale
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
