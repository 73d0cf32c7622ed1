"""Every move against its twin: the same tree and the same log ratio, on random trees."""

from __future__ import annotations

import math

import numpy as np
import pytest

from symbayes.inputs.prior import TreePrior
from symbayes.kernels.moves.choice import MOVE_NAMES, N_MOVES
from symbayes.kernels.moves.propose import propose
from symbayes.kernels.tree import NODE, Trees

from .. import naive, naive_moves
from ..exact import loops
from ..problems import beliefs, problem, table
from .calling import (
    choice_probability,
    chosen,
    describe,
    draw,
    generator_state,
    reverse,
    same,
    shift_of,
)

ALL = {"+": 1.0, "/": 0.5, "sin": 2.0, "lt": 1.5, "square": 0.7}


@pytest.fixture(scope="module", autouse=True)
def compiled():
    loops.compile_units()


def setup(max_nodes=9, alpha=0.7, beta=0.4, operators=ALL):
    made = problem(
        table(n_features=3),
        operators,
        tree_prior=TreePrior(alpha=alpha, beta=beta, max_nodes=max_nodes),
        feature_weights=[1.0, 2.0, 3.0],
    )
    prior = made.new_prior((0.25, 3.0))
    prior.scales[:] = [0.7, 1.9]
    return made, prior, beliefs(made, (0.7, 1.9))


def random_trees(believed, n, seed):
    rng = naive.Random(generator_state(seed))
    trees = []
    while len(trees) < n:
        try:
            trees.append(naive.draw_tree(rng, believed, 0, [believed.max_nodes]))
        except naive.TooLarge:
            continue
    return trees


def assert_same_nodes(got, expected):
    """Structure to the letter, constants up to the rounding of fused multiplications."""
    assert got["op"].tolist() == expected["op"].tolist()
    assert got["feature"].tolist() == expected["feature"].tolist()
    np.testing.assert_allclose(got["a"], expected["a"], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(got["b"], expected["b"], rtol=1e-12, atol=1e-12)


def log_choice_ratio(move, tree, new, believed):
    """Log of the probabilities of choosing the reverse, back, and the move, there."""
    there = naive_moves.move_probabilities(tree, believed)[move]
    back = naive_moves.move_probabilities(new, believed)[reverse(move)]
    return math.log(back / there)


@pytest.mark.parametrize("move", range(7), ids=MOVE_NAMES[:7])
def test_move_equals_its_twin(move):
    made, prior, believed = setup()
    scratch = made.new_scratch().moves
    M = believed.max_nodes
    nodes = np.zeros(3 * M, NODE)  # the term, and two spare slots
    impossible = changed = 0
    for i, tree in enumerate(random_trees(believed, 400, seed=move)):
        state = generator_state(1000 * move + i)
        twin_rng = naive.Random(state)
        nodes[: tree.size()] = naive.to_nodes(tree)
        slots = np.array([0, 2, 1])
        got = propose(move, state, Trees(nodes, slots, 1), 0, prior, scratch)
        try:
            new, there, back = naive_moves.MOVES[move](twin_rng, tree, believed)
        except naive.TooLarge:
            assert got == -math.inf
            assert slots.tolist() == [0, 2, 1]
            impossible += 1
            continue
        assert got != -math.inf
        assert slots.tolist() == [1, 2, 0]  # the new tree is the term
        assert_same_nodes(nodes[M : M + new.size()], naive.to_nodes(new))
        expected = naive_moves.log_ratio(move, tree, new, there, back, believed)
        expected += log_choice_ratio(move, tree, new, believed)
        assert got == pytest.approx(expected, abs=1e-11)
        assert list(map(int, state)) == twin_rng.s  # the same random numbers were used
        np.testing.assert_array_equal(nodes[: tree.size()], naive.to_nodes(tree))
        assert same(nodes, 0, M) == naive.same(tree, new)
        changed += not naive.same(tree, new)
    assert changed > 50  # otherwise nothing was tested
    if move in (1, 3, 5):
        assert impossible > 5  # the cap on the size is met


def test_there_and_back_are_inverse():
    """The ratio of a move and of its reverse at the same place cancel: grow and prune."""
    scratch = setup()[0].new_scratch().moves
    _, prior, believed = setup()
    for tree in random_trees(believed, 50, seed=5):
        operators = len(tree.operators())
        if operators == 0:
            continue
        root_probability = believed.split(0)
        up = math.log(root_probability / (1 - root_probability)) + math.log(1) - math.log(operators)
        up += log_choice_ratio(1, naive.Tree(0, 0), tree, believed)
        # Pruning at the root leaves one terminal; growing it back is the inverse.
        M = believed.max_nodes
        nodes = np.zeros(3 * M, NODE)
        nodes[: tree.size()] = naive.to_nodes(tree)
        for seed in range(60):
            trees = Trees(nodes, np.array([0, 2, 1]), 1)
            got = propose(2, generator_state(seed), trees, 0, prior, scratch)
            if nodes[M]["op"] == 0:
                assert got == pytest.approx(-up, abs=1e-12)
                break
        else:
            assert operators > 5


def test_trees_are_described_as_by_the_twin():
    _, _, believed = setup()
    for tree in random_trees(believed, 200, seed=11):
        nodes = np.zeros(40, NODE)
        nodes[3 : 3 + tree.size()] = naive.to_nodes(tree)
        out = np.zeros(40, np.int64)
        describe(nodes, 3, out)
        size = tree.size()
        heirs = len(naive_moves.heirs(tree, tree)) if tree.op else 0
        expected = [
            len(tree.operators()), len(tree.transforms()), size,
            len(naive_moves.candidates(tree)), heirs, 3 + size,
        ]  # fmt: skip
        assert out[:6].tolist() == expected
        depths = [tree.depth_of(node) for node in tree.preorder()]
        assert out[6 : 6 + size].tolist() == depths


def test_draws_and_shifts_equal_the_twins():
    made, prior, believed = setup()
    pending = made.new_scratch().moves.pending
    M = believed.max_nodes
    too_large = 0
    for seed in range(300):
        state = generator_state(seed)
        twin_rng = naive.Random(state)
        nodes = np.zeros(M, NODE)
        depth, first = seed % 3, seed % 2 == 0
        end = draw(state, nodes, 0, M, np.int64(depth), first, prior, pending)
        try:
            tree = naive.draw_tree(twin_rng, believed, depth, [M], first)
        except naive.TooLarge:
            assert end == -1
            too_large += 1
            continue
        assert end == tree.size()
        assert_same_nodes(nodes[:end], naive.to_nodes(tree))
        got = shift_of(nodes, 0, np.int64(depth), prior, pending)
        deeper = naive.log_prior(tree, believed, depth + 1) - naive.log_prior(tree, believed, depth)
        assert got == pytest.approx(deeper, abs=1e-12)
    assert 3 < too_large < 250


def test_move_probabilities_equal_the_twins_and_sum_to_one():
    _, prior, believed = setup(max_nodes=25, alpha=0.9, beta=0.2)
    for tree in random_trees(believed, 100, seed=3):
        nodes = np.zeros(25, NODE)
        nodes[: tree.size()] = naive.to_nodes(tree)
        got = [choice_probability(move, nodes, 0, prior) for move in range(7)]
        assert got == pytest.approx(naive_moves.move_probabilities(tree, believed), abs=1e-14)
        assert sum(got) == pytest.approx(1.0, abs=1e-14)


def test_moves_are_chosen_with_their_probabilities():
    _, prior, believed = setup()
    tree = next(t for t in random_trees(believed, 50, seed=8) if len(t.transforms()) == 2)
    nodes = np.zeros(9, NODE)
    nodes[: tree.size()] = naive.to_nodes(tree)
    out = np.zeros(20_000, np.int64)
    chosen(generator_state(2), nodes, 0, prior, out)
    expected = np.array(naive_moves.move_probabilities(tree, believed))
    seen = np.bincount(out, minlength=7) / len(out)
    # Six standard errors: false alarm below 1e-8 for all seven together.
    assert np.all(np.abs(seen - expected) <= 6 * np.sqrt(expected * (1 - expected) / len(out)))


def test_every_move_has_a_reverse():
    assert [reverse(move) for move in range(7)] == [0, 2, 1, 4, 3, 5, 6]
    assert len(MOVE_NAMES) == N_MOVES
