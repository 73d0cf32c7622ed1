"""Warnings of the library, and what a user can do: as data that Python and a shell put in words."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any

from sklearn import exceptions


class Remedy(Enum):
    """What a user can do about a fit. The value is how Python says it; a shell has its own words.

    Model files have the names, so those stay.
    """

    RUN_ON = "let it run on"
    RAISE_TIMEOUT = "raise timeout"
    LOWER_TUNE = "lower tune"
    RAISE_TUNE = "raise tune"
    RAISE_DRAWS = "raise draws"
    RAISE_DRAWS_AND_TUNE = "raise draws and tune"
    RAISE_DRAWS_AND_TREES = "raise draws and the max_trees of PaperSampler"
    USE_TEMPERED = "use sampler='tempered'"
    USE_MORE_CHAINS = "use more chains"
    USE_SEVERAL_CHAINS = "use more (chains=4)"
    ADD_TEMPERATURES = "use more of them (sampler=TemperedSampler(temperatures={temperatures}))"
    FEWER_OPERATORS = "fewer operators"
    TOLERATE = "overlook small differences in error (tolerance=0.005)"
    LEAVE_OUT = "leave out operators and columns that are not needed"
    OTHER_SEED = "compare another random_state"
    SEE_CHAINS = "formulas_by_chain() shows what each chain found"
    STACK = "combined('stack')"
    SEE_FORMULAS = "Look at predict_interval and formulas_"
    TELL_NOISE = "say how noisy it is (noise_prior)"
    RESUME = "BayesianSymbolicRegressor.resume({path!r}, X, y) continues from its checkpoint"


class Caution(UserWarning):
    """A warning made of text and remedies, which a shell can put into its own words.

    Parameters
    ----------
    *parts : str or Remedy
    once : bool
        Whether to add that the warning is given only once.
    **values
        What remedies name, such as the path of a checkpoint.
    """

    def __init__(self, *parts: str | Remedy, once: bool = False, **values: Any):
        self.parts, self.values = parts, values
        last = " This is said once for each fit." if once else ""
        super().__init__(self.in_words({}) + last)

    def in_words(self, words: Mapping[Remedy, str]) -> str:
        """Return the message, with these words for remedies instead of those of Python."""
        return "".join(
            part if isinstance(part, str) else words.get(part, part.value).format(**self.values)
            for part in self.parts
        )


class DataWarning(Caution):
    """Something in the data was left out or looks unintended."""


class SamplingWarning(Caution):
    """A run did not go as far as it was meant to, or a prediction needs care."""

    #: Whether the message is the verdict, which `diagnostics_` has as well.
    is_verdict = False


class ConvergenceWarning(SamplingWarning, exceptions.ConvergenceWarning):
    """The draws of a fit cannot be relied on yet; the message says why, and what to do."""
