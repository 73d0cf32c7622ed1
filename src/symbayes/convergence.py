"""Has it converged: R-hat and effective draws of what every model has."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .trace import ChainTrace

# Rules of thumb (Vehtari, Gelman, Simpson, Carpenter and Buerkner, 2021).
LARGEST_R_HAT, FEWEST_EFFECTIVE = 1.01, 400.0
#: Fewer draws a chain have no variance in each half.
FEWEST_DRAWS = 4
# Exact formulas all the way: so many draws a chain are enough.
_FEWEST_EXACT = 128


def settled(traces: Sequence[ChainTrace], exact: float) -> bool:
    """Return whether the draws so far are enough.

    They are when all fit the data to rounding error (a residual of at most `exact`), or when
    log-likelihood and size have an R-hat of at most 1.01 and 400 effective draws.
    """
    n = min(len(trace) for trace in traces)
    if n < FEWEST_DRAWS:
        return False
    if n >= _FEWEST_EXACT and all((trace.rss[-n // 2 :] <= exact).all() for trace in traces):
        return True
    for values in (
        np.array([trace.log_likelihood[:n] for trace in traces]),
        np.array([trace.n_nodes[:n] for trace in traces], dtype=float),
    ):
        if not r_hat(values) <= LARGEST_R_HAT or effective_draws(values) < FEWEST_EFFECTIVE:
            return False
    return True


def r_hat(values: np.ndarray) -> float:
    """Return the split R-hat of draws, one row a chain; 1 where nothing varies."""
    half = values.shape[1] // 2
    parts = np.concatenate([values[:, :half], values[:, half : 2 * half]])
    within = parts.var(axis=1, ddof=1).mean()
    between = half * parts.mean(axis=1).var(ddof=1)
    if within == 0.0:
        return 1.0 if between == 0.0 else np.inf
    return float(np.sqrt((half - 1) / half + between / (half * within)))


def effective_draws(values: np.ndarray) -> float:
    """Return the number of independent draws that these, one row a chain, are worth.

    Autocorrelations are summed in pairs as long as those are positive (Geyer, 1992).
    """
    m, n = values.shape
    centred = values - values.mean(axis=1, keepdims=True)
    within = values.var(axis=1, ddof=1).mean()
    if within == 0.0:
        return float(m * n)
    size = 2 ** int(np.ceil(np.log2(2 * n)))
    spectrum = np.fft.rfft(centred, size, axis=1)
    covariance = np.fft.irfft(spectrum * spectrum.conj(), size, axis=1)[:, :n].mean(axis=0) / n
    total = within * (n - 1) / n + (values.mean(axis=1).var(ddof=1) if m > 1 else 0.0)
    correlation = 1.0 - (within - covariance) / total
    tau, t = -1.0, 0
    while t + 1 < n and correlation[t] + correlation[t + 1] > 0.0:
        tau += 2.0 * (correlation[t] + correlation[t + 1])
        t += 2
    return float(m * n / max(tau, 1.0 / np.log10(max(m * n, 10))))
