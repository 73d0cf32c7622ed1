"""gplearn: genetic programming, one generation after the other until time is up."""

import warnings
from time import perf_counter

import numpy as np
from counting import arguments, finish
from gplearn.functions import make_function
from gplearn.genetic import SymbolicRegressor

data, seconds, seed, result = arguments()
X, y = (np.load(data)[name] for name in ("X", "y"))
warnings.simplefilter("ignore")
np.seterr(all="ignore")

POPULATION = 1000


def _exp(x):
    # Cut off: gplearn wants closed functions, as its own protected ones are.
    return np.exp(np.minimum(x, 100.0))


def _cube(x):
    return x * x * x


# wrap=False: the faster of the two ways.
exp, cube = (
    make_function(function=function, name=name, arity=1, wrap=False)
    for function, name in ((_exp, "exp"), (_cube, "cube"))
)
square = make_function(function=np.square, name="square", arity=1, wrap=False)
model = SymbolicRegressor(
    population_size=POPULATION,
    generations=1,
    function_set=("add", "sub", "mul", "div", "sin", "cos", exp, square, cube),
    const_range=(-5.0, 5.0),
    metric="rmse",
    parsimony_coefficient=0.001,
    stopping_criteria=-1.0,  # never
    warm_start=True,
    low_memory=True,  # otherwise its book-keeping grows with the generations
    random_state=seed,
)
generations = 0
start = perf_counter()
while perf_counter() - start < seconds:
    generations += 1
    model.set_params(generations=generations).fit(X, y)
elapsed = perf_counter() - start
finish(
    result,
    POPULATION * generations,
    POPULATION * generations,
    elapsed,
    nodes=float(np.mean(model.run_details_["average_length"])),
    fastest_generation=POPULATION / min(model.run_details_["generation_time"]),
)
