"""SRBench's verdict: equal to the truth up to an added constant or a factor.

Constants are rounded to three decimals on both sides before SymPy compares. Where a constant
occurs matters for rounding: 2*sqrt(x + 0.1234*y) and sqrt(4*x + 0.4936*y) are the same, but not
after rounding. So there are two forms, and one that agrees is enough: the formula as it was
written, and a normal form in which every sum under a power, in a product or under a logarithm
starts with coefficient one. Of that form either the outermost constant or the outermost factor is
left out before rounding, never both.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import sympy

from .formulas import undistributed
from .identity import Decider

_DECIMALS = 3
#: Agreement that makes it worth asking SymPy, as part of the spread.
_WORTH_ASKING = 1.0e-7
#: Agreement that counts where SymPy cannot decide.
_AGREES = 1.0e-9
# Rows on which both sides have a value.
_FEWEST_ROWS = 20


def verdict(
    found: Any,
    truth: Any,
    columns: tuple[Any, ...],
    near: np.ndarray,
    wide: np.ndarray,
    decider: Decider,
) -> tuple[bool, str]:
    """Return the verdict and who decided: "sympy", "numeric", or "" if it is no.

    Parameters
    ----------
    found, truth : SymPy expressions
    columns : tuple of symbols
    near : ndarray
        Rows from the range of the training rows.
    wide : ndarray
        1,000 rows from a range twice as wide.
    decider : Decider
    """
    undecided = []
    for form, kinds in _FORMS:
        try:
            with undistributed():
                ours, theirs = (rounded(form(e)) for e in (found, truth))
        except (TypeError, ValueError, OverflowError, ZeroDivisionError, RecursionError):
            continue
        kind = agreement(ours, theirs, columns, near, _WORTH_ASKING, kinds)
        if kind is None:
            continue
        apart = ours - theirs if kind == "difference" else ours / theirs
        if decider.is_constant(apart):
            return True, "sympy"
        undecided.append((ours, theirs, kind))
    for ours, theirs, kind in undecided:
        if agreement(ours, theirs, columns, wide, _AGREES, (kind,)) is not None:
            return True, "numeric"
    return False, ""


def agreement(
    found: Any,
    truth: Any,
    columns: tuple[Any, ...],
    X: np.ndarray,
    tolerance: float,
    kinds: tuple[str, ...] = ("difference", "ratio"),
) -> str | None:
    """Return which of difference and ratio is constant to the tolerance on the rows, if any."""
    f, t = (_values(e, columns, X) for e in (found, truth))
    both = np.isfinite(f) & np.isfinite(t)
    if both.sum() < _FEWEST_ROWS:
        return None
    f, t = f[both], t[both]
    spread = float(np.std(t))
    with np.errstate(all="ignore"):
        if "difference" in kinds and np.ptp(f - t) <= tolerance * spread:
            return "difference"
        if "ratio" not in kinds:
            return None
        # The factor by least squares: single rows where the truth is nearly 0 say little.
        factor = float(f @ t / (t @ t))
        if abs(factor) > 1e-12 and np.max(np.abs(f / factor - t)) <= tolerance * spread:
            return "ratio"
    return None


def rounded(expression: Any) -> Any:
    """Return an expression with its constants rounded, as exact fractions.

    Exponents that are integers or halves are not constants.
    """
    if expression.is_Number:
        if expression.is_Integer:
            return expression
        return sympy.Rational(round(float(expression) * 10**_DECIMALS), 10**_DECIMALS)
    if not expression.args:
        return expression
    if expression.is_Pow and expression.args[1].is_Rational and expression.args[1].q <= 3:
        return sympy.Pow(rounded(expression.args[0]), expression.args[1])
    return expression.func(*(rounded(argument) for argument in expression.args))


def without_constant(expression: Any) -> Any:
    """Return the normal form less its outermost constant."""
    return _monic(expression).as_coeff_Add()[1]


def without_factor(expression: Any) -> Any:
    """Return the normal form less its outermost factor; its leading coefficient is one."""
    return _split(_monic(expression))[1]


def _monic(expression: Any) -> Any:
    """Move coefficients outwards, from the leaves up."""
    if not expression.args:
        return expression
    arguments = [_monic(argument) for argument in expression.args]
    if expression.is_Mul:
        factors = [_split(argument) for argument in arguments]
        number = sympy.Mul(*(coefficient for coefficient, _ in factors))
        return sympy.Mul(number, *(rest for _, rest in factors))
    if expression.is_Pow and arguments[1].is_Number:
        coefficient, rest = _split(arguments[0], keep_sign=not arguments[1].is_Integer)
        return coefficient ** arguments[1] * rest ** arguments[1]
    if isinstance(expression, sympy.log):
        coefficient, rest = _split(arguments[0], keep_sign=True)
        return sympy.log(coefficient).evalf() + sympy.log(rest)
    if isinstance(expression, sympy.exp):
        constant, rest = arguments[0].as_coeff_Add()
        return sympy.exp(constant).evalf() * sympy.exp(rest)
    return expression.func(*arguments)


def _split(expression: Any, keep_sign: bool = False) -> tuple[Any, Any]:
    """Return a number and the rest, whose leading term has coefficient 1 (or -1)."""
    coefficient, rest = expression.as_coeff_Mul()
    if coefficient.is_Number and rest.is_Add:
        terms = [term.as_coeff_Mul() for term in rest.args if not term.is_Number]
        first = min(terms, key=lambda term: _order(term[1]))[0]
        rest = sympy.Add(*(term / first for term in rest.args))
        coefficient = coefficient * first
    elif rest == 1:
        coefficient, rest = expression, sympy.Integer(1)
    if keep_sign and coefficient < 0:
        return -coefficient, -rest
    return coefficient, rest


def _order(term: Any) -> Any:
    """Sort by what does not change with the constants: columns first, then the whole form."""
    bare = term.xreplace({number: sympy.Integer(2) for number in term.atoms(sympy.Float)})
    return sympy.default_sort_key(bare)


#: A form to compare in, and what of the two may be constant there.
_FORMS: tuple[tuple[Callable[[Any], Any], tuple[str, ...]], ...] = (
    (lambda expression: expression, ("difference", "ratio")),
    (without_constant, ("difference",)),
    (without_factor, ("ratio",)),
)


def _values(expression: Any, columns: tuple[Any, ...], X: np.ndarray) -> np.ndarray:
    if expression.has(sympy.zoo, sympy.nan, sympy.oo, sympy.I):
        return np.full(len(X), np.nan)
    function: Callable[..., Any] = sympy.lambdify(columns, expression, modules="numpy", cse=True)
    with np.errstate(all="ignore"):
        values = function(*(X[:, i] for i in range(X.shape[1])))
    return np.broadcast_to(np.asarray(values, dtype=float), (len(X),))
