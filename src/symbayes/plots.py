"""Plots of a fitted model; each function draws on an Axes and returns it."""

from .show.plots import (
    plot_formulas,
    plot_inclusion,
    plot_pareto,
    plot_predictions,
    plot_residuals,
    plot_trace,
)
from .show.tree_plot import plot_tree

__all__ = [
    "plot_formulas",
    "plot_inclusion",
    "plot_pareto",
    "plot_predictions",
    "plot_residuals",
    "plot_trace",
    "plot_tree",
]
