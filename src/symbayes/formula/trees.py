"""Trees as the chains have them: flat arrays of nodes in preorder (`kernels.tree.NODE`).

From top to bottom: trees are built, packed one after the other, read (as an expression, as a
structure without constants), evaluated on a table, made from an expression, and brought to a
normal form. A tree has constants only in `lt(x) = a x + b`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, lru_cache, partial, reduce
from typing import Any

import numpy as np

from ..kernels import opcodes
from ..kernels.evaluate import BLOCK, stack_slots
from ..kernels.tree import NODE
from ..kernels.units import load_evaluate
from .expression import CONSTANT, FEATURE, Expression, affine
from .operators import BY_OPCODE, OPERATORS, Operator
from .rewriting import split

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
    return np.array([(op, feature, a, b)], NODE)


@cache
def _node_of(name: str) -> bytes:
    return _node(OPERATORS[name].opcode).tobytes()


def _product(*factors: np.ndarray) -> np.ndarray:
    return reduce(partial(join, "*"), factors)


def product_of_powers(
    columns: Sequence[int], exponents: Sequence[float], operators: Mapping[str, float]
) -> np.ndarray | None:
    """Return a product of columns, each to a whole or half power; None where an operator for it
    is missing.
    """
    above: list[np.ndarray] = []
    below: list[np.ndarray] = []
    for column, exponent in zip(columns, exponents, strict=True):
        if (raised := power(leaf(column), abs(exponent), operators)) is None:
            return None
        (above if exponent > 0 else below).append(raised)
    if max(len(above), len(below)) > 1 and "*" not in operators:
        return None
    if not below:
        return _product(*above)
    if not above:
        if "inv" in operators:
            return join("inv", _product(*below))
        if "lt" not in operators:
            return None
        above.append(transform(leaf(columns[0]), 0.0, 1.0))  # a one to divide
    return join("/", _product(*above), _product(*below)) if "/" in operators else None


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
    trees = []
    for _ in range(n_terms):
        end = state_size(nodes, 1)
        trees.append(nodes[:end])
        nodes = nodes[end:]
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
    texts: list[str] = []
    for node in nodes[::-1]:
        op = int(node["op"])
        if op == opcodes.FEATURE:
            texts.append(f"x{node['feature']}")
            continue
        row = BY_OPCODE[op]
        inner = [texts.pop() for _ in range(row.arity)]
        if row.commutative:
            inner.sort()
        is_repeated = op == opcodes.LT and inner[0].startswith("lt(")
        texts.append(inner[0] if is_repeated else f"{row.name}({','.join(inner)})")
    text = texts.pop()
    while text.startswith(("lt(", "neg(")):
        text = text[text.index("(") + 1 : -1]
    return text


def writings(trees: Sequence[np.ndarray]) -> tuple[tuple[str, ...], float]:
    """Return what all writings of a structure have in common, and the log of how many there are.

    Terms may come in any order, and so may operands that change places.

    Examples
    --------
    >>> from symbayes.formula.trees import join, leaf, writings
    >>> writings([join("+", leaf(0), leaf(1)), leaf(2)])  # twice two of them
    (('+(x0,x1)', 'x2'), 1.386...)
    """
    texts, log_ways = [], math.lgamma(len(trees) + 1.0)
    for tree in trees:
        text, exchanged = _writings(tree["op"].tobytes(), tree["feature"].tobytes())
        texts.append(text)
        log_ways += exchanged * math.log(2.0)
    return tuple(sorted(texts)), log_ways


@lru_cache(maxsize=2**14)
def _writings(ops: bytes, features: bytes) -> tuple[str, int]:
    """Return a tree with its operands in order, and how many nodes may be written in two ways."""
    operands: list[str] = []
    n = 0
    columns = np.frombuffer(features, NODE["feature"])[::-1]
    for op, column in zip(np.frombuffer(ops, NODE["op"])[::-1].tolist(), columns, strict=True):
        if op == opcodes.FEATURE:
            operands.append(f"x{column}")
            continue
        row = BY_OPCODE[op]
        inner = [operands.pop() for _ in range(row.arity)]
        if row.commutative:
            # Constants tell operands apart that are the same otherwise.
            n += inner[0] != inner[1] or "lt(" in inner[0]
            inner.sort()
        operands.append(f"{row.name}({','.join(inner)})")
    return operands.pop(), n


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


# Made from an expression, without coefficients of terms and the intercept: the model has its own.


def term_tree(expression: Expression) -> np.ndarray | None:
    """Return an expression as one tree, up to a factor and a summand; None if it is constant."""
    return _part(expression)[1]


def term_trees(expression: Expression) -> list[np.ndarray]:
    """Return the trees of the terms of a sum, its coefficients and its constants left out.

    Examples
    --------
    >>> from symbayes.formula.parser import parse
    >>> [len(tree) for tree in term_trees(parse("2*sin(3*x0) - x1/4 + 5", ["x0", "x1"]))]
    [3, 1]
    """
    _, rest, _ = split(expression)
    if rest[0] in ("+", "-"):
        return [*term_trees(rest[1]), *term_trees(rest[2])]
    tree = term_tree(rest)
    return [] if tree is None else [tree]


# a, N and b of a value a N + b, where N is a tree without constants in front. Without a tree, it is
# the constant b.
_Part = tuple[float, np.ndarray | None, float]


def _nodes(part: _Part) -> np.ndarray:
    a, tree, b = part
    assert tree is not None
    return tree if (a, b) == (1.0, 0.0) else transform(tree, a, b)


def _part(expression: Expression) -> _Part:
    kind = expression[0]
    if kind == CONSTANT:
        return 0.0, None, float(expression[1])
    if kind == FEATURE:
        return 1.0, leaf(expression[1]), 0.0
    parts = [_part(operand) for operand in expression[1:]]
    if all(tree is None for _, tree, _ in parts):
        with np.errstate(all="ignore"):
            return 0.0, None, float(OPERATORS[kind].numpy(*(b for _, _, b in parts)))
    if len(parts) == 2:
        return _pair(kind, *parts)
    a, tree, b = parts[0]
    return (-a, tree, -b) if kind == "neg" else (1.0, join(kind, _nodes(parts[0])), 0.0)


def _pair(kind: str, left: _Part, right: _Part) -> _Part:
    """Return the value of a binary operator, at most one operand of which is a constant."""
    (a, x, b), (c, y, d) = left, right
    if kind in ("+", "-"):
        if kind == "-":
            c, d = -c, -d
        if x is None or y is None:
            return (c, y, b + d) if x is None else (a, x, b + d)
        if abs(c / a) == 1.0:
            return a, join("+" if c == a else "-", x, y), b + d
        return a, join("+", x, transform(y, c / a, 0.0)), b + d
    if y is None or (x is None and kind == "*"):
        a, x, b = left if y is None else right
        factor = (d if y is None else left[2]) if kind == "*" else 1.0 / d if d else np.inf
        return (a * factor, x, b * factor) if factor else (0.0, None, 0.0)
    if x is None:
        return b, join("inv", _nodes(right)), 0.0
    if b == d == 0.0:  # factors go in front
        return a * c if kind == "*" else a / c, join(kind, x, y), 0.0
    return 1.0, join(kind, _nodes(left), _nodes(right)), 0.0


# In normal form: `2*x/(3*x + 6)` is 2/3 times `x/(x + 2)`. The coefficient of a term takes the
# factor over, and the intercept what is added to it, so that fewer constants are left to show.
# Constants move up through products, ratios and powers, out of exp, and end at operators that do
# not let them pass.


def normal_form(tree: np.ndarray) -> np.ndarray:
    """Return a tree that is the given one up to a factor and an offset, with few transforms."""
    _, result = _factored(tree)
    if result["op"][0] == opcodes.LT and result["a"][0] != 0.0:
        result = result[1:]
    # (x + b)/x is 1 + b/x.
    if result["op"][0] == opcodes.DIV and result["op"][1] == opcodes.LT and result["b"][1] != 0.0:
        above, below = split_terms(result[1:], 2)
        if above[1:].tobytes() == below.tobytes():
            return join("inv", below)
    return result


def _factored(tree: np.ndarray) -> tuple[float, np.ndarray]:
    """Return a factor and a tree whose product is the given one."""
    op = int(tree["op"][0])
    if op == opcodes.FEATURE:
        return 1.0, tree
    row = BY_OPCODE[op]
    parts = [_factored(operand) for operand in split_terms(tree[1:], row.arity)]
    factor, result = parts[0]
    if op == opcodes.LT:
        factor *= float(tree["a"][0])
        b = float(tree["b"][0])
        if factor == 0.0 or not np.isfinite(b / factor):
            return 1.0, tree
        return factor, result if b == 0.0 else transform(result, 1.0, b / factor)
    if row.arity == 2:
        factor, result = _binary(row.name, *parts[0], *parts[1])
    else:
        factor, result = _unary(row, factor, result)
    return (1.0, tree) if factor == 0.0 or not np.isfinite(factor) else (factor, result)


def _unary(row: Operator, f: float, x: np.ndarray) -> tuple[float, np.ndarray]:
    """Return factor and tree of an operator on f x."""
    if row.name == "neg":
        return -f, x
    if row.exponent is not None and (f > 0.0 or row.exponent == int(row.exponent)):
        try:
            return f**row.exponent, join(row.name, x)
        except OverflowError:
            return np.inf, x
    if row.name == "abs":
        return abs(f), join("abs", x)
    inner = _times(f, x)
    if row.name == "exp" and inner["op"][0] == opcodes.LT:
        a, b = float(inner["a"][0]), float(inner["b"][0])
        return float(np.exp(b)), join("exp", _times(a, inner[1:]))
    return 1.0, join(row.name, inner)


def _binary(
    name: str, f: float, x: np.ndarray, g: float, y: np.ndarray
) -> tuple[float, np.ndarray]:
    """Return factor and tree of an operator on f x and g y."""
    if name in ("*", "/"):
        return f * g if name == "*" else f / g, join(name, x, y)
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
    if tree["op"][0] != opcodes.LT:
        return transform(tree, factor, 0.0)
    result = tree.copy()
    result["a"][0] *= factor
    result["b"][0] *= factor
    return result
