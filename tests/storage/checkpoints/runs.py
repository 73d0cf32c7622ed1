"""Runs that leave checkpoints."""

import numpy as np
import pytest

from symbayes import BayesianSymbolicRegressor, TemperedSampler

from ...fits import NOISY, X, small

resume = BayesianSymbolicRegressor.resume
TEMPERED = {
    "chains": 2, "tune": 1000, "draws": 200, "n_jobs": 1, "warm_start": True,
    "sampler": TemperedSampler(temperatures=3, steps_per_draw=20),
}  # fmt: skip
PAPER = {"sampler": "paper", "chains": 2, "n_jobs": 1, "warm_start": True, "n_terms": 2}
POSITIVE = np.exp(X[:, 0]) + NOISY**2


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
