"""The ways to least squares agree, and say so where there is no fit."""

from __future__ import annotations

import numpy as np
import pytest

from symbayes.fitting.least_squares import (
    coefficients,
    exact_coefficients,
    fit_standardised,
    fitted_values,
    remainder,
    residuals,
    solve_blocks,
)

RNG = np.random.default_rng(20)
VALUES = RNG.normal(3.0, 1.0, (2, 80)) * [[1.0], [1e9]]
Y = 2.0 * VALUES[0] - 3e-9 * VALUES[1] + 5.0 + RNG.normal(0, 0.1, 80)
WEIGHTS = RNG.uniform(0.2, 3.0, 80)
ROOT = np.sqrt(WEIGHTS)
DESIGN = np.column_stack([np.ones(80), *VALUES])
EXPECTED = np.linalg.solve(DESIGN.T @ (WEIGHTS[:, None] * DESIGN), DESIGN.T @ (WEIGHTS * Y))
LEFT = Y - DESIGN @ EXPECTED


def test_all_find_the_same():
    np.testing.assert_allclose(coefficients(VALUES, Y, ROOT), EXPECTED, rtol=1e-6)
    found, left = exact_coefficients(VALUES, Y, ROOT)
    np.testing.assert_allclose(found, EXPECTED[1:], rtol=1e-6)
    np.testing.assert_allclose(left, LEFT, atol=1e-6)
    np.testing.assert_allclose(fitted_values(VALUES, Y * ROOT, ROOT), Y - LEFT, atol=1e-6)
    np.testing.assert_allclose(residuals(VALUES, Y, ROOT), LEFT * ROOT, atol=1e-6)
    blocks = [np.vstack([DESIGN.T, Y])[:, i : i + 30] * ROOT[i : i + 30] for i in (0, 30, 60)]
    np.testing.assert_allclose(solve_blocks(blocks), EXPECTED, rtol=1e-6)


def test_a_standardised_fit_is_the_same_in_other_units():
    fit = fit_standardised(VALUES, Y - np.average(Y, weights=WEIGHTS), WEIGHTS)
    np.testing.assert_allclose(fit.beta / fit.length, EXPECTED[1:], rtol=1e-6)
    np.testing.assert_allclose(fit.centre, np.average(VALUES, axis=1, weights=WEIGHTS))
    assert fit.rss == pytest.approx(np.sum(WEIGHTS * LEFT**2))
    columns = (VALUES - fit.centre[:, None]) / fit.length[:, None] * ROOT
    inverse = fit.inverse_root @ fit.inverse_root.T
    np.testing.assert_allclose(inverse @ (columns @ columns.T), np.eye(2), atol=1e-12)
    centred = (Y - np.average(Y, weights=WEIGHTS)) * ROOT
    np.testing.assert_allclose(remainder(columns, centred), LEFT * ROOT, atol=1e-6)


@pytest.mark.parametrize("bad", [0.0, np.inf, np.nan])
def test_no_fit_without_numbers(bad):
    values = np.array([VALUES[0], np.full(80, bad)])
    assert coefficients(values, Y, ROOT) is None
    assert exact_coefficients(values, Y, ROOT) is None
    assert fit_standardised(values, Y, WEIGHTS) is None
    assert np.isnan(residuals(values, Y, ROOT)).all()
    mean = np.average(Y, weights=WEIGHTS)
    np.testing.assert_allclose(fitted_values(values, Y * ROOT, ROOT), np.full(80, mean))
    assert solve_blocks([np.vstack([values, Y])]) is None


def test_redundant_terms():
    """Some want the shortest solution then, and some none."""
    twice = np.array([VALUES[0], 2.0 * VALUES[0]])
    alone = fitted_values(VALUES[:1], Y * ROOT, ROOT)
    np.testing.assert_allclose(fitted_values(twice, Y * ROOT, ROOT), alone)
    fit = fit_standardised(twice, Y, WEIGHTS)
    np.testing.assert_allclose(fit.beta, fit.beta[0])
    assert np.isnan(residuals(twice, Y, ROOT)).all()


def test_values_that_squares_cannot_hold():
    huge, tiny = VALUES * 1e200, VALUES * 1e-200
    for values, unit in ((huge, 1e200), (tiny, 1e-200)):
        np.testing.assert_allclose(
            coefficients(values, Y, ROOT)[1:] * unit, EXPECTED[1:], rtol=1e-6
        )
        np.testing.assert_allclose(residuals(values, Y, ROOT), LEFT * ROOT, atol=1e-6)
