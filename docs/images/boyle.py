"""Draw boyle.svg: Boyle's measurements, their residuals, and the formulas found."""

from __future__ import annotations

from pathlib import Path

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from symbayes import BayesianSymbolicRegressor
from symbayes.datasets import boyle

# The same picture gives the same file.
matplotlib.use("svg")
matplotlib.rcParams.update({"svg.hashsalt": "boyle", "font.size": 9, "axes.spines.right": False})
matplotlib.rcParams.update({"axes.spines.top": False, "axes.titlesize": 9.5})
BLUE, GREY = "#0072b2", "#c8d8e4"


def draw_rows(model: BayesianSymbolicRegressor, above: Axes, below: Axes) -> None:
    """Draw measurements with the mean, and below it their distance from it with the interval."""
    X, y = boyle()
    grid = pd.DataFrame({"volume": np.linspace(10.5, 50, 200)})
    mean = model.predict(grid)
    lower, upper = model.predict_interval(grid)
    above.plot(grid["volume"], mean, color=BLUE, linewidth=1, label="mean of the posterior")
    above.plot(X["volume"], y, "k.", label="measured by Boyle, 1662")
    above.set_ylabel("pressure")
    above.set_title(f"{model.best_formula_}, and others", loc="left")
    above.legend(frameon=False)
    below.fill_between(
        grid["volume"], lower - mean, upper - mean, color=GREY, label="90% of new measurements"
    )
    below.axhline(0, color=BLUE, linewidth=1)
    below.plot(X["volume"], y - model.predict(X), "k.")
    below.set(xlabel="volume", ylabel="minus mean", ylim=(-1.2, 1.2))
    below.legend(frameon=False, loc="upper right")


def draw_formulas(model: BayesianSymbolicRegressor, ax: Axes, n: int = 5) -> None:
    """Draw the most probable formulas."""
    first = model.formulas_.head(n)
    places = np.arange(n)
    ax.barh(places, first["probability"], height=0.35, color=BLUE)
    for place, probability, formula in zip(
        places, first["probability"], model.formula_objects_[:n], strict=True
    ):
        ax.text(0, place - 0.26, str(formula), va="bottom", fontsize=8.5)
        ax.text(probability + 0.01, place, f"{probability:.2f}", va="center")
    ax.set(xlabel="probability", yticks=[], xlim=(0, 0.75), ylim=(n - 0.6, -0.8))
    ax.set_title(f"the first {n} of {len(model.formulas_)} formulas", loc="left")


def main() -> None:
    """Fit and draw."""
    import matplotlib.pyplot as plt

    model = BayesianSymbolicRegressor(["+", "-", "*", "inv", "square", "sqrt"], random_state=0)
    model.fit(*boyle())
    figure, axes = plt.subplot_mosaic(
        [["rows", "formulas"], ["rest", "formulas"]],
        figsize=(8.5, 4),
        height_ratios=[2, 1],
        layout="constrained",
    )
    axes["rows"].sharex(axes["rest"])
    draw_rows(model, axes["rows"], axes["rest"])
    draw_formulas(model, axes["formulas"])
    path = Path(__file__).with_suffix(".svg")
    figure.savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    main()
