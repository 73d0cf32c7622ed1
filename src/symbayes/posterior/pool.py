"""Short formulas from the terms of long ones: which few of them explain y best, by size.

All distinct terms that a run has met, their parts and the columns make a pool. Least squares on one
or two of them is an entry of a product of matrices, and longer sums are grown from the best of
these, a few of each size.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ..deadline import Deadline
from ..fitting.least_squares import remainder, span
from ..fitting.model import Fitter
from ..formula import expression as ex
from ..formula.trees import evaluate_trees, normal_form, skeleton, to_expression
from ..kernels import opcodes
from ..kernels.front import LARGEST
from ..kernels.tree import NODE

# Rows that terms are compared on, terms in a pool, and the columns among them.
_ROWS, _MOST_TERMS, _MOST_COLUMNS = 1000, 500, 100
# Sums of each size that longer ones are grown from, and that are returned.
_WIDTH, _LOOKED_AT = 3, 12
# A term with a smaller part (squared) outside the span of the others is redundant, one with a
# smaller spread than this part of its size is constant.
_REDUNDANT, _CONSTANT = 1.0e-8, 1.0e-10
# Nodes of an intercept, and of a coefficient with its signs.
_INTERCEPT, _COEFFICIENT = 1, 3


@dataclass(frozen=True, eq=False)
class Candidate:
    """Terms that may make a good short formula."""

    size: int
    """About how many nodes they have as a formula."""
    rss: float
    """Residual sum of squares on some rows, as a part of that without any term."""
    trees: list[np.ndarray]


class Pool:
    """The terms of some states, parts of these, and columns, on some rows."""

    def __init__(self, fitter: Fitter, states: Iterable[Sequence[np.ndarray]]):
        problem, n = fitter.problem, len(fitter.weights)
        rows = slice(0, n, -(-n // _ROWS))
        columns = np.ascontiguousarray(fitter.columns[:, rows])
        root = np.sqrt(fitter.weights[rows])
        base = span(evaluate_trees(problem.known, columns), root)
        y = _without(base, (fitter.scaled_y[rows] * root)[None])[0]
        self._columns, self._root, self._base, self._y = columns, root, base, y

        some = _distinct(states, len(problem.feature_weights))
        design, kept = self._design(some)
        self.trees = [tree for tree, keep in zip(some, kept, strict=True) if keep]
        design = design[kept]
        total = float(y @ y)
        self._dots = design @ y / np.sqrt(total) if total > 0.0 else np.zeros(len(design))
        self._gram = design @ design.T
        self._kinds = [skeleton(tree) for tree in self.trees]
        self._sizes = np.array([_term_size(tree) for tree in self.trees], np.int64)
        transforms = [2 * int((tree["op"] == opcodes.LT).sum()) for tree in self.trees]
        self._constants = 1 + np.array(transforms, np.int64)
        self._most_constants = problem.data.most_constants - 1.0

    def _design(self, trees: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """Return terms without what intercept and known terms explain, of length 1; which exist."""
        values = evaluate_trees(trees, self._columns)
        with np.errstate(all="ignore"):
            values = values / np.abs(values).max(axis=1, initial=0.0)[:, None] * self._root
            finite = np.isfinite(values).all(axis=1)
            values[~finite] = 0.0
            size = np.linalg.norm(values, axis=1)
            values = _without(self._base, values)
            length = np.linalg.norm(values, axis=1)
            return values / length[:, None], finite & (length > _CONSTANT * size)

    def candidate(self, trees: list[np.ndarray]) -> Candidate | None:
        """Return these terms as they are; None if one has no numbers."""
        design, exist = self._design(trees)
        total = float(self._y @ self._y)
        if not exist.all() or not total > 0.0:
            return None
        rest = remainder(design, self._y)
        return Candidate(
            _INTERCEPT + sum(map(_term_size, trees)), float(rest @ rest) / total, trees
        )

    def best_sums(self, most_terms: int, deadline: Deadline) -> list[Candidate]:
        """Return the best sums of terms of the pool, a few of each size."""
        if not self.trees or deadline.over():
            return []
        every = np.arange(len(self.trees))
        chosen = self._best(every[:, None], 1.0 - self._dots**2)
        found = list(chosen)
        if most_terms > 1 and len(every) > 1:
            first, second = np.triu_indices(len(every), 1)
            together = self._gram[first, second]
            apart = 1.0 - together**2
            with np.errstate(all="ignore"):
                explained = self._dots[first] ** 2 + self._dots[second] ** 2
                explained -= 2.0 * self._dots[first] * self._dots[second] * together
                left = np.where(apart > _REDUNDANT, 1.0 - explained / apart, np.inf)
            chosen = self._best(np.column_stack([first, second]), left)
            found += chosen
        for n_terms in range(3, most_terms + 1):
            if deadline.over() or not chosen:
                break
            chosen = self._grown(chosen, n_terms)
            found += chosen
        return [Candidate(size, left, [self.trees[i] for i in some]) for size, left, some in found]

    def _best(
        self, places: np.ndarray, left: np.ndarray
    ) -> list[tuple[int, float, tuple[int, ...]]]:
        """Return the best of these sums, a few of each size; rows of `places` are their terms."""
        sizes = _INTERCEPT + self._sizes[places].sum(axis=1)
        allowed = (self._constants[places].sum(axis=1) <= self._most_constants) | (
            places.shape[1] == 1
        )
        fine = np.flatnonzero((sizes <= LARGEST) & np.isfinite(left) & allowed)
        order = fine[np.lexsort((left[fine], sizes[fine]))]
        first = np.flatnonzero(np.diff(sizes[order], prepend=-1))
        rank = np.arange(len(order)) - np.repeat(first, np.diff(np.append(first, len(order))))
        best = []
        taken: Counter[int] = Counter()
        seen = set()
        for i in order[rank < _LOOKED_AT].tolist():
            some, size = places[i].tolist(), int(sizes[i])
            # Terms that differ in constants only are polished to the same formula.
            key = size, *sorted(self._kinds[j] for j in some)
            if key not in seen and taken[size] < _WIDTH:
                seen.add(key)
                taken[size] += 1
                best.append((size, max(0.0, float(left[i])), tuple(some)))
        return best

    def _grown(
        self, chosen: list[tuple[int, float, tuple[int, ...]]], n_terms: int
    ) -> list[tuple[int, float, tuple[int, ...]]]:
        """Return the best sums with one more term."""
        places, lefts = [], []
        for _, before, some in chosen:
            own = list(some)
            inverse = np.linalg.pinv(self._gram[np.ix_(own, own)], hermitian=True)
            beside = self._gram[:, own]
            apart = 1.0 - np.einsum("ij,jk,ik->i", beside, inverse, beside)
            rest = self._dots - beside @ (inverse @ self._dots[own])
            with np.errstate(all="ignore"):
                lefts.append(np.where(apart > _REDUNDANT, before - rest**2 / apart, np.inf))
            grown = np.empty((len(rest), n_terms), np.int64)
            grown[:, :-1], grown[:, -1] = own, np.arange(len(rest))
            places.append(np.sort(grown, axis=1))
        every, left = np.concatenate(places), np.concatenate(lefts)
        _, once = np.unique(every, axis=0, return_index=True)
        return self._best(every[once], left[once])


def _without(basis: np.ndarray, rows: np.ndarray) -> np.ndarray:
    for _ in range(2):  # the second time it takes out the rounding errors of the first
        rows = rows - (rows @ basis) @ basis.T
    return rows


def _distinct(states: Iterable[Sequence[np.ndarray]], n_columns: int) -> list[np.ndarray]:
    """Return columns, terms and their parts in normal form, each once, of many only the first."""
    found: dict[bytes, np.ndarray] = {}
    for column in range(min(n_columns, _MOST_COLUMNS)):
        leaf = np.zeros(1, NODE)
        leaf["op"], leaf["feature"] = opcodes.FEATURE, column
        found[leaf.tobytes()] = leaf
    # Terms as a whole first; of each state in turn.
    for trees in _terms_then_parts(states):
        for tree in trees:
            if len(found) >= _MOST_TERMS:
                return list(found.values())
            with np.errstate(all="ignore"):
                plain = normal_form(tree)
            found.setdefault(plain.tobytes(), plain)
    return list(found.values())


def _terms_then_parts(states: Iterable[Sequence[np.ndarray]]) -> Iterator[Sequence[np.ndarray]]:
    kept = list(states)
    yield from kept
    for trees in kept:
        yield [part for tree in trees for part in _parts(tree)]


def _parts(tree: np.ndarray) -> Iterator[np.ndarray]:
    """Yield the subtrees below the root that have operators, largest first."""
    ops = tree["op"]
    for i in range(1, len(tree)):
        if ops[i] > 0:
            missing, end = 1, i
            while missing > 0:
                missing += int(ops[end] > 0) + int(ops[end] >= opcodes.FIRST_BINARY) - 1
                end += 1
            yield tree[i:end]


def _term_size(tree: np.ndarray) -> int:
    columns = range(int(tree["feature"].max()) + 1)
    return _COEFFICIENT + ex.n_nodes(to_expression(tree, columns))


def same_structure(trees: Sequence[np.ndarray]) -> tuple[str, ...]:
    """Return what sums that differ in constants only have in common."""
    return tuple(sorted(map(skeleton, trees)))
