"""pyoperon: genetic programming, counted by its own evaluators; with and without local search."""

import json
from time import perf_counter

import numpy as np
import pyoperon
from counting import arguments, finish
from pyoperon.sklearn import SymbolicRegressor

data, seconds, seed, result = arguments()
table = np.load(data)
X, y, settings = table["X"], table["y"], json.loads(str(table["settings"]))
clock = {}


class Timed(pyoperon.NSGA2Algorithm):
    """Its algorithm, on the clock: loading the table is not its speed."""

    def Run(self, *args):
        start = perf_counter()
        super().Run(*args)
        clock["seconds"] = perf_counter() - start


class Counted(SymbolicRegressor):
    """Its regressor, which keeps the evaluator that looks at the rows."""

    def _init_evaluator(self, objective, *args):
        evaluator = super()._init_evaluator(objective, *args)
        if objective == "r2":
            self.evaluator_ = evaluator
        return evaluator


pyoperon.NSGA2Algorithm = Timed
model = Counted(
    allowed_symbols=",".join([*settings["symbols"], "constant", "variable"]),
    objectives=["r2", "length"],
    optimizer_iterations=settings["iterations"],
    max_length=settings["max_length"],
    epsilon=1e-7,
    population_size=settings["population"],
    generations=10**7,
    max_evaluations=10**10,
    max_time=round(seconds),
    n_threads=1,
    random_state=seed,
)
model.fit(X, y)
trees = model.evaluator_.CallCount
finish(
    result,
    trees,
    trees,
    clock["seconds"],
    residuals=model.stats_["residual_evaluations"],
    jacobians=model.stats_["jacobian_evaluations"],
    nodes=float(np.mean([one.Genotype.Length for one in model.individuals_])),
    generations=model.stats_["generations"],
)
