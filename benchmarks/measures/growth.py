"""How speed changes with rows, features and terms."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise

import numpy as np

from benchmarks.chains import Rates, median, problem_for, rates
from benchmarks.report import Section, Table
from symbayes import TermsPrior
from symbayes.datasets import paper_task

_ROWS = (100, 1_000, 10_000, 100_000)
_FEATURES = (2, 20, 200)
_TERMS = (1, 2, 4, 8)
# Powers of the likelihood.
_POSTERIOR, _PRIOR = 1.0, 0.0


def measure(quick: bool) -> Section:
    """Measure all sizes, the seeds in the outer loop so that disturbances spread over all."""
    seeds, seconds = (1, 0.5) if quick else (3, 1.5)
    problems = {("rows", n): _problem(n_rows=n) for n in _ROWS}
    problems |= {("features", n): _problem(n_features=n) for n in _FEATURES}
    problems |= {("terms", n): _problem(terms=n) for n in _TERMS}
    runs: dict[tuple, list[Rates]] = defaultdict(list)
    for seed in range(seeds):
        for (kind, size), problem in problems.items():
            for power in (_POSTERIOR, _PRIOR):
                run = rates(problem, seed, seconds, seconds / 2, power)
                runs[kind, size, power].append(run)
    result = {key: median(of_size) for key, of_size in runs.items()}
    return Section(
        "growth",
        "Growth with the size of the problem",
        [
            _table(result, "rows", _ROWS, "2 features, up to 4 terms"),
            _table(result, "features", _FEATURES, "100 rows, up to 4 terms"),
            _table(result, "terms", _TERMS, "100 rows, 2 features, the number of terms fixed"),
        ],
        notes=[
            _growth_in_words(result),
            "In a fit, trees differ from size to size, as a replica goes where the posterior is. "
            "So a second run of each size ignores the likelihood after computing it, and walks "
            "through about the same trees at every size, those of the prior (terms that are "
            "redundant or not finite stay forbidden): the last three columns, on which the "
            "sentence above is based.",
            f"Task f1 of the paper, one replica on one core, {seconds:g} s after "
            f"{seconds / 2:g} s to settle, median of {seeds} seed{'s' * (seeds > 1)}. Features "
            "beyond the second are noise.",
        ],
    )


def _problem(n_rows: int = 100, n_features: int = 2, terms: TermsPrior | int | None = None):
    X, y = paper_task("f1", n_rows=n_rows, random_state=0)
    noise = np.random.default_rng(1).uniform(-3.0, 3.0, (n_rows, n_features - 2))
    return problem_for(np.hstack([X, noise]), y, terms or TermsPrior(most=4))


def _table(result, kind: str, sizes: tuple[int, ...], caption: str) -> Table:
    columns = [kind, "proposals/s", "evaluated trees/s", "nodes per tree"]
    columns += ["evaluated trees/s, prior", "nodes per tree, prior", "microseconds per tree, prior"]
    rows = []
    for size in sizes:
        fit, prior = result[kind, size, _POSTERIOR], result[kind, size, _PRIOR]
        rows.append(
            [size, fit.proposals, fit.trees, fit.nodes, prior.trees, prior.nodes, 1e6 / prior.trees]
        )
    return Table(columns, rows, f"By {kind} ({caption}):")


def _growth_in_words(result) -> str:
    def times_as_long(kind: str, low: int, high: int) -> float:
        return result[kind, low, _PRIOR].trees / result[kind, high, _PRIOR].trees

    by_rows = [f"{times_as_long('rows', low, high):.1f}" for low, high in pairwise(_ROWS)]
    return (
        "For the same trees, ten times the rows take "
        f"{by_rows[0]} times as long from {_ROWS[0]:,} to {_ROWS[1]:,} rows, {by_rows[1]} times to "
        f"{_ROWS[2]:,} and {by_rows[2]} times to {_ROWS[3]:,}; "
        f"{_FEATURES[-1]} features instead of {_FEATURES[0]} take "
        f"{times_as_long('features', _FEATURES[0], _FEATURES[-1]):.2f} times as long, "
        f"{_TERMS[-1]} terms instead of {_TERMS[0]} take "
        f"{times_as_long('terms', _TERMS[0], _TERMS[-1]):.2f} times."
    )
