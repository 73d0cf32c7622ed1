"""Fitted models: a state of the chains with its least-squares fit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

# A guess at the noise below this part of the variance of y is no belief about it: it is there so
# that the noise of an exact fit is above zero.
_NO_BELIEF = 1.0e-9


def freedom(
    n: float | np.ndarray, fitted: float, noise_prior: tuple[float, float]
) -> float | np.ndarray:
    """Return the degrees of freedom of the noise: what is left of rows and belief, at least one.

    Parameters
    ----------
    n : float or ndarray
        Sum of the row weights.
    fitted : float
        Constants at their best values on these rows, the intercept included.
    noise_prior : tuple
        Shape and scale of the prior of the noise: its shape is what the belief is worth in rows.
    """
    shape, scale = noise_prior
    return np.maximum(n + (shape if scale > _NO_BELIEF else 0.0) - fitted, 1.0)


@dataclass(frozen=True, eq=False)
class State:
    """One state of the chains, as often as they were in it."""

    trees: tuple[np.ndarray, ...]
    """Nodes of each term."""
    weight: float
    """Posterior probability of this very state among the draws."""
    log_likelihood: float
    noise_variance: float
    """Mean of the scaled noise variance drawn with it, by the paper's sampler."""

    @property
    def n_nodes(self) -> int:
        """Nodes of all trees together."""
        return sum(len(tree) for tree in self.trees)


@dataclass(frozen=True, eq=False)
class Model:
    """One state of the chain with its least-squares fit.

    "Scaled" is y less its mean, in units of its spread: squares of it are safe whatever y is.
    """

    state: State
    intercept: float
    """In units of y."""
    coefficients: np.ndarray
    """In units of y; 0 for a term that is a rounding error."""
    centre: np.ndarray
    """Means of the terms on the training rows."""
    length: np.ndarray
    """Lengths of the centred terms."""
    beta: np.ndarray
    """Scaled coefficients of the terms centred and scaled to length one."""
    inverse_root: np.ndarray
    """R^-1 of the QR factorisation of those terms: (G'G)^-1 = R^-1 R^-T."""
    probe: np.ndarray
    """Scaled fitted values on some of the rows; none in a model from a file."""
    mse: float
    """Scaled mean square of the residuals."""
    noise_variance: float
    """Posterior mean of the scaled noise variance."""
    coefficient_spread: float
    """Factor g / (1 + g) on the variance of the coefficients; 0 where they are plugged in."""

    @property
    def n_fitted(self) -> int:
        """Constants at their best values: coefficients and intercept, those inside terms not.

        A redundant term, as the paper's sampler may have, is no further one.
        """
        redundant = self.coefficient_spread == 0.0 and len(self.beta) > 1
        rank = int(np.linalg.matrix_rank(self.inverse_root)) if redundant else len(self.beta)
        return 1 + rank
