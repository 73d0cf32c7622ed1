"""The two plots of the report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .registry import METHODS
from .summary import Runs, by_problem, value_or

_PALETTE = (
    "#d62728", "#7f7f7f", "#1f77b4", "#2ca02c", "#17becf", "#9467bd", "#8c564b", "#e377c2",
    "#bcbd22", "#ff7f0e",
)  # fmt: skip
#: A colour for each method, the same in every plot.
_COLOURS = {name: _PALETTE[i % len(_PALETTE)] for i, name in enumerate(METHODS)}
_DASHES = ("-", "--", "-.")
# Where the axis of time begins, and how far it goes beyond the budget.
_FIRST_SECOND, _MARGIN = 0.05, 1.1


def exact_against_time(
    path: Path, panels: Mapping[float, Sequence[Runs]], seconds: float, runs: int
) -> None:
    """Draw the share of problems whose formula had been found, against time.

    Parameters
    ----------
    path : Path
        Of the SVG file.
    panels : mapping
        Runs of each method, by noise level.
    seconds : float
        The budget.
    runs : int
        Problems: a missing run is not found.
    """
    plt = _pyplot()
    figure, axes = plt.subplots(
        1, len(panels), figsize=(4.2 * len(panels) + 1.8, 3.6), sharey=True, squeeze=False
    )
    for axis, (noise, methods) in zip(axes[0], panels.items(), strict=True):
        for part in methods:
            if not part.records:
                continue
            # A run may end a little late; what it found is there at the end.
            times = sorted(min(r["found_at"], seconds) for r in part.records if r.get("right"))
            x = [_FIRST_SECOND / 2, *times, seconds * _MARGIN]
            y = [0.0, *(np.arange(len(times)) + 1.0) / runs, len(times) / runs]
            axis.step(x, y, where="post", label=part.method, **_line(part.method))
        axis.set(xscale="log", xlim=(_FIRST_SECOND, seconds * _MARGIN), ylim=(-0.01, 1.01))
        ticks = [tick for tick in (0.1, 1, 10, 100) if tick < 0.7 * seconds] + [seconds]
        axis.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        axis.set(title=f"noise {noise:g}", xlabel="seconds")
        axis.grid(alpha=0.3)
    axes[0][0].set_ylabel(f"share of {runs} with the right structure")
    lines = {  # each method once, whichever panel it is in
        line.get_label(): line for axis in axes[0] for line in axis.get_lines()
    }
    figure.tight_layout()
    if lines:
        figure.legend(
            lines.values(), lines, fontsize="small", frameon=False, loc="center left",
            bbox_to_anchor=(1.0, 0.5),
        )  # fmt: skip
    _save(figure, path)


def _line(method: str) -> dict[str, Any]:
    """Return how a method is drawn: symbayes on top, the others distinguished by dashes as well."""
    if method == "symbayes":
        return {"color": _COLOURS[method], "linewidth": 2.4, "zorder": 3}
    dashes = _DASHES[list(METHODS).index(method) % len(_DASHES)]
    return {"color": _COLOURS[method], "linewidth": 1.4, "linestyle": dashes}


def r2_against_nodes(path: Path, methods: Sequence[Runs]) -> None:
    """Draw median R2 on test rows against median nodes, a point for each data set and method."""
    plt = _pyplot()
    figure, axis = plt.subplots(figsize=(6.4, 4.2))
    for part in methods:
        if not part.records:
            continue
        r2 = by_problem(part, lambda runs: value_or(runs.median("r2", -np.inf), -np.inf))
        nodes = by_problem(part, lambda runs: value_or(runs.median("nodes"), np.inf))
        x, y = np.array(list(nodes.values())), np.array(list(r2.values()))
        # Below 0 a constant is better; all such points lie on the lower edge.
        y = np.maximum(y, 0.0)
        x, y = x[np.isfinite(x)], y[np.isfinite(x)]
        colour = _COLOURS[part.method]
        axis.scatter(x, y, s=22, alpha=0.6, color=colour)
        axis.scatter(
            np.median(x), np.median(y), s=140, marker="X", color=colour, edgecolor="black",
            label=f"{part.method} (cross: median of all)",
        )  # fmt: skip
    axis.set(xlabel="nodes, median of a data set", ylabel="R2 on test rows, median of a data set")
    axis.set(ylim=(-0.02, 1.02))
    axis.grid(alpha=0.3)
    if axis.get_legend_handles_labels()[0]:
        axis.legend(fontsize="small", frameon=False, loc="best")
    _save(figure, path)


def _pyplot() -> Any:
    """Return pyplot, set so that the same figures give the same file."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams.update({"svg.hashsalt": "symbayes", "svg.fonttype": "none"})
    import matplotlib.pyplot as plt

    return plt


def _save(figure: Any, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    metadata = {"Date": None} if path.suffix == ".svg" else None
    figure.savefig(path, metadata=metadata, bbox_inches="tight")
    _pyplot().close(figure)
