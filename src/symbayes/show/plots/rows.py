"""Plots of rows: what was observed beside what the model predicts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...inputs.parameters import check_level
from ...inputs.validation import check_new_rows, check_new_target
from ...result import Result
from .canvas import BLUE, GREY, ORANGE, axes_for, cropped, result_of

# More points do not show more; the same ones are drawn every time.
_MOST_ROWS = 1000
_LONGEST_NAME = 20


@dataclass(frozen=True)
class Comparison:
    """Observed and predicted values of some rows."""

    result: Result
    X: np.ndarray
    observed: np.ndarray
    predicted: np.ndarray
    n_rows: int
    """How many rows there were to choose from."""

    @property
    def residuals(self) -> np.ndarray:
        """Observed minus predicted values."""
        return self.observed - self.predicted

    def intervals(self, level: float) -> Intervals:
        """Return where the observations were expected."""
        check_level("plot_predictions", level)
        return Intervals(float(level), *self.result.interval(self.X, float(level)))

    @property
    def count(self) -> str:
        """Which rows are shown, in words."""
        n = len(self.observed)
        return f"{n:,} rows" if n == self.n_rows else f"{n:,} rows drawn from {self.n_rows:,}"


@dataclass(frozen=True)
class Intervals:
    """Where observations are expected."""

    level: float
    lower: np.ndarray
    upper: np.ndarray

    def hold(self, observed: np.ndarray) -> np.ndarray:
        """Return which observations lie in their interval."""
        return (self.lower <= observed) & (observed <= self.upper)


def compare(model: Any, X: Any = None, y: Any = None) -> Comparison:
    """Predict rows, the training rows without others; of many a sample."""
    result = result_of(model)
    if (X is None) != (y is None):
        raise ValueError("X and y belong together: pass both, or neither for the training rows")
    if X is None:
        X, y = result.rows.X, result.rows.y
    else:
        X = check_new_rows(model, X)
        y = check_new_target(y, len(X))
    n_rows = len(y)
    if n_rows > _MOST_ROWS:
        kept = np.sort(np.random.default_rng(0).choice(n_rows, _MOST_ROWS, replace=False))
        X, y = X[kept], y[kept]
    return Comparison(result, X, y, result.predict(X), n_rows)


def plot_predictions(
    model: Any, X: Any = None, y: Any = None, level: float = 0.9, ax: Any = None
) -> Any:
    """Plot observed against predicted values, with the intervals that should hold them.

    A row is a point at its prediction, and a bar that reaches over the central interval of a new
    observation there. Rows outside their interval are crosses.

    Parameters
    ----------
    model : BayesianSymbolicRegressor
        Fitted.
    X : array-like or DataFrame of shape (n_rows, n_columns), optional
        The training rows if not given. Of more than 1,000 rows, 1,000 are drawn at random, always
        the same ones.
    y : array-like of shape (n_rows,), optional
    level : float in (0, 1)
        Probability that an interval holds a new observation.
    ax : matplotlib Axes, optional
        Where to draw; a new figure if not given.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from symbayes import BayesianSymbolicRegressor
    >>> from symbayes.datasets import paper_task
    >>> from symbayes.plots import plot_predictions
    >>> X, y = paper_task("f2", random_state=0)
    >>> model = BayesianSymbolicRegressor(["square", "cube"], draws=50, tune=50, random_state=0)
    >>> ax = plot_predictions(model.fit(X, y), ax=Figure().subplots())
    >>> ax.get_ylabel()
    'observed y'
    """
    comparison = compare(model, X, y)
    intervals = comparison.intervals(level)
    ax = axes_for(ax)
    draw_predictions(ax, comparison, intervals)
    return ax


def draw_predictions(ax: Any, comparison: Comparison, intervals: Intervals) -> None:
    """Draw what `plot_predictions` shows."""
    observed, predicted = comparison.observed, comparison.predicted
    inside = intervals.hold(observed)
    ax.vlines(
        predicted, intervals.lower, intervals.upper, color=GREY, alpha=0.35, lw=1.5,
        label=f"{100 * intervals.level:.4g}% interval",
    )  # fmt: skip
    ax.axline([observed[0]] * 2, slope=1, color=GREY, lw=1, label="observed = predicted")
    ax.plot(predicted[inside], observed[inside], ".", ms=5, color=BLUE, label="inside")
    ax.plot(predicted[~inside], observed[~inside], "x", ms=5, color=ORANGE, label="outside")
    target = cropped(comparison.result.target, _LONGEST_NAME)
    ax.set_xlabel(f"predicted {target}", parse_math=False)
    ax.set_ylabel(f"observed {target}", parse_math=False)
    ax.set_title(
        f"{np.mean(inside):.1%} of {comparison.count}\n"
        f"lie in their {100 * intervals.level:.4g}% interval",
        fontsize="medium",
    )
    ax.legend(fontsize="small", framealpha=0)


def plot_residuals(model: Any, X: Any = None, y: Any = None, ax: Any = None) -> Any:
    """Plot what is left, observed minus predicted values, against the predicted ones.

    Parameters
    ----------
    model : BayesianSymbolicRegressor
        Fitted.
    X : array-like or DataFrame of shape (n_rows, n_columns), optional
        The training rows if not given. Of more than 1,000 rows, 1,000 are drawn at random, always
        the same ones.
    y : array-like of shape (n_rows,), optional
    ax : matplotlib Axes, optional
        Where to draw; a new figure if not given.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from symbayes import BayesianSymbolicRegressor
    >>> from symbayes.datasets import paper_task
    >>> from symbayes.plots import plot_residuals
    >>> X, y = paper_task("f2", random_state=0)
    >>> model = BayesianSymbolicRegressor(["square", "cube"], draws=50, tune=50, random_state=0)
    >>> ax = plot_residuals(model.fit(X, y), ax=Figure().subplots())
    >>> ax.get_title()
    'Residuals of 100 rows'
    """
    comparison = compare(model, X, y)
    ax = axes_for(ax)
    draw_residuals(ax, comparison)
    return ax


def draw_residuals(ax: Any, comparison: Comparison) -> None:
    """Draw what `plot_residuals` shows."""
    ax.axhline(0, color=GREY, lw=1)
    ax.plot(comparison.predicted, comparison.residuals, ".", ms=5, color=BLUE)
    target = cropped(comparison.result.target, _LONGEST_NAME)
    ax.set_xlabel(f"predicted {target}", parse_math=False)
    ax.set_ylabel("residual: observed minus predicted")
    ax.set_title(f"Residuals of {comparison.count}", fontsize="medium")
