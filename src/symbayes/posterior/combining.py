"""Several chains, one answer: pooled, or stacked where they have not agreed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from scipy.special import logsumexp

from ..inputs.validation import Table
from .grouping import Group, inclusion
from .leave_one_out import chain_densities
from .posterior import Posterior
from .stacking import stacking_weights

# Rows that are left out in turn, at most: more would hardly change the weights.
_MOST_ROWS = 1000


@dataclass(frozen=True, eq=False)
class Stacking:
    """How to weigh the chains, and what it is good for."""

    weights: np.ndarray
    """One for each chain; they sum to 1."""
    gain: float
    """Log predictive density of all rows, each left out in turn, less that of pooled chains."""


def stack(posterior: Posterior, rows: Table, stop: Callable[[], bool] = lambda: False) -> Stacking:
    """Return the weights of chains whose mixture predicts best the rows that it has not seen.

    Parameters
    ----------
    posterior : Posterior
    rows : Table
        Training rows, of which at most 1,000 are left out in turn.
    stop : callable
        Whether it has to be given up: it raises OutOfTime.
    """
    rows = rows.sample(_MOST_ROWS)
    density = chain_densities(
        posterior.mixture,
        _shares(posterior),
        np.array([len(draws.state) for draws in posterior.draws]),
        rows.X[:, rows.used],
        rows.y,
        rows.weights,
        stop,
    )
    seen = np.isfinite(density).any(axis=1)
    density, counts = density[seen], rows.weights[seen]
    n_chains = density.shape[1]
    if not seen.any():  # no row can be left out, so none has a say
        return Stacking(np.full(n_chains, 1.0 / n_chains), 0.0)
    weights = stacking_weights(density, counts)
    stacked, pooled = (logsumexp(density, axis=1, b=b) for b in (weights, 1.0 / n_chains))
    of_all = posterior.mixture.n / counts.sum()
    return Stacking(weights, float(counts @ (stacked - pooled) * of_all))


def _shares(posterior: Posterior) -> np.ndarray:
    """Return how much of each chain each model of the mixture is, one row a chain."""
    place, stands_for = posterior.model_places, posterior.stands_for
    n_models = len(posterior.mixture.models)
    return np.array(
        [
            np.bincount(
                np.maximum(place[draws.state], 0),
                draws.weight * stands_for[draws.state],
                minlength=n_models,
            )
            for draws in posterior.draws
        ]
    )


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
    shares, of_models = mixture.weights, [model.state for _, model in mixture.models]
    for i in np.flatnonzero(place >= 0):
        shares[place[i]] *= ratio[i]
        of_models[place[i]] = states[i]
    models = [
        (float(share), replace(model, state=state))
        for share, state, (_, model) in zip(
            shares / shares.sum(), of_models, mixture.models, strict=True
        )
    ]
    groups = _weigh(posterior.groups, ratio, before)
    order = sorted(range(len(groups)), key=lambda i: -groups[i].weight)
    return (
        replace(
            posterior,
            states=states,
            chain_weights=weights,
            mixture=replace(mixture, models=models),
            groups=[groups[i] for i in order],
            inclusion=inclusion(states, len(posterior.inclusion)),
        ),
        order,
    )


def _weigh(groups: list[Group], ratio: np.ndarray, before: np.ndarray) -> list[Group]:
    """Return the formulas with the probabilities that the weights of their states give them."""
    weights = np.empty(len(groups))
    for i, one in enumerate(groups):
        members = sorted(one.members)
        own = before[members] if before[members].any() else None
        weights[i] = one.weight * np.average(ratio[members], weights=own)
    weights /= max(weights.sum(), 1.0)
    return [replace(one, weight=float(w)) for one, w in zip(groups, weights, strict=True)]


def formulas_by_chain(posterior: Posterior, formulas: pd.DataFrame, n: int) -> pd.DataFrame:
    """Return the leading formulas of each chain, with their probabilities in that chain."""
    probability = np.array([posterior.by_chain(one) for one in posterior.groups])
    parts = []
    for chain, shares in enumerate(probability.T):
        order = np.argsort(-shares, kind="stable")[:n]
        order = order[shares[order] > 0.0]
        part = formulas.iloc[order].drop(columns=["probability", "rounded"])
        part.insert(0, "chain", chain)
        part.insert(1, "probability", shares[order])
        parts.append(part)
    return pd.concat(parts)
