"""Stacking: weights of predictive distributions whose mixture predicts left-out rows best.

Yao, Vehtari and Gelman (2022), "Stacking for non-mixing Bayesian computations: the curse and
blessing of multimodal posteriors", JMLR 23.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize

# Exponent of the Dirichlet prior of the weights, less one. It decides where the rows do not: chains
# that differ by a few tenths of a nat, which is chance, are not emptied for it, and equal ones have
# equal weights. It weighs a tenth of a row, which is next to nothing where they do differ.
PRIOR = 0.1


def stacking_weights(log_density: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return the weights, which sum to 1, of the best mixture of predictive distributions.

    They maximise ``sum_i counts[i] log(sum_k w[k] exp(log_density[i, k])) + PRIOR sum_k log w[k]``.

    Parameters
    ----------
    log_density : ndarray of shape (n_rows, n_distributions)
        Log predictive densities of rows that the distributions have not seen; minus infinity for
        0. Rows to which all give 0 say nothing and are left out.
    counts : ndarray of shape (n_rows,)
        How often each row counts.

    Examples
    --------
    >>> import numpy as np
    >>> from symbayes.posterior.stacking import stacking_weights
    >>> log_density = np.array([[-1.0, -4.0], [-1.0, -4.0], [-4.0, -1.0]])
    >>> stacking_weights(log_density, np.ones(3)).round(2)
    array([0.67, 0.33])
    """
    highest = log_density.max(axis=1)
    seen = np.isfinite(highest)
    density = np.exp(log_density[seen] - highest[seen, None])
    counts = counts[seen]
    n = density.shape[1]
    total = counts.sum() + n * PRIOR

    # In logarithms u, with a price on the sum in place of a constraint: the sum is 1 at the optimum
    # all the same. What is concave in the weights has no other stationary point in u either.
    def shares(u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        parts = density * np.exp(u)
        mixed = parts.sum(axis=1)
        return mixed, parts / mixed[:, None]

    def loss(u: np.ndarray) -> tuple[float, np.ndarray]:
        mixed, share = shares(u)
        value = np.exp(u).sum() - (counts @ np.log(mixed) + PRIOR * u.sum()) / total
        return value, np.exp(u) - (counts @ share + PRIOR) / total

    def curvature(u: np.ndarray) -> np.ndarray:
        _, share = shares(u)
        return np.diag(np.exp(u) - counts @ share / total) + (share.T * counts) @ share / total

    found = minimize(
        loss, np.full(n, -np.log(n)), jac=True, hess=curvature, method="trust-exact",
        options={"gtol": 1.0e-11, "max_trust_radius": 100.0},
    )  # fmt: skip
    weights = np.exp(found.x)
    return weights / weights.sum()
