"""The built-in tasks."""

import numpy as np
import pytest

from symbayes import Formula
from symbayes.datasets import PAPER_FORMULAS, boyle, paper_task


@pytest.mark.parametrize("name", PAPER_FORMULAS)
def test_tasks_are_their_formulas(name):
    X, y = paper_task(name, n_rows=50, random_state=1)
    assert X.shape == (50, 2)
    assert y.shape == (50,)
    np.testing.assert_allclose(
        Formula(PAPER_FORMULAS[name], ["x0", "x1"]).predict(X), y, rtol=1e-12, atol=1e-12
    )


def test_ranges():
    X, _ = paper_task("f1", n_rows=2000, low=3, high=6, random_state=2)
    assert X.min() >= 3
    assert X.max() <= 6
    assert np.ptp(X, axis=0).min() > 2.9


def test_noise_is_in_units_of_the_root_mean_square():
    clean = paper_task("f4", n_rows=5000, random_state=3)
    noisy = paper_task("f4", n_rows=5000, noise=0.2, random_state=3)
    np.testing.assert_array_equal(clean[0], noisy[0])
    ratio = np.std(noisy[1] - clean[1]) / np.sqrt(np.mean(clean[1] ** 2))
    assert ratio == pytest.approx(0.2, rel=0.06)  # six standard errors


def test_seeds():
    first, second, other = (paper_task("f2", noise=0.1, random_state=seed)[1] for seed in (4, 4, 5))
    np.testing.assert_array_equal(first, second)
    assert not np.array_equal(first, other)
    generator = paper_task("f2", noise=0.1, random_state=np.random.default_rng(4))[1]
    np.testing.assert_array_equal(first, generator)


def test_unknown_task():
    with pytest.raises(ValueError, match="there is no task 'f7'; the tasks are f1, f2"):
        paper_task("f7")


def test_boyle():
    X, y = boyle()
    assert list(X.columns) == ["volume"]
    assert y.name == "pressure"
    assert X.shape == (25, 1)
    assert y.shape == (25,)
    # What the pressure should be, by the hypothesis that it is reciprocal to the volume: the last
    # column of Boyle's table, whose largest deviation is 1 1/16 inches, in the last row.
    expected = 48 * (29 + 2 / 16) / X["volume"]
    assert np.abs(y - expected).max() == y.iloc[-1] - 116.5 == 1.0625
    assert np.abs(y - expected).median() < 0.5
