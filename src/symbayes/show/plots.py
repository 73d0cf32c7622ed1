"""Plots of a fitted model; `symbayes.plots` has the public names."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..formula.checks import require_count
from ..inputs.parameters import check_level
from ..inputs.validation import check_new_rows, check_new_target
from ..result import Result

#: Of Okabe and Ito's colours, those with a contrast above 3 on white and on near black.
BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#808080"
# Characters of the name of a column and of y, and of a formula in the narrowest Axes.
_LONGEST_NAME, _LONGEST_TARGET, _FEWEST_LETTERS = 28, 20, 30
# Characters that a line break may leave empty.
_LONGEST_WORD = 12
# In points: height of a bar with two lines above it, width of a character of a formula.
_TWO_LINES, _LETTER = 36.0, 4.4
# Errors that differ by less are as easy to read on a plain scale.
_WORTH_A_LOGARITHM = 10.0
# What is below this part of the largest error is rounding.
_ROUNDING = 1.0e-16
# More rows, or more draws on a line, do not show more.
_MOST_ROWS, _MOST_DRAWS = 1000, 400
_MOST_TEMPERATURES = 5


# What all plots share: Axes to draw on, and text that stays text.


def result_of(model: Any) -> Result:
    """Return what a plot shows: the result of a fitted estimator, or a result itself."""
    if isinstance(model, Result):
        return model
    if not hasattr(model, "fit"):
        raise TypeError(
            "plots show a fitted BayesianSymbolicRegressor (plot_tree also a Formula), not "
            f"{type(model).__name__}"
        )
    check_is_fitted(model)
    return model.result_


def axes_for(ax: Any, width: float = 5.5, height: float = 4.0) -> Any:
    """Return the Axes to draw on: the user's, or those of a new figure of this size in inches."""
    if ax is None:
        import matplotlib.pyplot as plt

        return plt.subplots(figsize=(width, height), layout="constrained")[1]
    from matplotlib.axes import Axes

    if not isinstance(ax, Axes):
        raise TypeError(
            f"ax must be a matplotlib Axes or None, not {type(ax).__name__}; "
            "matplotlib.pyplot.subplots() makes one"
        )
    return ax


def points(ax: Any) -> Any:
    """Return width and height of Axes in points."""
    return ax.get_window_extent().size * 72 / ax.figure.dpi


def probability(value: float) -> str:
    """Return a probability with three digits after the point."""
    return f"{value:.3f}" if value >= 0.0005 or value == 0 else "below 0.001"


def visible(text: str) -> str:
    """Return the text on one line, with a sign in place of what cannot be seen or drawn."""
    return "".join(
        c if c.isprintable() else " " if c.isspace() else "\N{REPLACEMENT CHARACTER}" for c in text
    )


def cropped(text: str, most: int) -> str:
    """Return at most `most` characters of the text, on one line."""
    text = visible(text)
    return text if len(text) <= most else text[: most - 1] + "…"


def distinguishable(texts: Sequence[str], most: int) -> list[str]:
    """Return at most `most` characters of each text, with those in which it differs from others.

    Other digits are no difference that a reader sees.

    Examples
    --------
    >>> from symbayes.show.plots import distinguishable
    >>> distinguishable(["3*sin(x0) + y", "2*x0 + 1", "4*sin(x0) + z"], 9)
    ['3*sin…+ y', '2*x0 + 1', '4*sin…+ z']
    """
    shown = list(map(visible, texts))
    masked = [re.sub(r"\d", "0", text) for text in shown]
    result = []
    for text, mask in zip(shown, masked, strict=True):
        alike = [
            next(i for i, (a, b) in enumerate(zip_longest(mask, other)) if a != b)
            for other in masked
            if other != mask and cropped(other, most) == cropped(mask, most)
        ]
        if alike:
            # A little of what is the same shows where the difference is.
            rest = text[max(alike) - most // 4 :]
            text = text[: max(most // 4, most - 1 - len(rest))] + "…" + rest
        result.append(cropped(text, most))
    return result


# The posterior: formulas, columns, and the front of size and error.


def plot_formulas(model: Any, n: int = 10, ax: Any = None) -> Any:
    """Plot how probable the first formulas are.

    Parameters
    ----------
    model : BayesianSymbolicRegressor
        Fitted.
    n : int
        Formulas to show, at most.
    ax : matplotlib Axes, optional
        Where to draw; a new figure if not given.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from symbayes import BayesianSymbolicRegressor, plots
    >>> from symbayes.datasets import paper_task
    >>> model = BayesianSymbolicRegressor(["square", "cube"], draws=50, tune=50, random_state=0)
    >>> model = model.fit(*paper_task("f2", random_state=0))
    >>> plots.plot_formulas(model, ax=Figure().subplots()).get_xlabel()
    'probability'
    """
    formulas = result_of(model).formulas
    require_count("plot_formulas", "n", n)
    first = formulas.head(int(n))
    own, ax = ax is None, axes_for(ax, height=1.0 + 0.42 * len(first))
    texts, letters = first["formula"].tolist(), max(_FEWEST_LETTERS, int(points(ax)[0] / _LETTER))
    if own and max(map(len, texts)) > letters:
        ax.figure.set_figheight(1.0 + 0.62 * len(first))
    two = points(ax)[1] > _TWO_LINES * len(first)
    texts = _on_two_lines(texts, letters) if two else distinguishable(texts, letters)
    _bars(ax, first["probability"].to_numpy(), height=0.35)
    ax.set_yticks([])
    # Formulas are long: they stand above their bars, where there is room.
    for i, text in enumerate(texts):
        ax.text(
            0.01, i - 0.22, text, va="bottom", fontsize="small",
            parse_math=False, transform=ax.get_yaxis_transform(),
        )  # fmt: skip
    ax.set_ylim(len(first) - 0.6, -0.9)
    total = len(formulas)
    title = f"The {len(first)} most probable of {total} formulas" if total > 1 else "One formula"
    ax.set_title(title, fontsize="medium")
    return ax


def plot_inclusion(model: Any, n: int = 20, ax: Any = None) -> Any:
    """Plot for each column how probable it is that the formula uses it.

    Parameters
    ----------
    model : BayesianSymbolicRegressor
        Fitted.
    n : int
        Columns to show, at most, the most probable ones.
    ax : matplotlib Axes, optional
        Where to draw; a new figure if not given.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from symbayes import BayesianSymbolicRegressor, plots
    >>> from symbayes.datasets import paper_task
    >>> model = BayesianSymbolicRegressor(["square", "cube"], draws=50, tune=50, random_state=0)
    >>> model = model.fit(*paper_task("f2", random_state=0))
    >>> ax = plots.plot_inclusion(model, ax=Figure().subplots())
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['x0', 'x1']
    """
    inclusion = result_of(model).inclusion
    require_count("plot_inclusion", "n", n)
    first = inclusion.sort_values(ascending=False, kind="stable").head(int(n))
    ax = axes_for(ax, height=1.0 + 0.28 * len(first))
    names = [name or "(no name)" for name in distinguishable(first.index.map(str), _LONGEST_NAME)]
    _bars(ax, first.to_numpy(), height=0.7)
    ax.set_yticks(range(len(names)), labels=names, fontsize="small", parse_math=False)
    all_shown = len(first) == len(inclusion)
    which = "All" if all_shown else f"The first {len(first)} of {len(inclusion)}"
    ax.set_title(f"{which} columns", fontsize="medium")
    return ax


def plot_pareto(model: Any, ax: Any = None) -> Any:
    """Plot errors of formulas against their sizes, with the front of the best ones.

    Parameters
    ----------
    model : BayesianSymbolicRegressor
        Fitted.
    ax : matplotlib Axes, optional
        Where to draw; a new figure if not given.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from symbayes import BayesianSymbolicRegressor, plots
    >>> from symbayes.datasets import paper_task
    >>> model = BayesianSymbolicRegressor(["square", "cube"], draws=50, tune=50, random_state=0)
    >>> model = model.fit(*paper_task("f2", random_state=0))
    >>> plots.plot_pareto(model, ax=Figure().subplots()).get_xlabel()
    'nodes'
    """
    result = result_of(model)
    table, front, best = result.formulas, result.front, result.best_row
    errors = np.concatenate([table["rmse"], front["rmse"]])
    floor = _ROUNDING * errors.max()
    ax = axes_for(ax)
    for part, style in (
        (table, {"marker": ".", "ls": "", "color": GREY, "alpha": 0.6, "label": "formulas drawn"}),
        (front, {"marker": "o", "ms": 5, "color": BLUE, "label": "front: none shorter is closer"}),
        (best, {"marker": "*", "ms": 14, "ls": "", "color": ORANGE, "label": "best formula"}),
    ):
        ax.plot(part["n_nodes"], np.maximum(part["rmse"], floor), **style)
    if errors.max() > _WORTH_A_LOGARITHM * max(errors.min(), floor):
        ax.set_yscale("log")
        ax.yaxis.set_major_formatter("{x:g}")
    ax.xaxis.get_major_locator().set_params(integer=True)
    ax.set_xlabel("nodes")
    ax.set_ylabel("RMSE on the training rows")
    ax.set_title("Size and error", fontsize="medium")
    ax.legend(fontsize="small", framealpha=0)
    return ax


def _on_two_lines(texts: list[str], width: int) -> list[str]:
    """Return each text cut to the room for it, on two lines broken at a space or operator."""
    lines = []
    for text in distinguishable(texts, 2 * width - _LONGEST_WORD):
        end = len(text)
        if end > width:
            breaks = re.finditer(r" |(?<!\*)[*/](?!\*)", text[:width])
            end = max((at.start() for at in breaks), default=0)
            end = end if end > width - _LONGEST_WORD else width
        lines.append(f"{text[:end]}\n{text[end:].lstrip()}".rstrip())
    return lines


def _bars(ax: Any, values: np.ndarray, height: float) -> None:
    """Draw probabilities as horizontal bars, the first on top, and as numbers."""
    bars = ax.barh(range(len(values)), values, height=height, color=BLUE)
    labels = [probability(value).replace("below", "<") for value in values]
    ax.bar_label(bars, labels, padding=3, fontsize="small")
    ax.invert_yaxis()
    ax.set_xlim(0, 1.15 * max(values.max(), 0.01))
    ax.set_xlabel("probability")
    ax.spines[["top", "right"]].set_visible(False)


# Rows: what was observed beside what the model predicts.


@dataclass(frozen=True)
class Comparison:
    """Observed and predicted values of some rows, with intervals where a level was asked for."""

    observed: np.ndarray
    predicted: np.ndarray
    count: str
    """Which rows these are, in words."""
    target: str
    interval: str
    """Which intervals these are, in words."""
    lower: np.ndarray
    upper: np.ndarray

    @property
    def inside(self) -> np.ndarray:
        """Which observations lie in their interval."""
        return (self.lower <= self.observed) & (self.observed <= self.upper)


def compare(model: Any, X: Any = None, y: Any = None, level: float | None = None) -> Comparison:
    """Predict rows, the training rows if none are given; of many the same sample every time.

    A comparison made before is taken as it is.
    """
    if isinstance(model, Comparison):
        return model
    result = result_of(model)
    if (X is None) != (y is None):
        raise ValueError("X and y belong together: pass both, or neither for the training rows")
    if X is None:
        X, y = result.rows.X, result.rows.y
    else:
        X = check_new_rows(model, X)
        y = check_new_target(y, len(X))
    count = f"{len(y):,} rows"
    if len(y) > _MOST_ROWS:
        count = f"{_MOST_ROWS:,} rows drawn from {len(y):,}"
        kept = np.sort(np.random.default_rng(0).choice(len(y), _MOST_ROWS, replace=False))
        X, y = X[kept], y[kept]
    predicted = lower = upper = result.predict(X)
    interval = ""
    if level is not None:
        check_level("plot_predictions", level)
        interval = f"{100 * level:.4g}% interval"
        lower, upper = result.interval(X, float(level))
    target = cropped(result.target, _LONGEST_TARGET)
    return Comparison(y, predicted, count, target, interval, lower, upper)


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
    >>> from symbayes import BayesianSymbolicRegressor, plots
    >>> from symbayes.datasets import paper_task
    >>> model = BayesianSymbolicRegressor(["square", "cube"], draws=50, tune=50, random_state=0)
    >>> model = model.fit(*paper_task("f2", random_state=0))
    >>> plots.plot_predictions(model, ax=Figure().subplots()).get_ylabel()
    'observed y'
    """
    rows, ax = compare(model, X, y, level), axes_for(ax)
    observed, predicted, inside = rows.observed, rows.predicted, rows.inside
    ax.vlines(
        predicted, rows.lower, rows.upper, color=GREY, alpha=0.35, lw=1.5, label=rows.interval
    )
    ax.axline([observed[0]] * 2, slope=1, color=GREY, lw=1, label="observed = predicted")
    ax.plot(predicted[inside], observed[inside], ".", ms=5, color=BLUE, label="inside")
    ax.plot(predicted[~inside], observed[~inside], "x", ms=5, color=ORANGE, label="outside")
    ax.set_xlabel(f"predicted {rows.target}", parse_math=False)
    ax.set_ylabel(f"observed {rows.target}", parse_math=False)
    title = f"{np.mean(inside):.1%} of {rows.count}\nlie in their {rows.interval}"
    ax.set_title(title, fontsize="medium")
    ax.legend(fontsize="small", framealpha=0)
    return ax


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
    >>> from symbayes import BayesianSymbolicRegressor, plots
    >>> from symbayes.datasets import paper_task
    >>> model = BayesianSymbolicRegressor(["square", "cube"], draws=50, tune=50, random_state=0)
    >>> model = model.fit(*paper_task("f2", random_state=0))
    >>> plots.plot_residuals(model, ax=Figure().subplots()).get_title()
    'Residuals of 100 rows'
    """
    rows, ax = compare(model, X, y), axes_for(ax)
    ax.axhline(0, color=GREY, lw=1)
    ax.plot(rows.predicted, rows.observed - rows.predicted, ".", ms=5, color=BLUE)
    ax.set_xlabel(f"predicted {rows.target}", parse_math=False)
    ax.set_ylabel("residual: observed minus predicted")
    ax.set_title(f"Residuals of {rows.count}", fontsize="medium")
    return ax


# The run: what the chains did at each temperature.


def plot_trace(model: Any, chain: int | None = None, ax: Any = None) -> Any:
    """Plot how the log-likelihood of the draws goes along, a line for each temperature.

    Shown is how far it lies below the largest one. The lines should hover, without a trend, and
    those of different chains at the same height.

    Parameters
    ----------
    model : BayesianSymbolicRegressor
        Fitted.
    chain : int, optional
        The chain to show; all of them, one after the other, if not given.
    ax : matplotlib Axes, optional
        Where to draw; a new figure if not given.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from symbayes import BayesianSymbolicRegressor, plots
    >>> from symbayes.datasets import paper_task
    >>> model = BayesianSymbolicRegressor(["square", "cube"], draws=50, tune=50, random_state=0)
    >>> model = model.fit(*paper_task("f2", random_state=0))
    >>> plots.plot_trace(model, ax=Figure().subplots()).get_xlabel()
    'draw, 4 chains side by side'
    """
    from matplotlib.colors import LinearSegmentedColormap

    diagnostics = result_of(model).diagnostics
    # An array for each chain, with a row per draw and a column per temperature.
    traces = [
        values if values.shape[1] else coldest[:, None]
        for values, coldest in zip(
            diagnostics["log_likelihood_by_temperature"],
            diagnostics["log_likelihood"],
            strict=True,
        )
    ]
    if chain is None:
        chosen = list(range(len(traces)))
    elif isinstance(chain, bool) or not isinstance(chain, Integral):
        raise TypeError(f"chain must be an integer or None, not {type(chain).__name__}")
    elif not 0 <= chain < len(traces):
        raise ValueError(
            f"chain is {chain}; it must be from 0 to {len(traces) - 1}, or None for all"
        )
    else:
        chosen = [int(chain)]
    best = max(values.max() for values in traces)
    step = -(-sum(len(traces[c]) for c in chosen) // _MOST_DRAWS)
    n_temperatures = traces[chosen[0]].shape[1]
    cold_to_hot = LinearSegmentedColormap.from_list("", [BLUE, GREY, ORANGE])
    colours = [cold_to_hot(t / max(n_temperatures - 1, 1)) for t in range(n_temperatures)]
    ax = axes_for(ax, width=7.0)
    start = 0
    for c in chosen:
        below = best - traces[c][::step]
        draws = start + step * np.arange(len(below))
        # The coldest is drawn last: it is what the answer is made of.
        for t in reversed(range(n_temperatures)):
            ax.plot(draws, below[:, t], color=colours[t], lw=1.2 if t == 0 else 0.6)
        start += len(traces[c])
        if c != chosen[-1]:
            ax.axvline(start, color=GREY, lw=1, ls=":")
    if diagnostics["powers"]:
        _name_temperatures(ax, diagnostics["powers"][chosen[0]], colours)
    # Cold chains differ by a few, hot ones by hundreds.
    ax.set_yscale("symlog", linthresh=1)
    ax.yaxis.set_major_formatter("{x:g}")
    ax.invert_yaxis()
    ax.set_ylabel("log-likelihood below the best")
    what = f" of chain {chosen[0]}" if len(chosen) == 1 else f", {len(chosen)} chains side by side"
    ax.set_xlabel(f"draw{what}" + ("" if step == 1 else f", 1 in {step} shown"))
    return ax


def _name_temperatures(ax: Any, powers: np.ndarray, colours: Sequence[Any]) -> None:
    """Name some of the temperatures, the coldest and the hottest among them."""
    from matplotlib.lines import Line2D

    n = min(len(powers), _MOST_TEMPERATURES)
    shown = np.unique(np.linspace(0, len(powers) - 1, n).round().astype(int))
    ax.legend(
        [Line2D([], [], color=colours[t]) for t in shown],
        [f"{powers[t]:.2g}" for t in shown],
        title="power of the likelihood",
        loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=len(shown), framealpha=0,
        fontsize="small", title_fontsize="small", handlelength=1, columnspacing=1,
    )  # fmt: skip
