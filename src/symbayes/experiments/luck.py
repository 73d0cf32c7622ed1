"""Whether a signal is more than luck: accuracy, intervals, correction, and what it earned."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from .. import Formula
from .prices import PRICES, Days

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
        """Return signals with intervals, and whether they survive that so many were looked at."""
        right, days = table["test_right"], table["test_days"]
        tests = [
            stats.binomtest(int(k), int(n), self.to_beat, alternative="greater")
            for k, n in zip(right, days, strict=True)
        ]
        intervals = [
            stats.binomtest(int(k), int(n)).proportion_ci(LEVEL, "exact")
            for k, n in zip(right, days, strict=True)
        ]
        p = np.array([test.pvalue for test in tests])
        adjusted = holm(p)
        return table.assign(
            test_low=[interval.low for interval in intervals],
            test_high=[interval.high for interval in intervals],
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
            interval = stats.binomtest(right, len(days)).proportion_ci(LEVEL, "exact")
            guess = max(0.5, self.train if name == "train" else self.test)
            luck = stats.binomtest(right, len(days), guess, alternative="greater")
            rows.append(
                {
                    "dataset": name,
                    "accuracy": right / len(days),
                    "low": interval.low,
                    "high": interval.high,
                    "majority": guess,
                    "p_value": luck.pvalue,
                    "mean_probability": float(up[name].mean()),
                    "days_up": float(np.mean(up[name] > 0.5)),
                    "return": growth(up[name] > 0.5, days)[-1] - 1.0,
                }
            )
        return pd.DataFrame(rows)


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
