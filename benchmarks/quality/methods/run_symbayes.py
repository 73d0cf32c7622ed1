"""symbayes, all parameters at their defaults except for operators, seconds, cores and seed."""

import warnings
from time import perf_counter

import numpy as np
from contract import read_job, write_result

from symbayes import BayesianSymbolicRegressor

SHOWN, DRAWS = 20, 1000


def warm_up(operators):
    """Fit next to nothing, so that compilation, once per machine, is not counted."""
    X = np.random.default_rng(0).normal(size=(20, 2))
    model = BayesianSymbolicRegressor(operators, timeout=0.5, n_jobs=1, random_state=0)
    model.fit(X, X[:, 0] + 2.0 * X[:, 1]).predict(X)
    model.result_.posterior.mixture.sample(X, 2, np.random.default_rng(0))


def interval(model, X, seed):
    """Return the ends of 90 % intervals for new observations."""
    rng = np.random.default_rng(seed)
    means, noises = model.result_.posterior.mixture.sample(X[:, model.result_.used], DRAWS, rng)
    observed = means + noises[:, None] * rng.normal(size=means.shape)
    return np.nanquantile(observed, [0.05, 0.95], axis=0)


def main():
    """Fit and report."""
    job = read_job()
    warnings.simplefilter("ignore")
    warm_up(job["operators"])
    model = BayesianSymbolicRegressor(
        job["operators"], timeout=job["seconds"], n_jobs=job["cores"], random_state=job["seed"]
    )
    start = perf_counter()
    model.fit(job["X"], job["y"])
    seconds = perf_counter() - start
    lower, upper = interval(model, job["X_test"], job["seed"])
    diagnostics = model.diagnostics_
    history = diagnostics.get("found", diagnostics.get("history", []))
    probabilities = model.formulas_["probability"]
    write_result(
        [
            (formula.text(digits=17), float(p))
            for p, formula in zip(probabilities[:SHOWN], model.formula_objects_, strict=False)
        ],
        model.predict(job["X_test"]),
        seconds,
        [(float(when), str(text)) for when, text in history],
        lower,
        upper,
        model.inclusion_probability().tolist(),
        {"timed_out": bool(diagnostics.get("timed_out", False))},
    )


if __name__ == "__main__":
    main()
