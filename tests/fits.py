"""Small fits that several test files make."""

import copy
import dataclasses
import itertools

import numpy as np
import pandas as pd

from symbayes import BayesianSymbolicRegressor, load

RNG = np.random.default_rng(50)
X = RNG.uniform(-2, 2, (60, 2))
EXACT = 3 * X[:, 0] ** 2 + 2
NOISY = EXACT + RNG.normal(0, 0.3, 60)


def small(**options):
    options = {"draws": 50, "tune": 100, "chains": 1, "random_state": 0} | options
    return BayesianSymbolicRegressor(**options)


def with_result(model, **fields):
    """Return a copy of a fitted model with some fields of its result replaced."""
    changed = copy.copy(model)
    changed._keep(dataclasses.replace(model.result_, **fields))
    return changed


def assert_same(first, second, X=X):
    pd.testing.assert_frame_equal(first.formulas_, second.formulas_, check_exact=True)
    pd.testing.assert_frame_equal(first.pareto_, second.pareto_, check_exact=True)
    for one, two in zip(
        first.predict(X, return_std=True), second.predict(X, return_std=True), strict=True
    ):
        np.testing.assert_array_equal(one, two)


def reloaded(model, path):
    """Return a model that has been in a file."""
    model.save(path)
    return load(path)


def restless_clock():
    """A clock that shows another hour whenever somebody looks."""
    hours = itertools.count()
    return lambda: 3600.0 * next(hours)
