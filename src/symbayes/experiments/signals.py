"""The index study: formulas that predict the sign of the next return, and whether to believe it."""

from __future__ import annotations

import hashlib
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from .experiment import Experiment, Section, Setting
from .jobs import Job, Work
from .luck import LEVEL, Chance, growth, line, positions
from .methods import DEFAULT, PAPER, TERMS, fitted, regressor
from .prices import PRICES, Days, example_prices, read_prices, split
from .published import SIGNALS, SIGNALS_FOUND, SIGNALS_TRIED
from .records import Record
from .simulation import integer_seed

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
    title = "Signals in an index"

    def jobs(self, setting: Setting) -> list[tuple[Job, Work]]:
        prices = load(setting)
        split(prices)  # complain now
        work = partial(_work, setting=setting, prices=prices)
        runs = {PAPER: setting.effort.signals, DEFAULT: 1}
        return [
            (setting.signal_job(method, _name(prices), run), work)
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
            f"days better than {chance.to_beat:.1%}, what guessing reaches, once it is taken into "
            "account that so many were looked at."
        )
    return (
        f"**{n} of {tried} survive{'s' if n == 1 else ''}**: more accurate on the test days than "
        f"guessing ({chance.to_beat:.1%}), after correction for having looked at so many. That is "
        "one index and one period; costs of trading are not counted."
    )


def _setting(training: Days, test: Days, chance: Chance, setting: Setting) -> str:
    return (
        f"The paper's sampler proposes {setting.effort.signal_trees:,} trees a run with K = "
        f"{TERMS}, from {', '.join(OPERATORS)}. "
        f"{len(training)} training days ({training.dates[0]:%Y-%m-%d} to "
        f"{training.dates[-1]:%Y-%m-%d}) and {len(test)} test days ({test.dates[0]:%Y-%m-%d} to "
        f"{test.dates[-1]:%Y-%m-%d}). Prices are in units of the mean close of the training days. "
        f"Always guessing {'up' if chance.up else 'down'}, the more frequent sign of the training "
        f"days, is right on {chance.train:.1%} of them and on {chance.test:.1%} of the test days."
    )


def _signals(table: pd.DataFrame, chance: Chance) -> str:
    shown = table[table["counts"]].sort_values("test", ascending=False).head(_SHOWN)
    rows = [
        f"| {i} | {r.train:.3f} | {r.test:.3f} ({r.test_low:.3f} to {r.test_high:.3f}) | "
        f"{r.p_value:.2g} | {r.p_adjusted:.2g} | {r.days_up:.0%} | `{r.expression}` |"
        for i, r in enumerate(shown.itertuples(), 1)
    ]
    better = int(((table["train"] > chance.train) & (table["test"] > chance.test)).sum())
    return "\n".join(
        [
            f"A signal counts, as in the paper, when its sign is right on more than half of the "
            f"days of both sets: {int(table['counts'].sum())} of {len(table)} do (published: "
            f"{SIGNALS_FOUND} of {SIGNALS_TRIED}); {better} are better than the majority guess on "
            f"both. The first {len(shown)} of them, with exact {LEVEL:.0%} intervals, the "
            f"probability of so many right days by luck (a chance of {chance.to_beat:.3f} a day), "
            "and the same corrected by Holm's method for all signals looked at:",
            "",
            "| # | train | test | p | corrected | says up | expression |",
            "| ---: | --- | --- | --- | --- | ---: | --- |",
            *rows,
            "",
            "Published:",
            "",
            "| # | train | test | expression |",
            "| ---: | --- | --- | --- |",
            *(
                f"| {i} | {train:.3f} | {test:.3f} | `{text}` |"
                for i, (train, test, text) in enumerate(SIGNALS, 1)
            ),
        ]
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
