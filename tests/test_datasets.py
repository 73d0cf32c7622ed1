"""The built-in tasks, and the demo."""

import numpy as np
import pytest

from symbayes import Formula, demo
from symbayes.datasets import PAPER_FORMULAS, paper_task


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


def test_demo(monkeypatch, capsys):
    class Quick(demo.BayesianSymbolicRegressor):
        def fit(self, X, y):
            return self.set_params(draws=50, tune=200, chains=2, progress=False).fit_quickly(X, y)

        def fit_quickly(self, X, y):
            return super().fit(X, y)

    monkeypatch.setattr(demo, "BayesianSymbolicRegressor", Quick)
    assert demo.main() == 0
    out = capsys.readouterr().out
    assert PAPER_FORMULAS[demo.TASK] in out
    assert "exp(x0)" in out.partition("formula\n")[2]
    assert "cos(x1)" in out.partition("formula\n")[2]
    assert "predictions at new rows" in out
