"""pyoperon: genetic programming with Levenberg-Marquardt, its choice from the front by BIC."""

import math
import re

import numpy as np
import pyoperon
from contract import read_job, write_result
from progress import Progress
from pyoperon.sklearn import SymbolicRegressor
from spelling import FUNCTIONS

SYMBOLS = {
    **FUNCTIONS,
    "+": "add",
    "-": "sub",
    "*": "mul",
    "/": "div",
    "inv": "div",
    "neg": "sub",
    "abs": "abs",
    "square": "square",
}


def text(tree, names):
    """Return a tree as a formula; `names` are those of the variables by their hash."""
    infix = pyoperon.InfixFormatter.Format(tree, names, 30).replace("^", "**")
    infix = re.sub(r"\babs\(", "Abs(", infix)
    return re.sub(r"\d+\.\d+", lambda number: f"{float(number[0]):.12g}", infix)


def _constant(value):
    return f"{value:.12g}" if value >= 0 else f"({value:.12g})"


def structure(formula):
    """Return a formula with its constants left open."""
    return re.sub(r"\(?-?\b\d[\d.]*(e-?\d+)?\)?", "c", formula)


class Watcher:
    """Follows the formula that the regressor would choose, generation by generation."""

    def __init__(self, X, y, progress):
        self._y = y
        self._data = pyoperon.Dataset(np.asfortranarray(X))
        self._rows = pyoperon.Range(0, len(y))
        self._names = {v.Hash: f"x{v.Index}" for v in self._data.Variables}
        self._dispatch = pyoperon.DispatchTable()
        self._progress = progress
        self._next = 0.0

    def look(self, front):
        """Note the leading formula, unless it was done a moment ago."""
        if self._progress.seconds < self._next:
            return
        best = min((self._scaled(individual.Genotype) for individual in front), default=None)
        if best is not None and math.isfinite(best[0]):
            self._progress.leads(best[1])
        # So that watching takes less than a hundredth of its time.
        self._next = 1.05 * self._progress.seconds

    def _scaled(self, tree):
        """Return BIC and formula as the regressor makes them, with slope and intercept."""
        prediction = pyoperon.Evaluate(self._dispatch, tree, self._data, self._rows)
        slope, intercept = pyoperon.FitLeastSquares(prediction, self._y)
        error = np.mean((self._y - slope * prediction - intercept) ** 2)
        coefficients = sum(node.IsLeaf for node in tree.Nodes) + (slope != 1) + (intercept != 0)
        rows = len(self._y)
        bic = rows * math.log(max(error, 1e-300)) + coefficients * math.log(rows)
        formula = text(tree, self._names)
        if slope != 1:
            formula = f"({_constant(slope)} * {formula})"
        if intercept != 0:
            formula = f"({_constant(intercept)} + {formula})"
        return bic if math.isfinite(bic) else math.inf, formula


def watch(watcher):
    """Have its algorithm call back after each generation, which the regressor leaves out."""

    class Watched(pyoperon.NSGA2Algorithm):
        def Run(self, generator, _, threads, warm_start):
            super().Run(generator, lambda: watcher.look(self.BestFront), threads, warm_start)

    pyoperon.NSGA2Algorithm = Watched


def main():
    """Fit once: it takes a time limit."""
    job = read_job()
    X, y = job["X"], job["y"]
    symbols = {SYMBOLS[name] for name in job["operators"] if name in SYMBOLS}
    model = SymbolicRegressor(
        allowed_symbols=",".join([*sorted(symbols), "constant", "variable"]),
        objectives=["r2", "length"],
        optimizer_iterations=10,
        max_length=50,
        epsilon=1e-7,
        model_selection_criterion="bayesian_information_criterion",
        generations=10**7,
        max_evaluations=10**10,
        max_time=max(1, round(job["seconds"])),
        n_threads=job["cores"],
        random_state=job["seed"],
    )
    progress = Progress(job["seconds"])
    watch(Watcher(X, y, progress))
    model.fit(X, y)
    seconds = progress.seconds
    front = sorted(model.pareto_front_, key=lambda m: m[model.model_selection_criterion])
    names = dict(zip(model.variables_, job["feature_names"], strict=True))
    formulas = [text(candidate["tree"], names) for candidate in front]
    history = progress.history
    if history and structure(history[-1][1]) == structure(formulas[0]):
        history[-1] = (history[-1][0], formulas[0])  # the same with its last digits
    progress.leads(formulas[0])
    write_result(
        [(formula, None) for formula in formulas],
        model.predict(job["X_test"]),
        seconds,
        history,
        extra={"generations": model.stats_["generations"], "front": len(front)},
    )


if __name__ == "__main__":
    main()
