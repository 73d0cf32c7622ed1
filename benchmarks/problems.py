"""What several measures share: a problem to fit, and how many cores there are."""

from __future__ import annotations

import os

import numpy as np


def charge_in_fields(n_rows: int, noise: float) -> tuple[np.ndarray, np.ndarray]:
    """Return Feynman's I.12.11, x0 (x1 + x2 x3 sin(x4)), on columns uniform on [1, 5].

    The noise is a part of the rms of y.
    """
    rng = np.random.default_rng(0)
    X = rng.uniform(1.0, 5.0, (n_rows, 5))
    y = X[:, 0] * (X[:, 1] + X[:, 2] * X[:, 3] * np.sin(X[:, 4]))
    return X, y + noise * np.sqrt(np.mean(y**2)) * rng.normal(size=n_rows)


def cores() -> int:
    """Return how many cores this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
