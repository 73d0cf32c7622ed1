"""Compiled code wraps integers and makes nan in silence; as plain Python it must not warn."""

from __future__ import annotations

import numpy as np
import pytest
from numba import config


@pytest.fixture(autouse=True)
def silent_arithmetic():
    if config.DISABLE_JIT:
        with np.errstate(all="ignore"):
            yield
    else:
        yield
