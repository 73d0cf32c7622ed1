"""Each move alone: started from exact draws of the posterior, it must not change their law."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from symbayes.kernels import opcodes
from symbayes.kernels.choose import (
    BIRTH,
    DEATH,
    DELETE,
    GROW,
    INSERT,
    PRUNE,
    REASSIGN_FEATURE,
    REASSIGN_OPERATOR,
    STAY,
)

from .cases import FALSE_ALARM, Case, run, space_of

PAIRS = {
    "stay": (STAY,),
    "grow-prune": (GROW, PRUNE),
    "insert-delete": (INSERT, DELETE),
    "reassign-operator": (REASSIGN_OPERATOR,),
    "reassign-feature": (REASSIGN_FEATURE,),
    "birth-death": (BIRTH, DEATH),
    "scales": (),
}
PLAIN = Case("collapsed", 1)
FREE = Case("collapsed", (2, 0.5), max_nodes=4)
LT = Case("collapsed", (2, 0.5), "lt", max_nodes=3, n_features=1)
STEEP = Case("collapsed", 1, beta=1.5)
PAPER = Case("plug-in", 1)
PAPER_LT = Case("plug-in", 2, "lt", max_nodes=3, n_features=1)

COMBINATIONS = [
    *[(PLAIN, m) for m in ("grow-prune", "insert-delete", "reassign-operator", "reassign-feature")],
    (STEEP, "insert-delete"),
    (FREE, "birth-death"),
    (FREE, "insert-delete"),
    *[(LT, move) for move in PAIRS if move != "reassign-feature"],
    (PAPER, "grow-prune"),
    (PAPER, "insert-delete"),
    *[(PAPER_LT, m) for m in PAIRS if m not in ("reassign-feature", "birth-death", "scales")],
]


def constants(nodes, scales, i, name):
    """All constants of a kind, as they are and in units of their scale."""
    rows, columns = np.nonzero(nodes["op"] == opcodes.LT)
    values = nodes[name][rows, columns]
    return values, (values - (name == "a")) / np.sqrt(scales[rows, i])


def p_values(case, move, n, steps=20, seed=0):
    """P-values of the structures, and where there are any, of constants, scales and noise."""
    p, _, after, chain = run(
        case, "exact", steps, n, allowed=PAIRS[move], gibbs=move == "scales", seed=seed
    )
    results = {"structures": p}
    if move not in ("scales",):
        assert chain.counts[2].sum() > n / 50  # otherwise nothing was tested
    if case.operators == "lt":
        # Against fresh exact draws, independent of those the chains started from.
        nodes, _, scales, noise = space_of(case).draw(n, np.random.default_rng([99, seed]))
        for i, name in enumerate(("slope scale", "offset scale")):
            results[name] = stats.ks_2samp(after[2][:, i], scales[:, i]).pvalue
        for i, name in enumerate(("a", "b")):
            old, new = constants(nodes, scales, i, name), constants(after[0], after[2], i, name)
            results[f"constant {name}"] = stats.ks_2samp(old[0], new[0]).pvalue
            results[f"{name} in units of its scale"] = stats.ks_2samp(old[1], new[1]).pvalue
        if case.likelihood == "plug-in":
            results["noise"] = stats.ks_2samp(after[3], noise).pvalue
    return results


@pytest.mark.parametrize(
    ("case", "move"), COMBINATIONS, ids=[f"{case.name}-{move}" for case, move in COMBINATIONS]
)
def test_move_alone_keeps_the_posterior(case, move):
    results = p_values(case, move, n=4_000)
    # Up to eight p-values a test; Bonferroni keeps the false alarm of the test.
    assert min(results.values()) > FALSE_ALARM / len(results), results


@pytest.mark.slow
@pytest.mark.parametrize(
    ("case", "move"), COMBINATIONS, ids=[f"{case.name}-{move}" for case, move in COMBINATIONS]
)
def test_move_alone_keeps_the_posterior_to_fine_resolution(case, move):
    results = p_values(case, move, n=25_000, seed=1)
    assert min(results.values()) > FALSE_ALARM / len(results), results
