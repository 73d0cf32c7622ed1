"""Predictions: means, spreads, quantiles and draws over the models of a posterior."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from .evaluation import evaluate_trees
from .fitted import Model
from .quantiles import mixture_quantile

# Share of the posterior on either side that a mean leaves out.
_TAIL = 0.002
# Models times rows that are predicted at once, and columns times rows that are copied for it.
_NUMBERS_AT_ONCE = 2_000_000


@dataclass(frozen=True, eq=False)
class Mixture:
    """Fitted models with their probabilities: the posterior, as predictions need it."""

    models: list[tuple[float, Model]]
    """Probabilities, which sum to 1, and models."""
    y_mean: float
    y_scale: float
    """In units of which the models are fitted."""
    y_spread: float
    """Standard deviation of y on the training rows; the same but for known terms."""
    n: float
    """Sum of the row weights."""
    noise_prior: tuple[float, float]
    plug_in: bool
    """Whether coefficients and noise are plugged in, as the paper does, or integrated out."""

    @property
    def weights(self) -> np.ndarray:
        """Probabilities of the models."""
        return np.array([weight for weight, _ in self.models])

    @property
    def _df(self) -> float:
        """Degrees of freedom of a prediction, given the model."""
        return np.inf if self.plug_in else self.n - 1.0 + self.noise_prior[0]

    def predict(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return mean, standard deviation and share of draws left out, for each row.

        Draws that are not finite at a row are left out there. So are the most extreme ones, 0.2
        per cent of the posterior on either side: a formula of no weight may take off just
        outside the training rows, and a plain mean would follow it.
        """
        mean, std, left_out = _joined(self._predict_some, self._chunks(X))
        return mean, std, left_out

    def _predict_some(self, X: np.ndarray) -> tuple[np.ndarray, ...]:
        weights = self.weights
        means, factors = self._at(X)
        noise = np.array([model.noise_variance for _, model in self.models])
        with np.errstate(all="ignore"):
            variances = noise[:, None] * (1.0 + factors)
            good = np.isfinite(means) & np.isfinite(variances)
            finite = weights @ good
            kept = np.where(good & _central(means, good, weights), weights[:, None], 0.0)
            kept /= kept.sum(axis=0)
            mean = np.sum(kept * np.where(kept > 0, means, 0.0), axis=0)
            squares = np.where(kept > 0, (means - mean) ** 2 + variances, 0.0)
            std = np.sqrt(np.sum(kept * squares, axis=0))
            mean = np.where(finite > 0, self.y_mean + self.y_scale * mean, np.nan)
            return mean, np.where(finite > 0, self.y_scale * std, np.nan), 1.0 - finite

    def _chunks(self, X: np.ndarray) -> Iterator[np.ndarray]:
        size = max(1, _NUMBERS_AT_ONCE // max(len(self.models), X.shape[1]))
        return (X[i : i + size] for i in range(0, len(X), size))

    def _at(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return scaled means of all models at the rows, and what their variances are made of.

        The second is the variance of the mean in units of the noise variance.
        """
        columns = np.ascontiguousarray(X.T, dtype=np.float64)
        means, factors = np.empty((2, len(self.models), len(X)))
        # The intercept has a flat prior, so that nothing shrinks its variance.
        intercept = 0.0 if self.plug_in else 1.0 / self.n
        with np.errstate(all="ignore"):
            for i, (_, model) in enumerate(self.models):
                values = evaluate_trees(model.state.trees, columns)
                design = (values - model.centre[:, None]) / model.length[:, None]
                leverage = np.sum((model.inverse_root.T @ design) ** 2, axis=0)
                means[i] = model.beta @ design
                factors[i] = intercept + model.coefficient_spread * leverage
        return means, factors

    def quantiles(
        self, X: np.ndarray, levels: tuple[float, ...], noise: bool
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return quantiles at each row, one row a level, and the share of draws left out.

        Given a model the prediction is Student's t, or normal where noise and coefficients are
        plugged in; the quantiles are those of the mixture, exactly. With `noise` they are those
        of a new observation, else those of its mean.
        """
        *parts, left_out = _joined(
            lambda rows: self._quantiles_some(rows, levels, noise), self._chunks(X)
        )
        return np.array(parts), left_out

    def _quantiles_some(
        self, X: np.ndarray, levels: tuple[float, ...], noise: bool
    ) -> tuple[np.ndarray, ...]:
        nu, lam = self.noise_prior
        means, factors = self._at(X)
        variance = np.array(
            [
                model.noise_variance if self.plug_in else (nu * lam + model.mse * self.n) / self._df
                for _, model in self.models
            ]
        )
        with np.errstate(all="ignore"):
            scales = np.sqrt(variance[:, None] * (factors + float(noise)))
            good = np.isfinite(means) & np.isfinite(scales)
        weights = np.where(good, self.weights[:, None], 0.0)
        found = [mixture_quantile(p, weights, means, scales, self._df) for p in levels]
        left_out = 1.0 - self.weights @ good
        return *(self.y_mean + self.y_scale * values for values in found), left_out

    def sample(
        self, X: np.ndarray, n_draws: int, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return draws of the mean of y at each row, one row a draw, and of the noise.

        Given a model, noise and coefficients come from their exact posterior; the noise is a
        standard deviation. Adding it to the mean gives draws of new observations.
        """
        weights = self.weights
        picks = np.sort(rng.choice(len(weights), n_draws, p=weights / weights.sum()))
        return self.sample_from(picks, X, rng)

    def sample_from(
        self, picks: np.ndarray, X: np.ndarray, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """Do the same with models that are given, one a draw, by their positions."""
        columns = np.ascontiguousarray(X.T, dtype=np.float64)
        nu, lam = self.noise_prior
        means, noises = np.empty((len(picks), len(X))), np.empty(len(picks))
        with np.errstate(all="ignore"):
            for i in np.unique(picks):
                model, places = self.models[i][1], np.flatnonzero(picks == i)
                m = len(places)
                values = evaluate_trees(model.state.trees, columns)
                design = (values - model.centre[:, None]) / model.length[:, None]
                if self.plug_in:
                    noise = np.full(m, np.sqrt(model.noise_variance))
                    intercept = np.zeros(m)
                else:
                    scale = 0.5 * (nu * lam + model.mse * self.n)
                    noise = np.sqrt(scale / rng.gamma(0.5 * self._df, size=m))
                    intercept = noise / np.sqrt(self.n) * rng.normal(size=m)
                step = rng.normal(size=(m, len(model.beta))) @ model.inverse_root.T
                beta = model.beta + np.sqrt(model.coefficient_spread) * noise[:, None] * step
                means[places] = intercept[:, None] + beta @ design
                noises[places] = noise
            return self.y_mean + self.y_scale * means, self.y_scale * noises


def _joined(
    predict: Callable[[np.ndarray], tuple[np.ndarray, ...]], chunks: Iterator[np.ndarray]
) -> tuple[np.ndarray, ...]:
    parts = [predict(rows) for rows in chunks]
    return tuple(np.concatenate(part) for part in zip(*parts, strict=True))


def _central(values: np.ndarray, good: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return which values lie, by weight, in the central part of each column of `values`."""
    order = np.argsort(np.where(good, values, np.inf), axis=0)
    ranked = np.take_along_axis(np.where(good, weights[:, None], 0.0), order, axis=0)
    middle = (np.cumsum(ranked, axis=0) - 0.5 * ranked) / ranked.sum(axis=0)
    central = np.empty_like(good)
    inside = (middle >= _TAIL) & (middle <= 1.0 - _TAIL)
    np.put_along_axis(central, order, inside, axis=0)
    return central
