"""Least squares on the rows of a large table, in blocks: nothing of its size is made on the way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ..inputs.problem import Problem, some_rows
from ..kernels.all_rows import fit_all
from ..kernels.evaluate import evaluate
from ..kernels.units import load

# The kernels want a part of the rows; nothing is asked of it here.
_PART = 64


class LeastSquares(NamedTuple):
    """A fit of columns that are centred and scaled to weighted length one."""

    centre: np.ndarray
    length: np.ndarray
    beta: np.ndarray
    inverse_root: np.ndarray
    """Its product with its transpose is the inverse of the correlation matrix."""
    rss: float


class BlockFitter:
    """Fits trees to all rows.

    Parameters
    ----------
    problem : Problem
    y : ndarray
        The response in units of `problem.y_scale`, about its mean; the known terms are still in it.
    """

    def __init__(self, problem: Problem, y: np.ndarray):
        load("tempered")
        # The kernels count on a response whose squares sum to the number of rows.
        self._unit = problem.y_scale / problem.y_spread
        data = problem.data
        response = data.y
        if problem.known:
            response = np.zeros(len(data.y))
            response[: len(y)] = self._unit * y * data.root_weight[: len(y)]
        wide = replace(
            problem.in_two_stages(some_rows(problem, _PART)),
            data=data._replace(y=response, known=np.empty(0), most_constants=np.inf),
            terms=problem.most_terms + len(problem.known),
            known=(),
        )
        self._max_nodes = wide.max_nodes
        self._chain = wide.new_chain(np.random.SeedSequence(0))
        self._whole = wide.data
        self._scratch = wide.new_scratch()

    def fit(self, trees: Sequence[np.ndarray]) -> LeastSquares | None:
        """Return the fit of trees; None if one is constant, redundant or not finite somewhere."""
        k, rows = len(trees), self._scratch.all_rows
        if max(map(len, trees), default=0) > self._max_nodes:
            return None  # a known term may be larger than what is sampled
        for i, tree in enumerate(trees):
            start = i * self._max_nodes
            self._chain.nodes[start : start + len(tree)] = tree
        rss = fit_all(evaluate, self._chain, k, self._whole, self._scratch)
        if rss < 0.0:
            return None
        gram = rows.gram.reshape(len(rows.order), -1)[:k, :k]
        factor = np.linalg.cholesky(np.tril(gram) + np.tril(gram, -1).T)
        return LeastSquares(
            centre=rows.shift[:k] + rows.unit[:k] * rows.totals[:k] / self._whole.n,
            length=rows.length[:k] * rows.unit[:k],
            beta=self._scratch.solution[:k] / self._unit,
            inverse_root=np.linalg.inv(factor).T,
            rss=rss / self._unit**2,
        )
