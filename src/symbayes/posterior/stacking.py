"""Several chains, one answer: pooled, or stacked where they have not agreed.

Stacking weights are those with which the mixture of the chains predicts best the rows that it has
not seen (Yao, Vehtari and Gelman, 2022). How each chain predicts them is on the theory page.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy import stats
from scipy.optimize import minimize
from scipy.special import logsumexp

from ..deadline import OutOfTime
from ..fitting.model import Model, freedom
from ..inputs.validation import Table
from .posterior import Posterior, inclusion
from .prediction import Mixture

# Rows that are left out in turn, at most: more would hardly change the weights.
_MOST_ROWS = 1000
# A row of this leverage cannot be left out: without it there is no fit.
_LARGEST_LEVERAGE = 1.0 - 1.0e-9
# Exponent of the Dirichlet prior of the weights, less one. It decides where the rows do not: chains
# that differ by a few tenths of a nat, which is chance, are not emptied for it, and equal ones have
# equal weights. It weighs a tenth of a row, which is next to nothing where they do differ.
PRIOR = 0.1


class Stacking(NamedTuple):
    """Weights of the chains, which sum to 1, and what they gain over equal ones.

    That is the log predictive density of all rows, each left out in turn, less that of pooled
    chains.
    """

    weights: np.ndarray
    gain: float


def stack(posterior: Posterior, rows: Table, stop: Callable[[], bool] = lambda: False) -> Stacking:
    """Return the weights of chains whose mixture predicts best the rows that it has not seen.

    Of the training rows at most 1,000 are left out in turn. When it is time to `stop`, it raises
    OutOfTime.
    """
    rows = rows.sample(_MOST_ROWS)
    place, stands_for = posterior.model_places, posterior.stands_for
    n_models, n_chains = len(posterior.mixture.models), len(posterior.draws)
    shares = [
        np.bincount(
            np.maximum(place[draws.state], 0), draws.weight * stands_for[draws.state], n_models
        )
        for draws in posterior.draws
    ]
    density = chain_densities(
        posterior.mixture, np.array(shares), [len(draws.state) for draws in posterior.draws],
        rows.X[:, rows.used], rows.y, rows.weights, stop,
    )  # fmt: skip
    seen = np.isfinite(density).any(axis=1)
    density, counts = density[seen], rows.weights[seen]
    if not seen.any():  # no row can be left out, so none has a say
        return Stacking(np.full(n_chains, 1.0 / n_chains), 0.0)
    weights = stacking_weights(density, counts)
    stacked, pooled = (logsumexp(density, axis=1, b=b) for b in (weights, 1.0 / n_chains))
    of_all = posterior.mixture.n / counts.sum()
    return Stacking(weights, float(counts @ (stacked - pooled) * of_all))


def stacking_weights(log_density: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return the weights, which sum to 1, of the best mixture of predictive distributions.

    They maximise ``sum_i counts[i] log(sum_k w[k] exp(log_density[i, k])) + PRIOR sum_k log w[k]``.
    Densities, of rows that the distributions have not seen, have one row per row of the table; a
    row that is impossible by all of them says nothing. `counts` are row weights.

    Examples
    --------
    >>> import numpy as np
    >>> from symbayes.posterior.stacking import stacking_weights
    >>> log_density = np.array([[-1.0, -4.0], [-1.0, -4.0], [-4.0, -1.0]])
    >>> stacking_weights(log_density, np.ones(3)).round(2)
    array([0.67, 0.33])
    """
    highest = log_density.max(axis=1)
    seen = np.isfinite(highest)
    density = np.exp(log_density[seen] - highest[seen, None])
    counts = counts[seen]
    n = density.shape[1]
    total = counts.sum() + n * PRIOR

    # In logarithms u, with a price on the sum in place of a constraint: the sum is 1 at the optimum
    # all the same. What is concave in the weights has no other stationary point in u either.
    def shares(u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        parts = density * np.exp(u)
        mixed = parts.sum(axis=1)
        return mixed, parts / mixed[:, None]

    def loss(u: np.ndarray) -> tuple[float, np.ndarray]:
        mixed, share = shares(u)
        value = np.exp(u).sum() - (counts @ np.log(mixed) + PRIOR * u.sum()) / total
        return value, np.exp(u) - (counts @ share + PRIOR) / total

    def curvature(u: np.ndarray) -> np.ndarray:
        _, share = shares(u)
        return np.diag(np.exp(u) - counts @ share / total) + (share.T * counts) @ share / total

    found = minimize(
        loss, np.full(n, -np.log(n)), jac=True, hess=curvature, method="trust-exact",
        options={"gtol": 1.0e-11, "max_trust_radius": 100.0},
    )  # fmt: skip
    weights = np.exp(found.x)
    return weights / weights.sum()


def reweighted(posterior: Posterior, weights: np.ndarray) -> tuple[Posterior, list[int]]:
    """Return a posterior in which chains count otherwise, and where its formulas were before."""
    before = np.array([state.weight for state in posterior.states])
    after = np.zeros(len(before))
    for draws, weight in zip(posterior.draws, weights, strict=True):
        share = draws.weight * (weight / draws.weight.sum())
        after += np.bincount(draws.state, share, minlength=len(before))
    states = [
        replace(state, weight=float(weight))
        for state, weight in zip(posterior.states, after, strict=True)
    ]
    # A file may have a state without weight.
    ratio = np.divide(after, before, out=np.ones_like(before), where=before > 0.0)
    mixture, place = posterior.mixture, posterior.model_places
    shares, of_models = mixture.weights, [model for _, model in mixture.models]
    for i in np.flatnonzero(place >= 0).tolist():
        shares[place[i]] *= ratio[i]
        of_models[place[i]] = replace(of_models[place[i]], state=states[i])
    models = list(zip((shares / shares.sum()).tolist(), of_models, strict=True))

    # Formulas have the probabilities that the weights of their states give them.
    of_groups = np.empty(len(posterior.groups))
    for i, one in enumerate(posterior.groups):
        members = sorted(one.members)
        own = before[members] if before[members].any() else None
        of_groups[i] = one.weight * np.average(ratio[members], weights=own)
    of_groups /= max(of_groups.sum(), 1.0)
    order = np.argsort(-of_groups, kind="stable").tolist()
    changed = replace(
        posterior,
        states=states,
        chain_weights=weights,
        mixture=replace(mixture, models=models),
        groups=[replace(posterior.groups[i], weight=float(of_groups[i])) for i in order],
        inclusion=inclusion(states, len(posterior.inclusion)),
        front=[
            one if one.group < 0 else replace(one, group=order.index(one.group))
            for one in posterior.front
        ],
    )
    return changed, order


# Predictions of rows that a chain has not seen.


def chain_densities(
    mixture: Mixture,
    shares: np.ndarray,
    n_draws: Sequence[int],
    X: np.ndarray,
    y: np.ndarray,
    weights: np.ndarray,
    stop: Callable[[], bool] = lambda: False,
) -> np.ndarray:
    """Return the log predictive density of each row by each chain without that row.

    Densities are those of y in units of its scale, minus infinity where a chain has no model
    without the row. Of a row that counts several times one is left out, as if they stood one below
    the other. The scale of y, of which the prior of the noise is a part, is that of all rows. The
    fits of the mixture are on all rows, which may be more than these.

    `shares` says how much of each chain, by row, each model of the mixture is, and `n_draws` how
    many draws of a chain those are. When it is time to `stop`, it raises OutOfTime.
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
    design = model.design(columns)
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
