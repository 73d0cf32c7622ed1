"""The posterior of a run: distinct models with their weights, and the formulas they are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .fitted import Model, State
from .fitting import Fitter
from .grouping import Draws, Group, collect, group, inclusion, state_key, thin
from .prediction import Mixture
from .trace import Trace

# Rows times models to fit after a run, and the fewest and most models whatever the number of rows.
_MOST_WORK, _FEWEST_FITS, _MOST_FITS = 100_000_000, 200, 1500
# Formulas that are listed; what is left is spread thinly over many.
LISTED = 300


class NoFiniteModel(RuntimeError):
    """Every formula found has a coefficient that is too large or too small for a number."""


@dataclass(frozen=True, eq=False)
class Posterior:
    """What a run says."""

    states: list[State]
    """The distinct states that it visited, most probable first where chains are pooled."""
    draws: list[Draws]
    """Which of them each draw was, one entry a chain."""
    chain_weights: np.ndarray
    """How much each chain counts; they sum to 1. All the same where chains are pooled."""
    mixture: Mixture
    """The states with their fits, for predictions; of very many states a sample."""
    groups: list[Group]
    """The distinct formulas, most probable first."""
    inclusion: np.ndarray
    """For each column of the problem, the probability that a formula uses it."""

    @property
    def formula_models(self) -> list[tuple[float, Model]]:
        """The formulas with their probabilities."""
        return [(group.weight, group.model) for group in self.groups]

    @property
    def leading_by_chain(self) -> list[float]:
        """The probability that each chain on its own gives the leading formula."""
        return self.by_chain(self.groups[0])

    def by_chain(self, one: Group) -> list[float]:
        """Return the probability that each chain on its own gives a formula."""
        members = sorted(one.members)
        return [
            float(draws.weight @ np.isin(draws.state, members) / draws.weight.sum())
            for draws in self.draws
        ]

    @property
    def model_places(self) -> np.ndarray:
        """For each state its place among the models of the mixture, -1 if it was not fitted."""
        place = {state_key(model.state): i for i, (_, model) in enumerate(self.mixture.models)}
        return np.array([place.get(state_key(state), -1) for state in self.states])

    @property
    def stands_for(self) -> np.ndarray:
        """For each state, by how much the weight of its model in the mixture differs from its own.

        Of very many states a sample is fitted, rare ones with less probability: those that are
        stand for those that are not, whose factor is 0.
        """
        place = self.model_places
        fitted = np.where(place < 0, 0.0, self.mixture.weights[place])
        own = np.array([state.weight for state in self.states])
        return np.divide(fitted, own, out=np.zeros_like(own), where=own > 0.0)


def make_posterior(
    fitter: Fitter, trace: Trace, out_of_time: Callable[[], bool] = lambda: False
) -> Posterior:
    """Fit and group the draws of a run.

    Raises
    ------
    NoFiniteModel
        If no state can be fitted.
    """
    problem = fitter.problem
    # Fits cost time with the number of rows; for large tables only so many are made.
    most = min(_MOST_FITS, max(_FEWEST_FITS, _MOST_WORK // len(fitter.scaled_y)))
    states, draws = collect(trace, problem.known)
    with np.errstate(all="ignore"):
        models = _fit_all(fitter, thin(states, most))
        groups = group(states, fitter, min(most, LISTED), out_of_time)
    if not models or not groups:
        raise NoFiniteModel
    nu, lam = problem.data.noise_prior.tolist()
    return Posterior(
        states,
        draws,
        np.full(len(draws), 1.0 / len(draws)),
        Mixture(
            models,
            problem.y_mean,
            problem.y_scale,
            problem.y_spread,
            problem.data.n,
            (nu, lam),
            fitter.plug_in,
        ),
        groups,
        inclusion(states, len(problem.feature_weights)),
    )


def _fit_all(fitter: Fitter, states: list[State]) -> list[tuple[float, Model]]:
    """Return the fits of the states with their weights, which sum to 1."""
    fits = [(state.weight, fitter.fit(state)) for state in states]
    kept = [(weight, model) for weight, model in fits if model is not None]
    total = sum(weight for weight, _ in kept)
    return [(weight / total, model) for weight, model in kept]
