"""Trees, and the states of ladders, as arrays, and back. Compiled code believes what it is given,
so that nothing is used before it is checked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..inputs.problem import Problem
from ..kernels.opcodes import FEATURE, FIRST_BINARY, N_OPCODES
from ..kernels.tree import NODE
from ..samplers.trace import LadderState, split_terms
from .archive import Arrays
from .parts import LARGEST, Parts, split
from .stored_zip import Damage

#: Groups of arrays of a ladder's state, by name in each.
_GROUPS = ("chains", "priors", "own")


def states_to_arrays(
    prefix: str, states: Sequence[np.ndarray], n_trees: Sequence[int] | np.ndarray
) -> Arrays:
    """Return packed states, each of so many trees, as arrays."""
    nodes = np.concatenate([np.empty(0, NODE), *states], dtype=NODE)
    return {
        f"{prefix}/length": np.array([len(state) for state in states], np.int64),
        f"{prefix}/trees": np.array(n_trees, np.int64).reshape(len(states)),
        f"{prefix}/op": nodes["op"].astype(np.uint8),
        f"{prefix}/feature": nodes["feature"],
        f"{prefix}/a": nodes["a"],
        f"{prefix}/b": nodes["b"],
    }


def states_from_arrays(
    parts: Parts, prefix: str, n: int, n_columns: int
) -> tuple[list[np.ndarray], list[int]]:
    """Return `n` packed states over so many columns, and their numbers of trees."""
    lengths = parts.within(f"{prefix}/length", np.int64, (n,), 0)
    trees = parts.within(f"{prefix}/trees", np.int64, (n,), 0)
    op = parts.within(f"{prefix}/op", np.uint8, (None,), 0, N_OPCODES - 1).astype(np.int32)
    nodes = np.zeros(len(op), NODE)
    nodes["op"] = op
    nodes["feature"] = parts.within(f"{prefix}/feature", np.int32, op.shape)
    for name in ("a", "b"):
        nodes[name] = parts.take(f"{prefix}/{name}", np.float64, op.shape)
    used = nodes["feature"][op == FEATURE]
    states = split(f"{prefix}/op", nodes, lengths)
    if ((used < 0) | (used >= n_columns)).any() or not _are_whole(op, lengths, trees):
        raise Damage(f"the trees of {prefix} cannot be")
    return [state.copy() for state in states], trees.tolist()


def _are_whole(op: np.ndarray, lengths: np.ndarray, trees: np.ndarray) -> bool:
    """Return whether each state has its number of trees, the last of which ends where it does."""
    if ((lengths == 0) != (trees == 0)).any():
        return False
    # Before each node, so many are missing until all trees of its state are there.
    missing = np.cumsum((op > 0).astype(np.int64) + (op >= FIRST_BINARY) - 1)
    lengths, trees = lengths[lengths > 0], trees[lengths > 0]
    ends = np.cumsum(lengths) - 1
    before = np.concatenate([[0], missing[ends[:-1]]]) if len(ends) else np.zeros(0, np.int64)
    missing += np.repeat(trees - before, lengths)
    last = np.zeros(len(op), bool)
    last[ends] = True
    return bool((missing[last] == 0).all() and (missing[~last] > 0).all())


def ladders_to_arrays(prefix: str, ladders: Sequence[LadderState]) -> Arrays:
    """Return the states of ladders of one size as arrays."""
    arrays = states_to_arrays(
        f"{prefix}/nodes", [one.nodes for one in ladders], [_n_trees(one.chains) for one in ladders]
    )
    arrays[f"{prefix}/share"] = np.array([one.share for one in ladders], np.float64)
    for group in _GROUPS:
        for name in getattr(ladders[0], group) if ladders else ():
            stacked = np.stack([getattr(one, group)[name] for one in ladders])
            arrays[f"{prefix}/{group}/{name}"] = stacked
    return arrays


def ladders_from_arrays(
    parts: Parts, prefix: str, n: int, like: LadderState, problem: Problem
) -> list[LadderState]:
    """Return `n` states of ladders on a problem that are all of the size of one of its own."""
    nodes, trees = states_from_arrays(parts, f"{prefix}/nodes", n, len(problem.feature_weights))
    share = parts.within(f"{prefix}/share", np.float64, (n,), 0.0, 1.0)
    groups: dict[str, dict[str, np.ndarray]] = {group: {} for group in _GROUPS}
    for group, arrays in groups.items():
        for name, own in getattr(like, group).items() if n else ():
            arrays[name] = parts.take(f"{prefix}/{group}/{name}", own.dtype.type, (n, *own.shape))

    def of(group: str, i: int) -> dict[str, np.ndarray]:
        return {name: array[i].copy() for name, array in groups[group].items()}

    ladders = [
        LadderState(nodes[i], of("chains", i), of("priors", i), of("own", i), float(share[i]))
        for i in range(n)
    ]
    for ladder, count in zip(ladders, trees, strict=True):
        if not _is_sound(ladder, count, problem):
            raise Damage(f"the state of one of {prefix} cannot be")
    return ladders


def _n_trees(chains: Mapping[str, Any]) -> int:
    return int(np.maximum(chains["n_terms"], 0).sum())


def _is_sound(ladder: LadderState, n_trees: int, problem: Problem) -> bool:
    """Return whether a state stays within the arrays that compiled code gets."""
    chains, own = ladder.chains, ladder.own
    most, terms = problem.most_terms, chains["n_terms"]
    if (terms < -1 - most).any() or (terms > most).any() or n_trees != _n_trees(chains):
        return False
    if any(len(tree) > problem.max_nodes for tree in split_terms(ladder.nodes, n_trees)):
        return False
    cdfs = [ladder.priors[name] for name in ("operator_cdf", "feature_cdf")]
    return bool(
        (np.sort(chains["slots"], axis=1) == np.arange(most + 2)).all()
        and chains["rng"].any(axis=1).all()
        and all(_is_cdf(cdf) for cdf in cdfs)
        and _within(ladder.priors["scales"], np.finfo(float).tiny, LARGEST)
        and (own["clock"] >= 0).all()
        and ("replica" not in own or _is_ladder(own))
    )


def _is_ladder(own: Mapping[str, np.ndarray]) -> bool:
    in_order = (np.sort(own["replica"]) == np.arange(len(own["replica"]))).all()
    return bool(in_order and own["rng"].any() and _within(own["power"], np.finfo(float).tiny, 1.0))


def _is_cdf(cdf: np.ndarray) -> bool:
    rising = (np.diff(cdf, axis=-1) >= 0.0).all()
    return bool(rising and _within(cdf, 0.0, 1.0 + 1e-6) and (cdf[..., -1] > 1.0 - 1e-6).all())


def _within(values: np.ndarray, least: float, most: float) -> bool:
    return bool(((values >= least) & (values <= most)).all())
