"""A slow, plain twin of the kernels: trees as objects, random numbers as Python integers.

Where the kernels use cancelled formulas, the twin multiplies out every probability: the prior of
both trees, of everything that is drawn, and of the definite way back. Equal numbers on random
trees then say that the cancellations are right. Random numbers are consumed in the same order.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from symbayes.kernels import opcodes
from symbayes.kernels.tree import NODE
from symbayes.operators import BY_OPCODE

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


def heirs(tree, node):
    """Children that may take the place of an operator when it is deleted."""
    if node is tree:
        return [child for child in node.children if child.op]
    return list(node.children)


def candidates(tree):
    return [node for node in tree.operators() if heirs(tree, node)]


def move_probabilities(tree, beliefs):
    n_lt, n_op, n_c = len(tree.transforms()), len(tree.operators()), len(candidates(tree))
    p0 = beliefs.move_shape[0] * n_lt / (n_lt + beliefs.move_shape[1])
    third = (1 - p0) / 3
    grow = third * min(0.5, 8 / (n_op + 2))
    delete = third * n_c / (n_c + 3)
    return [p0, grow, third - grow, third - delete, delete, third / 2, third / 2]


def replace(tree, old, new):
    """Return the tree with the node `old` replaced (by identity)."""
    if tree is old:
        return new
    result = Tree(tree.op, tree.feature, tree.a, tree.b)
    result.children = [replace(child, old, new) for child in tree.children]
    return result


def fits(tree, beliefs):
    return tree.size() <= beliefs.max_nodes


def grow(rng, tree, beliefs):
    terminals = tree.terminals()
    place = terminals[rng.integer(len(terminals))]
    depth = tree.depth_of(place)
    before = list(tree.preorder())
    position = next(i for i, node in enumerate(before) if node is place)
    room = [beliefs.max_nodes - position]
    subtree = draw_tree(rng, beliefs, depth, room, operator_first=True)
    new = replace(tree, place, subtree)
    if not fits(new, beliefs):
        raise TooLarge
    log_subtree = log_prior(subtree, beliefs, depth) - math.log(beliefs.split(depth))
    there = -math.log(len(terminals)) + log_subtree
    back = -math.log(len(new.operators())) + math.log(beliefs.feature_weights[place.feature])
    return new, there, back


def prune(rng, tree, beliefs):
    operators = tree.operators()
    if not operators:
        raise TooLarge
    place = operators[rng.integer(len(operators))]
    depth = tree.depth_of(place)
    terminal = Tree(0, rng.pick(beliefs.feature_weights))
    new = replace(tree, place, terminal)
    there = -math.log(len(operators)) + math.log(beliefs.feature_weights[terminal.feature])
    log_subtree = log_prior(place, beliefs, depth) - math.log(beliefs.split(depth))
    back = -math.log(len(new.terminals())) + log_subtree
    return new, there, back


def insert(rng, tree, beliefs):
    nodes = list(tree.preorder())
    position = rng.integer(len(nodes))
    place = nodes[position]
    depth = tree.depth_of(place)
    if position >= beliefs.max_nodes:
        raise TooLarge
    top = draw_operator(rng, beliefs)
    there = -math.log(len(nodes)) + math.log(beliefs.operator_weights[top.op])
    kept = place.copy()
    room = beliefs.max_nodes - position - 1
    if BY_OPCODE[top.op].arity == 2:
        if rng.uniform() < 0.5:
            other = draw_tree(rng, beliefs, depth + 1, [room])
            top.children = [other, kept]
        else:
            if kept.size() > room:
                raise TooLarge
            other = draw_tree(rng, beliefs, depth + 1, [room - kept.size()])
            top.children = [kept, other]
        there += math.log(0.5) + log_prior(other, beliefs, depth + 1)
    else:
        top.children = [kept]
    new = replace(tree, place, top)
    if not fits(new, beliefs):
        raise TooLarge
    if not any(heir is kept for heir in heirs(new, top)):
        raise TooLarge
    back = -math.log(len(candidates(new))) - math.log(len(heirs(new, top)))
    return new, there, back


def delete(rng, tree, beliefs):
    options = candidates(tree)
    if not options:
        raise TooLarge
    place = options[rng.integer(len(options))]
    depth = tree.depth_of(place)
    possible = heirs(tree, place)
    kept = possible[0]
    if len(possible) == 2:
        kept = possible[1] if rng.uniform() < 0.5 else possible[0]
    new = replace(tree, place, kept)
    there = -math.log(len(options)) - math.log(len(possible))
    back = -math.log(new.size()) + math.log(beliefs.operator_weights[place.op])
    for child in place.children:
        if child is not kept:
            back += math.log(0.5) + log_prior(child, beliefs, depth + 1)
    return new, there, back


def reassign_operator(rng, tree, beliefs):
    operators = tree.operators()
    if not operators:
        raise TooLarge
    place = operators[rng.integer(len(operators))]
    depth = tree.depth_of(place)
    position = next(i for i, node in enumerate(tree.preorder()) if node is place)
    top = draw_operator(rng, beliefs)
    if top.op == place.op == opcodes.LT:
        top.a, top.b = place.a, place.b
    there = -math.log(len(operators)) + math.log(beliefs.operator_weights[top.op])
    back = math.log(beliefs.operator_weights[place.op])
    top.children = [place.children[0]]
    if BY_OPCODE[top.op].arity == 2:
        if len(place.children) == 2:
            top.children.append(place.children[1])
        else:
            room = beliefs.max_nodes - position - 1 - place.children[0].size()
            added = draw_tree(rng, beliefs, depth + 1, [room])
            there += log_prior(added, beliefs, depth + 1)
            top.children.append(added)
    elif len(place.children) == 2:
        back += log_prior(place.children[1], beliefs, depth + 1)
    new = replace(tree, place, top)
    if not fits(new, beliefs):
        raise TooLarge
    back -= math.log(len(new.operators()))
    return new, there, back


def reassign_feature(rng, tree, beliefs):
    terminals = tree.terminals()
    place = terminals[rng.integer(len(terminals))]
    terminal = Tree(0, rng.pick(beliefs.feature_weights))
    new = replace(tree, place, terminal)
    there = -math.log(len(terminals)) + math.log(beliefs.feature_weights[terminal.feature])
    back = -math.log(len(terminals)) + math.log(beliefs.feature_weights[place.feature])
    return new, there, back


def stay(rng, tree, beliefs):
    transforms = tree.transforms()
    if not transforms:
        raise TooLarge
    place = transforms[rng.integer(len(transforms))]
    moved = place.copy()
    which = rng.uniform()
    size = 1e-8 * (3.0 / 1e-8) ** rng.uniform()
    if which < 2 / 3:
        moved.a += size * rng.normal()
    if which > 1 / 3:
        moved.b += size * rng.normal()
    new = replace(tree, place, moved)

    def density(node):
        s_a, s_b = beliefs.scales
        return -((node.a - 1) ** 2) / (2 * s_a) - node.b**2 / (2 * s_b)

    # Symmetric; the ratio of densities is written as if it were one of proposals.
    return new, density(place), density(moved)


MOVES = [stay, grow, prune, insert, delete, reassign_operator, reassign_feature]


def log_ratio(move, tree, new, there, back, beliefs):
    """Log of prior ratio times proposal ratio, everything multiplied out."""
    if MOVES[move] is stay:
        return back - there
    return log_prior(new, beliefs) - log_prior(tree, beliefs) + back - there


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
