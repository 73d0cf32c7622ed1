"""Trees built by hand, for the parts of the search that do not draw them."""

from __future__ import annotations

import numpy as np

from ..kernels import opcodes
from ..kernels.tree import NODE
from ..operators import OPERATORS


def leaf(feature: int) -> np.ndarray:
    """Return a column as a tree."""
    node = np.zeros(1, NODE)
    node["op"], node["feature"] = opcodes.FEATURE, feature
    return node


def transform(tree: np.ndarray, a: float, b: float) -> np.ndarray:
    """Return the tree with `lt(x) = a x + b` on top."""
    node = np.zeros(1, NODE)
    node["op"], node["a"], node["b"] = opcodes.LT, a, b
    return np.concatenate([node, tree])


def join(name: str, *operands: np.ndarray) -> np.ndarray:
    """Return operands under an operator."""
    node = np.zeros(1, NODE)
    node["op"] = OPERATORS[name].opcode
    return np.concatenate([node, *operands])
