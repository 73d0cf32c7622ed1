"""Plots of a fitted model; each function draws on an Axes and returns it."""

from .show.plots.chains import plot_trace
from .show.plots.formulas import plot_formulas, plot_inclusion, plot_pareto
from .show.plots.rows import plot_predictions, plot_residuals
from .show.plots.tree import plot_tree

__all__ = [
    "plot_formulas",
    "plot_inclusion",
    "plot_pareto",
    "plot_predictions",
    "plot_residuals",
    "plot_trace",
    "plot_tree",
]
