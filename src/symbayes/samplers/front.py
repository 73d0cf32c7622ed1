"""The best state of each size that a run has met, packed: from ladders to the answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from ..formula.trees import concatenated, split_terms, state_sizes
from ..kernels.front import LARGEST, Front
from ..kernels.tree import NODE


@dataclass(frozen=True, eq=False)
class Met:
    """For some sizes the best state that was met, the smallest size first.

    Residual sums of squares compare only between states of the same rows and the same response.
    """

    size: np.ndarray
    """About how many nodes the state has as a formula (`kernels.front.term_size`)."""
    rss: np.ndarray
    n_terms: np.ndarray
    nodes: np.ndarray
    """Nodes of all states, one after the other."""

    def states(self) -> list[list[np.ndarray]]:
        """Return the terms of each state."""
        lengths, ends = [], 0
        result = []
        for n in self.n_terms.tolist():
            trees = split_terms(self.nodes[ends:], n)
            lengths.append(sum(map(len, trees)))
            ends += lengths[-1]
            result.append([tree.copy() for tree in trees])
        return result

    def only(self, is_wanted: Callable[[list[np.ndarray]], bool]) -> Met:
        """Return those that are wanted."""
        states = self.states()
        wanted = [i for i, trees in enumerate(states) if is_wanted(trees)]
        nodes = concatenated([tree for i in wanted for tree in states[i]])
        return Met(self.size[wanted], self.rss[wanted], self.n_terms[wanted], nodes)

    def content(self) -> tuple[bytes, ...]:
        """Return what tells it from others."""
        arrays = self.size, self.rss, self.n_terms, self.nodes
        return tuple(array.tobytes() for array in arrays)


def nothing_met() -> Met:
    """Return what a run has met before it began."""
    none = np.empty(0, np.int64)
    return Met(none, np.empty(0), none, np.empty(0, NODE))


def packed(front: Front) -> Met:
    """Return what is in the arrays of a ladder."""
    size = np.flatnonzero(np.isfinite(front.rss))
    n_terms = front.n_terms[size]
    rows = front.nodes.reshape(-1, LARGEST)[size]
    lengths = state_sizes(rows["op"], n_terms)
    nodes = rows[np.arange(LARGEST) < lengths[:, None]]
    return Met(size, front.rss[size], n_terms, nodes)


def unpack(met: Met, front: Front) -> None:
    """Put it into the arrays of a ladder, instead of what they hold."""
    front.rss[:] = np.inf
    rows = front.nodes.reshape(-1, LARGEST)
    for size, rss, trees in zip(met.size.tolist(), met.rss, met.states(), strict=True):
        nodes = concatenated(trees)
        front.rss[size], front.n_terms[size] = rss, len(trees)
        rows[size, : len(nodes)] = nodes


def merged(parts: Iterable[Met]) -> Met:
    """Return the best state of each size among those of several ladders on the same rows."""
    best: dict[int, tuple[float, list[np.ndarray]]] = {}
    for met in parts:
        for size, rss, trees in zip(met.size.tolist(), met.rss, met.states(), strict=True):
            if size not in best or rss < best[size][0]:
                best[size] = rss, trees
    order = sorted(best)
    return Met(
        np.array(order, np.int64),
        np.array([best[size][0] for size in order], np.float64),
        np.array([len(best[size][1]) for size in order], np.int64),
        concatenated([tree for size in order for tree in best[size][1]]),
    )
