"""What all tests need."""

from __future__ import annotations

import os

import numpy as np
import pytest
import scipy.linalg  # noqa: F401  (has a BLAS of its own, which is limited below)
from threadpoolctl import threadpool_limits

from symbayes.samplers.run.clock import Watch

if "PYTEST_XDIST_WORKER" in os.environ:
    # Workers share the cores. Threads of the linear algebra would wait for each other, and do so
    # busily: that took much of the time of a run.
    threadpool_limits(1, user_api="blas")
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # for processes that tests start


@pytest.fixture(autouse=True)
def forget_interrupts(monkeypatch):
    """A Ctrl-C of one test must not count as the first of two in the next."""
    monkeypatch.setattr(Watch, "_last_interrupt", -np.inf)
