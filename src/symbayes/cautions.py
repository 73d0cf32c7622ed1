"""What a user is told about fits and predictions that need care."""

from __future__ import annotations

import warnings

import numpy as np
from sklearn import exceptions

# A share of draws below this is a rounding error.
_NONE = 1.0e-9
# Formulas disagree wildly at a row where more than this part of the posterior is far off.
_WILD = 0.01
_COLUMNS_SHOWN = 5
# From here to the caller of a method of the estimator.
_CALLER = 4


class SamplingWarning(UserWarning):
    """A run did not go as far as it was meant to, or a prediction needs care."""


class ConvergenceWarning(SamplingWarning, exceptions.ConvergenceWarning):
    """The draws of a fit cannot be relied on yet; the message says why, and what to do."""


def tell_outside(outside: np.ndarray, names: list[str]) -> None:
    """Warn of rows outside the training range, in the columns named."""
    more = ", ..." if len(names) > _COLUMNS_SHOWN else ""
    shown = ", ".join(map(repr, names[:_COLUMNS_SHOWN])) + more
    _warn(
        f"{int(outside.sum())} of {len(outside)} rows lie well outside the range of the training "
        f"rows (columns {shown}); predictions there are as good as the formulas are, and intervals "
        "may be too narrow; training rows there would tell. This is said once for each fit.",
        _CALLER + 1,
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
        "have not), would help. This is said once for each fit.",
        _CALLER + 1,
    )


def is_wild(far: np.ndarray) -> np.ndarray:
    """Return at which rows formulas disagree wildly, given the share of draws that is far off."""
    return far > _WILD


def tell_wild(far: np.ndarray, deviations: float) -> None:
    """Warn of rows where formulas disagree wildly; far off is by this many deviations of y."""
    _warn(
        f"formulas disagree wildly on {int(is_wild(far).sum())} of {len(far)} rows: there up to "
        f"{far.max():.0%} of the posterior is more than {deviations:g} standard deviations of y "
        "away from the prediction. Look at predict_interval and formulas_ before you use these "
        "rows; more training rows near them, a longer run, or operators without exp, / and high "
        "powers may help. This is said once for each fit."
    )


def _warn(message: str, level: int = _CALLER) -> None:
    warnings.warn(message, SamplingWarning, stacklevel=level)
