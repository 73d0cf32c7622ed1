"""The last touch on a formula that is shown: its best constants, and no idle ones.

The sampler's constants are draws. What is shown has them optimised (variable projection:
coefficients are solved for inside), on some rows of a large table; `refine.py` goes on with all.
Constants of `lt` that may as well be 0 or 1 are set so where the posterior does not object, which
makes formulas shorter. Rounding the others is left to `rounding.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ..deadline import OutOfTime, until
from ..formula.trees import evaluate_trees, normal_form
from ..kernels import opcodes
from .refit import MOST_ROWS, refit

# A term whose part outside the span of the others is smaller has no place in a model.
_REDUNDANT = 1.0e-11
# Nats by which the same function, written in another way, may differ.
_LOST_BY_ROUNDING = 1.0
# Constants that grow by more than this factor, in units of 1 or of the largest, have run off,
# unless that gains so many nats.
_FAR, _WORTH_THE_WAY = 1.0e4, 3.0

Stop = Callable[[], bool]


def _never() -> bool:
    return False


@dataclass
class Fit:
    """Terms with their coefficients on a table, constants to be changed in place."""

    trees: list[np.ndarray]
    columns: np.ndarray
    """The table, one row a column."""
    y: np.ndarray
    """Response, centred and scaled."""
    weights: np.ndarray
    n: float
    noise_prior: tuple[float, float]
    known: np.ndarray
    """Values of the known terms, whose constants stay."""

    @classmethod
    def on(cls, trees, columns, y, weights, noise_prior, known=()) -> Fit:
        """Return a fit on at most so many rows, spread over the table."""
        step = -(-len(y) // MOST_ROWS)
        table = np.ascontiguousarray(columns[:, : len(y)][:, ::step])
        return cls(
            [tree.copy() for tree in trees],
            table,
            y[::step],
            weights[::step],
            float(weights.sum()),
            (float(noise_prior[0]), float(noise_prior[1])),
            evaluate_trees(list(known), table),
        )

    def places(self) -> list[tuple[int, int, str]]:
        """Return where the constants are: term, node and name."""
        return [
            (k, int(i), name)
            for k, tree in enumerate(self.trees)
            for i in np.flatnonzero(tree["op"] == opcodes.LT)
            for name in ("a", "b")
        ]

    def get(self, places: Sequence[tuple[int, int, str]]) -> np.ndarray:
        """Return the constants at these places."""
        return np.array([self.trees[k][i][name] for k, i, name in places])

    def set(self, places: Sequence[tuple[int, int, str]], values: np.ndarray) -> None:
        """Change the constants at these places."""
        for (k, i, name), value in zip(places, values, strict=True):
            self.trees[k][i][name] = value

    def residual(self) -> np.ndarray:
        """Return the weighted residuals with coefficients solved for; nan where there are none."""
        root = np.sqrt(self.weights)
        values = np.vstack([self.known, evaluate_trees(self.trees, self.columns)])
        unit = np.abs(values).max(axis=1, initial=0.0)
        with np.errstate(all="ignore"):
            design = np.vstack([np.ones(len(self.y)), values / unit[:, None]]) * root
        if not np.isfinite(design).all():
            return np.full(len(self.y), np.nan)
        q, r = np.linalg.qr(design.T)
        target = self.y * root
        if np.abs(np.diag(r)).min() < _REDUNDANT * np.abs(r).max():
            return np.full(len(self.y), np.nan)
        rest = target - q @ (q.T @ target)
        return rest - q @ (q.T @ rest)

    def log_likelihood(self) -> float:
        """Return the collapsed log-likelihood on these rows, as if they were all."""
        nu, lam = self.noise_prior
        rss = float(np.sum(self.residual() ** 2)) * self.n / max(self.weights.sum(), 1e-300)
        if not np.isfinite(rss):
            return -np.inf
        return -0.5 * (self.n - 1.0 + nu) * np.log(nu * lam + rss)

    def tidy(self) -> None:
        """Bring the terms to their normal form, unless their numbers are too extreme for it."""
        before, trees = self.log_likelihood(), self.trees
        with np.errstate(all="ignore"):
            self.trees = [normal_form(tree) for tree in trees]
        if not self.log_likelihood() >= before - _LOST_BY_ROUNDING:
            self.trees = trees

    def optimise(self, places: Sequence[tuple[int, int, str]], stop: Stop = _never) -> None:
        """Bring the constants at these places to their best values; never to worse ones.

        They stay as they are when it is time to `stop` before that is done.
        """
        if not places or len(places) > len(self.y):
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


def tidied(trees, columns, y, weights, noise_prior, known=()) -> tuple[np.ndarray, ...]:
    """Return the trees with what coefficients and intercept can take over left out."""
    fit = Fit.on(trees, columns, y, weights, noise_prior, known)
    fit.tidy()
    return tuple(fit.trees)


def polish(
    trees, columns, y, weights, noise_prior, known=(), stop: Stop = _never
) -> tuple[np.ndarray, ...]:
    """Return the trees with their constants optimised, idle ones left out, until it has to stop."""
    fit = Fit.on(trees, columns, y, weights, noise_prior, known)
    if not np.isfinite(fit.log_likelihood()):
        return tuple(trees)
    fit.tidy()
    free = fit.places()
    fit.optimise(free, stop)
    # A constant that is free costs half a log of the rows under the unit-information prior.
    allowed = 0.5 * np.log1p(fit.n)
    for place in list(free):
        if stop():
            break
        simple = 0.0 if place[2] == "b" else 1.0
        others = [other for other in free if other != place]
        before, kept = fit.log_likelihood(), fit.get(free)
        fit.set([place], np.array([simple]))
        fit.optimise(others, stop)
        if fit.log_likelihood() >= before - allowed:
            free = others
        else:
            fit.set(free, kept)
    return tuple(_without_idle(tree) for tree in fit.trees)


def _without_idle(tree: np.ndarray) -> np.ndarray:
    """Return a tree without transforms that change nothing."""
    idle = (tree["op"] == opcodes.LT) & (tree["a"] == 1.0) & (tree["b"] == 0.0)
    return tree[~idle]
