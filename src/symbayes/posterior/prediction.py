"""Predictions: means, deviations, quantiles and draws over the models of a posterior."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from scipy import special

from ..fitting.model import Fitter, Model, freedom
from ..formula.trees import evaluate_trees, split_terms
from ..samplers.trace import ChainTrace

# Share of the posterior on either side that a prediction is not to be moved by.
_TAIL = 0.1
# Predictions lie between these quantiles, just inside those of an interval of 50 per cent.
_INSIDE = 0.26
# What lies between these is as wide as two standard deviations of a normal distribution.
_ONE_DEVIATION = (0.158655253931457, 0.841344746068543)
#: A draw is far off if it is this many standard deviations of y from the prediction.
FAR = 10.0
# Models times rows that are predicted at once, and columns times rows that are copied for it.
_NUMBERS_AT_ONCE = 2_000_000
# The distribution function is met to this part of p, or of 1 - p where that is smaller.
_PRECISION = 1.0e-10
# Far more than bisection needs, which is one for each bit of a number.
_MOST_STEPS = 500
_LARGEST = np.finfo(float).max


@dataclass(frozen=True, eq=False)
class Mixture:
    """Fitted models with their probabilities: the posterior, as predictions need it."""

    models: list[tuple[float, Model]]
    """Probabilities, which sum to 1, and models, fitted to y about its mean in units of a scale."""
    y_mean: float
    y_scale: float
    y_spread: float
    """Standard deviation of y on the training rows; that is the scale, but for known terms."""
    n: float
    """Sum of the row weights."""
    noise_prior: tuple[float, float]
    plug_in: bool
    """Whether coefficients and noise are plugged in, as the paper does, or integrated out."""

    @property
    def weights(self) -> np.ndarray:
        """Probabilities of the models."""
        return np.array([weight for weight, _ in self.models])

    def noise(self, model: Model) -> tuple[float, float]:
        """Return the scaled variance of the noise given a model, and its degrees of freedom.

        Residuals are what the fit has left of the noise: of as many rows as there are constants
        nothing is left. Constants inside terms are drawn and not fitted, and residuals of draws
        are as much larger than the smallest ones. See the theory page.
        """
        nu, lam = self.noise_prior
        left = float(freedom(self.n, model.n_fitted, self.noise_prior))
        if not self.plug_in:
            return (nu * lam + model.mse * self.n) / left, left
        # Drawn as if no constant had been fitted. Means of both laws, which is what is plugged in.
        drawn = max(self.n + nu - 2.0, 1.0)
        return model.noise_variance * drawn / max(left - 2.0, 1.0), np.inf

    @property
    def _noises(self) -> tuple[np.ndarray, np.ndarray]:
        """Standard deviations of the noise of all models, and their degrees of freedom."""
        variances, freedoms = np.array([self.noise(model) for _, model in self.models]).T
        return np.sqrt(variances), freedoms

    def predict(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return prediction, share of draws far from it, and share left out, for each row.

        The prediction is the mean over the models. Draws that are not finite at a row are left out
        there, and the tenth of the posterior that predicts most counts as what lies at its edge, as
        does the tenth that predicts least: formulas of little weight take off between the training
        rows, and no tenth of the posterior is to move a prediction. It lies inside all intervals of
        50 per cent or more, of observations and of the mean.
        """
        mean, far, left_out = self._in_chunks(X, self._predict_some)
        return mean, far, left_out

    def _predict_some(self, X: np.ndarray) -> tuple[np.ndarray, ...]:
        _, df = self._noises
        means, *scales = self._parts(X, True, False)
        good = np.isfinite(means) & np.isfinite(scales[0])
        weights = np.where(good, self.weights[:, None], 0.0)
        finite = weights.sum(axis=0)
        means = np.where(good, means, 0.0)
        with np.errstate(all="ignore"):
            share = weights / finite
            low, high = weighted_quantiles((_TAIL, 1.0 - _TAIL), means, weights)
            mean = np.sum(share * np.clip(means, low, high), axis=0)
            for scale in scales:
                outside = ~surely_inside(_INSIDE, mean, share, means, scale)
                ends = [
                    mixture_quantile(p, share[:, outside], means[:, outside], scale[:, outside], df)
                    for p in (_INSIDE, 1.0 - _INSIDE)
                ]
                mean[outside] = np.clip(mean[outside], *ends)
            far = np.abs(means - mean) > FAR * self.y_spread / self.y_scale
            mean = np.where(finite > 0, self.y_mean + self.y_scale * mean, np.nan)
            return mean, np.sum(weights * far, axis=0), 1.0 - finite

    def deviations(self, X: np.ndarray) -> np.ndarray:
        """Return half the width of the interval that holds 68.3 per cent of new observations.

        For a normal distribution that is the standard deviation, which mixtures with a part that
        takes off, and Student's t with few degrees of freedom, need not have.
        """
        (lower, upper), _ = self.quantiles(X, _ONE_DEVIATION, noise=True)
        return 0.5 * upper - 0.5 * lower

    def _in_chunks(
        self, X: np.ndarray, predict: Callable[[np.ndarray], tuple[np.ndarray, ...]]
    ) -> tuple[np.ndarray, ...]:
        size = max(1, _NUMBERS_AT_ONCE // max(len(self.models), X.shape[1]))
        parts = [predict(X[i : i + size]) for i in range(0, len(X), size)]
        return tuple(np.concatenate(part) for part in zip(*parts, strict=True))

    def _parts(self, X: np.ndarray, *kinds: bool) -> tuple[np.ndarray, ...]:
        """Return scaled means of all models at the rows, and scales with noise or without."""
        columns = np.ascontiguousarray(X.T, dtype=np.float64)
        # How far the means are known: standard deviations in units of that of the noise.
        means, spreads = np.zeros((2, len(self.models), len(X)))
        noise, _ = self._noises
        with np.errstate(all="ignore"):
            for i, (_, model) in enumerate(self.models):
                design = model.design(columns)
                means[i] = model.beta @ design
                if not self.plug_in:
                    # The intercept has a flat prior, so that nothing shrinks its variance.
                    of_slopes = np.sqrt(model.coefficient_spread) * _length(
                        model.inverse_root.T @ design
                    )
                    spreads[i] = np.hypot(np.sqrt(1.0 / self.n), of_slopes)
            return means, *(noise[:, None] * np.hypot(spreads, float(kind)) for kind in kinds)

    def quantiles(
        self, X: np.ndarray, levels: tuple[float, ...], noise: bool
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return quantiles at each row, one row per level, and the share of draws left out.

        Given a model the prediction is Student's t, or normal where noise and coefficients are
        plugged in; the quantiles are those of the mixture, exactly. With `noise` they are those
        of a new observation, else those of its mean.
        """

        def quantiles_some(X: np.ndarray) -> tuple[np.ndarray, ...]:
            means, scales = self._parts(X, noise)
            good = np.isfinite(means) & np.isfinite(scales)
            weights = np.where(good, self.weights[:, None], 0.0)
            _, df = self._noises
            found = [mixture_quantile(p, weights, means, scales, df) for p in levels]
            left_out = 1.0 - self.weights @ good
            return *(self.y_mean + self.y_scale * values for values in found), left_out

        *parts, left_out = self._in_chunks(X, quantiles_some)
        return np.array(parts), left_out

    def sample(
        self, X: np.ndarray, n_draws: int, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return draws of the mean of y at each row, one row per draw, and of the noise.

        Given a model, noise and coefficients come from their exact posterior; the noise is a
        standard deviation. Adding it to the mean gives draws of new observations.
        """
        weights = self.weights
        picks = np.sort(rng.choice(len(weights), n_draws, p=weights / weights.sum()))
        return self.sample_from(picks, X, rng)

    def sample_from(
        self, picks: np.ndarray, X: np.ndarray, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """Do the same with models that are given, one per draw, by their positions."""
        columns = np.ascontiguousarray(X.T, dtype=np.float64)
        deviations, freedoms = self._noises
        means, noises = np.empty((len(picks), len(X))), np.empty(len(picks))
        with np.errstate(all="ignore"):
            for i in np.unique(picks):
                model, places = self.models[i][1], np.flatnonzero(picks == i)
                m = len(places)
                design = model.design(columns)
                noise, intercept = np.full(m, deviations[i]), np.zeros(m)
                if not self.plug_in:
                    half = 0.5 * freedoms[i]
                    noise *= np.sqrt(half / rng.gamma(half, size=m))
                    intercept = noise / np.sqrt(self.n) * rng.normal(size=m)
                step = rng.normal(size=(m, len(model.beta))) @ model.inverse_root.T
                beta = model.beta + np.sqrt(model.coefficient_spread) * noise[:, None] * step
                means[places] = intercept[:, None] + beta @ design
                noises[places] = noise
            return self.y_mean + self.y_scale * means, self.y_scale * noises


def _length(vectors: np.ndarray) -> np.ndarray:
    """Return the length of each column; no square overflows."""
    largest = np.abs(vectors).max(axis=0, initial=0.0)
    return largest * np.sqrt(np.sum((vectors / np.where(largest > 0, largest, 1.0)) ** 2, axis=0))


@dataclass(frozen=True, eq=False)
class AcceptedModels:
    """Every model that the paper's sampler accepted, chain after chain, fitted when asked for."""

    fitter: Fitter
    chains: list[ChainTrace]

    def predict(self, X: np.ndarray) -> Iterator[np.ndarray]:
        """Yield what each model predicts; nan where it has no finite value."""
        columns = np.ascontiguousarray(X.T, dtype=np.float64)
        with np.errstate(all="ignore"):
            for chain in self.chains:
                for nodes, n_terms in zip(chain.nodes, chain.n_terms, strict=True):
                    model = self.fitter.fit_trees(split_terms(nodes, n_terms))
                    if model is None:
                        yield np.full(len(X), np.nan)
                    else:
                        values = evaluate_trees(model.state.trees, columns)
                        yield model.intercept + model.coefficients @ values


# Quantiles of mixtures of Student's t, one mixture per column: the predictive distribution.


def mixture_quantile(
    p: float, weights: np.ndarray, means: np.ndarray, scales: np.ndarray, df: float | np.ndarray
) -> np.ndarray:
    """Return the p-quantile of each column's mixture; nan where no component counts.

    `weights`, `means` and `scales` have one row per component, which counts where its weight is
    above 0 and its mean and scale are finite; elsewhere they may be anything. A scale of 0 is a
    point mass. `df` are degrees of freedom, of all components or of each: infinite for normal ones,
    which either all are or none.

    Examples
    --------
    >>> import numpy as np
    >>> one = np.ones((1, 1))
    >>> mixture_quantile(0.95, one, 10 * one, 2 * one, np.inf).round(3)
    array([13.29])
    """
    df = np.broadcast_to(np.asarray(df, dtype=float), len(weights))[:, None]
    # What does not count must not come near a sum: 0 times nan is nan.
    counts = (weights > 0) & np.isfinite(means) & np.isfinite(scales)
    share = np.where(counts, weights, 0.0)
    total = share.sum(axis=0)
    known = total > 0
    share = share / np.where(known, total, 1.0)
    means, scales = np.where(counts, means, 0.0), np.where(counts, scales, 1.0)
    with np.errstate(all="ignore"):
        standard = np.where(np.isinf(df), special.ndtri(p), special.stdtrit(df, p))
        parts = np.clip(means + scales * standard, -_LARGEST, _LARGEST)
    # It lies between the smallest and the largest quantile of a component, both included.
    low = np.where(counts, parts, np.inf).min(axis=0)
    high = np.where(counts, parts, -np.inf).max(axis=0)
    active = np.flatnonzero(known & (low < high))
    with np.errstate(all="ignore"):
        low = np.nextafter(low, -np.inf)
        width = high - low
    (middle,) = weighted_quantiles((0.5,), parts, share)
    result = np.where(known, middle, np.nan)
    for _ in range(_MOST_STEPS):
        if not len(active):
            break
        x = result[active]
        below, slope = _cdf(x, share[:, active], means[:, active], scales[:, active], df)
        too_high = below >= p
        high[active] = np.where(too_high, x, high[active])
        low[active] = np.where(too_high, low[active], x)
        middle = _between(low[active], high[active])
        with np.errstate(all="ignore"):
            step = x - (below - p) / slope
            # Newton where it stays inside and gets on, else bisection.
            inside = (step > low[active]) & (step < high[active])
            quick = inside & (np.abs(step - x) < 0.25 * width[active])
            width[active] = np.where(quick, np.abs(step - x), high[active] - low[active])
        close = np.abs(below - p) <= _PRECISION * min(p, 1.0 - p)
        # Where the ends are neighbours as numbers, the upper one is where p is reached.
        done = close | (middle <= low[active]) | (middle >= high[active])
        end = np.where(close, x, high[active])
        result[active] = np.where(done, end, np.where(quick, step, middle))
        active = active[~done]
    return result


def weighted_quantiles(
    levels: tuple[float, ...], values: np.ndarray, weights: np.ndarray
) -> list[np.ndarray]:
    """Return quantiles of each column of values; the middle of two where either is one.

    Values of weight 0 do not count. Where all weights are 0 it is one of the values.
    """
    order, columns = np.argsort(values, axis=0), np.arange(values.shape[1])
    reached = np.cumsum(np.take_along_axis(weights, order, axis=0), axis=0)

    def value_beyond(level: float) -> np.ndarray:
        place = np.argmax(reached > level * reached[-1], axis=0)
        return values[order[place, columns], columns]

    # A sum that is the level but for rounding is the level.
    return [
        0.5 * value_beyond(level - _PRECISION) + 0.5 * value_beyond(level + _PRECISION)
        for level in levels
    ]


def surely_inside(
    tail: float, x: np.ndarray, share: np.ndarray, means: np.ndarray, scales: np.ndarray
) -> np.ndarray:
    """Return where at least `tail` of each column's mixture surely lies on either side of x.

    It takes no degrees of freedom: a Student's t distribution lies between Cauchy's and the normal
    one, which are quick to compute. So False may be a false alarm, and True never is.
    """
    with np.errstate(all="ignore"):
        z = (x - means) / scales
        near = 0.5 + np.arctan(np.abs(z)) / np.pi
        beyond = special.ndtr(-np.abs(z))
        point = (scales == 0) & (x == means)
        at_most = np.where(point, 1.0, np.where(z > 0, near, beyond))
        at_least = np.where(point, 1.0, np.where(z < 0, near, beyond))
        below, above = (
            np.sum(np.where(share > 0, share * sure, 0.0), axis=0) for sure in (at_most, at_least)
        )
        return (below >= tail) & (above >= tail)


def _between(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Return the number halfway, as numbers are counted.

    A part that takes off makes brackets huge; this halves any of them to nothing in 64 steps.
    """
    a, b = _rank(low.view(np.int64)), _rank(high.view(np.int64))
    return _rank((a >> 1) + (b >> 1) + (a & b & 1)).view(np.float64)


def _rank(bits: np.ndarray) -> np.ndarray:
    """Return the places of numbers among all numbers from their bits, and the bits from those."""
    return np.where(bits < 0, np.iinfo(np.int64).min - bits, bits)


def _cdf(
    x: np.ndarray, share: np.ndarray, means: np.ndarray, scales: np.ndarray, df: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return distribution function and density of each column's mixture."""
    with np.errstate(all="ignore"):
        z = 2.0 * ((0.5 * x - 0.5 * means) / scales)  # halves, so that no difference overflows
        point = scales == 0
        z = np.where(point, np.where(x >= means, np.inf, -np.inf), z)
        if np.isinf(df).any():
            below = special.ndtr(z)
            density = np.exp(-0.5 * z * z) / np.sqrt(2 * np.pi)
        else:
            below = special.stdtr(df, z)
            log_constant = (
                special.gammaln(0.5 * (df + 1))
                - special.gammaln(0.5 * df)
                - 0.5 * np.log(df * np.pi)
            )
            density = np.exp(log_constant - 0.5 * (df + 1) * np.log1p(z * z / df))
        density = np.where(point, 0.0, density / scales)
        return np.sum(share * below, axis=0), np.sum(share * density, axis=0)
