"""Trees as the chains have them: flat arrays of nodes in preorder (`kernels.tree.NODE`).

From top to bottom: trees are built, packed one after the other, read (as an expression, as a
structure without constants), evaluated on a table, made from an expression, and brought to a
normal form. A tree has constants only in `lt(x) = a x + b`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

import numpy as np

from ..kernels import opcodes
from ..kernels.evaluate import BLOCK, stack_slots
from ..kernels.tree import NODE
from ..kernels.units import load_evaluate
from .expression import CONSTANT, FEATURE, Expression, affine
from .operators import BY_OPCODE, OPERATORS

# Nodes that are read at once to find the end of a tree.
_NODES_AT_ONCE = 64


# Built.


def leaf(feature: int) -> np.ndarray:
    """Return a column as a tree."""
    return _node(opcodes.FEATURE, feature=feature)


def transform(tree: np.ndarray, a: float, b: float) -> np.ndarray:
    """Return the tree with `lt(x) = a x + b` on top."""
    return concatenated([_node(opcodes.LT, a=a, b=b), tree])


def join(name: str, *operands: np.ndarray) -> np.ndarray:
    """Return operands under an operator."""
    return concatenated([_node_of(name), *operands])


def concatenated(parts: Iterable[Any]) -> np.ndarray:
    """Return nodes, in arrays or as bytes, in one array: eight times as fast as NumPy does it."""
    return np.frombuffer(bytearray().join(parts), NODE)


def _node(op: int, feature: int = 0, a: float = 0.0, b: float = 0.0) -> np.ndarray:
    node = np.zeros(1, NODE)
    node["op"], node["feature"], node["a"], node["b"] = op, feature, a, b
    return node


@cache
def _node_of(name: str) -> bytes:
    return _node(OPERATORS[name].opcode).tobytes()


def product_of_powers(
    columns: Sequence[int], exponents: Sequence[float], operators: Mapping[str, float]
) -> np.ndarray | None:
    """Return a product of columns, each to a whole or half power; None where an operator for it
    is missing.
    """
    above: list[np.ndarray] = []
    below: list[np.ndarray] = []
    for column, exponent in zip(columns, exponents, strict=True):
        raised = power(leaf(column), abs(exponent), operators)
        if raised is None:
            return None
        (above if exponent > 0 else below).append(raised)
    if max(len(above), len(below)) > 1 and "*" not in operators:
        return None
    if not below:
        return _product(above)
    if not above:
        if "inv" in operators:
            return join("inv", _product(below))
        if "lt" not in operators:
            return None
        above.append(transform(leaf(columns[0]), 0.0, 1.0))  # a one to divide
    return join("/", _product(above), _product(below)) if "/" in operators else None


def power(x: np.ndarray, exponent: float, operators: Mapping[str, float]) -> np.ndarray | None:
    """Return x to a whole or half power, shortest where there are operators for it."""
    if exponent == 1.0:
        return x
    if exponent == 0.5:
        return join("sqrt", x) if "sqrt" in operators else None
    if exponent == 3.0 and "cube" in operators:
        return join("cube", x)
    if exponent % 2.0 == 0.0 and "square" in operators:
        half = power(x, exponent / 2.0, operators)
        return None if half is None else join("square", half)
    rest = power(x, exponent - 1.0, operators)
    return None if rest is None or "*" not in operators else join("*", x, rest)


def _product(factors: Sequence[np.ndarray]) -> np.ndarray:
    result = factors[0]
    for factor in factors[1:]:
        result = join("*", result, factor)
    return result


# Packed: the trees of a state, one after the other.


def state_size(nodes: np.ndarray, n_terms: int) -> int:
    """Return how many nodes the first `n_terms` trees of a packed state have."""
    missing, i = n_terms, 0
    while missing > 0:
        # Python's own integers are faster one by one; what lies behind the state is long.
        some = nodes["op"][i : i + _NODES_AT_ONCE].tolist()
        if not some:
            raise IndexError("the last tree has no end")
        for op in some:
            i += 1
            missing += (op > 0) + (op >= opcodes.FIRST_BINARY) - 1
            if missing == 0:
                break
    return i


def state_sizes(ops: np.ndarray, n_terms: np.ndarray) -> np.ndarray:
    """Return how many nodes each of many packed states has, given the operators of their nodes."""
    more = (ops > 0).astype(np.int32)
    more += ops >= opcodes.FIRST_BINARY
    more -= 1
    missing = np.cumsum(more, axis=-1, out=more)
    ends = np.argmax(missing == -n_terms[..., None], axis=-1) + 1
    return np.where(n_terms > 0, ends, 0)


def split_terms(nodes: np.ndarray, n_terms: int) -> list[np.ndarray]:
    """Return the trees of a packed state."""
    trees, start = [], 0
    for _ in range(n_terms):
        end = start + state_size(nodes[start:], 1)
        trees.append(nodes[start:end])
        start = end
    return trees


# Read.


def to_expression(nodes: np.ndarray, columns: Sequence[int]) -> Expression:
    """Return a tree as an expression; `columns` translates the feature numbers of its nodes."""
    operands: list[Expression] = []
    for node in nodes[::-1]:
        op = int(node["op"])
        if op == opcodes.FEATURE:
            operands.append((FEATURE, int(columns[node["feature"]])))
        elif op == opcodes.LT:
            operands.append(affine(float(node["a"]), operands.pop(), float(node["b"])))
        else:
            row = BY_OPCODE[op]
            operands.append((row.name, *(operands.pop() for _ in range(row.arity))))
    return operands.pop()


def structure(nodes: np.ndarray, n_terms: int) -> tuple[str, ...]:
    """Return what all states of the same formula have in common, for a packed state.

    These are the skeletons of its terms, sorted. Many draws differ in constants only, so the
    last ones are remembered.
    """
    return _structure(nodes["op"].tobytes(), nodes["feature"].tobytes(), n_terms)


@lru_cache(maxsize=2**14)
def _structure(ops: bytes, features: bytes, n_terms: int) -> tuple[str, ...]:
    nodes = np.zeros(len(ops) // NODE["op"].itemsize, NODE)
    nodes["op"] = np.frombuffer(ops, NODE["op"])
    nodes["feature"] = np.frombuffer(features, NODE["feature"])
    return tuple(sorted(map(skeleton, split_terms(nodes, n_terms))))


def skeleton(nodes: np.ndarray) -> str:
    """Return the structure of a tree without its constants.

    What the coefficient of the term or another constant absorbs is left out: a sign or a linear
    transform around the term, and a transform of a transform. Operands that may change places are
    sorted.

    Examples
    --------
    >>> from symbayes.formula.trees import join, leaf, skeleton, transform
    >>> skeleton(transform(join("sin", transform(leaf(0), 2.0, 1.0)), 3.0, 0.0))
    'sin(lt(x0))'
    """
    operands: list[tuple[str, str]] = []  # operator on top, and the text
    for node in nodes[::-1]:
        op = int(node["op"])
        if op == opcodes.FEATURE:
            operands.append(("", f"x{node['feature']}"))
            continue
        row = BY_OPCODE[op]
        inner = [operands.pop() for _ in range(row.arity)]
        if row.name == "lt" and inner[0][0] == "lt":
            operands.append(inner[0])
            continue
        texts = [text for _, text in inner]
        if row.commutative:
            texts.sort()
        operands.append((row.name, f"{row.name}({','.join(texts)})"))
    top, text = operands.pop()
    while top in ("lt", "neg"):
        text = text[len(top) + 1 : -1]
        top = next((name for name in ("lt", "neg") if text.startswith(f"{name}(")), "")
    return text


# Evaluated: for everything outside the compiled loops.


def evaluate_trees(trees: Sequence[np.ndarray], columns: np.ndarray) -> np.ndarray:
    """Return the value of each tree on a table given as columns."""
    evaluate = load_evaluate()
    n_rows = columns.shape[1]
    # Compiled code is made for writable arrays; those of a model loaded from disk may not be.
    if not (columns.flags.carray and columns.dtype == np.float64):
        trees, columns = _with_own_columns(trees, columns)
    flat = columns.reshape(-1)
    values = np.empty((len(trees), n_rows))
    size = max((len(tree) for tree in trees), default=1)
    stack = np.empty(stack_slots(size) * BLOCK)
    where = np.empty(2 * size + 4, np.int64)
    target = values.reshape(-1)
    for k, tree in enumerate(trees):
        evaluate(np.array(tree), 0, flat, n_rows, 0, n_rows, target, k * n_rows, stack, where)
    return values


def _with_own_columns(
    trees: Sequence[np.ndarray], columns: np.ndarray
) -> tuple[list[np.ndarray], np.ndarray]:
    """Return the trees with a copy of those columns that they use, which may be few of many."""
    leaves = [tree["feature"][tree["op"] == opcodes.FEATURE] for tree in trees]
    used = np.unique(np.concatenate([[0], *leaves]).astype(int))
    renumbered = [np.array(tree) for tree in trees]
    for tree, features in zip(renumbered, leaves, strict=True):
        tree["feature"][tree["op"] == opcodes.FEATURE] = np.searchsorted(used, features)
    return renumbered, np.array(columns[used], dtype=np.float64, order="C")


# Made from an expression. Every part of it is kept as `a N + b`, with N a tree without constants in
# front, until it has to stand under an operator. Coefficients of terms and the intercept are
# dropped: the model has its own.


@dataclass(frozen=True)
class _Part:
    """The value ``a N + b``; without a tree N it is the constant b."""

    tree: np.ndarray | None
    a: float = 1.0
    b: float = 0.0

    def nodes(self) -> np.ndarray:
        assert self.tree is not None
        if self.a == 1.0 and self.b == 0.0:
            return self.tree
        return transform(self.tree, self.a, self.b)


def term_tree(expression: Expression) -> np.ndarray | None:
    """Return an expression as one tree, up to a factor and a summand; None if it is constant."""
    return _part(expression).tree


def term_trees(expression: Expression) -> list[np.ndarray]:
    """Return the trees of the terms of a sum, its coefficients and its constants left out.

    Examples
    --------
    >>> from symbayes.formula.parser import parse
    >>> [len(tree) for tree in term_trees(parse("2*sin(3*x0) - x1/4 + 5", ["x0", "x1"]))]
    [3, 1]
    """
    if expression[0] in ("+", "-"):
        return [*term_trees(expression[1]), *term_trees(expression[2])]
    if expression[0] == "neg":
        return term_trees(expression[1])
    if expression[0] == "*" and CONSTANT in (expression[1][0], expression[2][0]):
        factor, rest = expression[1:]
        return term_trees(rest if factor[0] == CONSTANT else factor)
    if expression[0] == "/" and expression[2][0] == CONSTANT:
        return term_trees(expression[1])
    tree = term_tree(expression)
    return [] if tree is None else [tree]


def _part(expression: Expression) -> _Part:
    kind = expression[0]
    if kind == CONSTANT:
        return _Part(None, b=float(expression[1]))
    if kind == FEATURE:
        return _Part(leaf(expression[1]))
    operands = [_part(operand) for operand in expression[1:]]
    if all(operand.tree is None for operand in operands):
        with np.errstate(all="ignore"):
            return _Part(None, b=float(OPERATORS[kind].numpy(*(part.b for part in operands))))
    if kind == "neg":
        return _Part(operands[0].tree, -operands[0].a, -operands[0].b)
    if len(operands) == 1:
        return _Part(join(kind, operands[0].nodes()))
    return _pair(kind, *operands)


def _pair(kind: str, left: _Part, right: _Part) -> _Part:
    """Return the value of a binary operator, at most one operand of which is a constant."""
    if kind in ("+", "-"):
        return _sum(left, right, 1.0 if kind == "+" else -1.0)
    if kind == "*" and left.tree is None:
        left, right = right, left
    if right.tree is None:
        factor = right.b if kind == "*" else 1.0 / right.b if right.b else np.inf
        if factor == 0.0:
            return _Part(None)
        return _Part(left.tree, left.a * factor, left.b * factor)
    if left.tree is None:  # a constant over something
        return _Part(join("inv", right.nodes()), left.b)
    if left.b == 0.0 and right.b == 0.0:  # factors go in front
        factor = left.a * right.a if kind == "*" else left.a / right.a
        return _Part(join(kind, left.tree, right.tree), factor)
    return _Part(join(kind, left.nodes(), right.nodes()))


def _sum(left: _Part, right: _Part, sign: float) -> _Part:
    b = left.b + sign * right.b
    if left.tree is None:
        return _Part(right.tree, sign * right.a, b)
    if right.tree is None:
        return _Part(left.tree, left.a, b)
    ratio = sign * right.a / left.a
    if ratio in (1.0, -1.0):
        return _Part(join("+" if ratio == 1.0 else "-", left.tree, right.tree), left.a, b)
    return _Part(join("+", left.tree, _Part(right.tree, ratio).nodes()), left.a, b)


# In normal form: `2*x/(3*x + 6)` is 2/3 times `x/(x + 2)`. The coefficient of a term takes the
# factor over, and the intercept what is added to it, so that fewer constants are left to show.
# Constants move up through products, ratios and powers, out of exp, and end at operators that do
# not let them pass.


def normal_form(tree: np.ndarray) -> np.ndarray:
    """Return a tree that is the given one up to a factor and an offset, with few transforms."""
    _, result, _ = _factored(tree, 0)
    if result["op"][0] == opcodes.LT and result["a"][0] != 0.0:
        result = result[1:]
    # (x + b)/x is 1 + b/x.
    if result["op"][0] == opcodes.DIV and result["op"][1] == opcodes.LT and result["b"][1] != 0.0:
        end = (len(result) + 2) // 2
        if result[2:end].tobytes() == result[end:].tobytes():
            return join("inv", result[end:])
    return result


def _factored(tree: np.ndarray, i: int) -> tuple[float, np.ndarray, int]:
    """Return a factor and a tree whose product is the part from node i on, and where that ends."""
    op = int(tree["op"][i])
    if op == opcodes.FEATURE:
        return 1.0, tree[i : i + 1], i + 1
    f, x, end = _factored(tree, i + 1)
    if op == opcodes.LT:
        f *= float(tree["a"][i])
        b = float(tree["b"][i])
        if f == 0.0 or not np.isfinite(b / f):
            return 1.0, tree[i:end], end
        return f, x if b == 0.0 else transform(x, 1.0, b / f), end
    name = BY_OPCODE[op].name
    if BY_OPCODE[op].arity == 2:
        g, y, end = _factored(tree, end)
        factor, result = _binary(name, f, x, g, y)
    else:
        factor, result = _unary(name, f, x)
    if factor == 0.0 or not np.isfinite(factor):
        return 1.0, tree[i:end], end
    return factor, result, end


def _unary(name: str, f: float, x: np.ndarray) -> tuple[float, np.ndarray]:
    """Return factor and tree of an operator on f x."""
    exponent = OPERATORS[name].exponent
    if name == "neg":
        return -f, x
    if exponent is not None and (f > 0.0 or exponent == int(exponent)):
        try:
            return f**exponent, join(name, x)
        except OverflowError:
            return np.inf, x
    if name == "abs":
        return abs(f), join(name, x)
    inner = _times(f, x)
    if name == "exp" and inner["op"][0] == opcodes.LT:
        a, b = float(inner["a"][0]), float(inner["b"][0])
        return float(np.exp(b)), join(name, _times(a, inner[1:]))
    return 1.0, join(name, inner)


def _binary(
    name: str, f: float, x: np.ndarray, g: float, y: np.ndarray
) -> tuple[float, np.ndarray]:
    """Return factor and tree of an operator on f x and g y."""
    if name in ("*", "/"):
        return f * g if name == "*" else f / g, join(name, x, y)
    if name not in ("+", "-"):
        return 1.0, join(name, _times(f, x), _times(g, y))
    if f == (g if name == "+" else -g):
        return f, join("+", x, y)
    if f in (g, -g):
        return f, join("-", x, y)
    # The factor of one of the two goes in front, or none: what leaves fewest transforms.
    options = [
        (front, join(name, _times(f / front, x), _times(g / front, y))) for front in (f, g, 1.0)
    ]
    return min(options, key=lambda option: len(option[1]))


def _times(factor: float, tree: np.ndarray) -> np.ndarray:
    if factor == 1.0:
        return tree
    if tree["op"][0] == opcodes.LT:
        result = tree.copy()
        result["a"][0] *= factor
        result["b"][0] *= factor
        return result
    return transform(tree, factor, 0.0)
