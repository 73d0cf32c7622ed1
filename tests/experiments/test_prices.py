"""Prices: read, refused, and split without a look ahead."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from symbayes.experiments.signals import example_prices, read_prices, split


@pytest.fixture
def file(tmp_path):
    def write(table):
        path = tmp_path / "prices.csv"
        path.write_text(table) if isinstance(table, str) else table.to_csv(path)
        return path

    return write


def test_what_is_written_is_read(file):
    prices = example_prices()
    again = read_prices(file(prices))
    pd.testing.assert_frame_equal(again, prices, check_freq=False, check_index_type=False)


def test_order_and_spelling_do_not_matter(file):
    prices = example_prices()
    shuffled = prices.sample(frac=1, random_state=0).rename(columns=str.upper)
    pd.testing.assert_frame_equal(
        read_prices(file(shuffled)), prices, check_freq=False, check_index_type=False
    )


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "cannot be read as CSV"),
        ("date,open,high,low\n2010-01-04,1,1,1\n", "no column close"),
        ("date,open,high,low,close\n2010-01-04,1,1,1,1\nnever,1,1,1,1\n", "line 3"),
        ("date,open,high,low,close\n2010-01-04,1,1,1,x\n", "line 2"),
        ("date,open,high,low,close\n2010-01-04,1,1,0,1\n", "line 2"),
        ("date,open,high,low,close\n2010-01-04,1,1,inf,1\n", "line 2"),
        (
            "date,open,high,low,close\n2010-01-04,1,1,1,1\n2010-01-04,1,1,1,1\n",
            "2010-01-04 more than once",
        ),
    ],
)
def test_bad_prices_are_refused(file, text, complaint):
    with pytest.raises(ValueError, match=complaint):
        read_prices(file(text))


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(ValueError, match="cannot be read"):
        read_prices(tmp_path / "none.csv")


def test_days_and_returns():
    prices = example_prices()
    training, test = split(prices)
    close = prices["close"]
    assert training.index[-1].year == 2016
    assert test.index[0].year == 2017
    assert test.index[-1] == prices.index[-2]  # the last day has no label
    day = training.index[5]
    i = prices.index.get_loc(day)
    assert training["return"].iloc[5] == pytest.approx(close.iloc[i + 1] / close.iloc[i] - 1)
    assert training["close"].mean() == pytest.approx(1, abs=1e-3)


def test_training_days_know_nothing_of_the_test_years():
    prices = example_prices()
    other = prices.copy()
    later = prices.index.year > 2016
    other.loc[later] *= np.random.default_rng(1).uniform(0.1, 10, (later.sum(), 1))
    before, _ = split(prices)
    after, _ = split(other)
    pd.testing.assert_frame_equal(before, after, check_exact=True)


def test_too_few_days_are_refused():
    prices = example_prices()
    with pytest.raises(ValueError, match="no prices up to 2016"):
        split(prices[prices.index.year > 2016])
    with pytest.raises(ValueError, match="0 test days"):
        split(prices[prices.index.year <= 2016])
