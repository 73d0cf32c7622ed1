"""One chain of the default sampler, run for some seconds and counted.

The only file of the benchmark that knows the inside of symbayes' sampler.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from symbayes import BayesianSymbolicRegressor, CollapsedSampler, NoisePrior, TermsPrior, TreePrior
from symbayes.kernels import units
from symbayes.kernels.chain import EVALUATED, NUMBERS, PROPOSED
from symbayes.kernels.choose import DEATH
from symbayes.operators import operator_weights
from symbayes.problem import Problem, make_problem
from symbayes.trace import empty_output, state_size
from symbayes.validation import check_table

OPERATORS = "paper-simulation"
# A call of the loop takes about so long: the clock is read rarely, and stops on time.
_SECONDS_A_CALL = 0.02


@dataclass(frozen=True)
class Rates:
    proposals: float
    """Proposals a second, of whatever kind."""
    trees: float
    """New trees evaluated on all rows and fitted, a second."""
    nodes: float
    """Mean number of nodes of the trees in the state."""


def problem_for(X: np.ndarray, y: np.ndarray, terms: TermsPrior | int) -> Problem:
    """Return what the estimator would sample from, with default beliefs."""
    table = check_table(BayesianSymbolicRegressor(), X, y, None)
    n_features = len(table.used)
    return make_problem(
        table,
        operator_weights(OPERATORS),
        np.full(n_features, 1.0 / n_features),
        TreePrior(),
        NoisePrior(),
        terms,
    )


def rates(
    problem: Problem, seed: int, seconds: float, settle: float, temperature: float = 1.0
) -> Rates:
    """Run one chain; count after the first `settle` seconds.

    With temperature 0 the chain does all its work and then ignores the likelihood: it walks
    through trees of the prior, which are the same whatever the data.
    """
    loop = units.load("collapsed")
    chain = problem.new_chain(np.random.SeedSequence(seed))
    prior = problem.new_prior(CollapsedSampler.move_shape)
    scratch = problem.new_scratch()
    output = empty_output(1, problem.most_terms * problem.max_nodes, NUMBERS + 2)
    steps = 1

    def run(duration: float) -> tuple[float, list[float]]:
        nonlocal steps
        nodes = []
        start = before = time.perf_counter()
        while before - start < duration:
            if loop(chain, prior, problem.data, scratch, temperature, steps, 1, *output) < 0:
                raise RuntimeError("the chain found no start")
            after = time.perf_counter()
            if after - before < _SECONDS_A_CALL / 2:
                steps *= 2
            before = after
            n_terms = int(output[1][0])
            if n_terms:
                nodes.append(state_size(output[0][0], n_terms) / n_terms)
        return before - start, nodes

    run(settle)
    counts = chain.counts.copy()
    elapsed, nodes = run(seconds)
    counts = chain.counts - counts
    # A death is judged by a new fit, but evaluates no tree.
    trees = counts[EVALUATED].sum() - counts[EVALUATED, DEATH]
    return Rates(
        float(counts[PROPOSED].sum() / elapsed), float(trees / elapsed), float(np.mean(nodes))
    )


def median(runs: list[Rates]) -> Rates:
    """Return the medians over several seeds."""
    return Rates(
        *(
            float(np.median([getattr(run, name) for run in runs]))
            for name in ("proposals", "trees", "nodes")
        )
    )
