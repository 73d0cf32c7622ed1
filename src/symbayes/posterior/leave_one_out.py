"""How well a chain predicts rows that it has not seen, without fitting it again.

Given its trees, a model without a row is known exactly: leverages tell how coefficients, residual
sum of squares and likelihood change. What is left to chance is which trees a chain without the row
would have visited; for that its draws are weighted by the ratio of their likelihoods without and
with the row (importance sampling; ratios are truncated as by Ionides, 2008).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import stats
from scipy.special import logsumexp

from ..deadline import OutOfTime
from ..fitting.model import Model, freedom
from ..formula.trees import evaluate_trees
from .prediction import Mixture

# A row of this leverage cannot be left out: without it there is no fit.
_LARGEST_LEVERAGE = 1.0 - 1.0e-9


def chain_densities(
    mixture: Mixture,
    shares: np.ndarray,
    n_draws: np.ndarray,
    X: np.ndarray,
    y: np.ndarray,
    weights: np.ndarray,
    stop: Callable[[], bool] = lambda: False,
) -> np.ndarray:
    """Return the log predictive density of each row by each chain without that row.

    Of a row that counts several times one is left out, as if they stood one below the other. The
    scale of y, of which the prior of the noise is a part, is that of all rows.

    Parameters
    ----------
    mixture : Mixture
        Fits on all rows.
    shares : ndarray of shape (n_chains, n_models)
        How much of each chain each model of the mixture is.
    n_draws : ndarray of shape (n_chains,)
        How many draws of a chain those are.
    X, y, weights : ndarray
        Training rows with the columns in use, all or some of them, y in its own units.
    stop : callable
        Whether it has to be given up: it raises OutOfTime.

    Returns
    -------
    ndarray of shape (n_rows, n_chains)
        For y in units of its scale; minus infinity where a chain has no model without the row.
    """
    scaled_y = y / mixture.y_scale - mixture.y_mean / mixture.y_scale
    columns = np.ascontiguousarray(X.T)
    ratios, densities = np.empty((2, len(mixture.models), len(y)))
    with np.errstate(all="ignore"):
        for i, (_, model) in enumerate(mixture.models):
            if stop():
                raise OutOfTime
            ratios[i], densities[i] = _without_each(mixture, model, columns, scaled_y, weights)
        by_chain = [
            _average(ratios, densities, share, n) for share, n in zip(shares, n_draws, strict=True)
        ]
    return np.array(by_chain).T


def _without_each(
    mixture: Mixture, model: Model, columns: np.ndarray, y: np.ndarray, weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return for each row the log-likelihood of the others less that of all, and its log density.

    Both are minus infinity where there is no fit without the row.
    """
    nu, lam = mixture.noise_prior
    n, rss, n_terms = mixture.n, model.mse * mixture.n, len(model.state.trees)
    out = np.minimum(weights, 1.0)
    values = evaluate_trees(model.state.trees, columns)
    design = (values - model.centre[:, None]) / model.length[:, None]
    # That of the intercept included, for a row that counts once.
    leverage = 1.0 / n + np.sum((model.inverse_root.T @ design) ** 2, axis=0)
    left = 1.0 - out * leverage
    residual = y - model.beta @ design
    rss_left = np.maximum(rss - out * residual**2 / left, 0.0)
    n_left = n - out
    # Ratios are of what the chains sample, densities of what is predicted: they count differently
    # what has been fitted.
    if mixture.plug_in:
        drawn, (noise, _) = model.noise_variance, mixture.noise(model)
        ratio = 0.5 * out * np.log(drawn) + 0.5 * (rss - rss_left) / drawn
        density = stats.norm.logpdf(residual / left, scale=np.sqrt(noise))
    else:
        ratio = (
            0.5 * n_terms * (np.log1p(n) - np.log1p(n_left))
            + 0.5 * (n - 1.0 + nu) * np.log(nu * lam + rss)
            - 0.5 * (n_left - 1.0 + nu) * np.log(nu * lam + rss_left)
        )
        of_slopes = leverage / left - 1.0 / n_left
        factor = 1.0 + 1.0 / n_left + n_left / (1.0 + n_left) * of_slopes
        df = freedom(n_left, model.n_fitted, mixture.noise_prior)
        scale = np.sqrt((nu * lam + rss_left) / df * factor)
        density = stats.t.logpdf(residual / left, df, scale=scale)
    fine = (out * leverage < _LARGEST_LEVERAGE) & np.isfinite(ratio) & np.isfinite(density)
    return np.where(fine, ratio, -np.inf), np.where(fine, density, -np.inf)


def _average(
    ratios: np.ndarray, densities: np.ndarray, share: np.ndarray, n_draws: int
) -> np.ndarray:
    """Return the log of the mean density over the draws of a chain, weighted by the ratios."""
    used = share > 0.0
    if not used.any():
        return np.full(ratios.shape[1], -np.inf)
    log_share = np.log(share[used] / share[used].sum())[:, None]
    ratios, densities = ratios[used], densities[used]
    # No ratio counts for more than their mean times the root of the number of draws.
    most = logsumexp(ratios + log_share, axis=0) + 0.5 * np.log(n_draws)
    weights = np.minimum(ratios, most) + log_share
    total = logsumexp(weights, axis=0)
    mean = logsumexp(weights + densities, axis=0) - total
    return np.where(np.isfinite(total), mean, -np.inf)
