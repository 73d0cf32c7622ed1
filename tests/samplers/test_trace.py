"""Packed draws come apart again as they were."""

import numpy as np
import pytest

from symbayes.formula.operators import OPERATORS
from symbayes.formula.trees import split_terms, state_size, state_sizes
from symbayes.kernels.chain import NUMBERS
from symbayes.kernels.tree import NODE
from symbayes.samplers.paper import _holding_times
from symbayes.samplers.trace import ChainTrace, empty_output

PLUS, SIN = OPERATORS["+"].opcode, OPERATORS["sin"].opcode


def packed(*ops):
    nodes = np.zeros(len(ops), NODE)
    nodes["op"] = ops
    nodes["feature"] = np.arange(len(ops))
    return nodes


def test_split_terms():
    nodes = packed(PLUS, 0, SIN, 0, 0, SIN, SIN, 0)
    assert state_size(nodes, 0) == 0
    assert state_size(nodes, 1) == 4
    assert state_size(nodes, 2) == 5
    assert state_size(nodes, 3) == 8
    trees = split_terms(nodes, 3)
    assert [len(tree) for tree in trees] == [4, 1, 3]
    np.testing.assert_array_equal(np.concatenate(trees), nodes)
    assert split_terms(nodes, 0) == []
    ops = np.stack([nodes["op"]] * 4)
    assert state_sizes(ops, np.arange(4)).tolist() == [0, 4, 5, 8]
    assert state_sizes(ops[:0], np.arange(0)).tolist() == []
    of_many = state_sizes(np.stack([ops, ops]), np.array([[3, 2, 1, 0], [1, 1, 0, 2]]))
    assert of_many.tolist() == [[8, 5, 4, 0], [4, 4, 0, 5]]


def test_states_of_any_length():
    nodes = packed(*[SIN] * 200, 0, 0, PLUS)
    assert state_size(nodes, 1) == 201
    assert state_size(nodes, 2) == 202
    with pytest.raises(IndexError, match="no end"):
        state_size(nodes, 3)


def test_extend_keeps_copies_of_the_rows_asked_for():
    output = empty_output(3, 8, NUMBERS + 2)
    nodes, terms, numbers = output
    nodes[0] = packed(PLUS, 0, SIN, 0, 0, SIN, SIN, 0)
    terms[:2] = 3, 0
    numbers[0, :3] = -5.0, 2.0, 0.5
    trace = ChainTrace()
    trace.extend((*output, np.array([4, 9, 11])), 2)
    nodes[:] = packed(0, 0, 0, 0, 0, 0, 0, 0)
    numbers[:] = -1.0
    assert len(trace) == 2
    assert trace.n_terms == [3, 0]
    assert trace.n_nodes.tolist() == [8, 0]
    assert trace.nodes[0]["op"].tolist() == [PLUS, 0, SIN, 0, 0, SIN, SIN, 0]
    assert trace.log_likelihood.tolist() == [-5.0, 0.0]
    assert trace.rss.tolist() == [2.0, 0.0]
    assert trace.noise_variance.tolist() == [0.5, 0.0]
    assert trace.times == [4, 9]


def held(times, trees, tune):
    trace = ChainTrace(n_terms=[1] * len(times), times=times)
    return _holding_times(trace, trees, tune).tolist()


def test_an_accepted_model_counts_as_long_as_it_was_held():
    assert held([0, 2, 3, 10], 11, tune=0) == [2, 1, 7, 2]
    assert held([0, 2, 3, 10], 11, tune=1) == [0, 1, 7, 2]


def test_warm_up_leaves_out_half_at_most():
    assert held([0, 2, 3, 10], 11, tune=100) == [0, 0, 7, 2]
    assert held([0], 50, tune=100) == [51]


def drawn(trace, *sizes):
    """Let a trace take rounds of these lengths, whose log-likelihoods are 1, 2, 3, ..."""
    for size in sizes:
        output = empty_output(size, 1, NUMBERS)
        output[1][:] = 1
        output[2][:, 0] = trace.made + 1 + np.arange(size)
        trace.extend(output, size)
    return trace.log_likelihood.tolist()


def test_a_full_trace_keeps_every_second_draw():
    assert drawn(ChainTrace(most=4), 4) == [1, 2, 3, 4]
    assert drawn(ChainTrace(most=4), 5) == [2, 4]
    assert drawn(ChainTrace(most=4), 6) == [2, 4, 6]
    assert drawn(ChainTrace(most=4), 8) == [2, 4, 6, 8]
    assert drawn(ChainTrace(most=4), 9) == [2, 4, 6, 8]
    assert drawn(ChainTrace(most=4), 10) == [4, 8]
    assert drawn(ChainTrace(most=4), 1000) == [256, 512, 768]
    assert drawn(ChainTrace(), 9) == list(range(1, 10))


@pytest.mark.parametrize("made", [1, 7, 64, 65, 500, 4097])
def test_what_is_kept_is_equally_spaced_and_never_too_much(made):
    trace = ChainTrace(most=16)
    kept = drawn(trace, made)
    assert kept == list(range(trace.stride, made + 1, trace.stride))
    assert len(trace.nodes) == len(trace.n_terms) == len(trace.numbers) == len(kept) <= 16
    assert made < 16 or len(kept) >= 8
    assert trace.made == made


def test_rounds_make_no_difference():
    once, often = ChainTrace(most=8), ChainTrace(most=8)
    assert drawn(once, 333) == drawn(often, *[1] * 100, 64, 64, 64, 41)
    assert (once.stride, once.made) == (often.stride, often.made)


def test_a_copy_goes_on_by_itself():
    trace = ChainTrace(most=8)
    drawn(trace, 100)
    before = trace.log_likelihood.tolist()
    assert drawn(trace.copy(), 77) == drawn(ChainTrace(most=8), 177)
    assert trace.log_likelihood.tolist() == before
    assert trace.made == 100
