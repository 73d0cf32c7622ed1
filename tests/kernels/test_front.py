"""What a ladder keeps of the states that it meets: the best of each size, and nothing else."""

import numpy as np
import pytest

from symbayes.formula import expression as ex
from symbayes.formula.trees import normal_form, to_expression
from symbayes.inputs.prior import NoisePrior, TermsPrior, TreePrior
from symbayes.kernels.chain import RSS
from symbayes.kernels.front import LARGEST
from symbayes.kernels.opcodes import FIRST_BINARY, LOG, LT, SIN
from symbayes.samplers.front import merged, nothing_met, packed, unpack

from ..problems import problem, table, tree
from .test_run import made, replicas

POWERS = (1.0, 0.3, 0.05)
EVERY = {"+": 1.0, "*": 1.0, "/": 0.5, "lt": 1.0, "sin": 1.0, "log": 0.3, "exp": 0.3}


def size_of(trees):
    """A plain twin of `term_size`, summed over terms."""
    size = 1
    for nodes in trees:
        ops = nodes["op"].tolist()
        for i, op in enumerate(ops):
            if op == LT:
                above = ops[i - 1]
                size += 0 if i == 0 else 4 if above == LOG or SIN <= above < FIRST_BINARY else 2
            else:
                size += 1
        size += 3
    return size


def bytes_of(trees):
    return b"|".join(tree.tobytes() for tree in trees)


@pytest.mark.parametrize("share", [0.0, 0.5], ids=["exact", "optimised"])
@pytest.mark.parametrize("in_stages", [False, True], ids=["all rows", "two stages"])
def test_the_best_of_each_size_is_that_of_all_states(share, in_stages):
    target = problem(
        table(40), EVERY, TermsPrior(3, 0.7), TreePrior(alpha=0.9), NoisePrior(3.0, 0.1)
    )
    if in_stages:
        target = target.in_two_stages(np.arange(0, 40, 2))
    ladder = replicas(target, POWERS, seed=3)
    ladder.optimise(share)
    best = {}
    for _ in range(2000):
        ladder.run(1, 1, 1)  # one proposal of each replica, so that every state is seen
        for r in range(len(POWERS)):
            trees, rss = ladder.trees(r), float(ladder.chains.numbers[r, RSS])
            size = size_of(trees)
            if trees and size <= LARGEST and rss < best.get(size, (np.inf,))[0]:
                best[size] = rss, bytes_of(trees)
    met = ladder.met
    assert len(best) > 15
    assert met.size.tolist() == sorted(best)
    assert met.rss.tolist() == [best[size][0] for size in sorted(best)]
    assert [bytes_of(trees) for trees in met.states()] == [best[size][1] for size in sorted(best)]


def test_nothing_that_is_sampled_depends_on_it():
    first, second = (replicas(made(TermsPrior(3, 0.5)), POWERS, seed=1) for _ in range(2))
    first.front.rss[:] = 0.0  # nothing is better than that
    for ladder in (first, second):
        ladder.run(20, 2, 20)
    for one, two in zip(first.output, second.output, strict=True):
        np.testing.assert_array_equal(one, two)
    assert len(second.met.size) > 3
    assert len(first.met.nodes) == 0


def test_a_state_that_is_given_counts():
    ladder = replicas(made(TermsPrior(3, 0.5)))
    ladder.move_to([tree("sin", 0)])
    assert ladder.met.size.tolist() == [6]
    assert ladder.met.rss[0] == ladder.rss


def test_sizes_are_near_those_of_printed_formulas():
    ladder = replicas(problem(table(60), EVERY, TermsPrior(3, 0.7)), POWERS, seed=5)
    ladder.run(50, 4, 60)
    ladder.run(50, 4, 60)
    off = []
    for size, trees in zip(ladder.met.size, ladder.met.states(), strict=True):
        shown = [to_expression(normal_form(tree), range(2)) for tree in trees]
        expression = ex.linear_combination(1.5, [2.5] * len(trees), shown)
        off.append(abs(ex.n_nodes(expression) - int(size)))
    assert len(off) > 15
    assert np.median(off) <= 1
    assert max(off) <= 8


def test_packed_and_unpacked():
    first, second = (replicas(made(TermsPrior(3, 0.5)), POWERS, seed=seed) for seed in (1, 2))
    for ladder in (first, second):
        ladder.run(20, 2, 20)
    unpack(first.met, second.front)
    assert packed(second.front).content() == first.met.content()
    unpack(nothing_met(), second.front)
    assert second.met.content() == nothing_met().content()


def test_merged_is_the_best_of_each_size():
    parts = [replicas(made(TermsPrior(3, 0.5)), POWERS, seed=seed) for seed in range(4)]
    for ladder in parts:
        ladder.run(20, 2, 20)
    best = {}
    for ladder in parts:
        for size, rss in zip(ladder.met.size.tolist(), ladder.met.rss.tolist(), strict=True):
            best[size] = min(rss, best.get(size, np.inf))
    together = merged(ladder.met for ladder in parts)
    assert dict(zip(together.size.tolist(), together.rss.tolist(), strict=True)) == best
    assert [size_of(trees) for trees in together.states()] == sorted(best)
    assert merged([]).content() == nothing_met().content()
