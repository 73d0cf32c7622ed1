"""The index study: formulas that predict the sign of the next return, and whether to believe it."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from .. import Formula
from ..storage.atomic import open_file
from . import DEFAULT, PAPER
from .methods import TERMS, fitted
from .published import SIGNALS, SIGNALS_FOUND, SIGNALS_TRIED
from .records import Record
from .runs import Experiment, Job, Runs, Section, Setting
from .simulated import integer_seed, markdown

#: What signals are made of.
PRICES = ("open", "high", "low", "close")
#: Training years end with the first, test years with the second, as in the paper.
LAST_TRAINING_YEAR, LAST_TEST_YEAR = 2016, 2019
_FEWEST_DAYS = 30
#: The paper's operators; lt belongs to its model.
OPERATORS = ["+", "-", "*", "/", "exp", "square", "cube", "lt"]
#: Of intervals; one less it is the level of tests.
LEVEL = 0.95
_DRAWS = 2000
# Signals listed in the report; the table has all.
_SHOWN = 20


def read_prices(path: Path) -> pd.DataFrame:
    """Return a CSV with date, open, high, low, close, by date; a day may occur only once."""
    try:
        with open_file(path) as file:
            table = pd.read_csv(file)
    except (OSError, UnicodeDecodeError, pd.errors.ParserError, pd.errors.EmptyDataError) as error:
        raise ValueError(f"{path} cannot be read as CSV: {error}") from None
    table.columns = [str(name).strip().lower() for name in table.columns]
    missing = [name for name in ("date", *PRICES) if name not in table]
    if missing:
        raise ValueError(
            f"{path} has no column {', '.join(missing)}; it must have date, {', '.join(PRICES)}"
        )
    dates = pd.to_datetime(table["date"], errors="coerce")
    values = table[list(PRICES)].apply(pd.to_numeric, errors="coerce")
    bad = dates.isna() | ~(np.isfinite(values) & (values > 0)).all(axis=1)
    if bad.any():
        # The header is line 1.
        raise ValueError(
            f"{path}, line {int(np.flatnonzero(bad)[0]) + 2}: there must be a date and four prices "
            "above 0"
        )
    result = values.astype(float).set_axis(dates, axis=0).sort_index()
    if result.index.has_duplicates:
        day = result.index[result.index.duplicated()][0]
        raise ValueError(f"{path} has {day:%Y-%m-%d} more than once")
    return result


def split(prices: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return training and test days: prices, in units of the mean close of the training years, and
    the return until the next close.

    Nothing of the test years is known to the training days: neither the unit of the prices nor the
    return of the last training day, whose next close is the first of the test years and which is
    therefore left out.
    """
    close, year = prices["close"].to_numpy(), prices.index.year.to_numpy()
    if not (year <= LAST_TRAINING_YEAR).any():
        raise ValueError(f"there are no prices up to {LAST_TRAINING_YEAR} to train on")
    days = prices[list(PRICES)] / close[year <= LAST_TRAINING_YEAR].mean()
    days = days[:-1].assign(**{"return": close[1:] / close[:-1] - 1.0})
    training = days[year[1:] <= LAST_TRAINING_YEAR]
    test = days[(year[:-1] > LAST_TRAINING_YEAR) & (year[:-1] <= LAST_TEST_YEAR)]
    for name, part in (("training", training), ("test", test)):
        if len(part) < _FEWEST_DAYS:
            raise ValueError(
                f"there are {len(part)} {name} days; there must be at least {_FEWEST_DAYS} up "
                f"to {LAST_TRAINING_YEAR} and as many from then to {LAST_TEST_YEAR}"
            )
    return training, test


def example_prices(random_state: int = 0) -> pd.DataFrame:
    """Return a random walk dressed up as an index, 2012 to 2019: there is nothing to find in it."""
    rng = np.random.default_rng(random_state)
    dates = pd.bdate_range("2012-01-02", "2019-12-31", name="date")
    close = 3000.0 * np.exp(np.cumsum(rng.normal(2e-4, 0.012, len(dates))))
    opening = np.concatenate([[3000.0], close[:-1]]) * np.exp(rng.normal(0, 0.003, len(dates)))
    reach = np.abs(rng.normal(0, 0.005, (2, len(dates))))
    high = np.maximum(opening, close) * (1 + reach[0])
    low = np.minimum(opening, close) * (1 - reach[1])
    return pd.DataFrame({"open": opening, "high": high, "low": low, "close": close}, index=dates)


# Whether a signal is more than luck.


class Chance:
    """What guessing reaches, always the more frequent sign of the training days."""

    def __init__(self, training: pd.DataFrame, test: pd.DataFrame):
        self.up = bool(np.mean(training["return"] > 0) > 0.5)
        self.train = share(self.up, training)
        self.test = share(self.up, test)
        #: The share of test days that a signal has to beat.
        self.to_beat = max(0.5, self.test)


def share(up: np.ndarray | bool, days: pd.DataFrame) -> float:
    """Return on which share of the days the sign was right; no change counts as not up."""
    return float(np.mean(up == (days["return"].to_numpy() > 0)))


def positions(formula: str, days: pd.DataFrame) -> np.ndarray:
    """Return on which days a formula says up; where it has no value it does not."""
    return Formula(formula, PRICES).predict(days) > 0


def growth(up: np.ndarray, days: pd.DataFrame) -> np.ndarray:
    """Return what one becomes, held in the index on the days that are said to go up."""
    return np.cumprod(1.0 + np.where(up, days["return"], 0.0))


def luck(right: int, days: int, chance: float) -> tuple[float, float, float]:
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


def judged(formulas: list[str], training: pd.DataFrame, test: pd.DataFrame) -> pd.DataFrame:
    """Return how signals did, and which survive correction for their number."""
    rises = test["return"] > 0
    says_up = [positions(formula, test) for formula in formulas]
    table = pd.DataFrame(
        {
            "train": [share(positions(formula, training), training) for formula in formulas],
            "test": [share(up, test) for up in says_up],
            "test_right": [np.sum(up == rises) for up in says_up],
            "test_days": len(test),
            "days_up": [up.mean() for up in says_up],
            "test_return": [growth(up, test)[-1] - 1.0 for up in says_up],
            "expression": [Formula(formula, PRICES).text(digits=3) for formula in formulas],
            "formula": formulas,
        }
    )
    to_beat = Chance(training, test).to_beat
    lucks = [luck(right, len(test), to_beat) for right in table["test_right"]]
    table[["test_low", "test_high", "p_value"]] = lucks
    table["p_adjusted"] = holm(table["p_value"].to_numpy())
    table["counts"] = (table["train"] > 0.5) & (table["test"] > 0.5)
    table["survives"] = table["p_adjusted"] < 1 - LEVEL
    return table


def believed(up: dict[str, np.ndarray], training: pd.DataFrame, test: pd.DataFrame) -> pd.DataFrame:
    """Return how often the probability of a positive return was on the right side of 1/2."""
    chance = Chance(training, test)
    rows = []
    for name, days, guess in (("train", training, chance.train), ("test", test, chance.test)):
        says_up = up[name] > 0.5
        accuracy = share(says_up, days)
        majority = max(0.5, guess)
        low, high, p = luck(round(accuracy * len(days)), len(days), majority)
        rows.append(
            (name, accuracy, low, high, majority, p, up[name].mean(), says_up.mean(),
             growth(says_up, days)[-1] - 1.0)
        )  # fmt: skip
    names = "dataset accuracy low high majority p_value mean_probability days_up return"
    return pd.DataFrame(rows, columns=names.split())


# The study.


def _prices(setting: Setting) -> pd.DataFrame:
    return example_prices() if setting.prices is None else read_prices(setting.prices)


class Signals(Experiment):
    """Many runs of the paper's sampler and one of ours."""

    def runs(self, setting: Setting) -> Runs:
        """Return them; bad prices are refused here."""
        prices = _prices(setting)
        training, test = split(prices)
        # The task has a name that no other table has.
        content = prices.to_csv(float_format="%.10g").encode()
        task = "prices " + hashlib.sha256(content).hexdigest()[:12]
        effort = replace(setting.effort, trees=setting.effort.signal_trees)
        setting = setting._replace(effort=effort)
        work = partial(self.work, setting=setting, training=training, test=test)
        return {
            Job("signals", method, task, i, setting.seed, size=setting.size(method)): work
            for method, n in ((PAPER, effort.signals), (DEFAULT, 1))
            if method in setting.methods
            for i in range(n)
        }


def fit(job: Job, setting: Setting, training: pd.DataFrame, test: pd.DataFrame) -> Record:
    """Fit the training days once; return the formula, and the default's probabilities."""
    seed = integer_seed(job.seed, job.replication, job.method, "signals")
    X, y = training[list(PRICES)], training["return"].to_numpy()
    model = fitted(job.method, setting.effort, seed, X, y, operators=OPERATORS)
    record: Record = {"formula": model.best_formula_.text(digits=17)}
    if job.method == DEFAULT:
        record["up"], used = {}, model.result_.used
        for name, days in (("train", training), ("test", test)):
            means, noise = model.result_.posterior.mixture.sample(
                days[list(PRICES)].to_numpy()[:, used], _DRAWS, np.random.default_rng(seed)
            )
            # Given mean and noise the probability is known, so that nothing is left to chance.
            up = np.nanmean(stats.norm.cdf(means / noise[:, None]), axis=0)
            record["up"][name] = up.tolist()
        top = model.formulas_.head(3).itertuples()
        record["formulas"] = [[str(row.formula), float(row.probability)] for row in top]
    return record


def signals(records: list[Record], setting: Setting) -> Section:
    """Return how signals did, and whether to believe them."""
    training, test = split(_prices(setting))
    chance = Chance(training, test)
    data = "the generated example (a random walk)" if setting.prices is None else "these prices"
    text = [f"No signal was looked for in {data}.", _told(training, test, chance, setting)]
    tables, counting, up, headline = {}, [], None, ""
    formulas = [record["formula"] for record in records if record["method"] == PAPER]
    if formulas:
        table = tables["signals"] = judged(formulas, training, test)
        best = table[table["counts"]].sort_values("test", ascending=False)
        counting = best["formula"].tolist()
        n = int(table["survives"].sum())
        headline = f"{n or 'none'} of {len(table)} signals survive{'s' if n < 2 else ''}"
        tried = f"of the {len(table)} signals looked at in {data}"
        text[0] = (
            f"**None {tried} survives**: none predicts the sign of the next return on the test "
            f"days better than {chance.to_beat:.1%}, what guessing reaches, after correction "
            "for the number of signals."
        )
        if n:
            text[0] = (
                f"**{n} {tried} survive{'s' if n == 1 else ''}**: more accurate on the test days "
                f"than guessing ({chance.to_beat:.1%}), after correction for the number of "
                "signals. That is one index and one period; costs of trading are not counted."
            )
        text.append(_listed(table, best.head(_SHOWN), chance))
    for record in records:
        if record["method"] == DEFAULT:
            up = {name: np.array(values) for name, values in record["up"].items()}
            table = tables["signals_default"] = believed(up, training, test)
            text.append(_default(table.iloc[1], up["test"], record["formulas"]))
    return Section("\n\n".join(text), tables, draw(test, counting, up), headline)


def _told(training: pd.DataFrame, test: pd.DataFrame, chance: Chance, setting: Setting) -> str:
    spans = [f"{part.index[0]:%Y-%m-%d} to {part.index[-1]:%Y-%m-%d}" for part in (training, test)]
    return (
        f"The paper's sampler proposes {setting.effort.signal_trees:,} trees per run with K = "
        f"{TERMS}, from {', '.join(OPERATORS)}. "
        f"{len(training)} training days ({spans[0]}) and {len(test)} test days ({spans[1]}). "
        "Prices are in units of the mean close of the training days. "
        f"Always guessing {'up' if chance.up else 'down'}, the more frequent sign of the training "
        f"days, is right on {chance.train:.1%} of them and on {chance.test:.1%} of the test days."
    )


def _listed(table: pd.DataFrame, shown: pd.DataFrame, chance: Chance) -> str:
    better = int(((table["train"] > chance.train) & (table["test"] > chance.test)).sum())
    head = ["#", "train", "test", "p", "corrected", "says up", "expression"]
    lines = [
        [i, f"{r.train:.3f}", f"{r.test:.3f} ({r.test_low:.3f} to {r.test_high:.3f})",
         f"{r.p_value:.2g}", f"{r.p_adjusted:.2g}", f"{r.days_up:.0%}", f"`{r.expression}`"]
        for i, r in enumerate(shown.itertuples(), 1)
    ]  # fmt: skip
    of_paper = [
        [i, f"{train:.3f}", f"{test:.3f}", f"`{text}`"]
        for i, (train, test, text) in enumerate(SIGNALS, 1)
    ]
    return (
        f"A signal counts, as in the paper, when its sign is right on more than half of the "
        f"days of both sets: {int(table['counts'].sum())} of {len(table)} do (published: "
        f"{SIGNALS_FOUND} of {SIGNALS_TRIED}); {better} are better than the majority guess on "
        f"both. The first {len(shown)} of them, with exact {LEVEL:.0%} intervals, the "
        "probability of at least as many right days by luck (a chance of "
        f"{chance.to_beat:.3f} each), and the same corrected by Holm's method for all signals "
        f"looked at:\n\n{markdown(head, lines, ['#', 'says up'])}\n\nPublished:\n\n"
        + markdown(["#", "train", "test", "expression"], of_paper, ["#"])
    )


def _default(test: pd.Series, up: np.ndarray, formulas: list[tuple[str, float]]) -> str:
    listed = "; ".join(f"`{text}` ({probability:.2f})" for text, probability in formulas)
    return (
        f"Our default sampler gives the test days posterior probabilities of a positive return "
        f"from {up.min():.3f} to {up.max():.3f}. Saying up where it exceeds one half is right on "
        f"{test.accuracy:.1%} of them ({test.low:.1%} to {test.high:.1%}), with p = "
        f"{test.p_value:.2g} against guessing. Most probable: {listed}."
    )


def draw(test: pd.DataFrame, formulas: list[str], up: dict[str, np.ndarray] | None) -> Any:
    """Return the plot of what one becomes by each strategy."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 4), layout="constrained")
    ax = figure.subplots()
    curves = [growth(positions(formula, test), test) for formula in formulas]
    for i, curve in enumerate(curves):
        label = "signals that count" if i == 0 else None
        ax.plot(test.index, curve, color="C0", lw=0.5, alpha=0.3, label=label)
    if curves:
        ax.plot(test.index, np.median(curves, axis=0), color="C0", lw=2, label="their median")
    if up is not None:
        curve = growth(up["test"] > 0.5, test)
        ax.plot(test.index, curve, color="C1", lw=2, label="symbayes default, P(up) > 1/2")
    held = np.cumprod(1 + test["return"])
    ax.plot(test.index, held, color="black", lw=2, label="buy and hold")
    ax.set(ylabel="value of 1, no costs", title="In the index on days said to go up, else in cash")
    ax.legend(fontsize="small")
    return figure
