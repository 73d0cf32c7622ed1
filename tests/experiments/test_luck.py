"""Luck and signals: accuracies, intervals, corrections."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from symbayes.experiments.signals import (
    PRICES,
    Chance,
    believed,
    example_prices,
    growth,
    holm,
    judged,
    positions,
    share,
    split,
)


def days(returns, X=None):
    n = len(returns)
    X = np.ones((n, 4)) if X is None else X
    table = pd.DataFrame(X, pd.bdate_range("2017-01-02", periods=n), PRICES)
    return table.assign(**{"return": np.asarray(returns, float)})


def test_share_of_right_signs():
    some = days([0.1, -0.1, 0.0, 0.2])
    assert share(np.array([True, False, False, False]), some) == 0.75


def test_majority_of_the_training_days_is_guessed():
    chance = Chance(days([1.0, 1.0, -1.0]), days([1.0, -1.0, -1.0, -1.0]))
    assert chance.up
    assert chance.train == pytest.approx(2 / 3)
    assert chance.test == 0.25
    assert chance.to_beat == 0.5


def test_growth_holds_the_index_on_days_said_to_go_up():
    value = growth(np.array([True, False, True]), days([0.1, -0.5, 0.2]))
    np.testing.assert_allclose(value, [1.1, 1.1, 1.32])


def test_holm_against_the_definition():
    p = np.array([0.01, 0.04, 0.03, 0.005])
    np.testing.assert_allclose(holm(p), [0.03, 0.06, 0.06, 0.02])
    np.testing.assert_array_equal(holm(np.array([0.9, 0.8])), [1.0, 1.0])


def test_holm_keeps_its_word():
    """Of tables without any signal, at most 5 % have a survivor."""
    rng = np.random.default_rng(0)
    tables = [(holm(rng.uniform(size=50)) < 0.05).any() for _ in range(1000)]
    assert np.mean(tables) < 0.07


def test_a_perfect_signal_survives_and_a_random_one_does_not():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 4))
    some = days(0.01 * X[:, 0], X)
    table = judged(["open", "high"], some, some)
    assert table["survives"].tolist() == [True, False]
    assert table["test"].iloc[0] == 1.0
    assert table["test_low"].iloc[0] == pytest.approx(stats.beta.ppf(0.025, 400, 1))
    assert table["p_value"].iloc[0] == pytest.approx(Chance(some, some).to_beat ** 400)


def test_a_formula_without_a_value_does_not_say_up():
    some = days([0.1, 0.1], np.array([[1.0] * 4, [-1.0] * 4]))
    np.testing.assert_array_equal(positions("log(open) + 1", some), [True, False])


def test_beliefs():
    training, test = split(example_prices())
    up = {"train": np.where(training["return"] > 0, 0.9, 0.1), "test": np.full(len(test), 0.6)}
    table = believed(up, training, test).set_index("dataset")
    assert table.loc["train", "accuracy"] == 1.0
    assert table.loc["test", "accuracy"] == pytest.approx(np.mean(test["return"] > 0))
    assert table.loc["test", "days_up"] == 1.0
    assert table.loc["test", "return"] == pytest.approx(np.prod(1 + test["return"]) - 1)
