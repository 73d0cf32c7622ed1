"""Plots of the posterior: formulas, the front of size and error, and columns."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from ...inputs.prior import require_count
from .canvas import BLUE, GREY, ORANGE, axes_for, distinguishable, result_of

# Characters of a name, and of a formula in the narrowest Axes.
_LONGEST_NAME, _FEWEST_LETTERS = 28, 30
# Characters that a line break may leave empty.
_LONGEST_WORD = 12
# Height of a bar with two lines above it.
_POINTS_OF_TWO_LINES = 36.0
# Width of a character of a formula, in points.
_LETTER = 4.4
# Errors that differ by less are as easy to read on a plain scale.
_WORTH_A_LOGARITHM = 10.0
# What is below this part of the largest error is rounding.
_ROUNDING = 1.0e-16


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
    >>> from symbayes import BayesianSymbolicRegressor
    >>> from symbayes.datasets import paper_task
    >>> from symbayes.plots import plot_formulas
    >>> X, y = paper_task("f2", random_state=0)
    >>> model = BayesianSymbolicRegressor(["square", "cube"], draws=50, tune=50, random_state=0)
    >>> ax = plot_formulas(model.fit(X, y), ax=Figure().subplots())
    >>> ax.get_xlabel()
    'probability'
    """
    formulas = result_of(model).formulas
    require_count("plot_formulas", "n", n)
    first = formulas.head(int(n))
    own, ax = ax is None, axes_for(ax, height=1.0 + 0.42 * len(first))
    texts, width = first["formula"].tolist(), _letters(ax)
    if own and max(map(len, texts)) > width:
        ax.figure.set_figheight(1.0 + 0.62 * len(first))
    points = ax.get_window_extent().height * 72 / ax.figure.dpi
    two = points > _POINTS_OF_TWO_LINES * len(first)
    texts = _on_two_lines(texts, width) if two else distinguishable(texts, width)
    _bars(ax, first["probability"].to_numpy(), "probability", height=0.35)
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
    >>> from symbayes import BayesianSymbolicRegressor
    >>> from symbayes.datasets import paper_task
    >>> from symbayes.plots import plot_inclusion
    >>> X, y = paper_task("f2", random_state=0)
    >>> model = BayesianSymbolicRegressor(["square", "cube"], draws=50, tune=50, random_state=0)
    >>> ax = plot_inclusion(model.fit(X, y), ax=Figure().subplots())
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['x0', 'x1']
    """
    inclusion = result_of(model).inclusion
    require_count("plot_inclusion", "n", n)
    ranked = inclusion.sort_values(ascending=False, kind="stable")
    first = ranked.head(int(n))
    ax = axes_for(ax, height=1.0 + 0.28 * len(first))
    names = [name or "(no name)" for name in distinguishable(first.index.map(str), _LONGEST_NAME)]
    _bars(ax, first.to_numpy(), "probability", height=0.7)
    ax.set_yticks(range(len(names)), labels=names, fontsize="small", parse_math=False)
    more = f"The first {len(first)} of {len(ranked)}" if len(ranked) > len(first) else "All"
    ax.set_title(f"{more} columns", fontsize="medium")
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
    >>> from symbayes import BayesianSymbolicRegressor
    >>> from symbayes.datasets import paper_task
    >>> from symbayes.plots import plot_pareto
    >>> X, y = paper_task("f2", random_state=0)
    >>> model = BayesianSymbolicRegressor(["square", "cube"], draws=50, tune=50, random_state=0)
    >>> ax = plot_pareto(model.fit(X, y), ax=Figure().subplots())
    >>> ax.get_xlabel()
    'nodes'
    """
    result = result_of(model)
    table, front, best = result.formulas, result.pareto, result.formulas.iloc[result.best]
    errors = table["rmse"].to_numpy()
    floor = _ROUNDING * errors.max()
    ax = axes_for(ax)
    for part, style in (
        (table, {"marker": ".", "ls": "", "color": GREY, "alpha": 0.6, "label": "formulas found"}),
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
    """Return what there is room for of each text, broken at a space or operator nearby."""
    lines = []
    for text in distinguishable(texts, 2 * width - _LONGEST_WORD):
        end = len(text)
        if end > width:
            breaks = re.finditer(r" |(?<!\*)[*/](?!\*)", text[:width])
            end = max((at.start() for at in breaks), default=0)
            end = end if end > width - _LONGEST_WORD else width
        lines.append(f"{text[:end]}\n{text[end:].lstrip()}".rstrip())
    return lines


def _letters(ax: Any) -> int:
    """Return how many characters of small print go into the width of the Axes."""
    points = ax.get_window_extent().width * 72 / ax.figure.dpi
    return max(_FEWEST_LETTERS, int(points / _LETTER))


def _bars(ax: Any, values: np.ndarray, label: str, height: float) -> None:
    """Draw horizontal bars, the first on top, with their values."""
    bars = ax.barh(range(len(values)), values, height=height, color=BLUE)
    ax.bar_label(bars, [_probability(value) for value in values], padding=3, fontsize="small")
    ax.invert_yaxis()
    ax.set_xlim(0, 1.15 * max(values.max(), 0.01))
    ax.set_xlabel(label)
    ax.spines[["top", "right"]].set_visible(False)


def _probability(value: float) -> str:
    return f"{value:.3f}" if value >= 0.0005 or value == 0 else "< 0.001"
