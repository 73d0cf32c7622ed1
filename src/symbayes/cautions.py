"""Warnings of the library, and what a user can do: as data that Python and a shell put in words."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from enum import Enum
from typing import Any

import numpy as np
from sklearn import exceptions

# A share of draws below this is a rounding error.
_NONE = 1.0e-9
# Formulas disagree wildly at a row where more than this part of the posterior is far off.
_WILD = 0.01
_COLUMNS_SHOWN = 5
# From here to the caller of a method of the estimator.
_CALLER = 4


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


def tell_outside(outside: np.ndarray, names: list[str]) -> None:
    """Warn of rows outside the training range, in the columns named."""
    more = ", ..." if len(names) > _COLUMNS_SHOWN else ""
    shown = ", ".join(map(repr, names[:_COLUMNS_SHOWN])) + more
    _warn(
        f"{int(outside.sum())} of {len(outside)} rows lie well outside the range of the training "
        f"rows (columns {shown}); predictions there are as good as the formulas are, and intervals "
        "may be too narrow; training rows there would tell.",
        level=_CALLER + 1,
    )


def without_value(left_out: np.ndarray) -> str | None:
    """Return whether rows are without a finite value by "all" or "some" formulas; None if by none.

    `left_out` is the share of draws without one, for each row.
    """
    if (left_out > 1 - _NONE).any():
        return "all"
    return "some" if (left_out > _NONE).any() else None


def tell_left_out(left_out: np.ndarray) -> None:
    """Warn of rows where a share of the draws has no finite value."""
    rows, nowhere = int((left_out > _NONE).sum()), int((left_out > 1 - _NONE).sum())
    _warn(
        f"some formulas have no finite value on {rows} of {len(left_out)} rows and were left out "
        f"there (up to {max(left_out.max(), 0.01):.0%} of the posterior)"
        + (f"; none has one on {nowhere} of them, where predictions are nan" if nowhere else "")
        + ". Training rows like these, or operators that have a value everywhere (log, sqrt and / "
        "have not), would help.",
        level=_CALLER + 1,
    )


def is_wild(far: np.ndarray) -> np.ndarray:
    """Return at which rows formulas disagree wildly, given the share of draws that is far off."""
    return far > _WILD


def tell_wild(far: np.ndarray, deviations: float) -> None:
    """Warn of rows where formulas disagree wildly; far off is by this many deviations of y."""
    _warn(
        f"formulas disagree wildly on {int(is_wild(far).sum())} of {len(far)} rows: there up to "
        f"{far.max():.0%} of the posterior is more than {deviations:g} standard deviations of y "
        "away from the prediction. ",
        Remedy.SEE_FORMULAS,
        " before you use these rows; more training rows near them, a longer run, or operators "
        "without exp, / and high powers may help.",
    )


def _warn(*parts: str | Remedy, level: int = _CALLER) -> None:
    warnings.warn(SamplingWarning(*parts, once=True), stacklevel=level)
