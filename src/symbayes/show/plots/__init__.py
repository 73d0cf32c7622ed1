"""Plots of a fitted model; each function draws on an Axes and returns it."""

from .chains import plot_trace
from .formulas import plot_formulas, plot_inclusion, plot_pareto
from .rows import plot_predictions, plot_residuals
from .tree import plot_tree

__all__ = [
    "plot_formulas",
    "plot_inclusion",
    "plot_pareto",
    "plot_predictions",
    "plot_residuals",
    "plot_trace",
    "plot_tree",
]
