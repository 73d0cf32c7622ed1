"""autora-theorist-bms: the Bayesian machine scientist, its formula of least description length."""

import copy
import logging
import re
import warnings
from collections import Counter
from math import sqrt

import numpy as np
from autora.theorist.bms import BMSRegressor, get_priors, utils
from contract import read_job, write_result
from progress import PERFECT, Progress
from spelling import FUNCTIONS, NUMPY

OPERATORS = {
    **FUNCTIONS,  # arcsin and its like are SymPy's, by which it evaluates
    "+": "+",
    "-": "-",  # one operand
    "neg": "-",
    "*": "*",
    "/": "/",
    "inv": "/",
    "abs": "abs",
    "square": "pow2",
    "cube": "pow3",
}
KEPT = 1000  # samples for the intervals


def text(tree):
    """Return a tree as a formula with all digits."""
    values = tree.par_values["d0"]
    formula = re.sub(r"_a\d+_", lambda name: f"({float(values[name[0]])!r})", str(tree))
    return re.sub(r"\babs\(", "Abs(", re.sub(r"\bX(\d+)", r"x\1", formula))


def structure(tree):
    """Return a tree with its constants left open."""
    return re.sub(r"_a\d+_", "c", str(tree))


class Search:
    """Replaces its loop over epochs, which has no time limit, and keeps samples."""

    def __init__(self, progress, perfect):
        self.progress = progress
        self.perfect = perfect
        self.epochs = 0
        self.samples = []
        self.model, self.length = None, np.inf

    def __call__(self, chains, _epochs):
        """Continue until time is up or the fit is perfect; return what its loop returns."""
        while self.progress.left > 0:
            chains.mcmc_step()
            chains.tree_swap()
            self.epochs += 1
            tree = chains.t1
            error = float(tree.sse["d0"])
            length = float(tree.E)
            if length < self.length or self.model is None or error <= self.perfect:
                self.model, self.length = copy.deepcopy(tree), length
                self.progress.leads(text(tree))
            if error <= self.perfect:
                break
            if self.progress.left < 0.5 * self.progress.limit:
                self.samples.append((structure(tree), text(tree), error))
        return self.model, self.length, []


def intervals(samples, X, rows, seed):
    """Return 90 % predictive intervals: formulas of the chain, each with its noise."""
    random = np.random.default_rng(seed)
    columns = {f"x{i}": column for i, column in enumerate(X.T)}
    draws = []
    with np.errstate(all="ignore"):
        for i in np.linspace(0, len(samples) - 1, KEPT).astype(int):
            _, formula, error = samples[i]
            mean = np.broadcast_to(eval(formula, {"__builtins__": {}}, NUMPY | columns), len(X))
            draws.append(mean + sqrt(error / rows) * random.standard_normal(len(X)))
    return np.nanquantile(draws, [0.05, 0.95], axis=0)


def make(operators):
    """Return a regressor with these operators."""
    prior, known = get_priors()
    chosen = dict.fromkeys(OPERATORS[name] for name in operators if name in OPERATORS)
    # An operator that it lacks is given the prior of the tangent.
    prior = {f"Nopi_{name}": prior.get(f"Nopi_{name}", prior["Nopi_tan"]) for name in chosen}
    model = BMSRegressor(prior_par=prior)
    model.ops = {name: known.get(name, 1) for name in chosen}
    return model


def main():
    """Run its chains until time is up; where they break, start them again."""
    job = read_job()
    X, y = job["X"], job["y"]
    warnings.simplefilter("ignore")
    logging.disable()
    np.seterr(all="ignore")
    model = make(job["operators"])
    constants = min(max(4, X.shape[1]), 10)
    progress = Progress(job["seconds"])
    search = utils.run = Search(progress, PERFECT**2 * len(y) * np.var(y))
    failures = 0
    while progress.left > 0:
        try:
            model.fit(X, y, num_param=constants, seed=job["seed"] + 1000 * failures)
            break
        except Exception:
            failures += 1
    seconds = progress.seconds
    model.model_ = search.model
    best = structure(search.model)
    visits = Counter(form for form, *_ in search.samples)
    last = {form: formula for form, formula, _ in search.samples}
    share = {form: count / len(search.samples) for form, count in visits.most_common(10)}
    others = [(last[form], p) for form, p in share.items() if form != best]
    probability = visits[best] / len(search.samples) if search.samples else None
    lower = upper = None
    if search.samples:
        lower, upper = intervals(search.samples, job["X_test"], len(y), job["seed"])
    write_result(
        [(text(search.model), probability), *others],
        model.predict(job["X_test"])[:, 0],
        seconds,
        progress.history,
        lower,
        upper,
        extra={"epochs": search.epochs, "failures": failures, "constants": constants},
    )


if __name__ == "__main__":
    main()
