"""What a ladder is apart from what can be made anew: small arrays that can be sent and stored.

Columns and Gram matrices are left out. They follow from the trees, bit for bit, since a column
depends on its tree and the table alone, and an inner product on its two columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from ..formula.trees import state_size
from ..kernels.chain import Chain
from ..kernels.tree import NODE
from ..kernels.tree_prior import Prior

#: Arrays of a chain that follow from its trees, and those trees, which are sent without the gaps.
DERIVED = ("columns", "gram", "dots")
_SENT = tuple(name for name in Chain._fields if name not in (*DERIVED, "nodes"))
#: What a chain learns of its prior; the rest follows from the problem.
LEARNED = ("operator_cdf", "feature_cdf", "scales")


@dataclass(frozen=True)
class LadderState:
    """The state of the chains of a ladder. All arrays are copies that nobody else writes to."""

    nodes: np.ndarray
    """Trees in use, chain by chain and term by term, one after the other."""
    chains: Mapping[str, np.ndarray]
    """The small arrays of `Chain`, by name; the first axis is the replica."""
    priors: Mapping[str, np.ndarray]
    """The learned arrays of `Prior`, by name; the first axis is the replica."""
    own: Mapping[str, np.ndarray]
    """What else belongs to it, by name: the arrays of `Ladder`, or the clock of the paper."""
    share: float
    """How often the constants of proposals are optimised."""


def state_of(
    chains: Chain, priors: Prior, own: Mapping[str, np.ndarray], share: float
) -> LadderState:
    """Return the state of chains that are stored in one set of arrays."""
    parts = [chains.nodes[r, start:end] for r, start, end in _trees(chains)]
    return LadderState(
        nodes=np.concatenate([chains.nodes[0, :0], *parts], dtype=NODE),
        chains={name: getattr(chains, name).copy() for name in _SENT},
        priors={name: getattr(priors, name).copy() for name in LEARNED},
        own={name: array.copy() for name, array in own.items()},
        share=float(share),
    )


def restore(
    state: LadderState, chains: Chain, priors: Prior, own: Mapping[str, np.ndarray]
) -> None:
    """Write a state to arrays of the same problem; what follows from the trees is left as it is."""
    for name in _SENT:
        getattr(chains, name)[...] = state.chains[name]
    for name in LEARNED:
        getattr(priors, name)[...] = state.priors[name]
    for name, array in own.items():
        array[...] = state.own[name]
    rest = state.nodes
    for r, start in _starts(chains):
        size = state_size(rest, 1)
        chains.nodes[r, start : start + size] = rest[:size]
        rest = rest[size:]


def same_state(first: LadderState, second: LadderState) -> bool:
    """Return whether two states are the same, bit for bit."""
    return first.share == second.share and all(
        one.tobytes() == two.tobytes()
        for one, two in zip(_arrays(first), _arrays(second), strict=True)
    )


def _arrays(state: LadderState) -> Iterator[np.ndarray]:
    yield state.nodes
    for arrays in (state.chains, state.priors, state.own):
        yield from (arrays[name] for name in sorted(arrays))


def _starts(chains: Chain) -> Iterator[tuple[int, int]]:
    """Yield replica and first node of every tree in use."""
    max_nodes = chains.nodes.shape[1] // chains.slots.shape[1]
    for r, n_terms in enumerate(chains.n_terms[:, 0]):
        for slot in chains.slots[r, : max(0, n_terms)]:
            yield r, int(slot) * max_nodes


def _trees(chains: Chain) -> Iterator[tuple[int, int, int]]:
    """Yield replica, begin and end of every tree in use."""
    for r, start in _starts(chains):
        yield r, start, start + state_size(chains.nodes[r, start:], 1)
