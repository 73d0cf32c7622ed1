"""pysips: sequential Monte Carlo over bingo's expressions, Laplace approximation for each."""

import warnings

import numpy as np
from bingo.symbolic_regression.explicit_regression import ExplicitRegression
from counting import Tally, TimeUp, arguments, finish
from pysips import PysipsRegressor
from pysips.laplace_nmll import LaplaceNmll
from pysips.random_choice_proposal import RandomChoiceProposal

data, seconds, seed, result = arguments()
X, y = (np.load(data)[name] for name in ("X", "y"))
warnings.simplefilter("ignore")
# The generator that the package draws from.
np.random.seed(seed)  # noqa: NPY002

tally = Tally(seconds)
tally.watch(LaplaceNmll, "__call__", "likelihoods")
tally.watch(RandomChoiceProposal, "__call__", "proposals")
# The optimiser of the constants evaluates the expression many times for one likelihood.
tally.watch(ExplicitRegression, "evaluate_fitness_vector", "evaluations")
# Bingo's compiled evaluation, its default, knows neither square nor cube.
operators = ["+", "-", "*", "/", "sin", "cos", "exp"]
fits = 0
try:
    while True:
        fits += 1
        # No time limit of its own, which would shape the schedule: a fit that ends is repeated.
        PysipsRegressor(operators=operators, random_state=seed + fits).fit(X, y)
except TimeUp:
    pass
finish(
    result,
    tally.counts["proposals"],
    tally.counts["likelihoods"],
    tally.seconds,
    evaluations_inside=tally.counts["evaluations"],
    fits=fits,
)
