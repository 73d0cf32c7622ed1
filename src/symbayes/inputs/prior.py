"""What a user may believe beforehand: trees, constants, columns, noise, number of terms."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from numbers import Integral, Real
from typing import Any

import numpy as np

from ..formula.checks import (
    require_count,
    require_positive,
    require_real,
    require_type,
    require_whole,
)
from ..formula.operators import OPERATORS, require_operator
from ..kernels import opcodes
from ..kernels.nesting import NOTHING_ABOVE, below


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
    sensible : bool
        Whether terms have to be sensible functions: moderate in nearly all of the box of the table
        where they have a value, without waves that its rows cannot tell, and not cancelling each
        other. Others have probability zero, unless a formula fits to all digits.
    nesting_price : float, at least 0
        By how many nats each operator makes a tree less probable that lies where few would write
        it: a wave (`sin`, `cos`, `tan`) inside a wave, an `exp` inside an `exp` or a wave, and a
        power that makes powers of powers exceed the sixth. It takes data to pay that; 0 lets them
        lie there for nothing.
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
    sensible: bool = True
    nesting_price: float = 6.0
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
        if self.nesting is not None:
            _check_nesting(self.nesting)
        if not isinstance(self.sensible, bool):
            raise TypeError(f"tree_prior: sensible must be True or False, not {self.sensible!r}")
        if require_real("tree_prior", "nesting_price", self.nesting_price) < 0:
            raise ValueError(
                f"tree_prior: nesting_price is {self.nesting_price}; it must not be negative (0 "
                "lets operators lie inside one another for nothing)"
            )
        for name in ("slope_shape", "slope_scale", "offset_shape", "offset_scale"):
            require_positive("tree_prior", name, getattr(self, name))

    def split_probability(self, depth: int) -> float:
        """Return the probability that a node at this depth is an operator."""
        return self.alpha * (1.0 + depth) ** -self.beta


def _check_nesting(nesting: object) -> None:
    """Complain about anything but limits by names of operators."""
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
            require_operator("tree_prior: nesting", name)
        for inner, most in inners.items():
            require_whole(f"tree_prior: nesting: the limit of {inner!r} in {outer!r}", most, 0)


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
        """Return the belief that noise is about this part of the spread of y.

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


def noise_prior(belief: Any, default: NoisePrior) -> NoisePrior:
    """Return what the parameter `noise_prior` of the estimator means."""
    if belief is None:
        return default
    if isinstance(belief, NoisePrior):
        return belief
    if isinstance(belief, str) and belief == "small":
        return NoisePrior.about(SMALL_NOISE)
    choices = "'small', a number such as 0.05 for about 5 %, a NoisePrior or None"
    if isinstance(belief, str):
        raise ValueError(f"noise_prior={belief!r}; it must be {choices}")
    require_type("noise_prior", belief, Real, choices)
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


def terms_prior(n_terms: Any) -> TermsPrior | int:
    """Return what the parameter `n_terms` of the estimator means."""
    if isinstance(n_terms, TermsPrior):
        return n_terms
    choices = "'auto', an integer or a TermsPrior"
    if isinstance(n_terms, str):
        if n_terms == "auto":
            return TermsPrior()
        raise ValueError(f"n_terms={n_terms!r}; it must be {choices}")
    require_type("n_terms", n_terms, Integral, choices)
    if n_terms < 1:
        raise ValueError(f"n_terms is {n_terms}; it must be at least 1, or 'auto'")
    return int(n_terms)


def check_buildable(weights: Mapping[str, float], tree_prior: TreePrior) -> None:
    """Refuse operators none of which fits into the largest tree."""
    if tree_prior.max_nodes < 2:
        return  # every tree is a single column, whatever the operators
    smallest = 1 + min(OPERATORS[name].arity for name in weights)
    if smallest > tree_prior.max_nodes:
        raise ValueError(
            f"no tree can be built: the operators {', '.join(weights)} need at least {smallest} "
            f"nodes and tree_prior.max_nodes is {tree_prior.max_nodes}; raise max_nodes or add an "
            "operator with one operand"
        )


def resolve_feature_weights(
    feature_weights: Mapping[str | int, float] | Sequence[float] | None,
    names: Sequence[str],
    used: np.ndarray,
) -> np.ndarray:
    """Return the weights of the columns in use, summing to 1.

    A sequence gives a weight to each column; a mapping names some columns, by name or position,
    and the others have weight 1.
    """
    weights = np.ones(len(names))
    if isinstance(feature_weights, Mapping):
        for key, weight in feature_weights.items():
            weights[_column_index(key, names)] = _weight(key, weight)
    elif feature_weights is not None:
        if isinstance(feature_weights, str) or not (
            hasattr(feature_weights, "__len__") and hasattr(feature_weights, "__getitem__")
        ):
            raise TypeError(
                "feature_weights must be a sequence with a weight for each column, or a dict, not "
                f"{type(feature_weights).__name__}"
            )
        if len(feature_weights) != len(names):
            raise ValueError(
                f"feature_weights has {len(feature_weights)} entries and X has {len(names)} "
                "columns; pass one weight per column, or a dict for some of them"
            )
        weights[:] = list(map(_weight, names, feature_weights))
    weights = weights[used]
    total = weights.sum()
    if not 0 < total < np.inf:
        raise ValueError(
            "feature_weights must have a positive, finite sum over the columns that vary; give at "
            "least one of them a positive weight"
        )
    return weights / total


def _column_index(key: str | int, names: Sequence[str]) -> int:
    if isinstance(key, str):
        if key in names:
            return names.index(key)
        raise ValueError(
            f"feature_weights: there is no column {key!r}; the columns are "
            f"{', '.join(map(repr, names[:10]))}{', ...' if len(names) > 10 else ''}"
        )
    if isinstance(key, bool) or not isinstance(key, Integral):
        raise TypeError(f"feature_weights: a column is a name or a position, not {key!r}")
    if not 0 <= key < len(names):
        raise ValueError(f"feature_weights: there is no column {key}; X has {len(names)} columns")
    return int(key)


def _weight(key: str | int, weight: float) -> float:
    value = require_real("feature_weights", f"the weight of {key!r}", weight)
    if value < 0:
        raise ValueError(
            f"feature_weights: the weight of {key!r} is {weight}; it must not be negative"
        )
    return value


class StatePrior:
    """The log prior of a state, up to a constant.

    Called, it ranks states: weights of operators are at their prior means, and the variances of
    the constants are integrated out one by one. Weights of columns are integrated out where they
    are learned: among many columns, one that is used already costs little to use again. The
    samplers never need it, since everything but ratios cancels.

    States are ranked between rounds, while threads wait. So all logarithms are taken once.
    """

    def __init__(
        self,
        tree: TreePrior,
        terms: TermsPrior | int,
        operator_weights: Mapping[str, float],
        feature_weights: np.ndarray,
        concentrations: tuple[np.ndarray, np.ndarray],
    ):
        """`concentrations` are those of the Dirichlet priors of operators, by opcode, and columns.

        They are empty if weights are fixed.
        """
        splits = [tree.split_probability(depth) for depth in range(int(tree.max_nodes) + 1)]
        self._term = 0.0 if isinstance(terms, int) else math.log(terms.decay)
        self._splits = [math.log(split) for split in splits]
        self._leaves = [math.log1p(-split) for split in splits]
        self._operators = {
            OPERATORS[name].opcode: (OPERATORS[name].arity, math.log(weight))
            for name, weight in operator_weights.items()
        }
        # A formula that was tidied up may have others: 1/x in the place of x/x**2.
        least = min(log_weight for _, log_weight in self._operators.values())
        for row in OPERATORS.values():
            self._operators.setdefault(row.opcode, (row.arity, least))
        self._slope = _student(tree.slope_shape, tree.slope_scale)
        self._offset = _student(tree.offset_shape, tree.offset_scale)
        self._price = float(tree.nesting_price)
        with np.errstate(divide="ignore"):
            self._columns = np.log(feature_weights).tolist()
        of_operators, of_columns = concentrations
        self._totals = [float(of_operators.sum()), float(of_columns.sum())]
        if of_operators.any():
            of_operators = np.where(
                of_operators > 0, of_operators, of_operators[of_operators > 0].min()
            )
        self._of_operators, self._of_columns = of_operators.tolist(), of_columns.tolist()

    def __call__(self, trees: Sequence[np.ndarray], only_structure: bool = False) -> float:
        """Return the log prior of a state."""
        total = len(trees) * self._term
        columns: Counter[int] = Counter()
        operators: Counter[int] = Counter()
        for nodes in trees:
            depths, above = [0], [NOTHING_ABOVE]
            for op, column, a, b in nodes.tolist():
                depth, mine = depths.pop(), above.pop()
                if op == opcodes.FEATURE:
                    total += self._leaves[depth]
                    columns[column] += 1
                    continue
                arity, log_weight = self._operators[op]
                total += self._splits[depth] + log_weight
                operators[op] += 1
                depths += [depth + 1] * arity
                nested, mine = below(op, mine)
                above += [mine] * arity
                total -= self._price * nested
                if op == opcodes.LT and not only_structure:
                    total += _log_student(a - 1.0, *self._slope)
                    total += _log_student(b, *self._offset)
        if only_structure and self._of_operators:
            total -= sum(n * self._operators[op][1] for op, n in operators.items())
            total += _log_urn(self._of_operators, self._totals[0], operators)
        if self._of_columns:
            return total + _log_urn(self._of_columns, self._totals[1], columns)
        return total + sum(n * self._columns[column] for column, n in columns.items())

    def of_structure(self, trees: Sequence[np.ndarray]) -> float:
        """Return the log prior of a state without its constants, learned weights integrated out."""
        return self(trees, only_structure=True)


def _log_urn(concentration: Sequence[float], total: float, counts: Counter[int]) -> float:
    """Return the log probability of drawing these counts, in some order, from Polya's urn.

    `total` is the sum of the concentrations of all that can be drawn.
    """
    result = math.lgamma(total) - math.lgamma(total + counts.total())
    for i, n in counts.items():
        own = concentration[i]
        if own == 0.0:
            return -math.inf
        result += math.lgamma(own + n) - math.lgamma(own)
    return result


def _student(nu: float, scale: float) -> tuple[float, float, float]:
    """Return what `_log_student` needs for a normal whose variance is IG(nu / 2, nu scale / 2)."""
    constant = math.lgamma(0.5 * (nu + 1.0)) - math.lgamma(0.5 * nu)
    return constant - 0.5 * math.log(nu * math.pi * scale), 0.5 * (nu + 1.0), nu * scale


def _log_student(x: float, constant: float, power: float, unit: float) -> float:
    return constant - power * math.log1p(x * x / unit)
