"""The two verdicts on a formula.

*SRBench's*: with constants rounded to three decimals, the difference between the formula found and
the truth is constant, or their ratio is a non-zero constant (`srbench.py`).

*Right structure*: with its constants refitted in float64 to the truth without noise, the formula
agrees with the truth to 1e-6 of the spread (root mean square, on the training rows and on 1,000
fresh rows of the same range), and it has at most 1.5 times the nodes of the truth, so that a
bloated superset does not count.

Nodes of the refitted formula are counted, without the constants that the refit makes vanish: a
factor that may be 1, an added constant that may be 0, an exponent that may be an integer or a
half. With noise the formula 1.002*x0*x1 - 0.03 has the structure x0*x1. Common factors may be in
front of the outermost sum (`nodes.least`, for the truth as well). A term that depends on a column
is counted in full even where its coefficient is refitted to 0.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from . import srbench
from .formulas import Unreadable, evaluate, symbols, to_sympy
from .identity import Decider
from .nodes import count, least
from .refit import Fit, FreeFormula, refit, take_apart

TOLERANCE = 1.0e-6
MOST_NODES = 1.5
_FRESH_ROWS, _NEAR_ROWS, _WIDE_ROWS = 1000, 200, 1000
# Fixing constants one by one to see whether they may vanish ends after this time.
_SHRINK_SECONDS = 10.0


@dataclass(frozen=True)
class Structure:
    """The verdict on the structure, and how it came about."""

    right: bool
    reason: str
    """Why not, or ""."""
    nodes: int | None
    """Nodes of the formula as it was found; None if it cannot be read."""
    itself: bool = False
    """Stricter than right: the truth itself, not a family of formulas that it belongs to. No term
    has to be refitted to 0, no integer to be changed, and no more numbers are estimated than the
    truth has: a*x0 + b*x1 is not a*(x0 + x1)."""


def wider(low: float, high: float) -> tuple[float, float]:
    """Return a range twice as wide, moved where it would otherwise leave the positive numbers."""
    width = high - low
    new_low, new_high = low - width / 2, high + width / 2
    if low >= 0 > new_low:
        new_low, new_high = 0.0, 2 * width
    return new_low, new_high


class Truth:
    """A true formula, with all that is needed to compare others with it.

    Parameters
    ----------
    text : str
        In x0, x1, ...
    ranges : sequence of (low, high)
        Of the columns.
    X : ndarray
        Training rows, on which constants are refitted.
    """

    def __init__(self, text: str, ranges: Sequence[tuple[float, float]], X: np.ndarray):
        self.text = text
        self.columns = tuple(symbols(len(ranges), [low >= 0 for low, _ in ranges]))
        self.expression = to_sympy(text, self.columns)
        self.nodes = count(self.expression)
        self._freedom = take_apart(self.expression, self.columns).freedom
        self._most_nodes = MOST_NODES * least(self.expression)
        rng = np.random.default_rng(0)
        low, high = np.array(ranges, dtype=float).T
        wide_low, wide_high = np.array([wider(*r) for r in ranges], dtype=float).T
        self.X, self.y = _with_value(text, X)
        self.fresh_X, self.fresh_y = _with_value(
            text, rng.uniform(low, high, (_FRESH_ROWS, len(low)))
        )
        self._near = self.fresh_X[:_NEAR_ROWS]
        self._wide = rng.uniform(wide_low, wide_high, (_WIDE_ROWS, len(low)))

    def srbench(self, text: str, decider: Decider) -> tuple[bool, str]:
        """Return SRBench's verdict, and whether SymPy or numbers decided."""
        try:
            found = to_sympy(text, self.columns)
        except Unreadable:
            return False, ""
        return srbench.verdict(
            found, self.expression, self.columns, self._near, self._wide, decider
        )

    def structure(self, text: str) -> Structure:
        """Return whether a formula has the right structure."""
        try:
            found = to_sympy(text, self.columns)
        except Unreadable as error:
            return Structure(False, f"unreadable: {error}", None)
        nodes = count(found)
        try:
            formula = take_apart(found, self.columns)
            if least(_all_vanish(formula)) > self._most_nodes:
                return Structure(False, "too many nodes", nodes)
            fit = refit(formula, self.X, self.y, TOLERANCE)
            if not self._agrees(fit):
                return Structure(False, "does not agree", nodes)
            if self._smallest(fit) > self._most_nodes:
                return Structure(False, "too many nodes", nodes)
        except (
            NameError, TypeError, ZeroDivisionError, RecursionError, np.linalg.LinAlgError,
        ) as error:  # fmt: skip
            # A form that NumPy has no code for, complex values, or one too deep for SymPy.
            return Structure(False, f"cannot be evaluated: {error}", nodes)
        return Structure(True, "", nodes, self._is_itself(fit))

    def _is_itself(self, fit: Fit) -> bool:
        needed = all(share >= TOLERANCE for share in fit.contributions)
        kept = all(
            abs(c.value - float(c.given)) < 1e-4
            for c in fit.formula.constants
            if c.given.is_Integer
        )
        return needed and kept and fit.formula.freedom <= self._freedom

    def _agrees(self, fit: Fit) -> bool:
        if not fit.error <= TOLERANCE:
            return False
        apart = fit.predict(self.fresh_X) - self.fresh_y
        return bool(np.sqrt(np.mean(apart**2)) <= TOLERANCE * np.std(self.fresh_y))

    def _smallest(self, fit: Fit) -> int:
        """Return the nodes left when constants vanish that may, as few as the limit asks for."""
        deadline = time.monotonic() + _SHRINK_SECONDS
        spread = float(np.std(self.y))
        size = least(_linear_vanish(fit.formula, spread))
        candidates = [c for c in fit.formula.free if c.vanishing is not None]
        candidates.sort(key=lambda c: abs(c.value - float(c.vanishing)))
        for constant in candidates:
            if size <= self._most_nodes or time.monotonic() > deadline:
                break
            fixed = {**fit.formula.fixed, constant.symbol: constant.vanishing}
            trial = refit(replace(fit.formula, fixed=fixed), self.X, self.y, TOLERANCE)
            if trial.error <= TOLERANCE:
                fit = trial
                size = least(_linear_vanish(fit.formula, spread))
        return size


def _with_value(text: str, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows on which a formula has a value, and the values."""
    y = evaluate(text, X)
    finite = np.isfinite(y)
    return X[finite], y[finite]


def _linear_vanish(formula: FreeFormula, spread: float) -> Any:
    """Return the expression without coefficients of 1 and without an intercept of 0."""
    near_one = 10 * TOLERANCE

    def snapped(value: float) -> float:
        return float(np.sign(value)) if abs(abs(value) - 1.0) < near_one else value

    terms = tuple(replace(t, coefficient=snapped(t.coefficient)) for t in formula.terms)
    intercept = 0.0 if abs(formula.intercept) < near_one * spread else formula.intercept
    return replace(formula, terms=terms, intercept=intercept).assembled()


def _all_vanish(formula: FreeFormula) -> Any:
    """Return the expression without any constant that could vanish: the least it may count."""
    fixed = {c.symbol: c.vanishing for c in formula.constants if c.vanishing is not None}
    terms = tuple(replace(term, coefficient=1.0) for term in formula.terms)
    return replace(formula, terms=terms, intercept=0.0, fixed=fixed).assembled()
