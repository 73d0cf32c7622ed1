"""A formula whose constants are free, fitted to values without noise in float64.

All numbers of a formula are free, except exponents that belong to an operator (integers and halves)
and bare signs. Coefficients of the terms of the outermost sum, its constant, and a common
factor of the terms without a coefficient are linear: they are solved for exactly inside, and only
the constants within the terms are searched (variable projection).
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import sympy
from scipy.optimize import least_squares

from .nodes import ONE, ZERO

# Starts: the constants as they are, then with relative jumps of these sizes.
_JUMPS = (0.0, 0.01, 0.1, 0.3, 1.0, 0.1, 1.0)
_SECONDS = 10.0
# Residuals of a formula that has no value there.
_NO_VALUE = 1.0e150

ADDEND, FACTOR, EXPONENT, OTHER = "addend", "factor", "exponent", "other"


@dataclass(frozen=True)
class Constant:
    """A free number inside a term."""

    symbol: Any
    value: float
    kind: str
    """ADDEND, FACTOR, EXPONENT or OTHER: where it occurs, which decides what makes it vanish."""
    given: Any = None
    """As in the formula; an integer need not be an estimate."""

    @property
    def vanishing(self) -> Any:
        """The nearest number that would not count as a node; None if there is none."""
        if self.kind == ADDEND:
            return sympy.Integer(0)
        if self.kind == FACTOR:
            return sympy.Integer(-1 if self.value < 0 else 1)
        if self.kind == EXPONENT:
            return sympy.Rational(round(2 * self.value) or 1, 2)
        return None


@dataclass(frozen=True)
class Term:
    """A part of the formula with one linear coefficient."""

    shape: Any
    """SymPy expression in the columns and in the constants' symbols."""
    coefficient: float
    """As it was found."""
    written: bool = True
    """Whether the formula has a constant for it; if not, it is the common factor of such terms."""


@dataclass(frozen=True)
class FreeFormula:
    """A formula taken apart: sum of coefficient x term, plus an intercept."""

    columns: tuple[Any, ...]
    terms: tuple[Term, ...]
    intercept: float
    constants: tuple[Constant, ...] = ()
    fixed: dict[Any, Any] = field(default_factory=dict)
    """Constants set to a number that makes them vanish."""

    @property
    def freedom(self) -> int:
        """How many numbers were estimated: linear coefficients and constants, not integers."""
        return len(self.terms) + sum(not c.given.is_Integer for c in self.constants)

    @property
    def free(self) -> list[Constant]:
        """The constants that are searched."""
        return [constant for constant in self.constants if constant.symbol not in self.fixed]

    def assembled(self) -> Any:
        """Return the expression with the constants it has now, to be counted.

        Fixed ones are replaced by what is not counted, not by 0 and 1: then sqrt(x**2 + 0) would
        collapse, and count as x.
        """
        values = {c.symbol: sympy.Float(c.value) for c in self.free}
        for constant in self.constants:
            if constant.symbol in self.fixed:
                number = self.fixed[constant.symbol]
                values[constant.symbol] = (
                    ZERO if constant.kind == ADDEND
                    else number * ONE if constant.kind == FACTOR
                    else number
                )  # fmt: skip
        total = _number(self.intercept)
        for term in self.terms:
            shape = term.shape.xreplace(values)
            total = total + (_number(term.coefficient) * shape if term.written else shape)
        return total


def _number(value: float) -> Any:
    return sympy.Integer(int(value)) if value in (0.0, 1.0, -1.0) else sympy.Float(value)


def take_apart(expression: Any, columns: tuple[Any, ...]) -> FreeFormula:
    """Return a formula with its constants freed."""
    constants: list[Constant] = []

    def free(value: Any, kind: str) -> Any:
        symbol = sympy.Symbol(f"c{len(constants)}", real=True)
        constants.append(Constant(symbol, float(value), kind, value))
        return symbol

    def inside(e: Any) -> Any:
        if not e.args:
            return free(e, OTHER) if e.is_Number else e
        if e.is_Add:
            return sympy.Add(*(free(t, ADDEND) if t.is_Number else inside(t) for t in e.args))
        if e.is_Mul:
            factors = (free(f, FACTOR) if f.is_Number and f != -1 else f for f in e.args)
            return sympy.Mul(*(f if f.is_Number or f.is_Symbol else inside(f) for f in factors))
        if e.is_Pow and e.args[1].is_Number:
            base, exponent = e.args
            keep = exponent.is_Rational and exponent.q <= 3
            return sympy.Pow(inside(base), exponent if keep else free(exponent, EXPONENT))
        return e.func(*(inside(argument) for argument in e.args))

    intercept, terms, bare = 0.0, [], []
    for term in sympy.Add.make_args(expression):
        if term.is_Number:
            intercept += float(term)
            continue
        coefficient, rest = term.as_coeff_Mul()
        if abs(coefficient) == 1:
            bare.append(coefficient * inside(rest))
        else:
            terms.append(Term(inside(rest), float(coefficient)))
    if bare:
        terms.append(Term(sympy.Add(*bare), 1.0, written=False))
    return FreeFormula(columns, tuple(terms), intercept, tuple(constants))


@dataclass(frozen=True)
class Fit:
    """A refitted formula."""

    formula: FreeFormula
    error: float
    """Root mean square of the residuals, in units of the spread of the values."""
    contributions: tuple[float, ...]
    """Spread of each term times its coefficient, in the same units."""

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Return the values on other rows."""
        design = _Design(self.formula, X)
        values = design(np.array([c.value for c in self.formula.free]))
        linear = np.array([self.formula.intercept, *(t.coefficient for t in self.formula.terms)])
        with np.errstate(all="ignore"):
            return values @ linear


class _Design:
    """The terms' values as columns, after a column of ones, for any constants."""

    def __init__(self, formula: FreeFormula, X: np.ndarray):
        arguments = [*formula.columns, *(c.symbol for c in formula.free)]
        shapes = [term.shape.xreplace(formula.fixed) for term in formula.terms]
        self._function = sympy.lambdify(arguments, shapes, modules="numpy", cse=True)
        self._columns = [X[:, i] for i in range(X.shape[1])]
        self._n = len(X)

    def __call__(self, constants: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            values = self._function(*self._columns, *constants)
        values = [np.ones(self._n), *(np.broadcast_to(v, self._n) for v in values)]
        return np.column_stack([np.asarray(v, dtype=float) for v in values])


def refit(
    formula: FreeFormula, X: np.ndarray, y: np.ndarray, tolerance: float, seed: int = 0
) -> Fit:
    """Return the best fit of several starts; the first that is within the tolerance will do.

    Parameters
    ----------
    formula : FreeFormula
    X, y : ndarray
        Rows and values without noise.
    tolerance : float
        Part of the spread of y.
    seed : int
        Of the starts.
    """
    design = _Design(formula, X)
    spread = float(np.std(y)) or 1.0
    rng = np.random.default_rng(seed)
    given = np.array([c.value for c in formula.free])
    deadline = time.monotonic() + _SECONDS
    best_error, best = np.inf, given
    for jump in _JUMPS if len(given) else (0.0,):
        start = given * (1.0 + jump * rng.normal(size=len(given)))
        start += 0.1 * jump * rng.normal(size=len(given))
        constants = _search(design, start, y / spread, deadline) if len(given) else start
        error = _rms(design, constants, y / spread)
        if error < best_error:
            best_error, best = error, constants
        if best_error <= 0.01 * tolerance or time.monotonic() > deadline:
            break
    return _finish(formula, design, best, y, spread)


def _search(design: _Design, start: np.ndarray, y: np.ndarray, deadline: float) -> np.ndarray:
    """Return constants from Levenberg and Marquardt's method, scaled by its Jacobian."""

    def residuals(constants: np.ndarray) -> np.ndarray:
        if time.monotonic() > deadline:
            raise TimeoutError
        return _project(design(constants), y)[1]

    try:
        return least_squares(
            residuals, start, method="trf", x_scale="jac", xtol=1e-15, ftol=1e-15, gtol=1e-15,
            max_nfev=100,
        ).x  # fmt: skip
    except (TimeoutError, ValueError, np.linalg.LinAlgError):
        return start


def _project(design: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the linear coefficients and the residuals."""
    with np.errstate(all="ignore"):
        lengths = np.linalg.norm(design, axis=0)
    if not np.isfinite(lengths).all():
        return np.zeros(design.shape[1]), np.full(len(y), _NO_VALUE)
    lengths[lengths == 0.0] = 1.0
    scaled = design / lengths
    solution = np.linalg.lstsq(scaled, y, rcond=1e-14)[0]
    return solution / lengths, y - scaled @ solution


def _rms(design: _Design, constants: np.ndarray, y: np.ndarray) -> float:
    return float(np.sqrt(np.mean(_project(design(constants), y)[1] ** 2)))


def _finish(
    formula: FreeFormula, design: _Design, constants: np.ndarray, y: np.ndarray, spread: float
) -> Fit:
    values = design(constants)
    linear, residuals = _project(values, y / spread)
    by_symbol = {c.symbol: float(v) for c, v in zip(formula.free, constants, strict=True)}
    fitted = replace(
        formula,
        intercept=float(linear[0] * spread),
        terms=tuple(
            replace(term, coefficient=float(b * spread))
            for term, b in zip(formula.terms, linear[1:], strict=True)
        ),
        constants=tuple(
            replace(c, value=by_symbol.get(c.symbol, c.value)) for c in formula.constants
        ),
    )
    with np.errstate(all="ignore"):
        shares = np.std(values[:, 1:], axis=0) * np.abs(linear[1:])
    return Fit(fitted, float(np.sqrt(np.mean(residuals**2))), tuple(float(s) for s in shares))
