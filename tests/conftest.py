"""What all tests need."""

from __future__ import annotations

import numpy as np
import pytest

from symbayes.samplers.run.clock import Watch


@pytest.fixture(autouse=True)
def forget_interrupts(monkeypatch):
    """A Ctrl-C of one test must not count as the first of two in the next."""
    monkeypatch.setattr(Watch, "_last_interrupt", -np.inf)
