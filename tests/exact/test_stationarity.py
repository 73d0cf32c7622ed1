"""Each move alone: started from exact draws of the posterior, it must not change their law."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from symbayes.formula.trees import state_size
from symbayes.kernels import opcodes
from symbayes.kernels.moves.choice import (
    BIRTH,
    DEATH,
    DELETE,
    EXCHANGE,
    GROW,
    INSERT,
    MERGE,
    NEWTON,
    PRUNE,
    REASSIGN_FEATURE,
    REASSIGN_OPERATOR,
    SPLIT,
    STAY,
)

from .cases import FALSE_ALARM, Case, run, space_of

PAIRS = {
    "stay": (STAY,),
    "newton": (NEWTON,),
    "grow-prune": (GROW, PRUNE),
    "insert-delete": (INSERT, DELETE),
    "reassign-operator": (REASSIGN_OPERATOR,),
    "reassign-feature": (REASSIGN_FEATURE,),
    "birth-death": (BIRTH, DEATH),
    "split-merge": (SPLIT, MERGE),
    "exchange": (EXCHANGE,),
    # Gibbs updates: no move at all.
    "scales": (),
    "weights": (),
}
# Tried rarely, so that it takes more steps until most chains have moved.
RARE = ("split-merge", "exchange")
PLAIN = Case("collapsed", 1)
FREE = Case("collapsed", (2, 0.5), max_nodes=4)
LT = Case("collapsed", (2, 0.5), "lt", max_nodes=3, n_features=1)
# One `lt` in one term, or two terms without: many moves are cut off.
LIMITED = Case("collapsed", (2, 0.5), "lt", max_nodes=3, n_features=1, most_constants=4)
# Products of products and trees of four levels are cut off.
SHALLOW = Case(
    "collapsed", (2, 0.5), max_nodes=5, n_features=1, max_depth=3, nesting=(("*", "*", 0),)
)
KNOWN = Case(
    "collapsed", (2, 1.5), "sums", max_nodes=3, beta=1.5, temperature=0.6, known=(("square", 0),)
)
KNOWN_WAVES = Case("collapsed", 1, "waves", max_nodes=3, n_features=1, known=(("sin", 0),))
STEEP = Case("collapsed", 1, beta=1.5)
# Ratios of a split lie on both sides of one here; else a wrong factor would change nothing.
SUMS = Case("collapsed", (2, 1.5), "sums", max_nodes=4, beta=1.5, temperature=0.6)
THREE = Case("collapsed", (3, 1.5), "sums", max_nodes=3, beta=1.5, temperature=0.6)
TWO = Case("collapsed", 2, max_nodes=4, beta=1.5, temperature=0.3)
ROOTS = Case("collapsed", (2, 1.5), "roots", max_nodes=4, beta=1.5, temperature=0.6)
WAVES = Case("collapsed", 1, "waves", max_nodes=3, n_features=1)
WARM_WAVES = Case(
    "collapsed", 2, "waves", max_nodes=3, n_features=1, temperature=0.4, weighted=True
)
LEARNED = Case("collapsed", (2, 2.0), "sums", max_nodes=3, temperature=0.3, learn=True)
LEARNED_LT = Case("collapsed", (2, 0.5), "lt", max_nodes=3, n_features=1, learn=True)
# Judged on some of the six rows first.
PART = Case("collapsed", (2, 0.5), max_nodes=4, part=4)
KNOWN_PART = replace(KNOWN, temperature=1.0, part=4)
LIMITED_PART = replace(LIMITED, part=4)
WAVES_PART = replace(WAVES, part=4)
SUMS_PART = replace(SUMS, temperature=1.0, part=3)
# Terms that are not sensible are cut off, by probe rows and by the limit on what cancels.
SENSIBLE = Case("collapsed", (2, 0.5), max_nodes=4, sensible=True)
SENSIBLE_SUMS = Case(
    "collapsed", (2, 1.5), "sums", max_nodes=4, beta=1.5, temperature=0.6, sensible=True
)
SENSIBLE_TWO = replace(TWO, sensible=True)
SENSIBLE_PART = replace(PART, sensible=True)
SENSIBLE_WAVES = replace(WAVES, sensible=True)
HOT_SENSIBLE = replace(SENSIBLE, temperature=0.3)
# Waves in waves have a price.
PRICE = Case("collapsed", 1, max_nodes=6, n_features=1, temperature=0.5, price=1.0)
HOT_PRICE = replace(PRICE, temperature=0.2)
PRICE_PART = Case("collapsed", (2, 0.5), max_nodes=5, n_features=1, price=1.0, part=4)
TWO_PRICE = replace(TWO, price=1.0)
PAPER = Case("plug-in", 1)
PAPER_LT = Case("plug-in", 2, "lt", max_nodes=3, n_features=1)

COMBINATIONS = [
    *[(PLAIN, m) for m in ("grow-prune", "insert-delete", "reassign-operator", "reassign-feature")],
    (STEEP, "insert-delete"),
    (FREE, "birth-death"),
    (FREE, "insert-delete"),
    (SUMS, "split-merge"),
    (TWO, "exchange"),
    (THREE, "split-merge"),
    (THREE, "exchange"),
    (ROOTS, "split-merge"),
    (ROOTS, "exchange"),
    *[
        (LT, m)
        for m in PAIRS
        if m not in ("reassign-feature", "split-merge", "weights")  # one column, no sums
    ],
    *[(LIMITED, m) for m in ("grow-prune", "insert-delete", "reassign-operator", "birth-death")],
    *[(SHALLOW, m) for m in ("grow-prune", "insert-delete", "reassign-operator", "birth-death")],
    *[(KNOWN, m) for m in ("grow-prune", "birth-death", "split-merge", "exchange")],
    (KNOWN_WAVES, "newton"),
    *[(LEARNED, m) for m in PAIRS if m not in ("stay", "newton", "scales")],
    *[(WAVES, m) for m in ("stay", "newton", "insert-delete")],
    (WARM_WAVES, "newton"),
    (LEARNED_LT, "exchange"),
    (LEARNED_LT, "weights"),
    *[(PART, m) for m in ("grow-prune", "insert-delete", "reassign-feature", "birth-death")],
    *[(KNOWN_PART, m) for m in ("grow-prune", "birth-death")],
    *[(LIMITED_PART, m) for m in ("birth-death", "stay")],
    (WAVES_PART, "newton"),
    (SUMS_PART, "split-merge"),
    *[(SENSIBLE, m) for m in ("grow-prune", "insert-delete", "reassign-operator", "birth-death")],
    *[(SENSIBLE_SUMS, m) for m in ("split-merge", "birth-death")],
    (SENSIBLE_TWO, "exchange"),
    *[(SENSIBLE_PART, m) for m in ("grow-prune", "birth-death")],
    *[(SENSIBLE_WAVES, m) for m in ("stay", "newton", "insert-delete")],
    (HOT_SENSIBLE, "insert-delete"),
    *[(PRICE, m) for m in ("grow-prune", "insert-delete", "reassign-operator")],
    *[(HOT_PRICE, m) for m in ("insert-delete", "reassign-operator")],
    *[(PRICE_PART, m) for m in ("grow-prune", "birth-death")],
    (TWO_PRICE, "exchange"),
    (PAPER, "grow-prune"),
    (PAPER, "insert-delete"),
    *[(PAPER_LT, m) for m in ("stay", "grow-prune", "insert-delete", "reassign-operator")],
]


def constants(nodes, scales, i, name):
    """All constants of a kind, as they are and in units of their scale."""
    rows, columns = np.nonzero(nodes["op"] == opcodes.LT)
    values = nodes[name][rows, columns]
    return values, (values - (name == "a")) / np.sqrt(scales[rows, i])


def weights_and_trees(nodes, terms, sums):
    """Learned weights, and how probable they make the trees: one column each."""
    n_operators = opcodes.N_OPCODES
    weights = np.hstack(
        [np.diff(part, prepend=0.0) for part in (sums[:, :n_operators], sums[:, n_operators:])]
    )
    log_weights = np.log(np.maximum(weights, 1e-300))
    joint = np.zeros(len(terms))
    for i, n_terms in enumerate(terms):
        row = nodes[i, : state_size(nodes[i], int(n_terms))]
        at = np.where(row["op"] > 0, row["op"], n_operators + row["feature"])
        joint[i] = log_weights[i, at].sum()
    used = weights.max(axis=0) > 0
    return np.column_stack([weights[:, used], joint])


def p_values(case, move, n, steps=None, seed=0):
    """P-values of the structures, and where there are any, of constants, scales, noise, weights."""
    steps = steps or (800 if move in RARE else 20)
    space = space_of(case)
    p, after, chain = run(case, "exact", steps, n, allowed=PAIRS[move], gibbs=(move,), seed=seed)
    results = {"structures": p}
    if PAIRS[move]:
        assert chain.counts[2].sum() > n / 50  # otherwise nothing was tested
    if case.has_constants or case.learn:
        # Against fresh exact draws, independent of those the chains started from.
        nodes, terms, scales, noise, weights = space.draw(n, np.random.default_rng([99, seed]))
    if case.has_constants:
        for i, name in enumerate(("slope scale", "offset scale")):
            results[name] = stats.ks_2samp(after[2][:, i], scales[:, i]).pvalue
        for i, name in enumerate(("a", "b")):
            old, new = constants(nodes, scales, i, name), constants(after[0], after[2], i, name)
            results[f"constant {name}"] = stats.ks_2samp(old[0], new[0]).pvalue
            results[f"{name} in units of its scale"] = stats.ks_2samp(old[1], new[1]).pvalue
        if case.likelihood == "plug-in":
            results["noise"] = stats.ks_2samp(after[3], noise).pvalue
    if case.learn:
        old = weights_and_trees(nodes, terms, weights)
        new = weights_and_trees(after[0], after[1], after[4])
        for i in range(old.shape[1]):
            results[f"weight {i}"] = stats.ks_2samp(old[:, i], new[:, i]).pvalue
    return results


EACH = [pytest.param(case, move, id=f"{case.name}-{move}") for case, move in COMBINATIONS]


# The slow suite has all of them, to fine resolution; some are here, so that a mistake shows early.
@pytest.mark.parametrize(("case", "move"), EACH[::4])
def test_move_alone_keeps_the_posterior(case, move):
    results = p_values(case, move, n=4_000)
    # Up to fourteen p-values a test; Bonferroni keeps the false alarm of the test.
    assert min(results.values()) > FALSE_ALARM / len(results), results


@pytest.mark.slow
@pytest.mark.parametrize(("case", "move"), EACH)
def test_move_alone_keeps_the_posterior_to_fine_resolution(case, move):
    results = p_values(case, move, n=25_000, seed=1)
    assert min(results.values()) > FALSE_ALARM / len(results), results
