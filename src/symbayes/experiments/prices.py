"""Daily prices of an index: read, checked, and split by year."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from ..storage.atomic import open_file

#: What signals are made of.
PRICES = ("open", "high", "low", "close")
#: Training years end with the first, test years with the second, as in the paper.
LAST_TRAINING_YEAR, LAST_TEST_YEAR = 2016, 2019
_FEWEST_DAYS = 30


class BadPrices(ValueError):
    """A table of prices that cannot be used."""


def read_prices(path: Path) -> pd.DataFrame:
    """Return a CSV with date, open, high, low, close, by date.

    Raises
    ------
    BadPrices
        If a column is missing, a date or price cannot be read, or a day occurs twice.
    """
    try:
        with open_file(path) as file:
            table = pd.read_csv(file)
    except (OSError, UnicodeDecodeError, pd.errors.ParserError, pd.errors.EmptyDataError) as error:
        raise BadPrices(f"{path} cannot be read as CSV: {error}") from None
    table.columns = [str(name).strip().lower() for name in table.columns]
    missing = [name for name in ("date", *PRICES) if name not in table]
    if missing:
        raise BadPrices(
            f"{path} has no column {', '.join(missing)}; it must have date, {', '.join(PRICES)}"
        )
    dates = pd.to_datetime(table["date"], errors="coerce")
    values = table[list(PRICES)].apply(pd.to_numeric, errors="coerce")
    bad = dates.isna() | ~(np.isfinite(values) & (values > 0)).all(axis=1)
    if bad.any():
        # The header is line 1.
        raise BadPrices(
            f"{path}, line {int(np.flatnonzero(bad)[0]) + 2}: there must be a date and four prices "
            "above 0"
        )
    result = values.astype(float).set_axis(dates, axis=0).sort_index()
    if result.index.has_duplicates:
        day = result.index[result.index.duplicated()][0]
        raise BadPrices(f"{path} has {day:%Y-%m-%d} more than once")
    return result


@dataclass(frozen=True)
class Days:
    """Days whose next close is known, with prices and the return until then."""

    dates: pd.DatetimeIndex
    X: np.ndarray
    """Prices in units of the mean close of the training years."""
    returns: np.ndarray

    def __len__(self) -> int:
        return len(self.dates)


def split(prices: pd.DataFrame) -> tuple[Days, Days]:
    """Return training and test days.

    Nothing of the test years is known to the training days: neither the unit of the prices nor the
    return of the last training day, whose next close is the first of the test years and which is
    therefore left out.
    """
    dates, close = prices.index, prices["close"].to_numpy()
    year = dates.year.to_numpy()
    if not (year <= LAST_TRAINING_YEAR).any():
        raise BadPrices(f"there are no prices up to {LAST_TRAINING_YEAR} to train on")
    unit = close[year <= LAST_TRAINING_YEAR].mean()
    X = prices[list(PRICES)].to_numpy() / unit
    returns = close[1:] / close[:-1] - 1.0
    next_year, year = year[1:], year[:-1]
    training = next_year <= LAST_TRAINING_YEAR
    test = (year > LAST_TRAINING_YEAR) & (year <= LAST_TEST_YEAR)
    parts = []
    for name, chosen in (("training", training), ("test", test)):
        if chosen.sum() < _FEWEST_DAYS:
            raise BadPrices(
                f"there are {chosen.sum()} {name} days; there must be at least {_FEWEST_DAYS} up "
                f"to {LAST_TRAINING_YEAR} and as many from then to {LAST_TEST_YEAR}"
            )
        parts.append(Days(dates[:-1][chosen], X[:-1][chosen], returns[chosen]))
    return parts[0], parts[1]


def example_prices(random_state: int = 0) -> pd.DataFrame:
    """Return a random walk dressed up as an index, 2012 to 2019: there is nothing to find in it."""
    rng = np.random.default_rng(random_state)
    dates = pd.bdate_range("2012-01-02", "2019-12-31")
    close = 3000.0 * np.exp(np.cumsum(rng.normal(2e-4, 0.012, len(dates))))
    opening = np.concatenate([[3000.0], close[:-1]]) * np.exp(rng.normal(0, 0.003, len(dates)))
    reach = np.abs(rng.normal(0, 0.005, (2, len(dates))))
    return pd.DataFrame(
        {
            "open": opening,
            "high": np.maximum(opening, close) * (1 + reach[0]),
            "low": np.minimum(opening, close) * (1 - reach[1]),
            "close": close,
        },
        index=dates.rename("date"),
    )
