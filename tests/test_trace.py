"""Packed draws come apart again as they were."""

import numpy as np

from symbayes.kernels.chain import NUMBERS
from symbayes.kernels.tree import NODE
from symbayes.operators import OPERATORS
from symbayes.samplers.paper import _holding_times
from symbayes.trace import ChainTrace, empty_output, split_terms, state_size

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


def test_extend_keeps_copies_of_the_rows_asked_for():
    output = empty_output(3, 8, NUMBERS + 2)
    nodes, terms, numbers = output
    nodes[0] = packed(PLUS, 0, SIN, 0, 0, SIN, SIN, 0)
    terms[:2] = 3, 0
    numbers[0, :3] = -5.0, 2.0, 0.5
    trace = ChainTrace()
    trace.extend(output, 2, np.array([4, 9, 11]))
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
