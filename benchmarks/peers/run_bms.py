"""autora-theorist-bms: the Bayesian machine scientist, 20 tempered chains in one process."""

import contextlib
import logging
import warnings

import numpy as np
from autora.theorist.bms import BMSRegressor, mcmc
from autora.theorist.bms.mcmc import Tree
from counting import Tally, TimeUp, arguments, finish

data, seconds, seed, result = arguments()
X, y = (np.load(data)[name] for name in ("X", "y"))
warnings.simplefilter("ignore")
logging.disable()

tally = Tally(seconds)
# One step of one of the chains is one proposal.
tally.watch(Tree, "mcmc_step", "proposals")
model = BMSRegressor(epochs=10**9)
wanted = ("sin", "cos", "exp", "pow2", "pow3", "-", "+", "*", "/")
model.ops = {name: model.ops[name] for name in wanted}
# A fit of the parameters and a sum of squares: the evaluation of a formula. The set-up evaluates
# too, so this is watched only from the first step on.
evaluations = Tally(float("inf"))
evaluations.watch(Tree, "get_sse", "fits", when=lambda *_, fit=True, **__: fit and tally.seconds)
# The optimiser of the constants evaluates the formula many times for one fit.
evaluations_inside = 0
curve_fit = mcmc.curve_fit


def counting_curve_fit(function, *args, **kwargs):
    """Fit as before, and count how often the formula is evaluated."""

    def counted(*values):
        global evaluations_inside
        evaluations_inside += 1
        return function(*values)

    return curve_fit(counted, *args, **kwargs)


mcmc.curve_fit = counting_curve_fit
with contextlib.suppress(TimeUp):
    model.fit(X, y, num_param=4, seed=seed)
finish(
    result,
    tally.counts["proposals"],
    evaluations.counts["fits"],
    tally.seconds,
    evaluations_inside=evaluations_inside,
)
