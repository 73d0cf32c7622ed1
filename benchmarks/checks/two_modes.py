"""Data with two explanations that are equally good: does a fit say so, or that it does not know?

`python -m benchmarks.checks.two_modes --runs 50` fits with the defaults, prints what each run says,
and ends with status 1 if one that has converged gives wrong odds.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
from joblib import Parallel, delayed

from symbayes import BayesianSymbolicRegressor, ConvergenceWarning

OPERATORS = ["+", "*", "exp", "sin", "square"]
#: The two formulas.
EXPLANATIONS = ("x0*exp(sin(x0**2) + x1)", "x2*exp(sin(x2**2) + x3)")
#: Odds of 1 : 1 are right if the share of the first is between these.
RIGHT = (0.35, 0.65)


def two_modes(
    seed: int, n: int = 60, noise: float = 0.05, gap: float = 1.0e-3
) -> tuple[np.ndarray, np.ndarray]:
    """Return a table that two formulas of the same shape, of different columns, explain.

    With f(u, v) = u exp(sin(u^2) + v), the last column is chosen so that f(x2, x3) is f(x0, x1) up
    to `gap`. y is halfway between the two, and the noise is at right angles to both: so both have
    the same likelihood. The prior is symmetric in the columns, and the odds are 1 : 1. No formula
    in between leads from one to the other.
    """
    rng = np.random.default_rng(seed)
    x0, x2 = rng.uniform(0.5, 2.0, (2, n))
    x1 = rng.uniform(-1.0, 1.0, n)
    first = x0 * np.exp(np.sin(x0**2) + x1)
    second = first * (1.0 + gap * rng.normal(size=n))
    x3 = np.log(second / x2) - np.sin(x2**2)
    error = rng.normal(size=n)
    basis = np.linalg.qr(np.column_stack([np.ones(n), first, second]))[0]
    error -= basis @ (basis.T @ error)
    error *= noise * first.std() / error.std()
    return np.column_stack([x0, x1, x2, x3]), 0.5 * (first + second) + error


def share_of_first(model: BayesianSymbolicRegressor) -> float:
    """Return the share of the first explanation in a fit."""
    uses = model.inclusion_probability().to_numpy()
    return float(uses[0] / (uses[0] + uses[2]))


def is_right(model: BayesianSymbolicRegressor) -> bool:
    """Return whether a fit has the right odds, or says that it has not converged."""
    low, high = RIGHT
    return not model.diagnostics_["converged"] or low <= share_of_first(model) <= high


def _run(seed: int) -> tuple[bool, str]:
    X, y = two_modes(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = BayesianSymbolicRegressor(OPERATORS, n_jobs=1, random_state=seed).fit(X, y)
    about = model.diagnostics_
    said = "converged" if about["converged"] else "not converged"
    return is_right(model), (
        f"{seed:3d}  share {share_of_first(model):.2f}  draws {len(about['log_likelihood'][0])}  "
        f"round trips {sum(about['round_trips'])}  {said}"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--jobs", type=int, default=-1)
    options = parser.parse_args()
    results = Parallel(options.jobs, return_as="generator")(
        delayed(_run)(seed) for seed in range(options.runs)
    )
    wrong = 0
    for right, line in results:
        wrong += not right
        print(line + ("" if right else "  WRONG"), flush=True)
    print(f"{wrong} of {options.runs} runs have converged to wrong odds")
    return int(wrong > 0)


if __name__ == "__main__":
    raise SystemExit(main())
