"""The posterior of a run: distinct models with their weights, and the formulas they are."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from ..deadline import Deadline
from ..fitting.model import Fitter, Model, State
from ..kernels import opcodes
from ..kernels.tree import NODE
from ..samplers.trace import Trace
from .grouping import Draws, Group, collect, group, inclusion, polished, state_key, thin
from .prediction import Mixture

# Rows times models to fit after a run, and the fewest and most models whatever the number of rows.
_MOST_WORK, _FEWEST_FITS, _MOST_FITS = 100_000_000, 200, 1500
# Formulas that are listed; what is left is spread thinly over many.
LISTED = 300
# Under a time limit: models that are fitted first, and the parts of the time left for the models of
# predictions, and then for the fits of formulas; their constants get what is left.
_FIRST_FITS, _FOR_MODELS, _FOR_FORMULAS = 8, 0.35, 0.5
# All that is done after a run, in fits of a small model for each of the most models.
_FITS_IN_ALL = 8.0


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
    fitter: Fitter,
    trace: Trace,
    out_of_time: Callable[[], bool] = lambda: False,
    deadline: Deadline | None = None,
) -> Posterior:
    """Fit and group the draws of a run.

    Parameters
    ----------
    fitter : Fitter
    trace : Trace
    out_of_time : callable
        Whether the constants of all formulas but the first are to be left as they are.
    deadline : Deadline, optional
        When it has to be done. As many models and formulas are fitted as there is time for.

    Raises
    ------
    NoFiniteModel
        If no state can be fitted.
    """
    problem, deadline = fitter.problem, deadline or Deadline()
    most = _most_fits(fitter)
    states, draws = collect(trace, problem.known)
    with np.errstate(all="ignore"):
        models = _fit_all(fitter, states, most, deadline.share(_FOR_MODELS))
        groups = group(states, fitter, min(most, LISTED), deadline.share(_FOR_FORMULAS))
        groups = polished(groups, fitter, out_of_time, deadline)
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


def seconds_after(fitter: Fitter) -> float:
    """Return about how long it takes to make a posterior, judged by the fit of one small model."""
    column = np.zeros(1, NODE)
    column["op"] = opcodes.FEATURE
    began = time.monotonic()
    fitter.fit_trees([column])
    return _FITS_IN_ALL * _most_fits(fitter) * (time.monotonic() - began)


def _most_fits(fitter: Fitter) -> int:
    """Return how many models are fitted at most: a fit costs time with the number of rows."""
    return min(_MOST_FITS, max(_FEWEST_FITS, _MOST_WORK // len(fitter.scaled_y)))


def _fit_all(
    fitter: Fitter, states: list[State], most: int, deadline: Deadline
) -> list[tuple[float, Model]]:
    """Return the fits of at most `most` states with their weights, which sum to 1.

    Where there is a deadline it begins with a few of them, and takes three times as many, those
    among them, as often as there is time for.
    """
    fits: dict[tuple[bytes, ...], Model | None] = {}
    weighted: list[tuple[float, Model]] = []
    n = _FIRST_FITS if deadline.is_set else most
    while True:
        chosen = [(state_key(state), state) for state in thin(states, n)]
        for key, state in chosen:
            if key not in fits:
                if weighted and deadline.over():
                    return weighted
                fits[key] = fitter.fit(state)
        kept = [
            (state.weight, replace(model, state=state))
            for key, state in chosen
            if (model := fits[key]) is not None
        ]
        total = sum(weight for weight, _ in kept)
        weighted = [(weight / total, model) for weight, model in kept]
        if n >= min(most, len(states)):
            return weighted
        n = min(3 * n, most)
