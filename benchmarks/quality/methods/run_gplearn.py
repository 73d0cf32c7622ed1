"""gplearn: genetic programming, one generation after the other until time is up."""

import warnings

import numpy as np
from contract import read_job, write_result
from gplearn.fitness import make_fitness
from gplearn.functions import make_function
from gplearn.genetic import SymbolicRegressor
from progress import PERFECT, Progress

# Its own operators, some of them protected.
BUILT_IN = {
    "+": "add",
    "-": "sub",
    "*": "mul",
    "/": "div",
    "neg": "neg",
    "inv": "inv",
    "log": "log",
    "sqrt": "sqrt",
    "abs": "abs",
    "sin": "sin",
    "cos": "cos",
    "tan": "tan",
}
TEXT = {
    "add": "({} + {})",
    "sub": "({} - {})",
    "mul": "({} * {})",
    "div": "({} / {})",
    "neg": "(-{})",
    "inv": "(1 / {})",
    "abs": "Abs({})",
    "square": "({})**2",
    "cube": "({})**3",
    "arcsin": "asin({})",
    "arccos": "acos({})",
    "arctan": "atan({})",
}


# The others. It expects closed functions, as its own are, so these are cut off.
def _exp(x):
    return np.exp(np.minimum(x, 100.0))


def _cube(x):
    return x * x * x


def _arcsin(x):
    return np.arcsin(np.clip(x, -1.0, 1.0))


def _arccos(x):
    return np.arccos(np.clip(x, -1.0, 1.0))


MADE = {
    "exp": _exp,
    "square": np.square,
    "cube": _cube,
    "tanh": np.tanh,
    "arcsin": _arcsin,
    "arccos": _arccos,
    "arctan": np.arctan,
}


def _rmse(y, prediction, weight):
    """Its "rmse", except for NaN, which would win its tournaments."""
    error = np.sqrt(np.average((prediction - y) ** 2, weights=weight))
    return error if np.isfinite(error) else 1e300


def function_set(operators):
    """Return its operators for ours; constants take the place of lt."""
    made = (
        make_function(function=MADE[name], name=name, arity=1, wrap=False)
        for name in operators
        if name in MADE
    )
    return (*(BUILT_IN[name] for name in operators if name in BUILT_IN), *made)


def text(program, X):
    """Return a program, stored in prefix order, as a formula with all digits.

    Its sqrt and log take the absolute value first. That is written only where it matters on the
    rows it was fitted to; division and log near zero are written unprotected.
    """

    def read(nodes):
        node = next(nodes)
        if isinstance(node, (int, np.integer)):
            return f"x{node}", X[:, node]
        if isinstance(node, float):
            return f"({float(node)!r})", np.full(len(X), node)
        arguments, values = zip(*(read(nodes) for _ in range(node.arity)), strict=True)
        form = TEXT.get(node.name, node.name + "({})")
        if node.name in ("sqrt", "log") and np.any(values[0] < 0):
            form = node.name + "(Abs({}))"
        return form.format(*arguments), node(*values)

    return read(iter(program.program))[0]


def main():
    """Fit, keeping the best of all generations by its penalised fitness."""
    job = read_job()
    X, y = job["X"], job["y"]
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    spread = float(np.std(y))
    model = SymbolicRegressor(
        population_size=1000,
        function_set=function_set(job["operators"]),
        const_range=(-5.0, 5.0),
        metric=make_fitness(function=_rmse, greater_is_better=False, wrap=False),
        # Its default, for a response of unit spread.
        parsimony_coefficient=0.001 * spread,
        stopping_criteria=-1.0,  # never: see below
        warm_start=True,
        low_memory=True,
        n_jobs=1,  # sending the population back and forth costs what a second process gains
        random_state=job["seed"],
    )
    best = None
    generations = 0
    progress = Progress(job["seconds"])
    while progress.left > 0:
        generations += 1
        model.set_params(generations=generations).fit(X, y)
        # What it would answer if it stopped here.
        program = model._program
        if best is None or program.fitness_ < best.fitness_:
            best = program
            progress.leads(text(best, X))
        if best.raw_fitness_ < PERFECT * spread:
            break
    seconds = progress.seconds
    write_result(
        [(text(best, X), None)],
        best.execute(job["X_test"]),
        seconds,
        progress.history,
        extra={"generations": generations, "nodes": int(best.length_)},
    )


if __name__ == "__main__":
    main()
