"""Sensible terms, and the price of operators inside operators, against plain definitions."""

import math

import numpy as np
import pytest

from symbayes.formula.parser import parse
from symbayes.formula.trees import term_trees
from symbayes.inputs.prior import StatePrior, TreePrior
from symbayes.inputs.probe import is_sensible, probe_rows
from symbayes.kernels.sensible import PROBE_ROWS

from .. import naive
from ..problems import beliefs, posed, problem, table, tree
from .calling import nested_in, sensible_values

OPERATORS = {
    "+": 1, "-": 2, "*": 2, "/": 2, "exp": 2, "sin": 2, "cos": 1, "square": 2, "cube": 2, "lt": 3,
}  # fmt: skip
RNG = np.random.default_rng(0)
AGE = RNG.integers(18, 80, 300).astype(float)
TIME, POSITION, OTHER = RNG.uniform(0.0, 1.0, (3, 300))
COUNT = RNG.poisson(1.0, 300).astype(float)
RARE = (np.arange(300) % 150 == 0).astype(float)
HIGH = TIME + RNG.uniform(0.05, 0.5, 300)
COLUMNS = np.array([AGE, TIME, POSITION, OTHER, COUNT, RARE, HIGH])
NAMES = ["age", "time", "position", "other", "count", "rare", "high"]


def drawn_trees(n, max_nodes=12):
    believed = beliefs(
        problem(table(), OPERATORS, tree_prior=TreePrior(alpha=0.9, beta=0.3, max_nodes=max_nodes)),
        scales=(400.0, 4.0),
    )
    rng = naive.Random([1, 2, 3, 4])
    while n > 0:
        try:
            yield naive.draw_tree(rng, believed, 0, [max_nodes])
            n -= 1
        except naive.TooLarge:
            continue


def test_like_the_definition():
    X = np.random.default_rng(1).uniform(-2, 2, (50, 2))
    probe = probe_rows(X.T)
    rows = probe.reshape(2, -1).T
    answers = []
    for drawn in drawn_trees(800):
        values = naive.evaluate(drawn, rows)
        if drawn.op:
            assert bool(sensible_values(values)) == naive.are_sensible(values[None])[0]
            answers.append(is_sensible(naive.to_nodes(drawn), probe))
            assert answers[-1] == naive.is_sensible(drawn, rows)
    assert 100 < sum(answers) < len(answers) - 100


def test_nested_operators_like_the_definition():
    counts = []
    for drawn in drawn_trees(800, 25):
        nodes = naive.to_nodes(drawn)
        counts.append(nested_in(nodes, np.zeros(len(nodes) + 2, np.int64)))
        assert counts[-1] == naive.count_nested(drawn)
    assert max(counts) > 3


@pytest.mark.parametrize(
    ("parts", "nested"),
    [
        (("sin", "sin", 0), 1),
        (("sin", "exp", 0), 1),
        (("exp", "sin", 0), 0),
        (("exp", "*", "exp", 0, "exp", 1), 2),
        (("*", "sin", 0, "sin", 1), 0),
        (("cube", "square", 0), 0),
        (("cube", "cube", 0), 1),
        (("square", "square", "square", 0), 1),
        (("cube", "cube", "cube", "cube", "cube", "cube", 0), 5),
    ],
)
def test_the_price_in_the_log_prior(parts, nested):
    """States are ranked with the price with which they are drawn."""
    weights = {name: 1 / len(OPERATORS) for name in OPERATORS}
    even = np.full(2, 0.5)
    dear, free = (
        StatePrior(TreePrior(nesting_price=price), 1, weights, even, (np.empty(0), np.empty(0)))
        for price in (2.5, 0.0)
    )
    state = [tree(*parts), tree(1)]
    assert free(state) - dear(state) == pytest.approx(2.5 * nested)


SENSIBLE = [
    "1/(time - position)",
    "1/(time - 1.02)",
    "log(time)/(position - other)",
    "exp(12*time)",
    "exp(40*time)",
    "exp(-50*(time - 0.3)**2)",
    "1/(1 + exp(100*(time - 0.3)))",
    "exp(12*time)*position",
    "sin(40*time)",
    "sin(10*(time - position))",
    "cos(age)",
    "tan(1.5*time)",
    "sqrt(count)",
    "count**6",
    "rare*age",
    "exp(rare)",
    "sqrt(2 + time - position - other)",
    "exp(sqrt(age**2 + 100) - age)",
    "sqrt(high - time)",
    "log(high - time)",
    "sqrt(high**2 - time**2)*position",
    "1e300*time**2",
    "1e-300*age**2",
]
NOT = [
    "cos(exp(age))",
    "sin(600*time)",
    "cos(900*time*position)",
    "tan(exp(age))",
    "sqrt(time - position)",
    "log(time - position)",
    "exp(sqrt(age**2 + 1) - age)",
    "age*exp(-5*age)",
    "time*(age + 1e-5*other - age)",
]


@pytest.mark.parametrize("text", SENSIBLE)
def test_laws_are_sensible(text):
    made = with_probe()
    assert made.are_sensible(term_trees(parse(text, NAMES)))


@pytest.mark.parametrize("text", NOT)
def test_what_is_not(text):
    made = with_probe()
    trees = term_trees(parse(text, NAMES))
    assert not made.are_sensible(trees)
    assert not made.are_sensible([tree(0), *trees])


def with_probe():
    made = posed(COLUMNS, AGE + TIME, {"+": 1.0})
    return made.__class__(**{**vars(made), "data": made.data._replace(probe=probe_rows(COLUMNS))})


def test_probe_rows_stay_in_the_box():
    probe = probe_rows(COLUMNS).reshape(len(COLUMNS), 3, PROBE_ROWS)
    for values, (known, box, moved) in zip(COLUMNS, probe, strict=True):
        assert np.isin(known, values).all()
        assert np.isin(box, values).all()
        assert values.min() <= moved.min()
        assert moved.max() <= values.max()
        # Not as far as the next value, and not one stays where it is.
        different = np.unique(values)
        nearest = different[np.abs(moved[:, None] - different).argmin(axis=1)]
        np.testing.assert_array_equal(nearest, box)
        assert (moved != box).all()
    # Rows of the table stay together, values of the box do not.
    rows = {tuple(row) for row in COLUMNS.T}
    assert all(tuple(row) in rows for row in probe[:, 0].T)
    assert not any(tuple(row) in rows for row in probe[:4, 1].T)


def test_probe_rows_depend_on_the_table_alone():
    np.testing.assert_array_equal(probe_rows(COLUMNS), probe_rows(COLUMNS.copy()))
    # Nor does it matter how often rows are there, and in which order.
    np.testing.assert_array_equal(probe_rows(COLUMNS), probe_rows(COLUMNS[:, ::-1]))
    np.testing.assert_array_equal(probe_rows(COLUMNS), probe_rows(np.repeat(COLUMNS, 3, axis=1)))
    # Units of columns do not matter.
    scaled = probe_rows(1e200 * COLUMNS)
    np.testing.assert_allclose(scaled, 1e200 * probe_rows(COLUMNS), rtol=1e-12)


@pytest.mark.parametrize("text", ["log(wealth)", "sqrt(wealth)", "1/wealth", "wealth*log(wealth)"])
def test_columns_with_long_tails(text):
    columns = np.exp(3.0 * np.random.default_rng(3).normal(size=(1, 400)))
    (nodes,) = term_trees(parse(text, ["wealth"]))
    assert is_sensible(nodes, probe_rows(columns))


def test_a_part_of_the_rows_asks_for_the_same():
    made = problem(table(n_rows=40), {"+": 1.0, "lt": 1.0}, sensible=True)
    part = made.on_rows(np.arange(10))
    np.testing.assert_array_equal(part.data.probe, made.data.probe)
    assert part.data.most_size == pytest.approx(made.data.most_size / 2)
    # What is found for another response is a part of a term.
    other = made.on_rows(np.arange(10), np.exp(made.response(np.arange(10))))
    assert len(other.data.probe) == 0
    assert other.data.most_size == part.data.most_size
    assert made.in_two_stages(np.arange(10)).part.probe is made.data.probe


def test_it_can_be_switched_off():
    made = problem(table(), {"+": 1.0})
    assert len(made.data.probe) == 0
    assert made.data.most_size == math.inf
    assert made.are_sensible([tree("sin", "lt", 0, a=1e9)])


def test_values_of_one_kind_say_nothing():
    """A term may vary only on rows that are not among the probe rows."""
    values = np.zeros(3 * PROBE_ROWS)
    values[-1] = 1.0
    assert naive.are_sensible(values[None])[0]
    assert sensible_values(values)
