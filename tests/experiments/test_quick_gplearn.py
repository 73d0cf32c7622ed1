"""gplearn's individuals are the same with shared parts as without."""

import warnings

import numpy as np
import pytest

from symbayes.experiments.genetic import Program, generations_of, regressor
from symbayes.experiments.quick_gplearn import SharedParts
from symbayes.experiments.simulation import simulate

genetic = pytest.importorskip("gplearn.genetic", reason="needs symbayes[reproduce]")


def plain(X, y, population, generations, seed):
    """Evolve by gplearn alone; return the last generation's model."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return regressor(population, generations, seed).fit(X, y)


@pytest.mark.parametrize("task", ["f1", "f4", "f6"])
@pytest.mark.parametrize("seed", [0, 7])
def test_the_best_of_each_generation_is_the_same(task, seed):
    data = simulate(task, 0, 0)
    shared = list(generations_of(data.X, data.y, 200, 12, seed))
    for generation in (1, 2, 5, 12):
        model = plain(data.X, data.y, 200, generation, seed)
        expected = Program(model._program, generation)
        assert shared[generation - 1].text == expected.text
        assert shared[generation - 1]._program.raw_fitness_ == model._program.raw_fitness_
        assert shared[generation - 1].nodes == expected.nodes


def test_a_column_is_not_the_constant_of_the_same_value():
    # 1 == 1.0, and equal keys would make column 1 of the constant 1.0.
    X = np.array([[3.0, 4.0], [5.0, 6.0]])
    parts = SharedParts()
    assert parts.of([1], X).values.tolist() == [4.0, 6.0]
    assert parts.of([1.0], X).values.tolist() == [1.0, 1.0]


def test_gplearn_is_left_as_it_was():
    before = genetic._Program, genetic.check_random_state
    data = simulate("f2", 0, 0)
    for _ in generations_of(data.X, data.y, 20, 2, 0):
        assert (genetic._Program, genetic.check_random_state) == before
