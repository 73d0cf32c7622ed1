"""The parameters of the estimator: every complaint about them, before any work starts."""

from __future__ import annotations

import inspect
import re
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from ..formula.checks import require_real, require_type, require_whole
from .prior import NoisePrior, TermsPrior, TreePrior, noise_prior, terms_prior
from .sampler_settings import SAMPLERS, PaperSampler, Sampler, TemperedSampler
from .user_formulas import texts_of

#: Rules by which the best formula is chosen, and what they choose.
_CHOOSES = {
    "auto": "the most probable, or a shorter one where none stands out",
    "probability": "the most probable",
    "one_standard_error": "the simplest within one standard error",
    "accuracy": "the one with the smallest error",
}
RULES = tuple(_CHOOSES)
#: A formula of a smaller probability is one among many, and which of these is the most probable is
#: chance. By the rule "auto" the best is then the shortest that loses no more than this of R2, and
#: no more than this part of what the most probable one leaves unexplained.
STANDS_OUT, LITTLE, LITTLE_OF_REST = 0.1, 0.01, 0.1
# A rule with a number in it: the simplest formula of the front that loses no more of R2.
_SIMPLEST = "simplest within"
_NEAR = re.compile(_SIMPLEST + r"\s+(\d+(?:\.\d*)?|\.\d+)\s*(%?)")
#: Ways to combine chains: each counts the same, or by stacking weights.
WAYS = ("pool", "stack")
# With more, a table would count as fewer than twenty rows.
_MOST_TOLERANCE = 0.05
# The paper's number of terms, where the user leaves the choice to its sampler.
_PAPER_TERMS = 2


def check_parameters(model: Any) -> Sampler:
    """Check what does not depend on the data; return the sampler's settings."""
    if model.tree_prior is not None and not isinstance(model.tree_prior, TreePrior):
        raise TypeError(
            "tree_prior must be a TreePrior, for example TreePrior(max_nodes=20), not "
            f"{type(model.tree_prior).__name__}"
        )
    noise_prior(model.noise_prior, NoisePrior())
    texts_of("known_terms", model.known_terms)
    texts_of("initial_formulas", model.initial_formulas)
    require_type("tolerance", model.tolerance, Real, "a number")
    if not 0.0 <= model.tolerance <= _MOST_TOLERANCE:
        raise ValueError(
            f"tolerance is {model.tolerance}; it must be from 0 to {_MOST_TOLERANCE}, such as "
            "0.005 if another operator or column has to lower the error by 1 %"
        )
    if model.draws is not None:
        require_whole("draws", model.draws, 1)
    if model.tune is not None:
        require_whole("tune", model.tune, 0)
    require_whole("chains", model.chains, 1)
    if model.timeout is not None:
        require_type("timeout", model.timeout, Real, "a number of seconds or None")
        if not float(model.timeout) > 0:
            raise ValueError(
                f"timeout is {model.timeout}; it must be above 0 seconds, or None for no limit"
            )
    if model.n_jobs is not None:
        require_type("n_jobs", model.n_jobs, Integral, "an integer or None")
        if model.n_jobs == 0:
            raise ValueError("n_jobs is 0; use 1 for one core or -1 for all")
    if not isinstance(model.warm_start, bool | np.bool_):
        raise TypeError(f"warm_start must be True or False, not {model.warm_start!r}")
    check_choice("hyperparameters", model.hyperparameters, ("learn", "fixed"))
    check_choice("combine", model.combine, WAYS)
    check_rule("model_selection", model.model_selection)
    _check_progress(model.progress)
    if isinstance(model.sampler, TemperedSampler | PaperSampler):
        return model.sampler
    if not isinstance(model.sampler, str):
        raise TypeError(
            "sampler must be 'tempered', 'paper', a TemperedSampler or a PaperSampler, not "
            f"{type(model.sampler).__name__}"
        )
    check_choice("sampler", model.sampler, list(SAMPLERS))
    return SAMPLERS[model.sampler]()


def check_choice(name: str, value: Any, choices: Sequence[str]) -> None:
    """Complain about anything but one of the choices."""
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"{name}={value!r}; it must be one of {', '.join(map(repr, choices))}")


def check_rule(name: str, rule: Any) -> None:
    """Complain about anything but a rule by which the best formula is chosen."""
    if not isinstance(rule, str) or (rule not in RULES and most_lost(rule) is None):
        raise ValueError(f"{name}={rule!r}; {wanted_rule(rule)}")


def wanted_rule(rule: Any) -> str:
    """Return what there should be in the place of something that is no rule."""
    if isinstance(rule, str) and rule.strip().startswith(_SIMPLEST):
        return (
            f"behind '{_SIMPLEST}' goes how much of R2 may be lost, from 0 to below 1, as in "
            f"'{_SIMPLEST} 0.01' or '{_SIMPLEST} 1 %'"
        )
    return (
        f"it must be one of {', '.join(map(repr, RULES))}, or '{_SIMPLEST} 0.01' for the simplest "
        "formula whose R2 is at most 0.01 below the best one's"
    )


def rule_text(rule: str) -> str:
    """Return what a rule chooses, for readers."""
    lost = most_lost(rule)
    return _CHOOSES[rule] if lost is None else f"the simplest that loses at most {lost:g} of R2"


def most_lost(rule: str) -> float | None:
    """Return how much of R2 the simplest formula may lose by a rule; None for other rules.

    Examples
    --------
    >>> from symbayes.inputs.parameters import most_lost
    >>> most_lost("simplest within 0.01"), most_lost("simplest within 2.5 %")
    (0.01, 0.025)
    >>> most_lost("accuracy") is None
    True
    """
    found = _NEAR.fullmatch(rule.strip())
    if found is None:
        return None
    lost = float(found[1]) / (100.0 if found[2] else 1.0)
    return lost if lost < 1.0 else None


def check_level(owner: str, level: Any) -> None:
    """Complain about anything but a probability strictly between 0 and 1."""
    if not 0 < require_real(owner, "level", level) < 1:
        raise ValueError(
            f"level is {level}; it is a probability and must lie strictly between 0 and 1"
        )


def _check_progress(progress: Any) -> None:
    if isinstance(progress, bool | np.bool_):
        return
    if not callable(progress):
        raise TypeError(
            "progress must be True, False or a function of one argument, a symbayes.Progress, not "
            f"{progress!r}"
        )
    try:
        inspect.signature(progress).bind(None)
    except ValueError:  # compiled functions do not all tell what they take
        pass
    except TypeError as error:
        raise TypeError(
            f"progress={progress!r} cannot be called with one argument, a symbayes.Progress: "
            f"{error}"
        ) from None


def check_seed(random_state: Any) -> np.random.RandomState:
    """Return the source of random numbers that the user asked for."""
    try:
        return check_random_state(random_state)
    except ValueError:
        raise ValueError(
            f"random_state is {random_state!r}; it must be an integer from 0 to 2**32 - 1, a "
            "numpy.random.RandomState or None"
        ) from None


def generator(random_state: Any) -> np.random.Generator:
    """Return a generator whose stream depends on nothing but what the user asked for."""
    return np.random.default_rng(check_seed(random_state).randint(0, 2**31 - 1, size=4))


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
