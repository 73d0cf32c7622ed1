"""What a user may believe beforehand: sizes of trees, constants, noise, number of terms."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from numbers import Integral, Real

from ..formula.operators import OPERATORS, operator_hint


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
    max_depth : int, at least 1, optional
        Trees with more levels have probability zero; a column alone has one.
    nesting : dict, optional
        How deep operators may lie inside operators: ``{"sin": {"sin": 0, "exp": 1}}`` allows no
        `sin` inside a `sin`, and inside it `exp` but no `exp` of an `exp`. Trees beyond that have
        probability zero.
    slope_shape, slope_scale : float above 0
        ``s_a^2 ~ IG(slope_shape / 2, slope_shape * slope_scale / 2)``.
    offset_shape, offset_scale : float above 0
        The same for ``s_b^2``.

    Examples
    --------
    >>> from symbayes import TreePrior
    >>> TreePrior(alpha=0.5, beta=2.0).split_probability(1)
    0.125

    Formulas of at most five levels, without waves of waves:

    >>> TreePrior(max_depth=5, nesting={"sin": {"sin": 0, "cos": 0}, "cos": {"sin": 0, "cos": 0}})
    TreePrior(...max_depth=5, nesting={'sin': {'sin': 0, 'cos': 0}, 'cos': {'sin': 0, 'cos': 0}}...)
    """

    alpha: float = 0.4
    beta: float = 0.8
    max_nodes: int = 30
    max_depth: int | None = None
    nesting: Mapping[str, Mapping[str, int]] | None = None
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
        if self.max_depth is not None:
            require_count("tree_prior", "max_depth", self.max_depth)
        _check_nesting(self.nesting)
        for name in ("slope_shape", "slope_scale", "offset_shape", "offset_scale"):
            require_positive("tree_prior", name, getattr(self, name))

    def split_probability(self, depth: int) -> float:
        """Return the probability that a node at this depth is an operator."""
        return self.alpha * (1.0 + depth) ** -self.beta


def _check_nesting(nesting: object) -> None:
    """Complain about anything but limits by names of operators."""
    if nesting is None:
        return
    example = 'for example {"sin": {"sin": 0}}'
    if not isinstance(nesting, Mapping):
        raise TypeError(f"tree_prior: nesting must be a dict, {example}, not {nesting!r}")
    for outer, inners in nesting.items():
        if not isinstance(inners, Mapping):
            raise TypeError(
                f"tree_prior: nesting of {outer!r} must be a dict of limits, {example}, not "
                f"{inners!r}"
            )
        for name in (outer, *inners):
            if not isinstance(name, str) or name not in OPERATORS:
                raise ValueError(
                    f"tree_prior: nesting: {name!r} is not an operator"
                    f"{operator_hint(str(name))}; known are {', '.join(OPERATORS)}"
                )
        for inner, most in inners.items():
            if isinstance(most, bool) or not isinstance(most, Integral):
                raise TypeError(
                    f"tree_prior: nesting: the limit of {inner!r} in {outer!r} must be an integer, "
                    f"not {type(most).__name__}"
                )
            if most < 0:
                raise ValueError(
                    f"tree_prior: nesting: the limit of {inner!r} in {outer!r} is {most}; it must "
                    "be 0 or more"
                )


@dataclass(frozen=True)
class NoisePrior:
    """Prior of the noise variance, in units of the variance of y.

    ``sigma^2 ~ IG(shape / 2, shape * scale / 2)``: `scale` is a guess at the share of the variance
    of y that is noise, `shape` the number of rows that guess is worth. A guess below 1e-9 is taken
    for none in predictions, and adds no rows to what they know of the noise.

    Parameters
    ----------
    shape : float above 0
    scale : float above 0

    Examples
    --------
    About 5 % noise (standard deviation), believed as much as 10 rows of data:

    >>> from symbayes import NoisePrior
    >>> NoisePrior.about(0.05)
    NoisePrior(shape=10.0, scale=0.0025...)
    """

    shape: float = 1.0
    scale: float = 1.0e-20

    def __post_init__(self):
        for field in fields(self):
            require_positive("noise_prior", field.name, getattr(self, field.name))

    @classmethod
    def about(cls, share: float, rows: float = 10.0) -> NoisePrior:
        """Return the belief that noise is about so large.

        Parameters
        ----------
        share : float in (0, 1)
            Standard deviation of the noise as a part of that of y: 0.05 for 5 %.
        rows : float above 0
            How many rows of data the belief is worth.
        """
        require_positive("noise_prior", "share", share)
        require_positive("noise_prior", "rows", rows)
        if share >= 1:
            raise ValueError(
                f"noise_prior: {share:g} is {100 * share:g} % of the spread of y; {share:g} % is "
                f"{share / 100:g}"
            )
        return cls(shape=float(rows), scale=float(share) ** 2)


#: What "small" means as a belief about noise: a thousandth of the spread of y.
SMALL_NOISE = 1.0e-3


def noise_prior(belief: object, default: NoisePrior) -> NoisePrior:
    """Return what the parameter `noise_prior` of the estimator means."""
    if belief is None:
        return default
    if isinstance(belief, NoisePrior):
        return belief
    if isinstance(belief, str):
        if belief == "small":
            return NoisePrior.about(SMALL_NOISE)
        raise ValueError(
            f"noise_prior={belief!r}; it must be 'small', a number such as 0.05 for about 5 %, a "
            "NoisePrior or None"
        )
    if isinstance(belief, bool) or not isinstance(belief, Real):
        raise TypeError(
            "noise_prior must be 'small', a number such as 0.05 for about 5 %, a NoisePrior or "
            f"None, not {type(belief).__name__}"
        )
    return NoisePrior.about(float(belief))


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
