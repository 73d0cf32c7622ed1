"""A slow, plain twin of the kernels: trees as objects, random numbers as Python integers.

Where the kernels use cancelled formulas, the twin multiplies out every probability: the prior of
both trees, of everything that is drawn, and of the definite way back. Equal numbers on random
trees then say that the cancellations are right. Random numbers are consumed in the same order.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from symbayes.formula.operators import BY_OPCODE, OPERATORS
from symbayes.kernels import opcodes
from symbayes.kernels.tree import NODE

MASK = 2**64 - 1


class Random:
    """xoshiro256** on Python integers."""

    def __init__(self, state):
        self.s = [int(v) for v in state]

    def bits(self):
        def rotate(x, k):
            return ((x << k) | (x >> (64 - k))) & MASK

        s = self.s
        result = (rotate((s[1] * 5) & MASK, 7) * 9) & MASK
        t = (s[1] << 17) & MASK
        s[2] ^= s[0]
        s[3] ^= s[1]
        s[1] ^= s[2]
        s[0] ^= s[3]
        s[2] ^= t
        s[3] = rotate(s[3], 45)
        return result

    def uniform(self):
        return (self.bits() >> 11) * 2.0**-53

    def integer(self, n):
        return int(self.uniform() * n)

    def normal(self):
        radius = math.sqrt(-2.0 * math.log(1.0 - self.uniform()))
        return radius * math.cos(2.0 * math.pi * self.uniform())

    def pick(self, weights):
        u = self.uniform()
        total = 0.0
        for i, w in enumerate(weights):
            total += w
            if u < total:
                return i
        return max(i for i, w in enumerate(weights) if w > 0)


@dataclass
class Tree:
    op: int = 0
    feature: int = 0
    a: float = 0.0
    b: float = 0.0
    children: list[Tree] = field(default_factory=list)

    def preorder(self):
        yield self
        for child in self.children:
            yield from child.preorder()

    def copy(self):
        return Tree(self.op, self.feature, self.a, self.b, [c.copy() for c in self.children])

    def size(self):
        return sum(1 for _ in self.preorder())

    def operators(self):
        return [node for node in self.preorder() if node.op]

    def terminals(self):
        return [node for node in self.preorder() if not node.op]

    def transforms(self):
        return [node for node in self.preorder() if node.op == opcodes.LT]

    def depth_of(self, wanted, depth=0):
        if self is wanted:
            return depth
        for child in self.children:
            found = child.depth_of(wanted, depth + 1)
            if found is not None:
                return found
        return None


def to_nodes(tree):
    nodes = np.zeros(tree.size(), NODE)
    for i, node in enumerate(tree.preorder()):
        nodes[i] = (node.op, node.feature, node.a, node.b)
    return nodes


def from_nodes(nodes):
    def build(i):
        op = int(nodes[i]["op"])
        tree = Tree(op, int(nodes[i]["feature"]), float(nodes[i]["a"]), float(nodes[i]["b"]))
        i += 1
        for _ in range(BY_OPCODE[op].arity if op else 0):
            child, i = build(i)
            tree.children.append(child)
        return tree, i

    return build(0)[0]


def same(first, second):
    return (
        (first.op, first.feature, first.a, first.b)
        == (second.op, second.feature, second.a, second.b)
        and len(first.children) == len(second.children)
        and all(same(p, q) for p, q in zip(first.children, second.children, strict=True))
    )


@dataclass
class Beliefs:
    """The prior, as plain numbers."""

    operator_weights: list[float]  # by opcode
    feature_weights: list[float]
    alpha: float
    beta: float
    max_nodes: int
    scales: tuple[float, float] = (1.0, 1.0)
    move_shape: tuple[float, float] = (0.25, 3.0)

    def split(self, depth):
        return self.alpha * (1.0 + depth) ** -self.beta


def is_allowed(tree, max_depth=None, nesting=None):
    """Whether a tree keeps to limits on its levels and on operators inside operators, by name."""

    def levels(node):
        return 1 + max((levels(child) for child in node.children), default=0)

    def most_inside(node, op):
        """The largest number of such operators on a way down from the node, itself included."""
        return (node.op == op) + max((most_inside(child, op) for child in node.children), default=0)

    if max_depth is not None and levels(tree) > max_depth:
        return False
    for node in tree.operators():
        for inner, most in (nesting or {}).get(BY_OPCODE[node.op].name, {}).items():
            op = OPERATORS[inner].opcode
            if max(most_inside(child, op) for child in node.children) > most:
                return False
    return True


def are_sensible(values):
    """Whether terms with these values on the probe rows, one row for each, are sensible."""
    known, box, moved = np.split(values, 3, axis=1)
    low, high = known.min(axis=1, keepdims=True), known.max(axis=1, keepdims=True)
    with np.errstate(all="ignore"):
        extent = high - low
        far = (box < low - 10 * extent) | (box > high + 10 * extent)
        deviation = extent[:, 0] * np.std((known - low) / extent, axis=1)
        changed = np.abs(moved - box) > 0.5 * deviation[:, None]
    some = (far.sum(axis=1) <= 6) & (changed.sum(axis=1) <= 4) | (extent[:, 0] == 0)
    return np.isfinite(known).all(axis=1) & np.isfinite(extent[:, 0]) & some


def keep_digits(total, first, second):
    """Whether sums do not cancel too far, given values of them and of their parts, in rows."""
    with np.errstate(all="ignore"):
        total, first, second = (np.ptp(values, axis=1) for values in (total, first, second))
        return (300 * total >= first) & (300 * total >= second)


def is_sensible(tree, rows):
    """Whether a tree is sensible on probe rows."""
    if not tree.op:
        return True
    values = {id(node): evaluate(node, rows)[None] for node in tree.preorder()}
    result = bool(are_sensible(values[id(tree)])[0])
    for node in tree.operators():
        if node.op in (opcodes.ADD, opcodes.SUB):
            known = [values[id(part)][:, : len(rows) // 3] for part in (node, *node.children)]
            result &= bool(keep_digits(*known)[0])
        if node.op == opcodes.EXP:
            with np.errstate(all="ignore"):
                inside = values[id(node.children[0])][:, : len(rows) // 3]
                result &= bool(np.ptp(inside) <= 200)
    return result


def count_nested(tree, waves=0, exponentials=0, power=1):
    """How many operators of a tree lie where they have a price."""
    name = BY_OPCODE[tree.op].name if tree.op else ""
    power *= {"square": 2, "cube": 3}.get(name, 1)
    nested = 0
    if name in ("sin", "cos", "tan"):
        nested, waves = int(waves > 0), waves + 1
    elif name == "exp":
        nested, exponentials = int(waves + exponentials > 0), exponentials + 1
    elif name in ("square", "cube"):
        nested = int(power > 6)
    return nested + sum(count_nested(c, waves, exponentials, power) for c in tree.children)


class TooLarge(Exception):
    pass


def draw_tree(rng, beliefs, depth, room, operator_first=False):
    """Draw a subtree; `room` is a list with the number of nodes that still fit."""
    if room[0] <= 0:
        raise TooLarge
    room[0] -= 1
    if operator_first or rng.uniform() < beliefs.split(depth):
        tree = draw_operator(rng, beliefs)
        for _ in range(BY_OPCODE[tree.op].arity):
            tree.children.append(draw_tree(rng, beliefs, depth + 1, room))
        return tree
    return Tree(0, rng.pick(beliefs.feature_weights))


def draw_operator(rng, beliefs):
    tree = Tree(rng.pick(beliefs.operator_weights))
    if tree.op == opcodes.LT:
        tree.a = 1.0 + math.sqrt(beliefs.scales[0]) * rng.normal()
        tree.b = math.sqrt(beliefs.scales[1]) * rng.normal()
    return tree


def log_prior(tree, beliefs, depth=0):
    """Log prior of the structure: shape, operators, features."""
    if tree.op == 0:
        return math.log(1.0 - beliefs.split(depth)) + math.log(
            beliefs.feature_weights[tree.feature]
        )
    own = math.log(beliefs.split(depth)) + math.log(beliefs.operator_weights[tree.op])
    return own + sum(log_prior(child, beliefs, depth + 1) for child in tree.children)


def log_shape(tree, beliefs, depth=0):
    """Log prior of the shape alone: which nodes are operators."""
    if tree.op == 0:
        return math.log(1.0 - beliefs.split(depth))
    below = sum(log_shape(child, beliefs, depth + 1) for child in tree.children)
    return math.log(beliefs.split(depth)) + below


def log_urn(counts, concentration):
    """Log probability of a sequence with these counts, its weights integrated out (Polya's urn)."""
    total, n = sum(concentration), sum(counts)
    return (
        math.lgamma(total)
        - math.lgamma(total + n)
        + sum(
            math.lgamma(c + k) - math.lgamma(c)
            for c, k in zip(concentration, counts, strict=True)
            if k
        )
    )


def node_counts(trees, n_operators, n_features):
    """How often each operator and each column occurs in all trees together."""
    operators, features = [0] * n_operators, [0] * n_features
    for tree in trees:
        for node in tree.preorder():
            if node.op:
                operators[node.op] += 1
            else:
                features[node.feature] += 1
    return operators, features


def evaluate(tree, X):
    """Value on the rows of a table, by NumPy."""
    if tree.op == 0:
        return X[:, tree.feature].copy()
    operands = [evaluate(child, X) for child in tree.children]
    with np.errstate(all="ignore"):
        if tree.op == opcodes.LT:
            return tree.a * operands[0] + tree.b
        return BY_OPCODE[tree.op].numpy(*operands)


def columns_of(trees, X):
    """Return the values of the trees, or None when one is not finite or constant."""
    values = [evaluate(tree, X) for tree in trees]
    for v in values:
        if not np.isfinite(v).all() or np.std(v) <= 1e-10 * np.sqrt(np.mean(v**2)):
            return None
    return values


def fit(values, y, weights):
    """Weighted least squares with an intercept; residual sum of squares and rank."""
    root = np.sqrt(weights)
    design = np.column_stack([np.ones(len(y)), *values]) * root[:, None]
    norms = np.linalg.norm(design, axis=0)
    solution, _, rank, _ = np.linalg.lstsq(design / norms, y * root, rcond=1e-6)
    return float(np.sum((y * root - design / norms @ solution) ** 2)), int(rank)


def scaled(y, weights):
    """Y as the likelihoods see it: centred, of unit variance."""
    centred = y - np.average(y, weights=weights)
    return centred / np.sqrt(np.average(centred**2, weights=weights))


def collapsed_log_likelihood(trees, X, y, weights, nu, lam):
    """Log-likelihood with coefficients and noise integrated out; -inf where not possible."""
    values = columns_of(trees, X)
    if values is None:
        return -math.inf
    rss, rank = fit(values, scaled(y, weights), weights)
    if rank < len(trees) + 1:
        return -math.inf
    n = float(np.sum(weights))
    return -0.5 * len(trees) * math.log(1 + n) - 0.5 * (n - 1 + nu) * math.log(nu * lam + rss)
