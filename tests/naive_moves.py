"""The slow twin of every move: all probabilities there and back are multiplied out.

Moves on one tree take and return a tree; moves between terms take and return a list of them.
Every one returns the log probability of what it drew, and of the definite way back.
"""

from __future__ import annotations

import math

from symbayes.formula.operators import BY_OPCODE
from symbayes.kernels import opcodes
from symbayes.kernels.moves.stay import _LARGEST, _SMALLEST

from .naive import TooLarge, Tree, draw_operator, draw_tree, log_prior

JUMPS = ("birth", "death", "split", "merge", "exchange")


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
    size = _SMALLEST * (_LARGEST / _SMALLEST) ** rng.uniform()
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


def jump_probabilities(n_terms, log_terms, beliefs):
    """Probabilities of the moves between terms, given p(K) for K = 0, 1, ..., most."""
    more = n_terms + 1 < len(log_terms) and log_terms[n_terms + 1] > -math.inf
    fewer = n_terms > 0 and log_terms[n_terms - 1] > -math.inf
    sums = sum_weight(beliefs) > 0
    return {
        "birth": (1.0 if n_terms == 0 else 0.1) * more,
        "death": 0.1 * fewer,
        "split": 0.02 * (more and sums and n_terms > 0),
        "merge": 0.02 * (fewer and sums and n_terms > 1),
        "exchange": 0.04 * (n_terms > 1),
    }


def sum_weight(beliefs):
    return beliefs.operator_weights[opcodes.ADD] + beliefs.operator_weights[opcodes.SUB]


def split(rng, trees, beliefs, log_terms):
    k = len(trees)
    place = rng.integer(k)
    top = trees[place]
    if top.op not in (opcodes.ADD, opcodes.SUB):
        raise TooLarge
    second_place = rng.integer(k + 1)
    left, right = top.children
    new = [*trees, right]
    new[place] = left
    new[second_place], new[k] = new[k], new[second_place]
    chosen = jump_probabilities(k, log_terms, beliefs)["split"]
    undone = jump_probabilities(k + 1, log_terms, beliefs)["merge"]
    there = math.log(chosen) - math.log(k) - math.log(k + 1)
    share = beliefs.operator_weights[top.op] / sum_weight(beliefs)
    back = math.log(undone) - math.log(k + 1) - math.log(k) + math.log(share)
    return new, there, back, (place, second_place)


def merged(trees, place, second_place, op):
    """Take the second term out, the last one takes its place, and the sum goes to `place`."""
    rest = list(trees)
    second = rest[second_place]
    rest[second_place] = rest[-1]
    rest.pop()
    rest[place] = Tree(op, children=[rest[place], second])
    return rest


def merge(rng, trees, beliefs, log_terms):
    k = len(trees)
    second_place, place = rng.integer(k), rng.integer(k - 1)
    if merged(trees, place, second_place, opcodes.ADD)[place].size() > beliefs.max_nodes:
        raise TooLarge
    plus = beliefs.operator_weights[opcodes.ADD]
    op = opcodes.ADD if rng.uniform() * sum_weight(beliefs) < plus else opcodes.SUB
    new = merged(trees, place, second_place, op)
    chosen = jump_probabilities(k, log_terms, beliefs)["merge"]
    undone = jump_probabilities(k - 1, log_terms, beliefs)["split"]
    share = beliefs.operator_weights[op] / sum_weight(beliefs)
    there = math.log(chosen) - math.log(k) - math.log(k - 1) + math.log(share)
    back = math.log(undone) - math.log(k - 1) - math.log(k)
    return new, there, back, (place, second_place)


def exchange(rng, trees, beliefs, log_terms):
    k = len(trees)
    p = rng.integer(k)
    q = rng.integer(k - 1)
    q += q >= p
    first, second = list(trees[p].preorder()), list(trees[q].preorder())
    i, j = first[rng.integer(len(first))], second[rng.integer(len(second))]
    new = list(trees)
    new[p], new[q] = replace(trees[p], i, j), replace(trees[q], j, i)
    if not (fits(new[p], beliefs) and fits(new[q], beliefs)):
        raise TooLarge
    there = -math.log(len(first)) - math.log(len(second))
    back = -math.log(new[p].size()) - math.log(new[q].size())
    return new, there, back, (p, q)


def log_ratio_of_terms(trees, new, there, back, beliefs, log_terms):
    """Log of prior ratio times proposal ratio of a move between terms."""

    def log_prior_of(state):
        return log_terms[len(state)] + sum(log_prior(tree, beliefs) for tree in state)

    return log_prior_of(new) - log_prior_of(trees) + back - there
