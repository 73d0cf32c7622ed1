"""Runs that leave checkpoints."""

from functools import cache

import numpy as np
import pytest

from symbayes import BayesianSymbolicRegressor, TemperedSampler

from ...fits import NOISY, X, small

resume = BayesianSymbolicRegressor.resume
# A run with constants has more to resume; to polish those of its formulas takes most of its time.
LT = {"operators": "default"}
TEMPERED = {
    "operators": ["+", "*", "sin"],
    "chains": 2, "tune": 1000, "draws": 200, "n_jobs": 1, "warm_start": True,
    "sampler": TemperedSampler(temperatures=3, steps_per_draw=20),
}  # fmt: skip
PAPER = {"sampler": "paper", "chains": 2, "n_jobs": 1, "warm_start": True, "n_terms": 2}
POSITIVE = np.exp(X[:, 0]) + NOISY**2


@cache
def never_stopped():
    """The run that all are compared with: nothing of what the tests change has a part in it."""
    return small(**TEMPERED).fit(X, NOISY)


class Stop(Exception):
    """Ends a run in the middle, as an error elsewhere would."""


def stopping(phase, done=0):
    """A progress function that ends a run with an error once a phase has come so far."""

    def progress(status):
        if status.phase == phase and status.done >= done:
            raise Stop

    return progress


def stopped(path, phase="drawing", done=0, **options):
    """Leave the checkpoint of a run that did not come to its end."""
    with pytest.raises(Stop):
        small(**(TEMPERED | options), progress=stopping(phase, done)).fit(X, NOISY, checkpoint=path)
