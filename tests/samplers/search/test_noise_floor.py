"""Is there structure in what a formula leaves over?"""

import numpy as np
import pytest

from symbayes.datasets import paper_task
from symbayes.samplers.search.noise_floor import explained, is_noise


@pytest.mark.parametrize("shape", [(30, 2), (100, 1), (100, 3), (200, 10)])
def test_noise_is_noise(shape):
    rng = np.random.default_rng(sum(shape))
    verdicts = [is_noise(rng.normal(size=shape), rng.normal(size=shape[0])) for _ in range(20)]
    assert sum(verdicts) >= 19


@pytest.mark.parametrize("seed", range(5))
def test_a_term_that_is_missing_shows(seed):
    X, y = paper_task("f6", random_state=seed)
    half = X[:, 0] * X[:, 1]
    residual = y - np.polyval(np.polyfit(half, y, 1), half)
    assert not is_noise(X, residual)


def test_share_explained():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (200, 1))
    noise = rng.normal(size=200)
    assert explained(X, np.sin(2 * X[:, 0]) * np.sqrt(2) + noise) == pytest.approx(0.5, abs=0.15)
    # Only ranks count, so that neither units nor outliers matter.
    assert explained(np.exp(9 * X), noise) == explained(X, noise)
    # A column without spread has nothing to say, and neither has a perfect fit.
    assert explained(np.column_stack([X, np.ones(200)]), noise) == explained(X, noise)
    assert explained(X, np.zeros(200)) == 0.0


def test_each_residual_is_predicted_without_its_own_row():
    # With as much freedom as it likes, a curve passes through all points; it must not count.
    rng = np.random.default_rng(3)
    X, residual = rng.normal(size=(40, 1)), rng.normal(size=40)
    for row in range(3):
        moved = residual.copy()
        moved[row] += 1e6
        assert explained(X, moved) < 0.1
