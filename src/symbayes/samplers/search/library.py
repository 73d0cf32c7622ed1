"""Small expressions matched against a residual: which further term would explain most of it?

A product of two columns among hundreds is hopeless to find by chance, and neither column alone
shows that it matters. Comparing the residual with all products at once takes milliseconds; where
there are too many to be listed, `pairs.py` does it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations, islice, permutations, product

import numpy as np

from ...formula.operators import OPERATORS
from ...formula.trees import concatenated, evaluate_trees, join, leaf, product_of_powers
from ...inputs.problem import Problem
from . import heuristics
from .heuristics import FittedState, all_columns
from .pairs import Pairs

# The largest number of expressions that are listed: enough for pairs of some 200 columns.
_MOST_EXPRESSIONS = 25_000
# They are made in parts, which bounds the memory that takes.
_EXPRESSIONS_AT_ONCE = 500
# A column whose spread is a smaller part of its size is a constant.
_CONSTANT = 1.0e-8
# The least spread of a term times a function, which rules out rounding errors.
_LEAST_VARIANCE = 1.0e-6
# Powers in products of two or three columns, and of four.
_POWERS, _FEWER_POWERS = (1.0, -1.0, 2.0, -2.0, 0.5, -0.5), (1.0, -1.0, 2.0, -2.0)


class LibraryCache:
    """Keeps the library that was used last, which all ladders of a search share.

    Making one takes a good part of a second. The response has no part in it.
    """

    def __init__(self) -> None:
        #: When a part of a library is enough.
        self.stop: Callable[[], bool] = lambda: False
        self._unwanted = False
        self._lock = threading.Lock()
        self._columns: tuple = ()
        self._library: Library | None = None

    def suggest(self, problem: Problem, state: FittedState) -> Iterator[list[np.ndarray]]:
        """Yield the state with the further term that explains most of its residual."""
        trees = state.trees()
        if len(trees) < problem.most_terms and not isinstance(problem.terms, int):
            tree = self.library_for(problem).best_for(state.residual(), trees)
            if tree is not None and len(tree) <= problem.max_nodes:
                yield [*trees, tree]

    def library_for(self, problem: Problem) -> Library:
        data = problem.data
        columns = (problem.operator_weights, problem.feature_weights, data.x, data.root_weight)
        with self._lock:
            if self._library is None or not all(map(_same, columns, self._columns)):
                made = Library(problem, lambda: self._unwanted or self.stop())
                self._library, self._columns = made, columns
            return self._library

    def clear(self) -> None:
        """Let go of the library, which takes up to 25 MB; one that is being made is given up."""
        self._unwanted = True
        with self._lock:
            self._columns, self._library, self._unwanted = (), None, False


def _same(first: object, second: object) -> bool:
    if isinstance(first, np.ndarray):
        return first is second or np.array_equal(first, np.asarray(second))
    return first == second


class Library:
    """Small expressions with their values on the rows of a problem; fewer when it has to `stop`."""

    def __init__(self, problem: Problem, stop: Callable[[], bool] = lambda: False):
        columns = np.flatnonzero(problem.feature_weights > 0).tolist()
        operators = self._operators = problem.operator_weights
        self._used = problem.data.root_weight > 0
        self._root = problem.data.root_weight[self._used]
        # In the order in which it is evaluated: else every evaluation would make a copy.
        self._table = np.ascontiguousarray(all_columns(problem))
        self._pairs: list[Pairs] = []
        most = _MOST_EXPRESSIONS
        of_one = len(columns) * (1 + len(_unary(operators)))
        too_many = of_one + len(columns) * (len(columns) - 1) // 2 > most
        if too_many and heuristics.in_use.pairs:
            most = min(most, of_one)
            self._pairs = [
                Pairs(name, columns, self._table, self._root) for name in "*/" if name in operators
            ]
        trees = islice(expressions(columns, operators), most)
        # Single precision is enough to rank them, and twice as fast. In one piece, which the
        # system gets back; what is not written to takes no memory.
        room, n = np.empty((most, len(self._root)), np.float32), 0
        nodes, lengths = [], [0]
        while some := list(islice(trees, _EXPRESSIONS_AT_ONCE)):
            good, values = self._standardised(some)
            kept = [tree for tree, is_good in zip(some, good, strict=True) if is_good]
            room[n : n + len(kept)] = values
            n += len(kept)
            nodes.append(concatenated(kept))
            lengths.extend(map(len, kept))
            if stop():
                break
        # One row per expression: centred, weighted, of length one; and the trees end to end.
        self._values = room[:n]
        self._nodes = concatenated(nodes)
        self._ends = np.cumsum(lengths)

    def _standardised(self, trees: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """Return which trees have values that vary, and these centred, weighted, of length one."""
        with np.errstate(all="ignore"):
            values = evaluate_trees(trees, self._table)
            values /= np.abs(values).max(axis=1)[:, None]
            values -= np.average(values, axis=1, weights=self._root**2)[:, None]
            values *= self._root
            length = np.sqrt(np.einsum("ij,ij->i", values, values))
            good = np.isfinite(length) & (length > _CONSTANT * np.sqrt(len(self._root)))
        return good, values[good] / length[good, None]

    def best_for(self, residual: np.ndarray, terms: Sequence[np.ndarray] = ()) -> np.ndarray | None:
        """Return the tree that explains most of a residual, given on all rows of the problem.

        Among many columns it may be one of the terms times a function of one column: products of
        three are too many to be compared.
        """
        residual = residual[self._used]
        offers = [pairs.best_for(residual) for pairs in self._pairs]
        if len(self._values):
            # All at once: threads that ask for one another's lock all the time get nowhere.
            offers.insert(0, self._most(np.abs(self._values @ residual.astype(np.float32))))
            if self._pairs and "*" in self._operators:
                for term in terms:
                    factor, gain = self._best_factor(term, residual)
                    offers.append((join("*", term, factor), gain))
        return max(offers, key=lambda offer: offer[1])[0] if offers else None

    def _best_factor(self, term: np.ndarray, residual: np.ndarray) -> tuple[np.ndarray, float]:
        """Return the function of one column that a term should be multiplied by, and the gain.

        Its values are centred here, which makes no difference: the residual has nothing in common
        with the term itself.
        """
        (values,) = evaluate_trees([term], self._table)
        values = values / np.abs(values).max()
        wanted = (values * residual).astype(np.float32)
        level = (values * self._root / np.linalg.norm(self._root)).astype(np.float32)
        square = (values**2).astype(np.float32)
        n = _EXPRESSIONS_AT_ONCE
        parts = [self._values[i : i + n] for i in range(0, len(self._values), n)]
        variance = np.concatenate([part**2 @ square for part in parts])
        variance -= (self._values @ level) ** 2
        gain = np.abs(self._values @ wanted) / np.sqrt(np.maximum(variance, _LEAST_VARIANCE))
        return self._most(gain)

    def _most(self, gain: np.ndarray) -> tuple[np.ndarray, float]:
        """Return the tree with the largest gain, and that gain."""
        i = int(np.argmax(gain))
        return self._nodes[self._ends[i] : self._ends[i + 1]].copy(), float(gain[i])


def expressions(columns: Sequence[int], operators: Mapping[str, float]) -> Iterator[np.ndarray]:
    """Yield small trees, the simplest kinds first."""
    unary = _unary(operators)
    leaves = [leaf(i) for i in columns]

    def joined(names: str, x: np.ndarray, y: np.ndarray) -> Iterator[np.ndarray]:
        return (join(name, x, y) for name in names if name in operators)

    yield from leaves
    for name in unary:
        yield from (join(name, x) for x in leaves)
    yield from _products(columns, 2, (1.0,), operators)
    yield from _products(columns, 2, _POWERS, operators)
    yield from _products(columns, 3, _POWERS, operators)
    sums = [
        tree for name in "+-" for pair in combinations(leaves, 2) for tree in joined(name, *pair)
    ]
    for above, below in product(leaves, sums):
        yield from joined("*/", above, below)
        yield from joined("/", below, above)
    inner = [*sums, *_products(columns, 2, (1.0, -1.0), operators)]
    for name in unary:
        yield from (join(name, x) for x in inner)
    for name, x, y in product(unary, leaves, leaves):
        yield from joined("*/", x, join(name, y))
    yield from _products(columns, 4, _FEWER_POWERS, operators)
    for above, below in permutations(sums, 2):
        yield from joined("/", above, below)
    for name, x, y in product(unary, leaves, inner):
        yield from joined("*/", x, join(name, y))


def _unary(operators: Mapping[str, float]) -> list[str]:
    return [name for name in operators if OPERATORS[name].arity == 1 and name not in ("lt", "neg")]


def _products(
    columns: Sequence[int], size: int, powers: Sequence[float], operators: Mapping[str, float]
) -> Iterator[np.ndarray]:
    """Yield products of powers of this many columns."""
    if not {"*", "/"} & operators.keys():
        return  # millions of products would be tried, and none could be written
    for chosen in combinations(columns, size):
        for exponents in product(powers, repeat=size):
            tree = product_of_powers(chosen, exponents, operators)
            if tree is not None:
                yield tree
