"""The columns of states that came without them: from another process, or from a file."""

import math

from .chain import LOG_LIKELIHOOD
from .compiling import entry_point
from .ladder import chain_at


@entry_point
def make_columns(evaluate, fit, chains, data, scratch, missing):
    """Make the columns of the chains where they are missing, and their inner products.

    The numbers of a chain stay: they may have come about in another order of the terms, which
    rounds otherwise. A state that was given and is not fitted yet (`run.py`) is left to the loop.
    """
    for r in range(missing.shape[0]):
        chain = chain_at(chains, r)
        if missing[r] and not math.isnan(chain.numbers[LOG_LIKELIHOOD]):
            for k in range(chain.n_terms[0]):
                fit(evaluate, chain, chain.slots[k], k + 1, data, scratch, True)
        missing[r] = False
