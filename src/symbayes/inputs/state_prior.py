"""The log prior of whole states, by which they are ranked."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from ..formula.operators import BY_OPCODE, OPERATORS
from ..kernels import opcodes
from .prior import TermsPrior, TreePrior


class StatePrior:
    """The log prior of a state, up to a constant.

    Weights of operators are at their prior means. Those of columns are integrated out where they
    are learned: among many columns, one that is used already costs little to use again. The
    variances of the constants are integrated out one by one. It ranks states; the samplers never
    need it, since everything but ratios cancels.

    States are ranked between rounds, while threads wait. So all logarithms are taken once.
    """

    def __init__(
        self,
        tree: TreePrior,
        terms: TermsPrior | int,
        operator_weights: Mapping[str, float],
        feature_weights: np.ndarray,
        concentration: np.ndarray,
    ):
        """`concentration` is that of the Dirichlet prior of columns, empty if they are fixed."""
        splits = [tree.split_probability(depth) for depth in range(int(tree.max_nodes) + 1)]
        self._term = 0.0 if isinstance(terms, int) else math.log(terms.decay)
        self._splits = [math.log(split) for split in splits]
        self._leaves = [math.log1p(-split) for split in splits]
        self._operators = {
            OPERATORS[name].opcode: (BY_OPCODE[OPERATORS[name].opcode].arity, math.log(weight))
            for name, weight in operator_weights.items()
        }
        self._slope = _Student(tree.slope_shape, tree.slope_scale)
        self._offset = _Student(tree.offset_shape, tree.offset_scale)
        with np.errstate(divide="ignore"):
            self._columns = np.log(feature_weights).tolist()
        self._concentration = concentration.tolist()
        self._total = float(concentration.sum())

    def __call__(self, trees: Sequence[np.ndarray]) -> float:
        """Return the log prior of a state."""
        total = len(trees) * self._term
        columns: Counter[int] = Counter()
        for nodes in trees:
            depths = [0]
            for i, op in enumerate(nodes["op"].tolist()):
                depth = depths.pop()
                if op == opcodes.FEATURE:
                    total += self._leaves[depth]
                    columns[int(nodes["feature"][i])] += 1
                    continue
                arity, log_weight = self._operators[op]
                total += self._splits[depth] + log_weight
                depths += [depth + 1] * arity
                if op == opcodes.LT:
                    total += self._slope(float(nodes["a"][i]) - 1.0)
                    total += self._offset(float(nodes["b"][i]))
        return total + self._log_columns(columns)

    def _log_columns(self, counts: Counter[int]) -> float:
        """Return the log prior of the columns at the leaves: independent, or from Polya's urn."""
        if not self._concentration:
            return sum(n * self._columns[column] for column, n in counts.items())
        result = math.lgamma(self._total) - math.lgamma(self._total + counts.total())
        for column, n in counts.items():
            own = self._concentration[column]
            if own == 0.0:
                return -math.inf
            result += math.lgamma(own + n) - math.lgamma(own)
        return result


class _Student:
    """The log density of a normal whose variance is IG(nu / 2, nu scale / 2)."""

    def __init__(self, nu: float, scale: float):
        self._constant = (
            math.lgamma(0.5 * (nu + 1.0))
            - math.lgamma(0.5 * nu)
            - 0.5 * math.log(nu * math.pi * scale)
        )
        self._power, self._unit = 0.5 * (nu + 1.0), nu * scale

    def __call__(self, x: float) -> float:
        return self._constant - self._power * math.log1p(x * x / self._unit)
