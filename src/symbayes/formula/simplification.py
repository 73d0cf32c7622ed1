"""A shorter way to write an expression, found by SymPy and checked by us."""

from __future__ import annotations

from functools import cache
from typing import Any

from . import expression as ex
from .equivalence import equivalent
from .operators import LARGEST_POWER, OPERATORS

# SymPy may take minutes with longer expressions.
_MOST_NODES = 60
# Constants are worked out again, in another order.
_RTOL = 1.0e-9


def simplified(expression: ex.Expression) -> ex.Expression:
    """Return an expression that is shorter and the same function, or the expression itself.

    Columns are real numbers, so that ``sqrt(exp(x))`` is ``exp(x/2)`` and ``sqrt(x**2)`` is
    ``abs(x)``.
    """
    import sympy

    if ex.n_nodes(expression) > _MOST_NODES:
        return expression
    n = 1 + max(ex.features(expression), default=-1)
    symbols = [sympy.Symbol(f"x{i}", real=True) for i in range(n)]
    form = ex.to_sympy(expression, symbols)
    best = expression
    for other in (sympy.simplify(form), sympy.powsimp(form)):
        found = _from_sympy(other, {symbol: i for i, symbol in enumerate(symbols)})
        if (
            found is not None
            and ex.n_nodes(found) < ex.n_nodes(best)
            and equivalent(expression, found, n, _RTOL)
        ):
            best = found
    return best


@cache
def _functions() -> dict[Any, str]:
    """Return the operators that are functions in SymPy, by its classes."""
    import sympy

    x = sympy.Symbol("x", real=True)
    forms = {row.name: row.sympy(sympy, x) for row in OPERATORS.values() if row.arity == 1}
    return {type(form): name for name, form in forms.items() if isinstance(form, sympy.Function)}


def _from_sympy(form: Any, place: dict[Any, int]) -> ex.Expression | None:
    """Return a SymPy expression as ours; None if it has something that we have not."""
    import sympy

    if form in place:
        return (ex.FEATURE, place[form])
    if form.is_number:
        value = sympy.N(form, 30)
        return (ex.CONSTANT, float(value)) if value.is_real and value.is_finite else None
    if form.is_Pow and form.base != sympy.E:
        return _power(form, place)
    name = _functions().get(type(form))
    if name is not None or form.is_Pow:
        inner = _from_sympy(form.args[0] if name else form.exp, place)
        return None if inner is None else (name or "exp", inner)
    if form.is_Add or form.is_Mul:
        return _series(form, place)
    return None


def _power(form: Any, place: dict[Any, int]) -> ex.Expression | None:
    base = _from_sympy(form.base, place)
    if base is None or not form.exp.is_Rational:
        return None
    whole = 2 * form.exp if form.exp.q == 2 else form.exp
    if whole.q != 1 or not 1 <= abs(int(whole)) <= LARGEST_POWER:
        return None
    if form.exp.q == 2:
        base = ("sqrt", base)
    return ex.integer_power(base, int(whole))


def _series(form: Any, place: dict[Any, int]) -> ex.Expression | None:
    """Return a sum or a product: what is subtracted or divided by comes last, constants where we
    write them: in front of a product, behind a sum.
    """
    parts: list[ex.Expression] = []
    less: list[ex.Expression] = []
    constant, rest = form.as_coeff_Add() if form.is_Add else form.as_coeff_Mul()
    terms = rest.args if rest.func == form.func else (rest,)
    for term in terms:
        negative = form.is_Add and term.could_extract_minus_sign()
        below = form.is_Mul and term.is_Pow and term.exp.is_Rational and term.exp < 0
        part = _from_sympy(-term if negative else 1 / term if below else term, place)
        if part is None:
            return None
        (less if negative or below else parts).append(part)
    plus, minus = ("+", "-") if form.is_Add else ("*", "/")
    value = float(constant)
    if form.is_Mul and (value != 1.0 or not parts):
        parts.insert(0, (ex.CONSTANT, value))
    if form.is_Add and not parts:
        parts.append((ex.CONSTANT, value))
        value = 0.0
    result = parts[0]
    for part in parts[1:]:
        result = (plus, result, part)
    for part in less:
        result = (minus, result, part)
    if form.is_Add and value != 0.0:
        result = ("+" if value > 0 else "-", result, (ex.CONSTANT, abs(value)))
    return result
