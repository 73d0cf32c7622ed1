"""Limits on trees, against a plain recursive definition."""

import numpy as np
import pytest

from symbayes.inputs.prior import TreePrior
from symbayes.inputs.problem import _limits

from .. import naive
from ..problems import beliefs, problem, table, tree
from .calling import allowed_by

OPERATORS = {"sin": 3.0, "exp": 2.0, "*": 1.0, "-": 1.0, "lt": 1.0}
PRIORS = [
    TreePrior(max_depth=1),
    TreePrior(max_depth=4),
    TreePrior(nesting={"sin": {"sin": 0}}),
    TreePrior(nesting={"sin": {"sin": 1, "exp": 0}, "exp": {"exp": 0}, "*": {"*": 0, "sin": 2}}),
    TreePrior(max_depth=5, nesting={"-": {"-": 1}, "lt": {"lt": 0}}),
]


def check(nodes, prior):
    room = np.zeros((2, len(nodes) + 2), np.int64)
    return bool(allowed_by(nodes, 0, _limits(prior), room[0], room[1]))


@pytest.mark.parametrize("prior", PRIORS, ids=str)
def test_like_the_definition(prior):
    believed = beliefs(
        problem(table(), OPERATORS, tree_prior=TreePrior(alpha=0.9, beta=0.1, max_nodes=30))
    )
    rng = naive.Random([1, 2, 3, 4])
    answers = []
    while len(answers) < 600:
        try:
            drawn = naive.draw_tree(rng, believed, 0, [30])
        except naive.TooLarge:
            continue
        answers.append(check(naive.to_nodes(drawn), prior))
        assert answers[-1] == naive.is_allowed(drawn, prior.max_depth, prior.nesting)
    assert 0 < sum(answers) < len(answers)


def test_no_limits():
    assert check(tree("sin", "sin", "sin", 0), TreePrior())
    assert _limits(TreePrior(nesting={})).shape == (0,)


def test_counts_are_along_a_way_down():
    side_by_side = tree("sin", "*", "exp", 0, "exp", 1)
    inside = tree("sin", "*", "exp", "exp", 0, 1)
    prior = TreePrior(nesting={"sin": {"exp": 1}})
    assert check(side_by_side, prior)
    assert not check(inside, prior)
    assert check(tree("exp", "exp", "sin", 0), prior)  # not inside a sin
