"""Terms that are known to be there: always in the model, with coefficients that are learned.

Their coefficients have the same prior as those of all other terms, centred at the least-squares
estimate. So they enter the likelihood only by what of y they leave unexplained, and it is enough to
project them out, of y and of every column.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..formula.trees import evaluate_trees

# A known term of which a smaller part (squared) lies outside the span of the others is redundant.
_REDUNDANT = 1.0e-10
# What is left of y below this part of its spread is a rounding error.
_NOTHING = 1.0e-12


def orthonormal(
    trees: Sequence[np.ndarray], columns: np.ndarray, root_weight: np.ndarray
) -> np.ndarray:
    """Return an orthonormal basis of the centred, weighted columns of trees, one row each."""
    if not trees:
        return np.empty((0, len(root_weight)))
    values = evaluate_trees(list(trees), columns)
    values /= np.abs(values).max(axis=1)[:, None]
    weights = root_weight**2
    values -= (values @ weights / weights.sum())[:, None]
    q, _ = np.linalg.qr((values * root_weight).T)
    return np.ascontiguousarray(q.T)


def without(values: np.ndarray, basis: np.ndarray) -> np.ndarray:
    """Return what of some values lies outside the span of a basis."""
    for _ in range(2 if len(basis) else 0):  # once leaves rounding errors of what was taken out
        values = values - basis.T @ (basis @ values)
    return values


def check_known(
    trees: Sequence[np.ndarray],
    texts: Sequence[str],
    columns: np.ndarray,
    y: np.ndarray,
    weights: np.ndarray,
) -> None:
    """Refuse terms that have no value on some row, say nothing new, or leave nothing to find."""
    if not trees:
        return
    with np.errstate(all="ignore"):
        values = evaluate_trees(list(trees), columns)
    bad = ~np.isfinite(values)
    for text, rows in zip(texts, bad, strict=True):
        if rows.any():
            raise ValueError(
                f"known_terms: {text!r} has no finite value on {int(rows.sum())} of {len(y)} "
                f"training rows (the first is row {int(np.argmax(rows))}); leave it or those rows "
                "out"
            )
    root = np.sqrt(weights)
    basis: list[np.ndarray] = []
    for text, column in zip(texts, values, strict=True):
        column = column / max(np.abs(column).max(), np.finfo(float).tiny)
        centred = (column - np.average(column, weights=weights)) * root
        rest = without(centred, np.array(basis)) if basis else centred
        size = rest @ rest
        if not (centred @ centred > _REDUNDANT * (weights @ column**2)):
            raise ValueError(
                f"known_terms: {text!r} is constant on the training rows; the model has an "
                "intercept anyway, so leave it out"
            )
        if not size > _REDUNDANT * (centred @ centred):
            raise ValueError(
                f"known_terms: {text!r} is a combination of the other known terms on the training "
                "rows; leave it out"
            )
        basis.append(rest / np.sqrt(size))
    unit = np.abs(y).max()
    centred = (y / unit - np.average(y / unit, weights=weights)) * root
    rest = without(centred, np.array(basis))
    if rest @ rest <= _NOTHING**2 * (centred @ centred):
        raise ValueError(
            "known_terms explain y to all digits, so there is nothing left to find; leave one of "
            "them out to have it found"
        )
