"""The loops: states stay consistent with their numbers, starts, stops, what is written out."""

from __future__ import annotations

import numpy as np
import pytest

from symbayes.formula.trees import split_terms
from symbayes.inputs.prior import NoisePrior, TermsPrior, TreePrior
from symbayes.kernels import units
from symbayes.kernels.chain import ACCEPTED, EVALUATED, NUMBERS, PROPOSED
from symbayes.kernels.moves.choice import BIRTH, DEATH, EXCHANGE, MERGE, N_MOVES, NEWTON, SPLIT
from symbayes.samplers.ladder import Replicas
from symbayes.samplers.run.scheduler import NoStart
from symbayes.samplers.trace import empty_output

from .. import naive
from ..problems import problem, table

OPERATORS = {"+": 1.0, "*": 1.0, "/": 0.5, "lt": 1.0, "sin": 1.0, "log": 0.3, "square": 1.0}
NOISE = NoisePrior(3.0, 0.1)


def made(terms, n_rows=20, operators=OPERATORS, **options):
    return problem(table(n_rows), operators, terms=terms, noise_prior=NOISE, **options)


def replicas(target, powers=(1.0,), seed=0):
    return Replicas(target, np.random.SeedSequence(seed), np.array(powers))


def trees_of(output, i):
    return [naive.from_nodes(tree) for tree in split_terms(output[0][i], output[1][i])]


def assert_numbers_belong(trees, log_likelihood):
    rows = table(20)
    expected = naive.collapsed_log_likelihood(trees, rows.X, rows.y, rows.weights, 3.0, 0.1)
    assert log_likelihood == pytest.approx(expected, rel=1e-8, abs=1e-8)


@pytest.mark.parametrize("learn", [False, True], ids=["fixed", "learned"])
@pytest.mark.parametrize("terms", [1, 3, TermsPrior(3, 0.5)], ids=["K=1", "K=3", "K free"])
def test_numbers_of_a_draw_belong_to_its_trees(terms, learn):
    ladder = replicas(made(terms, learn=learn), (1.0, 0.3, 0.05))
    assert ladder.run(20, 2, 25) == 25
    for i in range(25):
        trees = trees_of(ladder.output, i)
        if isinstance(terms, int):
            assert len(trees) == terms
        assert_numbers_belong(trees, ladder.output[2][i, 0])
    for r in range(3):  # whatever their temperature
        trees = [naive.from_nodes(tree) for tree in ladder.trees(r)]
        assert_numbers_belong(trees, ladder.chains.numbers[r, 0])
    counts = ladder.chains.counts.sum(axis=0)
    assert np.all(counts[ACCEPTED] <= counts[PROPOSED])
    assert counts[EVALUATED, DEATH] == 0
    most = np.ones(N_MOVES)
    most[[SPLIT, EXCHANGE]] = 2  # they change two trees
    most[NEWTON] = 5  # one tree, and two derivatives there and back
    assert np.all(counts[EVALUATED] <= most * counts[PROPOSED])
    assert counts[ACCEPTED, NEWTON] > 0
    assert counts[PROPOSED].sum() == 25 * 2 * 20 * 3
    free = not isinstance(terms, int)
    assert np.all((counts[PROPOSED, [BIRTH, DEATH, SPLIT, MERGE]] > 0) == free)
    assert (counts[PROPOSED, EXCHANGE] > 0) == (terms != 1)


def test_draws_do_not_depend_on_how_a_run_is_cut():
    target = made(TermsPrior(3, 0.5), learn=True)
    whole, parts = replicas(target, (1.0, 0.2)), replicas(target, (1.0, 0.2))
    whole.run(20, 2, 12)
    at = 0
    for n in (5, 7):
        parts.run(20, 2, n)
        for i in range(n):  # behind the trees of a draw there is what was there before
            assert trees_of(whole.output, at + i) == trees_of(parts.output, i)
        for one, other in zip(whole.output[1:], parts.output[1:], strict=True):
            np.testing.assert_array_equal(one[at : at + n], other[:n])
        at += n


def test_scales_and_weights_move_only_where_they_are_learned():
    plain = {"+": 1.0, "sin": 1.0}
    for operators, learn in ((OPERATORS, False), (plain, False), (OPERATORS, True), (plain, True)):
        ladder = replicas(made(2, operators=operators, learn=learn), (1.0, 0.5))
        before = [values.copy() for values in ladder.priors]
        ladder.run(20, 2, 2)
        for name, old, new in zip(ladder.priors._fields, before, ladder.priors, strict=True):
            moves = (name == "scales" and "lt" in operators) or (
                name in ("operator_cdf", "feature_cdf") and learn
            )
            for r in range(2):
                assert (old[r].tolist() != new[r].tolist()) == moves, (name, r)


def test_a_start_that_does_not_exist_is_reported():
    # Of one column without operators there is only one function.
    only_columns = TreePrior(max_nodes=1)
    rows = table(20, n_features=1)
    target = problem(rows, {"+": 1.0}, terms=2, tree_prior=only_columns)
    with pytest.raises(NoStart):
        replicas(target).run(1, 1, 1)
    chain = target.new_chain(np.random.SeedSequence(0))
    output = empty_output(3, 2, NUMBERS + 2)
    clock, times = np.zeros(1, np.int64), np.zeros(3, np.int64)
    done = units.load("paper")(
        chain, target.new_prior((0.25, 3.0)), target.data, target.new_scratch(), 2, 3, clock,
        *output, times,
    )  # fmt: skip
    assert done >= 1  # the paper's likelihood allows a redundant tree


def run_paper(target, n_trees, most, seed=0):
    chain, prior = target.new_chain(np.random.SeedSequence(seed)), target.new_prior((0.25, 3.0))
    output = empty_output(n_trees + 1, target.most_terms * target.max_nodes, NUMBERS + 2)
    clock, times = np.zeros(1, np.int64), np.zeros(n_trees + 1, np.int64)
    kept = units.load("paper")(
        chain, prior, target.data, target.new_scratch(), n_trees, most, clock, *output, times
    )
    return kept, clock[0], output, times, chain


def test_paper_keeps_every_accepted_model():
    target = made(2)
    rows = table(20)
    kept, clock, output, times, chain = run_paper(target, 1200, 10_000)
    assert clock == 1200
    assert kept == 1 + chain.counts[ACCEPTED].sum()
    assert times[0] == 0
    assert np.all(np.diff(times[:kept]) > 0)
    assert chain.counts[PROPOSED].sum() == 1200
    assert kept > 10
    for i in range(kept):
        values = [naive.evaluate(tree, rows.X) for tree in trees_of(output, i)]
        rss, _ = naive.fit(values, naive.scaled(rows.y, rows.weights), rows.weights)
        assert output[2][i, 1] == pytest.approx(rss, rel=1e-7)
        variance = output[2][i, 2]
        plug_in = -0.5 * (20 * np.log(2 * np.pi * variance) + rss / variance)
        assert output[2][i, 0] == pytest.approx(plug_in, rel=1e-7)


def test_paper_stops_after_so_many_accepted_models():
    kept, clock, *_ = run_paper(made(2), 1200, 6)
    assert kept == 6
    assert clock < 1200


def test_units_know_what_is_compiled():
    for name in ("tempered", "paper"):
        units.load(name)
        assert units.is_compiled(name)
        assert units.is_cached(name)
    assert callable(units.load_evaluate())
