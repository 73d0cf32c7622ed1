"""The index study: formulas that predict the sign of the next return, and whether to believe it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from .. import Formula
from ..storage.atomic import open_file
from . import DEFAULT, PAPER
from .methods import TERMS, fitted, regressor
from .published import SIGNALS, SIGNALS_FOUND, SIGNALS_TRIED
from .records import Record
from .runs import Experiment, Job, Section, Setting, Work
from .simulated import integer_seed, markdown

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


# Whether a signal is more than luck.

#: Of intervals; one less it is the level of tests.
LEVEL = 0.95


class Chance:
    """What guessing reaches, and what a signal has to beat."""

    def __init__(self, training: Days, test: Days):
        up = bool(np.mean(training.returns > 0) > 0.5)
        self.up = up
        self.train = share(np.full(len(training), up), training)
        self.test = share(np.full(len(test), up), test)

    @property
    def to_beat(self) -> float:
        """The share of test days that guessing gets right, at least one half."""
        return max(0.5, self.test)

    def judged(self, table: pd.DataFrame) -> pd.DataFrame:
        """Return signals with intervals, and whether they survive correction for their number."""
        counted = zip(table["test_right"], table["test_days"], strict=True)
        low, high, p = np.array([_luck(int(k), int(n), self.to_beat) for k, n in counted]).T
        adjusted = holm(p)
        return table.assign(
            test_low=low,
            test_high=high,
            p_value=p,
            p_adjusted=adjusted,
            counts=(table["train"] > 0.5) & (table["test"] > 0.5),
            survives=adjusted < 1 - LEVEL,
        )

    def believed(self, up: dict[str, np.ndarray], training: Days, test: Days) -> pd.DataFrame:
        """Return how often the probability of a positive return was on the right side of 1/2."""
        rows = []
        for name, days in (("train", training), ("test", test)):
            right = int(np.sum((up[name] > 0.5) == (days.returns > 0)))
            guess = max(0.5, self.train if name == "train" else self.test)
            low, high, p = _luck(right, len(days), guess)
            rows.append(
                {
                    "dataset": name,
                    "accuracy": right / len(days),
                    "low": low,
                    "high": high,
                    "majority": guess,
                    "p_value": p,
                    "mean_probability": float(up[name].mean()),
                    "days_up": float(np.mean(up[name] > 0.5)),
                    "return": growth(up[name] > 0.5, days)[-1] - 1.0,
                }
            )
        return pd.DataFrame(rows)


def _luck(right: int, days: int, chance: float) -> tuple[float, float, float]:
    """Return an exact interval of the share of right days, and how probable it is by chance."""
    interval = stats.binomtest(right, days).proportion_ci(LEVEL, "exact")
    p = stats.binomtest(right, days, chance, alternative="greater").pvalue
    return interval.low, interval.high, p


def holm(p: np.ndarray) -> np.ndarray:
    """Return p-values corrected for their number, by Holm's method."""
    order = np.argsort(p, kind="stable")
    steps = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    result = np.empty(len(p))
    result[order] = np.minimum(steps, 1.0)
    return result


def share(up: np.ndarray, days: Days) -> float:
    """Return on which share of the days the sign was right; no change counts as not up."""
    return float(np.mean(up == (days.returns > 0)))


def positions(formula: str, days: Days) -> np.ndarray:
    """Return on which days a formula says up; where it has no value it does not."""
    with np.errstate(all="ignore"):
        return Formula(formula, PRICES).predict(days.X) > 0


def line(formula: str, training: Days, test: Days) -> dict[str, Any]:
    """Return how a signal did."""
    up_train, up_test = positions(formula, training), positions(formula, test)
    return {
        "train": share(up_train, training),
        "test": share(up_test, test),
        "test_right": int(np.sum(up_test == (test.returns > 0))),
        "test_days": len(test),
        "days_up": float(up_test.mean()),
        "test_return": growth(up_test, test)[-1] - 1.0,
        "expression": Formula(formula, PRICES).text(digits=3),
        "formula": formula,
    }


def growth(up: np.ndarray, days: Days) -> np.ndarray:
    """Return what one becomes, held in the index on the days that are said to go up."""
    return np.cumprod(1.0 + np.where(up, days.returns, 0.0))


# The study.

#: The paper's pool; lt belongs to its model.
OPERATORS = ["+", "-", "*", "/", "exp", "square", "cube", "lt"]
_DRAWS = 2000
# Signals listed in the report; the table has all.
_SHOWN = 20


def load(setting: Setting) -> pd.DataFrame:
    """Return the prices asked for, or the example."""
    return example_prices() if setting.prices is None else read_prices(setting.prices)


def _work(job: Job, setting: Setting, prices: pd.DataFrame) -> Record:
    """Fit the training days once; keep the formula, or the default's probabilities."""
    training, test = split(prices)
    seed = integer_seed(job.seed, job.replication, job.method, "signals")
    model = regressor(
        job.method, setting.effort, seed, operators=OPERATORS, trees=setting.effort.signal_trees
    )
    fitted(model, pd.DataFrame(training.X, columns=PRICES), training.returns)
    record: Record = {"formula": model.best_formula_.text(digits=17)}
    if job.method == DEFAULT:
        record["up"] = {
            name: probability_up(model, days.X, seed).tolist()
            for name, days in (("train", training), ("test", test))
        }
        record["formulas"] = [
            [str(row.formula), float(row.probability)]
            for row in model.formulas_.head(3).itertuples()
        ]
    return record


def probability_up(model: Any, X: np.ndarray, seed: int) -> np.ndarray:
    """Return the posterior probability of a positive return, for each day."""
    rng = np.random.default_rng(seed)
    means, noise = model.result_.posterior.mixture.sample(X[:, model.result_.used], _DRAWS, rng)
    # Given mean and noise the probability is known, so that nothing is left to chance.
    return np.nanmean(stats.norm.cdf(means / noise[:, None]), axis=0)


class Signals(Experiment):
    """Signals in an index."""

    name = "signals"

    def jobs(self, setting: Setting) -> list[tuple[Job, Work]]:
        prices = load(setting)
        split(prices)  # complain now
        work = partial(_work, setting=setting, prices=prices)
        runs = {PAPER: setting.effort.signals, DEFAULT: 1}
        return [
            (setting.job("signals", method, _name(prices), run), work)
            for method, n in runs.items()
            if method in setting.methods
            for run in range(n)
        ]

    def summarise(self, records: list[Record], setting: Setting) -> Section:
        training, test = split(load(setting))
        chance = Chance(training, test)
        lines = [line(r["formula"], training, test) for r in records if r["method"] == PAPER]
        table = chance.judged(pd.DataFrame(lines)) if lines else pd.DataFrame()
        tables = {"signals": table} if lines else {}
        curves = {}
        text = [_first_line(table, chance, setting), _setting(training, test, chance, setting)]
        if lines:
            text.append(_signals(table, chance))
            curves["signals"] = [growth(positions(f, test), test) for f in _counting(table)]
        for record in records:
            if record["method"] == DEFAULT:
                up = {name: np.array(values) for name, values in record["up"].items()}
                tables["signals_default"] = chance.believed(up, training, test)
                text.append(_default(tables["signals_default"], up["test"], record["formulas"]))
                curves["default"] = [growth(up["test"] > 0.5, test)]
        return Section("\n\n".join(text), tables, {"signals": draw(test, curves)}, _headline(table))


def _name(prices: pd.DataFrame) -> str:
    """Return a name that no other table has."""
    content = prices.to_csv(float_format="%.10g").encode()
    return "prices " + hashlib.sha256(content).hexdigest()[:12]


def _counting(table: pd.DataFrame) -> list[str]:
    """Return the signals that count, those with the best test accuracy first."""
    return table[table["counts"]].sort_values("test", ascending=False)["formula"].tolist()


def _headline(table: pd.DataFrame) -> str:
    if not len(table):
        return ""
    n = int(table["survives"].sum())
    return f"{n or 'none'} of {len(table)} signals survive{'s' if n < 2 else ''}"


def _first_line(table: pd.DataFrame, chance: Chance, setting: Setting) -> str:
    data = "the generated example (a random walk)" if setting.prices is None else "these prices"
    if not len(table):
        return f"No signal was looked for in {data}."
    n = int(table["survives"].sum())
    tried = f"the {len(table)} signals looked at in {data}"
    if n == 0:
        return (
            f"**None of {tried} survives**: none predicts the sign of the next return on the test "
            f"days better than {chance.to_beat:.1%}, what guessing reaches, after correction "
            "for the number of signals."
        )
    return (
        f"**{n} of {tried} survive{'s' if n == 1 else ''}**: more accurate on the test days than "
        f"guessing ({chance.to_beat:.1%}), after correction for the number of signals. That is "
        "one index and one period; costs of trading are not counted."
    )


def _setting(training: Days, test: Days, chance: Chance, setting: Setting) -> str:
    return (
        f"The paper's sampler proposes {setting.effort.signal_trees:,} trees per run with K = "
        f"{TERMS}, from {', '.join(OPERATORS)}. "
        f"{len(training)} training days ({training.dates[0]:%Y-%m-%d} to "
        f"{training.dates[-1]:%Y-%m-%d}) and {len(test)} test days ({test.dates[0]:%Y-%m-%d} to "
        f"{test.dates[-1]:%Y-%m-%d}). Prices are in units of the mean close of the training days. "
        f"Always guessing {'up' if chance.up else 'down'}, the more frequent sign of the training "
        f"days, is right on {chance.train:.1%} of them and on {chance.test:.1%} of the test days."
    )


def _signals(table: pd.DataFrame, chance: Chance) -> str:
    shown = table[table["counts"]].sort_values("test", ascending=False).head(_SHOWN)
    better = int(((table["train"] > chance.train) & (table["test"] > chance.test)).sum())
    lines = [["#", "train", "test", "p", "corrected", "says up", "expression"]]
    lines += [["---:", "---", "---", "---", "---", "---:", "---"]]
    for i, r in enumerate(shown.itertuples(), 1):
        test = f"{r.test:.3f} ({r.test_low:.3f} to {r.test_high:.3f})"
        luck = [f"{r.p_value:.2g}", f"{r.p_adjusted:.2g}", f"{r.days_up:.0%}"]
        lines.append([f"{i}", f"{r.train:.3f}", test, *luck, f"`{r.expression}`"])
    of_paper = [["#", "train", "test", "expression"], ["---:", "---", "---", "---"]]
    for i, (on_training, on_test, text) in enumerate(SIGNALS, 1):
        of_paper.append([f"{i}", f"{on_training:.3f}", f"{on_test:.3f}", f"`{text}`"])
    return (
        f"A signal counts, as in the paper, when its sign is right on more than half of the "
        f"days of both sets: {int(table['counts'].sum())} of {len(table)} do (published: "
        f"{SIGNALS_FOUND} of {SIGNALS_TRIED}); {better} are better than the majority guess on "
        f"both. The first {len(shown)} of them, with exact {LEVEL:.0%} intervals, the "
        "probability of at least as many right days by luck (a chance of "
        f"{chance.to_beat:.3f} each), and the same corrected by Holm's method for all signals "
        f"looked at:\n\n{markdown(lines)}\n\nPublished:\n\n{markdown(of_paper)}"
    )


def _default(table: pd.DataFrame, up: np.ndarray, formulas: list) -> str:
    test = table[table["dataset"] == "test"].iloc[0]
    listed = "; ".join(f"`{text}` ({probability:.2f})" for text, probability in formulas)
    return (
        f"Our default sampler gives the test days posterior probabilities of a positive return "
        f"from {up.min():.3f} to {up.max():.3f}. Saying up where it exceeds one half is right on "
        f"{test.accuracy:.1%} of them ({test.low:.1%} to {test.high:.1%}), with p = "
        f"{test.p_value:.2g} against guessing. Most probable: {listed}."
    )


def draw(test: Days, curves: dict[str, list[np.ndarray]]) -> Any:
    """Return the plot of what one becomes by each strategy."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 4), layout="constrained")
    ax = figure.subplots()
    for i, curve in enumerate(curves.get("signals", [])):
        label = "signals that count" if i == 0 else None
        ax.plot(test.dates, curve, color="C0", lw=0.5, alpha=0.3, label=label)
    if curves.get("signals"):
        median = np.median(curves["signals"], axis=0)
        ax.plot(test.dates, median, color="C0", lw=2, label="their median")
    for curve in curves.get("default", []):
        ax.plot(test.dates, curve, color="C1", lw=2, label="symbayes default, P(up) > 1/2")
    ax.plot(test.dates, np.cumprod(1 + test.returns), color="black", lw=2, label="buy and hold")
    ax.set(ylabel="value of 1, no costs", title="In the index on days said to go up, else in cash")
    ax.legend(fontsize="small")
    return figure
