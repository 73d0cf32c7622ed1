"""Is what a formula leaves over noise? A smooth curve through the residuals tells.

The search may end early only if nothing is left to explain. Kernel ridge regression on the ranks
of the columns predicts each residual from the others: where it does better than their mean, some
structure is left. It is blind to structure in many columns; then the search ends by its other
rules.
"""

from __future__ import annotations

import numpy as np
from scipy.stats import rankdata

# Widths of the kernel, for ranks of unit variance and one column, and penalties to choose from.
_WIDTHS = (0.1, 0.2, 0.4, 0.8)
_PENALTIES = (0.01, 0.1, 1.0)
# The best of these curves "explains" a part even of pure noise: in about one case of 50 more than
# this number divided by the number of rows.
_BY_CHANCE = 10.0


def is_noise(columns: np.ndarray, residuals: np.ndarray, trust: float = 1.0) -> bool:
    """Return whether the residuals, one per row, look unrelated to the columns.

    Where each row counts only as a part of one, what so few rows might show by chance does not
    matter.
    """
    return explained(columns, residuals) < _BY_CHANCE / (trust * len(residuals))


def explained(columns: np.ndarray, residuals: np.ndarray) -> float:
    """Return the share of the residuals' variance that a smooth curve predicts.

    Each residual is predicted without its own row (leave-one-out, in closed form).
    """
    centred = residuals - residuals.mean()
    variance = np.mean(centred**2)
    if not 0.0 < variance < np.inf:
        return 0.0
    ranks = rankdata(columns, axis=0)
    spread = ranks.std(axis=0)
    ranks = ranks[:, spread > 0] / spread[spread > 0]
    square = np.sum(ranks**2, axis=1)
    distance = np.maximum(square[:, None] + square - 2.0 * ranks @ ranks.T, 0.0)
    best = 0.0
    for width in _WIDTHS:
        values, vectors = np.linalg.eigh(np.exp(-distance / (2.0 * width**2 * ranks.shape[1])))
        projected = vectors.T @ centred
        for penalty in _PENALTIES:
            shrink = values / (values + penalty)
            own = vectors**2 @ shrink
            errors = (centred - vectors @ (shrink * projected)) / (1.0 - own)
            best = max(best, 1.0 - float(np.mean(errors**2) / variance))
    return best
