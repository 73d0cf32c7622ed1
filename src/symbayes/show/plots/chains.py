"""The plot of a run: what the chains did at each temperature."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np

from .canvas import BLUE, GREY, ORANGE, axes_for, result_of

# More points on a line do not show more.
_MOST_DRAWS = 400
_MOST_LABELS = 5


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
    >>> from symbayes import BayesianSymbolicRegressor
    >>> from symbayes.datasets import paper_task
    >>> from symbayes.plots import plot_trace
    >>> X, y = paper_task("f2", random_state=0)
    >>> model = BayesianSymbolicRegressor(["square", "cube"], draws=50, tune=50, random_state=0)
    >>> ax = plot_trace(model.fit(X, y), ax=Figure().subplots())
    >>> ax.get_xlabel()
    'draw, 4 chains side by side'
    """
    diagnostics = result_of(model).diagnostics
    traces = _traces(diagnostics)
    chosen = _chosen(chain, len(traces))
    best = max(values.max() for values in traces)
    step = -(-sum(len(traces[c]) for c in chosen) // _MOST_DRAWS)
    ax = axes_for(ax, width=7.0)
    start = 0
    for c in chosen:
        below = best - traces[c][::step]
        draws = start + step * np.arange(len(below))
        # The coldest is drawn last: it is what the answer is made of.
        for t in reversed(range(below.shape[1])):
            colour = _colour(t, below.shape[1])
            ax.plot(draws, below[:, t], color=colour, lw=1.2 if t == 0 else 0.6)
        start += len(traces[c])
        if c != chosen[-1]:
            ax.axvline(start, color=GREY, lw=1, ls=":")
    if diagnostics["powers"]:
        _legend(ax, diagnostics["powers"][chosen[0]])
    # Cold chains differ by a few, hot ones by hundreds.
    ax.set_yscale("symlog", linthresh=1)
    ax.yaxis.set_major_formatter("{x:g}")
    ax.invert_yaxis()
    ax.set_ylabel("log-likelihood below the best")
    every = "" if step == 1 else f", 1 in {step} shown"
    ax.set_xlabel(
        f"draw of chain {chosen[0]}{every}"
        if len(chosen) == 1
        else f"draw, {len(chosen)} chains side by side{every}"
    )
    return ax


def _traces(diagnostics: dict[str, Any]) -> list[np.ndarray]:
    """Return for each chain an array with a row per draw and a column per temperature."""
    by_temperature = diagnostics["log_likelihood_by_temperature"]
    return [
        values if values.shape[1] else one[:, None]
        for values, one in zip(by_temperature, diagnostics["log_likelihood"], strict=True)
    ]


def _chosen(chain: int | None, n_chains: int) -> list[int]:
    if chain is None:
        return list(range(n_chains))
    if isinstance(chain, bool) or not isinstance(chain, Integral):
        raise TypeError(f"chain must be an integer or None, not {type(chain).__name__}")
    if not 0 <= chain < n_chains:
        raise ValueError(f"chain is {chain}; it must be from 0 to {n_chains - 1}, or None for all")
    return [int(chain)]


def _colour(t: int, n: int) -> Any:
    """Return a colour from cold blue to hot orange."""
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("", [BLUE, GREY, ORANGE])(t / max(n - 1, 1))


def _legend(ax: Any, powers: np.ndarray) -> None:
    """Name some of the temperatures, the coldest and the hottest among them."""
    from matplotlib.lines import Line2D

    n = len(powers)
    shown = np.unique(np.linspace(0, n - 1, min(n, _MOST_LABELS)).round().astype(int))
    ax.legend(
        [Line2D([], [], color=_colour(t, n)) for t in shown],
        [f"{powers[t]:.2g}" for t in shown],
        title="power of the likelihood",
        loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=len(shown), framealpha=0,
        fontsize="small", title_fontsize="small", handlelength=1, columnspacing=1,
    )  # fmt: skip
