"""Whole samplers against the exact posterior: chains from the worst state end in the right law."""

from __future__ import annotations

import pytest

from .cases import FALSE_ALARM, Case, run

CASES = [
    Case("collapsed", 1),
    Case("collapsed", 2, max_nodes=4),
    Case("collapsed", (2, 0.5), max_nodes=4),
    Case("collapsed", (2, 0.5), max_nodes=4, temperature=0.3),
    Case("collapsed", 2, max_nodes=3, weighted=True),
    Case("collapsed", 1, "lt", max_nodes=4, n_features=1),
    Case("collapsed", (2, 0.5), "lt", max_nodes=3, n_features=1),
    Case("collapsed", (2, 0.5), "lt", max_nodes=3, n_features=1, temperature=0.4),
    Case("collapsed", (2, 0.5), "sums", n_features=1),
    Case("collapsed", (3, 1.5), "sums", max_nodes=4, n_features=1),
    Case("collapsed", (2, 0.5), "roots", max_nodes=4),
    Case("collapsed", (2, 0.5), max_nodes=4, learn=True),
    Case("collapsed", (2, 0.5), "sums", max_nodes=3, learn=True),
    Case("collapsed", (2, 0.5), "lt", max_nodes=3, n_features=1, learn=True),
    Case("collapsed", (2, 0.5), "lt", max_nodes=3, n_features=1, most_constants=4),
    Case("collapsed", (2, 0.5), max_nodes=5, max_depth=3, n_features=1),
    Case("collapsed", 1, max_nodes=6, nesting=(("sin", "sin", 1), ("*", "*", 0)), n_features=1),
    Case("collapsed", (2, 0.5), max_nodes=4, known=(("*", 0, 1),)),
    Case("collapsed", 1, "lt", max_nodes=4, n_features=1, known=(("sin", 0),)),
    Case("collapsed", 2, max_nodes=3, weighted=True, known=((0,), ("sin", 1))),
    Case("collapsed", 1, part=4),
    Case("collapsed", (2, 0.5), max_nodes=4, part=3),
    Case("collapsed", (2, 0.5), max_nodes=4, part=4, temperature=0.3),
    Case("collapsed", 2, max_nodes=3, weighted=True, part=4),
    Case("collapsed", (2, 0.5), "lt", max_nodes=3, n_features=1, part=4),
    Case("collapsed", (2, 0.5), "lt", max_nodes=3, n_features=1, part=4, temperature=0.4),
    Case("collapsed", (3, 1.5), "sums", max_nodes=4, n_features=1, part=2),
    Case("collapsed", (2, 0.5), "roots", max_nodes=4, part=2),
    Case("collapsed", (2, 0.5), "sums", max_nodes=3, learn=True, part=4),
    Case("collapsed", (2, 0.5), "lt", max_nodes=3, n_features=1, most_constants=4, part=5),
    Case("collapsed", 2, max_nodes=3, weighted=True, known=((0,), ("sin", 1)), part=4),
    Case("collapsed", (2, 0.5), max_nodes=4, known=(("*", 0, 1),), part=4, temperature=0.4),
    Case("collapsed", (2, 0.5), max_nodes=4, sensible=True),
    Case("collapsed", (2, 0.5), max_nodes=4, sensible=True, temperature=0.3),
    Case("collapsed", (2, 0.5), max_nodes=4, trust=0.6),
    Case("collapsed", (2, 0.5), max_nodes=4, weighted=True, trust=0.6, part=4),
    Case("collapsed", (2, 0.5), max_nodes=4, sensible=True, part=4),
    Case("collapsed", (2, 0.5), max_nodes=4, sensible=True, part=4, temperature=0.3),
    Case("collapsed", (2, 0.5), "sums", max_nodes=3, sensible=True, learn=True),
    Case("collapsed", (2, 0.5), "lt", max_nodes=3, n_features=1, sensible=True),
    Case("collapsed", 1, "waves", max_nodes=4, n_features=1, sensible=True, price=1.5),
    Case("collapsed", (2, 0.5), max_nodes=5, n_features=1, price=2.0),
    Case("collapsed", (2, 0.5), max_nodes=5, n_features=1, price=2.0, temperature=0.3, part=4),
    Case("plug-in", 1),
    Case("plug-in", 2, max_nodes=4, max_depth=3, nesting=(("sin", "sin", 0),)),
    Case("plug-in", 2, max_nodes=3, known=(("sin", 0),)),
    Case("plug-in", 2, max_nodes=4),
    Case("plug-in", 2, max_nodes=3, weighted=True),
    Case("plug-in", 1, "lt", max_nodes=4, n_features=1),
    Case("plug-in", 2, "lt", max_nodes=3, n_features=1),
]


# The slow suite has all of them, to fine resolution; a few are here, so that a mistake shows early.
@pytest.mark.parametrize("case", CASES[::6], ids=lambda case: case.name)
def test_chains_reach_the_exact_posterior(case):
    p, *_ = run(case, "worst", steps=600, n=1_500)
    assert p > FALSE_ALARM


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_chains_reach_the_exact_posterior_to_fine_resolution(case):
    p, *_ = run(case, "worst", steps=1_000, n=10_000, seed=1)
    assert p > FALSE_ALARM


def test_the_comparison_can_fail():
    """Chains that have not moved are far from the posterior, and the test says so."""
    p, *_ = run(CASES[0], "worst", steps=2, n=3_000)
    assert p < FALSE_ALARM
