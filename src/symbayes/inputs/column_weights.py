"""What a user says about columns: how readily each is used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ..formula.operators import OPERATORS
from .prior import TreePrior


def check_buildable(weights: Mapping[str, float], tree_prior: TreePrior, n_features: int) -> None:
    """Refuse beliefs under which no tree but a constant one could be built."""
    if n_features < 1:
        raise ValueError("no column has a positive weight, so no tree can be built")
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
                "columns; pass one weight a column, or a dict for some of them"
            )
        for i, weight in enumerate(feature_weights):
            weights[i] = _weight(names[i], weight)
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
        if key not in names:
            raise ValueError(
                f"feature_weights: there is no column {key!r}; the columns are "
                f"{', '.join(map(repr, names[:10]))}{', ...' if len(names) > 10 else ''}"
            )
        return names.index(key)
    if isinstance(key, bool) or not isinstance(key, int | np.integer):
        raise TypeError(f"feature_weights: a column is a name or a position, not {key!r}")
    if not 0 <= key < len(names):
        raise ValueError(f"feature_weights: there is no column {key}; X has {len(names)} columns")
    return int(key)


def _weight(key: str | int, weight: float) -> float:
    if isinstance(weight, bool) or not isinstance(weight, int | float | np.number):
        raise TypeError(
            f"feature_weights: the weight of {key!r} must be a number, not {type(weight).__name__}"
        )
    if not np.isfinite(weight) or weight < 0:
        raise ValueError(
            f"feature_weights: the weight of {key!r} is {weight}; it must be finite and not "
            "negative"
        )
    return float(weight)
