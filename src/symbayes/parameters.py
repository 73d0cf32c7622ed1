"""The parameters of the estimator: every complaint about them, before any work starts."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from .prior import NoisePrior, TermsPrior, TreePrior, terms_prior
from .samplers.paper import PaperSampler
from .samplers.tempered import TemperedSampler

Sampler = TemperedSampler | PaperSampler

_SAMPLERS: dict[str, type[TemperedSampler] | type[PaperSampler]] = {
    "tempered": TemperedSampler,
    "paper": PaperSampler,
}
# The paper's number of terms, where the user leaves the choice to its sampler.
_PAPER_TERMS = 2


def check_parameters(model: Any) -> Sampler:
    """Check what does not depend on the data; return the sampler's settings."""
    for name, kind in (
        ("tree_prior", TreePrior),
        ("noise_prior", NoisePrior),
    ):
        value = getattr(model, name)
        if value is not None and not isinstance(value, kind):
            raise TypeError(
                f"{name} must be a {kind.__name__}, for example {kind()}, not "
                f"{type(value).__name__}"
            )
    for name, least in (("draws", 1), ("tune", 0), ("chains", 1)):
        value = getattr(model, name)
        if name == "tune" and value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, Integral):
            raise TypeError(f"{name} must be an integer, not {type(value).__name__}")
        if value < least:
            raise ValueError(f"{name} is {value}; it must be at least {least}")
    if model.timeout is not None:
        if isinstance(model.timeout, bool) or not isinstance(model.timeout, Real):
            raise TypeError(
                f"timeout must be a number of seconds or None, not {type(model.timeout).__name__}"
            )
        if not float(model.timeout) > 0:
            raise ValueError(
                f"timeout is {model.timeout}; it must be above 0 seconds, or None for no limit"
            )
    if model.n_jobs is not None and (
        isinstance(model.n_jobs, bool) or not isinstance(model.n_jobs, Integral)
    ):
        raise TypeError(f"n_jobs must be an integer or None, not {type(model.n_jobs).__name__}")
    if model.n_jobs == 0:
        raise ValueError("n_jobs is 0; use 1 for one core or -1 for all")
    if model.hyperparameters not in ("learn", "fixed"):
        raise ValueError(
            f"hyperparameters={model.hyperparameters!r}; it must be 'learn' or 'fixed'"
        )
    if not isinstance(model.progress, bool | np.bool_):
        raise TypeError(f"progress must be True or False, not {model.progress!r}")
    if isinstance(model.sampler, TemperedSampler | PaperSampler):
        return model.sampler
    if not isinstance(model.sampler, str):
        raise TypeError(
            "sampler must be 'tempered', 'paper', a TemperedSampler or a PaperSampler, not "
            f"{type(model.sampler).__name__}"
        )
    if model.sampler not in _SAMPLERS:
        raise ValueError(
            f"sampler={model.sampler!r}; it must be one of {', '.join(map(repr, _SAMPLERS))}"
        )
    return _SAMPLERS[model.sampler]()


def check_seed(random_state: Any) -> np.random.RandomState:
    """Return the source of random numbers that the user asked for."""
    try:
        return check_random_state(random_state)
    except ValueError:
        raise ValueError(
            f"random_state is {random_state!r}; it must be an integer from 0 to 2**32 - 1, a "
            "numpy.random.RandomState or None"
        ) from None


def terms_for(sampler: Sampler, n_terms: Any) -> TermsPrior | int:
    """Return what `n_terms` means to a sampler."""
    terms = terms_prior(n_terms)
    if isinstance(sampler, PaperSampler) and not isinstance(terms, int):
        if isinstance(n_terms, TermsPrior):
            raise ValueError(
                "sampler='paper' works with a fixed number of terms; set n_terms to an integer"
            )
        return _PAPER_TERMS
    return terms
