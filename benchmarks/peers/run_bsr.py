"""autora-theorist-bsr: another implementation of the paper's sampler."""

import warnings

import autora.theorist.bsr.regressor as bsr
import numpy as np
from counting import Tally, TimeUp, arguments, finish

data, seconds, seed, result = arguments()
X, y = (np.load(data)[name] for name in ("X", "y"))
warnings.simplefilter("ignore")
# The generator that the package draws from.
np.random.seed(seed)  # noqa: NPY002

tally = Tally(seconds)
accepted = restarts = 0
# One call of prop_new is one proposal. It evaluates the new tree before anything can reject it.
tally.watch(bsr, "prop_new", "proposals")
counted = bsr.prop_new


def prop_new(*args):
    """Note what was accepted."""
    global accepted
    outcome = counted(*args)
    accepted += bool(outcome[0])
    return outcome


bsr.prop_new = prop_new
try:
    while True:
        try:
            # Ends by time, not by its own count; three trees is all it can do.
            bsr.BSRRegressor(tree_num=3, itr_num=10**9).fit(X, y)
        except np.linalg.LinAlgError:
            restarts += 1  # a tree that is not finite ends its fit
except TimeUp:
    pass
proposals = tally.counts["proposals"]
finish(result, proposals, proposals, tally.seconds, accepted=accepted, crashes=restarts)
