"""One replica of the default sampler, run for some seconds and counted.

The only file of the benchmark that uses internals of symbayes' sampler.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from symbayes import BayesianSymbolicRegressor, NoisePrior, TermsPrior, TreePrior
from symbayes.formula.operators import operator_weights
from symbayes.formula.trees import state_size
from symbayes.inputs.problem import Problem, make_problem
from symbayes.inputs.user_formulas import guessed_trees
from symbayes.inputs.validation import check_table
from symbayes.kernels.chain import EVALUATED, PROPOSED
from symbayes.samplers.ladder import Replicas

OPERATORS = "paper-simulation"
# Duration of a call of the loop: the clock is read rarely, and the run still stops on time.
_SECONDS_PER_CALL = 0.02


@dataclass(frozen=True)
class Rates:
    proposals: float
    """Proposals per second, of whatever kind."""
    trees: float
    """New trees evaluated on all rows and fitted, per second."""
    nodes: float
    """Mean number of nodes of the trees in the state."""


def problem_for(
    X: np.ndarray, y: np.ndarray, terms: TermsPrior | int, operators: str = OPERATORS
) -> Problem:
    """Return what the estimator would sample from, with default beliefs."""
    table = check_table(BayesianSymbolicRegressor(), X, y, None)
    n_features = len(table.used)
    return make_problem(
        table,
        operator_weights(operators),
        np.full(n_features, 1.0 / n_features),
        TreePrior(),
        NoisePrior(),
        terms,
        learn=True,
    )


def rates(problem: Problem, seed: int, seconds: float, settle: float, power: float = 1.0) -> Rates:
    """Run one replica by exact moves only; count after the first `settle` seconds.

    With power 0 it does all its work and then ignores the likelihood: it walks through trees of
    the prior, which are the same whatever the data.
    """
    replicas = Replicas(problem, np.random.SeedSequence(seed), np.array([power]))
    out_nodes, out_terms, _ = replicas.output
    draws = len(out_terms)
    steps = 1

    def run(duration: float) -> tuple[float, list[float]]:
        nonlocal steps
        nodes = []
        elapsed = 0.0
        while elapsed < duration:
            before = time.perf_counter()
            replicas.run(steps, 1, draws)
            seconds_per_call = time.perf_counter() - before
            elapsed += seconds_per_call
            if seconds_per_call < _SECONDS_PER_CALL / 2:
                steps *= 2
            for state, n_terms in zip(out_nodes, out_terms, strict=True):
                if n_terms:
                    nodes.append(state_size(state, int(n_terms)) / int(n_terms))
        return elapsed, nodes

    run(settle)
    earlier = replicas.chains.counts.copy()
    elapsed, nodes = run(seconds)
    counts = (replicas.chains.counts - earlier).sum(axis=0)
    return Rates(
        proposals=float(counts[PROPOSED].sum() / elapsed),
        # A split or an exchange makes two trees, a death none.
        trees=float(counts[EVALUATED].sum() / elapsed),
        nodes=float(np.mean(nodes)),
    )


def ladder_at(
    formula: str, names: list[str], problem: Problem, powers: np.ndarray, seed: int
) -> Replicas:
    """Return a ladder that starts at a formula, at every temperature."""
    ladder = Replicas(problem, np.random.SeedSequence(seed), powers)
    (trees,) = guessed_trees(
        [formula], names, np.arange(len(names)), problem.operator_weights, problem.max_nodes,
        (0, problem.most_terms),
    )  # fmt: skip
    for replica in range(len(powers)):
        ladder.put(trees, replica)
    return ladder


@dataclass
class Meter:
    """How much was done while it was counting."""

    proposals: int = 0


@contextmanager
def metered() -> Iterator[Meter]:
    """Count the proposals of all fits made inside, those of the search as well."""
    meter, lock = Meter(), threading.Lock()
    original = Replicas.run

    def run(replicas: Replicas, *args, **kwargs) -> int:
        before = replicas.chains.counts[:, PROPOSED].sum()
        done = original(replicas, *args, **kwargs)
        with lock:
            meter.proposals += int(replicas.chains.counts[:, PROPOSED].sum() - before)
        return done

    Replicas.run = run
    try:
        yield meter
    finally:
        Replicas.run = original


def median(runs: list[Rates]) -> Rates:
    """Return the medians over several seeds."""
    return Rates(
        *(
            float(np.median([getattr(run, name) for run in runs]))
            for name in ("proposals", "trees", "nodes")
        )
    )
