"""Moves between terms against their twins: the same trees, places and log ratios."""

from __future__ import annotations

import math

import numpy as np
import pytest

from symbayes.inputs.prior import TermsPrior, TreePrior
from symbayes.kernels import opcodes
from symbayes.kernels.moves.choice import BIRTH, DEATH, EXCHANGE, MERGE, SPLIT
from symbayes.kernels.moves.propose import propose
from symbayes.kernels.tree import NODE, Trees

from .. import naive, naive_moves
from ..exact import loops
from ..problems import beliefs, problem, table
from .calling import constants_of, generator_state, jumps, shape_of, take_back
from .test_moves import assert_same_nodes, random_trees

SUMS = {"+": 2.0, "-": 1.0, "*": 1.0, "sin": 1.5, "lt": 1.0}
FOUR = TermsPrior(4, 0.3)
M = 9
# The number of a move, and which of its swaps have the first and the second place.
KERNELS = {"split": (SPLIT, 0, 2), "merge": (MERGE, 1, 0), "exchange": (EXCHANGE, 0, 1)}


@pytest.fixture(scope="module", autouse=True)
def compiled():
    loops.compile_units()


def proposed_by(name, state, nodes, slots, n_terms, prior, scratch):
    """Return the log ratio and two places; the order of terms is as it was."""
    move, first, second = KERNELS[name]
    got = propose(move, state, Trees(nodes, slots, n_terms), 0, prior, scratch)
    swaps = scratch.swaps.tolist()
    take_back(slots, scratch.swaps)
    return got, swaps[1 + 2 * first], swaps[1 + 2 * second]


def setup(terms=FOUR, operators=SUMS):
    made = problem(
        table(n_features=2), operators, terms=terms,
        tree_prior=TreePrior(alpha=0.8, beta=0.7, max_nodes=M), feature_weights=[1.0, 2.0],
    )  # fmt: skip
    prior = made.new_prior((0.25, 3.0))
    prior.scales[:] = [0.7, 1.9]
    return made, prior, beliefs(made, (0.7, 1.9))


def states(believed, n, fewest, most, seed):
    """Lists of random trees, of all lengths."""
    trees = iter(random_trees(believed, n * most, seed))
    return [[next(trees) for _ in range(fewest + i % (most - fewest + 1))] for i in range(n)]


def place(trees, made, order):
    """Put trees into slots in some order; return nodes and slots."""
    nodes = np.zeros((made.most_terms + 2) * M, NODE)
    slots = np.array(order)
    for slot, tree in zip(slots, trees, strict=False):
        nodes[slot * M : slot * M + tree.size()] = naive.to_nodes(tree)
    return nodes, slots


@pytest.mark.parametrize("move", KERNELS)
def test_move_equals_its_twin(move):
    made, prior, believed = setup()
    log_terms = prior.log_terms.tolist()
    scratch = made.new_scratch().moves
    shuffle = np.random.default_rng(len(move))
    impossible = 0
    seen = {}
    fewest, most = (1, 3) if move == "split" else (2, 4)
    for i, trees in enumerate(states(believed, 500, fewest, most, seed=len(move))):
        state = generator_state(i)
        twin_rng = naive.Random(state)
        nodes, slots = place(trees, made, shuffle.permutation(made.most_terms + 2))
        before, order = nodes.copy(), slots.copy()
        got, *places = proposed_by(move, state, nodes, slots, len(trees), prior, scratch)
        try:
            new, there, back, expected_places = getattr(naive_moves, move)(
                twin_rng, trees, believed, log_terms
            )
        except naive.TooLarge:
            assert got == -math.inf
            impossible += 1
            continue
        expected = naive_moves.log_ratio_of_terms(trees, new, there, back, believed, log_terms)
        assert got == pytest.approx(expected, abs=1e-11)
        assert tuple(places) == expected_places
        assert list(map(int, state)) == twin_rng.s
        np.testing.assert_array_equal(slots, order)
        for slot in slots[:-2]:  # only the spare slots are written to
            at = slice(slot * M, (slot + 1) * M)
            np.testing.assert_array_equal(nodes[at], before[at])
        # What stands in the spare slots, by the place it is meant for.
        p, q = places
        last, other = slots[-1] * M, slots[-2] * M
        if move == "merge":
            proposed = {p: last}
        elif move == "exchange":
            proposed = {p: last, q: other}
        else:
            proposed = {q: other, (len(trees) if p == q else p): last}
        for at, start in proposed.items():
            expected_nodes = naive.to_nodes(new[at])
            assert_same_nodes(nodes[start : start + len(expected_nodes)], expected_nodes)
        seen[(len(trees), *places)] = True
    assert impossible > 20
    assert len(seen) > 10  # all places were met: first, last, the same


def test_split_is_undone_by_the_merge_it_reckons_with():
    _, prior, believed = setup()
    log_terms = prior.log_terms.tolist()
    done = 0
    for i, trees in enumerate(states(believed, 200, 1, 3, seed=2)):
        rng = naive.Random(generator_state(i))
        try:
            new, _, _, (p, q) = naive_moves.split(rng, trees, believed, log_terms)
        except naive.TooLarge:
            continue
        again = naive_moves.merged(new, p, q, trees[p].op)
        assert all(naive.same(one, two) for one, two in zip(again, trees, strict=True))
        done += 1
    assert done > 50


def test_shape_and_constants_equal_the_twins():
    made, prior, believed = setup()
    pending = made.new_scratch().moves.pending
    for i, tree in enumerate(random_trees(believed, 100, seed=9)):
        nodes = np.zeros(2 * M, NODE)
        nodes[2 : 2 + tree.size()] = naive.to_nodes(tree)
        depth = i % 3
        got = shape_of(nodes, 2, np.int64(depth), prior, pending)
        assert got == pytest.approx(naive.log_shape(tree, believed, depth), abs=1e-12)
        expected = sum(
            -0.5 * ((t.a - 1) ** 2 / 0.7 + math.log(2 * math.pi * 0.7))
            - 0.5 * (t.b**2 / 1.9 + math.log(2 * math.pi * 1.9))
            for t in tree.transforms()
        )
        assert constants_of(nodes, 2, prior) == pytest.approx(expected, abs=1e-12)


NO_SUMS = {"*": 1.0, "sin": 1.0}


@pytest.mark.parametrize(
    ("terms", "operators", "n_terms"),
    [
        *[(TermsPrior(3, 0.5), SUMS, k) for k in range(4)],
        (TermsPrior(3, 0.5), {"-": 1.0, "sin": 1.0}, 2),
        (TermsPrior(3, 0.5), NO_SUMS, 2),
        (TermsPrior(1, 0.5), SUMS, 1),
        (1, SUMS, 1),
        (2, SUMS, 2),
    ],
)
def test_jumps_are_tried_with_their_probabilities(terms, operators, n_terms):
    _, prior, believed = setup(terms, operators)
    expected = naive_moves.jump_probabilities(n_terms, prior.log_terms.tolist(), believed)
    expected = [*(expected[name] for name in naive_moves.JUMPS)]
    expected = np.array([*expected, 1.0 - sum(expected)])
    assert np.all(expected >= 0)
    out = np.zeros(20_000, np.int64)
    jumps(generator_state(n_terms), n_terms, prior, out)
    seen = np.array([np.mean(out == m) for m in (BIRTH, DEATH, SPLIT, MERGE, EXCHANGE, -1)])
    # Six standard errors: false alarm below 1e-7 for all of them together.
    assert np.all(np.abs(seen - expected) <= 6 * np.sqrt(expected * (1 - expected) / len(out)))


def test_without_plus_or_minus_only_the_other_is_made():
    for name, op in (("+", opcodes.ADD), ("-", opcodes.SUB)):
        made, prior, believed = setup(operators={name: 1.0, "sin": 1.0})
        scratch = made.new_scratch().moves
        for i, trees in enumerate(states(believed, 40, 2, 2, seed=4)):
            nodes, slots = place(trees, made, np.arange(made.most_terms + 2))
            got, *_ = proposed_by("merge", generator_state(i), nodes, slots, 2, prior, scratch)
            if got > -math.inf:
                assert nodes[slots[-1] * M]["op"] == op
