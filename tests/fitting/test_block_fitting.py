"""Fits in blocks are the fits of all rows at once."""

from __future__ import annotations

import numpy as np
import pytest

from symbayes.fitting import model as fitting
from symbayes.fitting.model import Fitter, State

from ..problems import problem, table, tree

TREES = [
    (tree("sin", 0),),
    (tree("*", 0, 1), tree("square", 1)),
    (tree("exp", 0), tree("cube", 1), tree("lt", "sin", 1)),
]


def fitters(monkeypatch, n_rows, weighted, known=()):
    """Two fitters of one table: one goes through it in blocks, the other does not."""
    rng = np.random.default_rng(n_rows)
    rows = table(n_rows, weights=rng.uniform(0.2, 3, n_rows) if weighted else None, seed=1)
    made = problem(rows, {"+": 1.0}, terms=3, known=known)
    whole = Fitter(made, rows.y, rows.weights, plug_in=False)
    monkeypatch.setattr(fitting, "LARGE", 1)
    monkeypatch.setattr(fitting, "ROWS_AT_ONCE", 100)
    return whole, Fitter(made, rows.y, rows.weights, plug_in=False)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("trees", TREES, ids=len)
@pytest.mark.parametrize("known", [(), (tree("cos", 1),)], ids=len)
def test_blocks_give_the_same_model(monkeypatch, trees, weighted, known):
    whole, blocks = fitters(monkeypatch, 2_500, weighted, known)
    state = State((*known, *trees), 1.0, 0.0, 0.0)
    # Otherwise both would have gone the same way.
    monkeypatch.setattr(fitting, "fit_standardised", lambda *_: pytest.fail("not in blocks"))
    got = blocks.fit(state)
    monkeypatch.undo()
    expected = whole.fit(state)
    for name in ("intercept", "coefficients", "centre", "length", "beta", "probe", "mse"):
        np.testing.assert_allclose(
            getattr(got, name), getattr(expected, name), rtol=1e-9, atol=1e-12, err_msg=name
        )
    covariance = [model.inverse_root @ model.inverse_root.T for model in (got, expected)]
    np.testing.assert_allclose(*covariance, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(blocks.residuals(got), whole.residuals(expected), atol=1e-9)


def test_what_blocks_cannot_fit_is_fitted_at_once(monkeypatch):
    """A redundant term, or a known one that is larger than what is sampled."""
    whole, blocks = fitters(monkeypatch, 500, False)
    long = tree(*["sin"] * 40, 0)
    for trees in ((tree("sin", 0), tree("neg", "sin", 0)), (long,)):
        state = State(trees, 1.0, 0.0, 0.0)
        got, expected = blocks.fit(state), whole.fit(state)
        assert got is not None
        np.testing.assert_array_equal(got.beta, expected.beta)
