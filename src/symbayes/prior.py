"""What a user may believe beforehand: sizes of trees, constants, noise, number of terms."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from numbers import Integral, Real


def require_real(owner: str, name: str, value: object) -> float:
    """Return a finite number as float; complain about anything else."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{owner}: {name} must be a number, not {type(value).__name__}")
    if not math.isfinite(value):
        raise ValueError(f"{owner}: {name} is {value}; it must be finite")
    return float(value)


def require_positive(owner: str, name: str, value: object) -> None:
    """Complain about anything but a finite number above 0."""
    if require_real(owner, name, value) <= 0:
        raise ValueError(f"{owner}: {name} is {value}; it must be above 0")


def require_count(owner: str, name: str, value: object) -> None:
    """Complain about anything but an integer from 1 on."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"{owner}: {name} must be an integer, not {type(value).__name__}")
    if value < 1:
        raise ValueError(f"{owner}: {name} is {value}; it must be at least 1")


@dataclass(frozen=True)
class TreePrior:
    """Prior over the trees.

    A node at depth d (the root has 0) is an operator with probability
    ``alpha * (1 + d) ** -beta``. The operator ``lt(x) = a x + b`` has ``a ~ N(1, s_a^2)`` and
    ``b ~ N(0, s_b^2)``, with inverse-gamma priors on both variances.

    Parameters
    ----------
    alpha : float in (0, 1)
        Probability that the root is an operator.
    beta : float, at least 0
        How fast the probability falls with depth; larger values mean smaller trees.
    max_nodes : int, at least 1
        Trees with more nodes have probability zero.
    slope_shape, slope_scale : float above 0
        ``s_a^2 ~ IG(slope_shape / 2, slope_shape * slope_scale / 2)``.
    offset_shape, offset_scale : float above 0
        The same for ``s_b^2``.

    Examples
    --------
    >>> from symbayes import TreePrior
    >>> TreePrior(alpha=0.5, beta=2.0).split_probability(1)
    0.125
    """

    alpha: float = 0.4
    beta: float = 0.8
    max_nodes: int = 30
    slope_shape: float = 2.0
    slope_scale: float = 1.0
    offset_shape: float = 2.0
    offset_scale: float = 1.0

    def __post_init__(self):
        if not 0 < require_real("tree_prior", "alpha", self.alpha) < 1:
            raise ValueError(
                f"tree_prior: alpha is {self.alpha}; it is a probability and must lie strictly "
                "between 0 and 1"
            )
        if require_real("tree_prior", "beta", self.beta) < 0:
            raise ValueError(
                f"tree_prior: beta is {self.beta}; it must not be negative (0 lets the "
                "probability of an operator stay the same at every depth)"
            )
        require_count("tree_prior", "max_nodes", self.max_nodes)
        for name in ("slope_shape", "slope_scale", "offset_shape", "offset_scale"):
            require_positive("tree_prior", name, getattr(self, name))

    def split_probability(self, depth: int) -> float:
        """Return the probability that a node at this depth is an operator."""
        return self.alpha * (1.0 + depth) ** -self.beta


@dataclass(frozen=True)
class NoisePrior:
    """Prior of the noise variance, in units of the variance of y.

    ``sigma^2 ~ IG(shape / 2, shape * scale / 2)``: `scale` is a guess at the share of the variance
    of y that is noise, `shape` the number of rows that guess is worth.

    Parameters
    ----------
    shape : float above 0
    scale : float above 0

    Examples
    --------
    About 5 % noise (standard deviation), believed as much as 10 rows of data:

    >>> from symbayes import NoisePrior
    >>> NoisePrior(shape=10, scale=0.05**2)
    NoisePrior(shape=10, scale=0.0025...)
    """

    shape: float = 1.0
    scale: float = 1.0e-20

    def __post_init__(self):
        for field in fields(self):
            require_positive("noise_prior", field.name, getattr(self, field.name))


@dataclass(frozen=True)
class TermsPrior:
    """Prior of the number of terms, ``p(K)`` proportional to ``decay ** K`` for K up to `most`.

    Parameters
    ----------
    most : int, at least 1
        Largest number of terms.
    decay : float above 0
        How much less probable each further term is.

    Examples
    --------
    >>> from symbayes import TermsPrior
    >>> TermsPrior(most=3, decay=0.5)
    TermsPrior(most=3, decay=0.5)
    """

    most: int = 6
    decay: float = 0.25

    def __post_init__(self):
        require_count("n_terms", "most", self.most)
        require_positive("n_terms", "decay", self.decay)


def terms_prior(n_terms: object) -> TermsPrior | int:
    """Return what the parameter `n_terms` of the estimator means."""
    if isinstance(n_terms, TermsPrior):
        return n_terms
    if isinstance(n_terms, str):
        if n_terms == "auto":
            return TermsPrior()
        raise ValueError(f"n_terms={n_terms!r}; it must be 'auto', an integer or a TermsPrior")
    if isinstance(n_terms, bool) or not isinstance(n_terms, Integral):
        raise TypeError(
            f"n_terms must be 'auto', an integer or a TermsPrior, not {type(n_terms).__name__}"
        )
    if n_terms < 1:
        raise ValueError(f"n_terms is {n_terms}; it must be at least 1, or 'auto'")
    return int(n_terms)
