"""When a fit without noise is exact: by what its own arithmetic leaves, and no sooner."""

import numpy as np
import pytest

from symbayes import BayesianSymbolicRegressor, TermsPrior
from symbayes.inputs.prior import NoisePrior, TreePrior
from symbayes.inputs.validation import Table
from symbayes.samplers.exactness import fits_to_rounding

from ..problems import problem, tree

RNG = np.random.default_rng(170)
X = RNG.uniform(0.5, 3.0, (200, 2))
OPERATORS = dict.fromkeys(["+", "-", "*", "/", "lt", "exp", "log", "sin", "square", "cube"], 1.0)


def is_exact(y, *trees, X=X, weights=None):
    weights = np.ones(len(y)) if weights is None else weights
    rows = Table(np.asfortranarray(X), y, weights, np.arange(X.shape[1]))
    made = problem(rows, OPERATORS, TermsPrior(6, 0.5), TreePrior(), NoisePrior())
    return fits_to_rounding(trees, made)


SUM = np.exp(X[:, 0]) + 3.0 * X[:, 0] / X[:, 1]
TERMS = (tree("exp", 0), tree("/", 0, 1))


@pytest.mark.parametrize("factor", [1.0, 1e-200, 1e200])
@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_the_formula_itself(factor, offset):
    assert is_exact(factor * (SUM + offset), *TERMS)
    assert is_exact(factor * (SUM + offset), *TERMS, weights=RNG.uniform(0.1, 3.0, 200))


@pytest.mark.parametrize("error", [1e-3, 1e-9, 1e-11])
def test_what_is_left_over_is_too_much(error):
    assert not is_exact(SUM + error * np.sin(7.0 * X[:, 0]), *TERMS)


def test_the_same_function_written_otherwise():
    y = (X[:, 0] - X[:, 1]) ** 2
    assert is_exact(y, tree("square", 0), tree("*", 0, 1), tree("square", 1))


def test_constants_need_not_have_their_best_values_yet():
    y = np.sin(1.7 * X[:, 0] - 0.3)
    assert is_exact(y, tree("sin", "lt", 0, a=1.7 + 1e-8, b=-0.3 - 1e-8))
    assert not is_exact(y + 1e-10 * X[:, 1], tree("sin", "lt", 0, a=1.7, b=-0.3))


def test_a_series_is_an_approximation():
    """Of enough terms it fits to nine digits, which is not all."""
    u = X[:, :1] * 0.1
    y = 1.0 / np.sqrt(1.0 - u[:, 0] ** 2)
    powers = [tree(*("*", "square", 0) * k, "square", 0) for k in range(5)]
    design = np.column_stack([np.ones(200), *(u ** (2 * k) for k in range(1, 6))])
    left = y - design @ np.linalg.lstsq(design, y, rcond=None)[0]
    assert left.std() < 1e-8 * y.std()
    assert not is_exact(y, *powers, X=np.hstack([u, u + 1.0]))


@pytest.mark.parametrize("digits", [10, 12])
def test_y_with_fewer_digits(digits):
    rounded = np.array([float(f"{value:.{digits}g}") for value in SUM])
    assert is_exact(rounded, *TERMS)
    assert is_exact(np.round(SUM, digits), *TERMS)
    # More than the digits that are missing.
    assert not is_exact(rounded + 10.0 ** (3 - digits) * np.sin(7.0 * X[:, 0]), *TERMS)


def test_known_terms_take_part():
    rows = Table(np.asfortranarray(X), SUM, np.ones(200), np.arange(2))
    made = problem(
        rows, OPERATORS, TermsPrior(6, 0.5), TreePrior(), NoisePrior(), known=(TERMS[0],)
    )  # fmt: skip
    assert fits_to_rounding(TERMS[1:], made)
    assert not fits_to_rounding([tree("*", 0, 1)], made)


def test_values_that_cannot_be_fitted():
    assert not is_exact(SUM, tree("log", "-", 0, 1))
    assert not is_exact(SUM, tree("-", 0, 0))


@pytest.mark.slow
def test_a_series_is_not_reported_as_certain():
    """Lorentz's factor of velocities in m/s: constants of such a size are not found, series are."""
    v = RNG.uniform(1e7, 1.5e8, (300, 1))
    y = 1.0 / np.sqrt(1.0 - (v[:, 0] / 2.998e8) ** 2)
    model = BayesianSymbolicRegressor(tune=2_000, random_state=0).fit(v, y)
    relative = model.formulas_["rmse"].iloc[0] / y.std()
    assert relative < 1e-14 or not model.diagnostics_["converged"]
