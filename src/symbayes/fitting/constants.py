"""The best constants of a formula that is shown, and no idle ones.

The sampler's constants are draws. `polish` optimises them (variable projection: coefficients are
solved for inside) on some rows of a large table, and sets constants of `lt` that may as well be 0
or 1 to these values where the posterior does not object, which makes formulas shorter.
`newton_step` then brings them to their best on all rows. `rounding.py` rounds the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from ..deadline import OutOfTime, until
from ..formula.trees import evaluate_trees, normal_form
from ..inputs.problem import ROWS_AT_ONCE
from ..kernels import opcodes
from .least_squares import SomeRows, refit, residuals, solve_blocks

# Nats by which the same function, written in another way, may differ.
_LOST_BY_ROUNDING = 1.0
# Constants that grow by more than this factor, in units of 1 or of the largest, have run off,
# unless that gains this many nats.
_FAR, _WORTH_THE_WAY = 1.0e4, 3.0
# Increment of a constant for a derivative, as a part of it.
_INCREMENT = 1.0e-6
# The constants of a transform that changes nothing.
_IDLE = {"a": 1.0, "b": 0.0}

#: Where a constant is: tree, node and name.
Place = tuple[int, int, str]
Stop = Callable[[], bool]


def _places(trees: Sequence[np.ndarray]) -> Iterator[Place]:
    for k, tree in enumerate(trees):
        for i in np.flatnonzero(tree["op"] == opcodes.LT):
            for name in _IDLE:
                yield k, int(i), name


class Terms(SomeRows):
    """Terms on some rows; their constants are changed in place, those of `known` terms are not.

    The response is centred and scaled; other parameters are those of `SomeRows`.
    """

    def __init__(self, trees, columns, y, weights, noise_prior, known=()):
        super().__init__(columns, y, weights, noise_prior)
        self.trees: list[np.ndarray] = [tree.copy() for tree in trees]
        self._columns = np.ascontiguousarray(self._columns)
        self._known = evaluate_trees(list(known), self._columns)

    def get(self, places: Sequence[Place]) -> np.ndarray:
        """Return the constants at these places."""
        return np.array([self.trees[k][i][name] for k, i, name in places])

    def set(self, places: Sequence[Place], values: np.ndarray) -> None:
        """Change the constants at these places."""
        for (k, i, name), value in zip(places, values, strict=True):
            self.trees[k][i][name] = value

    def residual(self) -> np.ndarray:
        """Return the weighted residuals with coefficients solved for; nan where there are none."""
        return residuals(self.values(), self._y, self._root)

    def values(self) -> np.ndarray:
        """Return the values of all terms, the known ones first."""
        return np.vstack([self._known, evaluate_trees(self.trees, self._columns)])

    @property
    def root(self) -> np.ndarray:
        """Square roots of the weights of the rows."""
        return self._root

    def log_likelihood(self) -> float:
        """Return the collapsed log-likelihood, minus infinity where there is no fit."""
        return self.log_likelihood_of(self.residual())

    def tidy(self) -> None:
        """Bring the terms to their normal form, unless their numbers are too extreme for it."""
        before, trees = self.log_likelihood(), self.trees
        with np.errstate(all="ignore"):
            self.trees = [normal_form(tree) for tree in trees]
        if not self.log_likelihood() >= before - _LOST_BY_ROUNDING:
            self.trees = trees

    def optimise(self, places: Sequence[Place], stop: Stop) -> None:
        """Bring the constants at these places to their best values; never to worse ones.

        They stay as they are when it is time to `stop` before that is done.
        """
        if not places or len(places) > len(self._y):
            return
        before, start = self.log_likelihood(), self.get(places)
        if not np.isfinite(before):
            return

        def residual(values: np.ndarray) -> np.ndarray:
            self.set(places, values)
            return self.residual()

        try:
            found = refit(until(stop, residual), start)
        except OutOfTime:
            found = start
        self.set(places, found)
        gain = self.log_likelihood() - before
        # Where constants can make up for each other, they run off and next to nothing is gained.
        far = np.abs(found).max() > _FAR * max(1.0, np.abs(start).max())
        if not gain >= (_WORTH_THE_WAY if far else 0.0):
            self.set(places, start)


def polish(terms: Terms, stop: Stop) -> list[np.ndarray]:
    """Return terms with their constants optimised, idle ones left out, until it has to stop."""
    if not np.isfinite(terms.log_likelihood()):
        return terms.trees
    terms.tidy()
    free = list(_places(terms.trees))
    terms.optimise(free, stop)
    # A constant that is free costs half a log of the rows under the unit-information prior.
    allowed = 0.5 * np.log1p(terms.n)
    for place in list(free):
        if stop():
            break
        others = [other for other in free if other != place]
        before, kept = terms.log_likelihood(), terms.get(free)
        terms.set([place], np.array([_IDLE[place[2]]]))
        terms.optimise(others, stop)
        if terms.log_likelihood() >= before - allowed:
            free = others
        else:
            terms.set(free, kept)
    return [
        tree[(tree["op"] != opcodes.LT) | (tree["a"] != 1.0) | (tree["b"] != 0.0)]
        for tree in terms.trees
    ]


def all_constants(trees: Sequence[np.ndarray]) -> list[Place]:
    """Return both constants of every `lt`."""
    return list(_places(trees))


def free_constants(trees: Sequence[np.ndarray], first: int) -> list[Place]:
    """Return the constants of the trees from `first` on, but for those of idle 1s and 0s."""
    return [
        (k, i, name)
        for k, i, name in _places(trees)
        if k >= first and trees[k][i][name] != _IDLE[name]
    ]


def newton_step(
    trees: Sequence[np.ndarray],
    places: Sequence[Place],
    columns: np.ndarray,
    y: np.ndarray,
    weights: np.ndarray,
) -> tuple[np.ndarray, ...] | None:
    """Return the trees with constants one step nearer to their best; None if there is no step.

    It is one least-squares problem: y on all terms, the known ones too, and on their derivatives by
    the constants at these places. A constant moves by the coefficient of its derivative over that
    of its term (Gauss and Newton), which near the best constants doubles the digits that are right.
    """
    moved, increments = [], []
    for k, i, name in places:
        tree = trees[k].copy()
        value = float(tree[i][name])
        tree[i][name] = value + _INCREMENT * max(1.0, abs(value))
        increments.append(float(tree[i][name]) - value)
        moved.append(tree)
    owners = [k for k, _, _ in places]

    def blocks() -> Iterator[np.ndarray]:
        for start in range(0, len(y), ROWS_AT_ONCE):
            rows = slice(start, min(start + ROWS_AT_ONCE, len(y)))
            with np.errstate(all="ignore"):
                values = evaluate_trees([*trees, *moved], columns[:, rows])
                slopes = (values[len(trees) :] - values[owners]) / np.array(increments)[:, None]
                root = np.sqrt(weights[rows])
                yield np.vstack([np.ones(len(root)), values[: len(trees)], slopes, y[rows]]) * root

    solution = solve_blocks(blocks())
    if solution is None:
        return None
    result = [tree.copy() for tree in trees]
    for (k, i, name), slope in zip(places, solution[1 + len(trees) :], strict=True):
        with np.errstate(all="ignore"):
            result[k][i][name] += slope / solution[1 + k]
        if not np.isfinite(result[k][i][name]):
            return None
    return tuple(result)
