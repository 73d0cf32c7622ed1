"""A term with its factors in front: `2*x/(3*x + 6)` is 2/3 times `x/(x + 2)`.

The coefficient of a term takes the factor over, and the intercept what is added to it, so that
fewer constants are left to show. Constants move up through products, ratios and powers, out of exp,
and end at operators that do not let them pass.
"""

from __future__ import annotations

import numpy as np

from ..kernels import opcodes as op
from ..kernels.tree import NODE

_POWERS = {op.INV: -1, op.SQUARE: 2, op.CUBE: 3}


def normal_form(tree: np.ndarray) -> np.ndarray:
    """Return a tree that is the given one up to a factor and an offset, with few transforms."""
    _, result, _ = _factored(tree, 0)
    if result["op"][0] == op.LT and result["a"][0] != 0.0:
        result = result[1:]
    # (x + b)/x is 1 + b/x.
    if result["op"][0] == op.DIV and result["op"][1] == op.LT and result["b"][1] != 0.0:
        end = (len(result) + 2) // 2
        if result[2:end].tobytes() == result[end:].tobytes():
            return np.concatenate([_node(op.INV), result[end:]])
    return result


def _node(code: int, a: float = 0.0, b: float = 0.0) -> np.ndarray:
    node = np.zeros(1, NODE)
    node["op"], node["a"], node["b"] = code, a, b
    return node


def _times(factor: float, tree: np.ndarray) -> np.ndarray:
    """Return a tree times a factor."""
    if factor == 1.0:
        return tree
    if tree["op"][0] == op.LT:
        result = tree.copy()
        result["a"][0] *= factor
        result["b"][0] *= factor
        return result
    return np.concatenate([_node(op.LT, factor, 0.0), tree])


def _factored(tree: np.ndarray, i: int) -> tuple[float, np.ndarray, int]:
    """Return a factor and a tree whose product is the part from node i on, and where that ends."""
    code = int(tree["op"][i])
    if code == op.FEATURE:
        return 1.0, tree[i : i + 1], i + 1
    f, x, end = _factored(tree, i + 1)
    if code == op.LT:
        f *= float(tree["a"][i])
        b = float(tree["b"][i])
        if f == 0.0 or not np.isfinite(b / f):
            return 1.0, tree[i:end], end
        return f, x if b == 0.0 else np.concatenate([_node(op.LT, 1.0, b / f), x]), end
    if code >= op.FIRST_BINARY:
        g, y, end = _factored(tree, end)
        factor, result = _binary(code, f, x, g, y)
    else:
        factor, result = _unary(code, f, x)
    if factor == 0.0 or not np.isfinite(factor):
        return 1.0, tree[i:end], end
    return factor, result, end


def _unary(code: int, f: float, x: np.ndarray) -> tuple[float, np.ndarray]:
    if code == op.NEG:
        return -f, x
    if code in _POWERS:
        return f ** _POWERS[code], np.concatenate([_node(code), x])
    if code == op.ABS or (code == op.SQRT and f > 0.0):
        return abs(f) if code == op.ABS else f**0.5, np.concatenate([_node(code), x])
    inner = _times(f, x)
    if code == op.EXP and inner["op"][0] == op.LT:
        a, b = float(inner["a"][0]), float(inner["b"][0])
        return float(np.exp(b)), np.concatenate([_node(code), _times(a, inner[1:])])
    return 1.0, np.concatenate([_node(code), inner])


def _binary(
    code: int, f: float, x: np.ndarray, g: float, y: np.ndarray
) -> tuple[float, np.ndarray]:
    if code == op.MUL:
        return f * g, np.concatenate([_node(code), x, y])
    if code == op.DIV:
        return f / g, np.concatenate([_node(code), x, y])
    if (code == op.SUB and f == -g) or (code == op.ADD and f == g):
        return f, np.concatenate([_node(op.ADD), x, y])
    if f in (g, -g):
        return f, np.concatenate([_node(op.SUB), x, y])
    # The factor of one of the two goes in front, or none: what leaves fewest transforms.
    options = [
        (front, np.concatenate([_node(code), _times(f / front, x), _times(g / front, y)]))
        for front in (f, g, 1.0)
    ]
    return min(options, key=lambda option: len(option[1]))
