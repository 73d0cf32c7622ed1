"""Least squares, once: every fit outside the compiled code.

Linear ones take terms by their values, one row of an array per term, work in units of the largest
value of each, so that no square overflows or vanishes, and add an intercept unless they centre.
They differ in what is asked for, and each keeps its own order of operations: results are
reproducible to the last bit. `refit` is for constants that are not coefficients.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.optimize import least_squares

from ..inputs.problem import Problem, some_rows
from ..kernels.all_rows import fit_all
from ..kernels.evaluate import evaluate
from ..kernels.units import load

#: Rows that constants are fitted to, at most: they do not need a million.
MOST_ROWS = 2000
# A term whose part outside the span of the others is smaller has no place in a model.
_REDUNDANT = 1.0e-11
# Directions with smaller singular values, as a part of the largest, say nothing.
_SEEN = 1.0e-9
# The kernels want a part of the rows; nothing is asked of it here.
_PART = 64


class SomeRows:
    """At most 2,000 rows of a table, evenly spaced, and what residuals there say about all rows.

    Columns may be longer than y. `noise_prior` is the shape and the scale of the prior of the noise
    variance, in units of residuals; `n` is the number of rows that these stand for, by default the
    sum of their weights.
    """

    def __init__(self, columns, y, weights, noise_prior, n: float | None = None):
        some = slice(None, None, -(-len(y) // MOST_ROWS))
        self._columns = columns[:, : len(y)][:, some]
        self._y, self._root = y[some], np.sqrt(weights[some])
        self.n = float(weights.sum()) if n is None else n
        self.multiplicity = self.n / max(float(weights[some].sum()), 1e-300)
        self.noise_prior = float(noise_prior[0]), float(noise_prior[1])

    def __len__(self) -> int:
        return len(self._y)

    def squares(self, residual: np.ndarray) -> float:
        """Return the sum of squares on all rows, and of what the prior of the noise adds."""
        nu, lam = self.noise_prior
        return nu * lam + self.multiplicity * float(np.sum(residual**2))

    def log_likelihood_of(self, residual: np.ndarray) -> float:
        """Return the collapsed log-likelihood; minus infinity for residuals that are not finite."""
        squares = self.squares(residual)
        if not np.isfinite(squares):
            return -np.inf
        return -0.5 * (self.n - 1.0 + self.noise_prior[0]) * float(np.log(squares))


class LeastSquares(NamedTuple):
    """A fit of terms that are centred and scaled to weighted length one.

    The product of the inverse root with its transpose is the inverse of their correlation matrix.
    """

    centre: np.ndarray
    length: np.ndarray
    beta: np.ndarray
    inverse_root: np.ndarray
    rss: float


def fit_standardised(values: np.ndarray, y: np.ndarray, weights: np.ndarray) -> LeastSquares | None:
    """Return the fit of terms, centred and of length one; None without finite values."""
    scaled = _in_units(values)
    if scaled is None:
        return None
    columns, unit = scaled
    centre = columns @ weights / weights.sum()
    columns = columns - centre[:, None]
    length = np.sqrt(columns**2 @ weights)
    design = (columns / length[:, None]).T
    if not np.isfinite(design).all():
        return None
    root = np.sqrt(weights)
    weighted = design * root[:, None]
    q, r = np.linalg.qr(weighted)
    diagonal = np.abs(np.diag(r))
    if len(values) > len(y) or not (np.isfinite(r).all() and (diagonal > 1e-13).all()):
        # A redundant term, which the paper's likelihood allows: the shortest solution.
        beta = np.linalg.lstsq(weighted, y * root, rcond=1e-10)[0]
        inverse_root = np.linalg.pinv(r, rcond=1e-10)
    else:
        inverse_root = np.linalg.inv(r)
        beta = inverse_root @ (q.T @ (y * root))
    fitted = design @ beta
    if not np.isfinite(fitted).all():
        return None
    rss = float(np.sum(weights * (y - fitted) ** 2))
    return LeastSquares(centre * unit, length * unit, beta, inverse_root, rss)


class BlockFitter:
    """Fits trees to a large table, in blocks of rows: nothing of its size is made on the way.

    `y` is the response about its mean in units of `problem.y_scale`, the known terms still in it.
    """

    def __init__(self, problem: Problem, y: np.ndarray):
        load("tempered", in_stages=True)  # which has the fit on all rows
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


def residuals(values: np.ndarray, y: np.ndarray, root: np.ndarray) -> np.ndarray:
    """Return residuals times the roots of the weights; nan where a term is redundant, or no fit."""
    scaled = _in_units(_with_intercept(values))
    if scaled is None:
        return np.full(len(y), np.nan)
    q, r = np.linalg.qr((scaled[0] * root).T)
    if np.abs(np.diag(r)).min() < _REDUNDANT * np.abs(r).max():
        return np.full(len(y), np.nan)
    rest = y * root
    for _ in range(2):  # the second time it takes out the rounding errors of the first
        rest = rest - q @ (q.T @ rest)
    return rest


def span(values: np.ndarray, root: np.ndarray) -> np.ndarray:
    """Return an orthonormal basis of terms and intercept, times the roots of the weights."""
    scaled = _in_units(_with_intercept(values))
    if scaled is None:
        return np.zeros((len(root), 0))
    return np.asarray(np.linalg.qr((scaled[0] * root).T)[0])


def remainder(columns: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return y without its part in the span of columns that are centred, weighted and scaled."""
    return y - np.linalg.lstsq(columns.T, y, rcond=None)[0] @ columns


def coefficients(values: np.ndarray, y: np.ndarray, root: np.ndarray) -> np.ndarray | None:
    """Return the intercept and the coefficients of terms; None without finite values."""
    scaled = _in_units(_with_intercept(values) * root)
    if scaled is None:
        return None
    columns, unit = scaled
    solution = _shortest(columns.T, y * root)
    return None if solution is None else solution / unit


def fitted_values(values: np.ndarray, weighted_y: np.ndarray, root: np.ndarray) -> np.ndarray:
    """Return the fitted values of terms; the mean of y where numbers are too extreme for a fit.

    `weighted_y` is y times the roots of the weights; the result is in units of y itself.
    """
    scaled = _in_units(_with_intercept(values))
    if scaled is not None:
        design = scaled[0].T
        solution = _shortest(design * root[:, None], weighted_y)
        if solution is not None:
            return design @ solution
    return np.full(len(weighted_y), weighted_y @ root / (root @ root))


def exact_coefficients(
    values: np.ndarray, y: np.ndarray, root: np.ndarray
) -> tuple[np.ndarray, np.ndarray] | None:
    """Return the coefficients of terms, and what is left of y; None if there is no solution."""
    scaled = _in_units(_with_intercept(values))
    if scaled is None:
        return None
    design, unit = scaled[0].T, scaled[1]
    solution, left = np.zeros(len(unit)), y
    for _ in range(2):  # the second time it takes out the rounding errors of the first
        more = _shortest(design * root[:, None], left * root)
        if more is None:
            return None
        solution = solution + more
        left = y - design @ solution
    return solution[1:] / unit[1:], left


def _shortest(design: np.ndarray, y: np.ndarray) -> np.ndarray | None:
    """Return the shortest solution; None if numbers are too extreme for it."""
    try:
        return np.linalg.lstsq(design, y, rcond=None)[0]
    except np.linalg.LinAlgError:
        return None


def solve_blocks(blocks: Iterable[np.ndarray]) -> np.ndarray | None:
    """Return the coefficients of the last row of all blocks on the other rows.

    Blocks are weighted, and stand side by side; None if a number in them is not finite, or a row
    is 0.
    """
    factor: np.ndarray | None = None
    for block in blocks:
        if not np.isfinite(block).all():
            return None
        above = np.zeros((0, len(block))) if factor is None else factor
        factor = np.asarray(np.linalg.qr(np.vstack([above, block.T]), mode="r"))
    assert factor is not None
    size = np.linalg.norm(factor[:, :-1], axis=0)
    if not (size > 0.0).all():
        return None
    return np.linalg.lstsq(factor[:, :-1] / size, factor[:, -1], rcond=_SEEN)[0] / size


def _with_intercept(values: np.ndarray) -> np.ndarray:
    return np.vstack([np.ones(values.shape[1]), values])


def _in_units(columns: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """Return terms in units of their largest values, and these; None if one is 0 or not finite."""
    unit = np.abs(columns).max(axis=1, initial=0.0)
    with np.errstate(all="ignore"):
        scaled = columns / unit[:, None]
    return (scaled, unit) if np.isfinite(scaled).all() else None


# Constants inside terms: least squares to the last digits, whatever the units.

# Times the constants are fitted, each time from where the last fit ended, if that left less than
# this part of the residual.
_TIMES, _WORTH_ANOTHER = 3, 0.999
_MOST_EVALUATIONS = 40
# Where residuals are rounding errors, every digit counts. Noise, more than this part of the spread
# of y, makes all but the first ones meaningless.
_NOISE, _TOLERANCE, _NOISY_TOLERANCE = 1.0e-4, 1.0e-15, 1.0e-12
# Increment of a constant for a derivative, relative to its size; it grows until residuals, in units
# of the spread of y, change by at least the last of these.
_INCREMENT, _INCREASE, _MOST_INCREASES, _LEAST_CHANGE = 1.0e-6, 100.0, 12, 1.0e-9

Residual = Callable[[np.ndarray], np.ndarray]


def refit(residual: Residual, values: np.ndarray, unit: float = 1.0) -> np.ndarray:
    """Return constants with a smaller sum of squares, or the same ones.

    `residual`, in units of the spread of y, may return nan where there is none, but not at the
    start. `unit` is the size of a constant that is 0.
    """
    if not len(values):
        return values
    for _ in range(_TIMES):
        before = residual(values)
        size = float(np.sqrt(np.mean(before**2)))
        if not 0.0 < size < np.inf:
            return values
        columns = slopes(residual, values, before, unit)
        with np.errstate(all="ignore"):
            # How far each constant moves the residuals by about 1. By the largest entry first:
            # squares of extreme numbers overflow or vanish.
            largest = np.abs(columns).max(axis=0)
            scale = 1.0 / (largest * np.sqrt(np.mean((columns / largest) ** 2, axis=0)))
        plain = np.where(values == 0.0, unit, np.abs(values))
        scale = np.where(np.isfinite(scale) & (scale > 0.0), scale, plain)
        tolerance = _NOISY_TOLERANCE if size > _NOISE else _TOLERANCE

        def scaled(z, start=values, size=size, scale=scale):
            # In units of the present residual: the tolerances are absolute.
            with np.errstate(all="ignore"):
                found = residual(start + scale * z) / size
            return found if np.isfinite(found).all() else np.full(len(found), 1e6)

        with np.errstate(all="ignore"):
            result = least_squares(
                scaled, np.zeros(len(values)), x_scale="jac", max_nfev=_MOST_EVALUATIONS,
                ftol=tolerance, xtol=tolerance, gtol=tolerance,
            )  # fmt: skip
            trial = values + scale * result.x
            after = float(np.sqrt(np.mean(residual(trial) ** 2)))
        if not after < size:
            return values
        values = trial
        if after > _WORTH_ANOTHER * size:
            return values
    return values


def slopes(residual: Residual, values: np.ndarray, base: np.ndarray, unit: float) -> np.ndarray:
    """Return the derivatives of the residuals, one column per constant, by differences.

    `base` are the residuals as they are. An increment that drowns in rounding is made larger: the
    present value of a constant may be a rounding error itself.
    """
    result = np.zeros((len(base), len(values)))
    for i in range(len(values)):
        increment = _INCREMENT * (abs(values[i]) or unit)
        with np.errstate(all="ignore"):
            for _ in range(_MOST_INCREASES):
                shifted = values.copy()
                shifted[i] += increment
                difference = residual(shifted) - base
                change = np.sqrt(np.mean(difference**2))
                if not change < _LEAST_CHANGE:
                    break
                increment *= _INCREASE
        if np.isfinite(change):
            result[:, i] = difference / increment
    return result
