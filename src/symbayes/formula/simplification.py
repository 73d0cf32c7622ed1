"""A shorter way to write an expression, found by SymPy and checked by us."""

from __future__ import annotations

from typing import Any

from . import expression as ex
from .equivalence import equivalent
from .parser import FormulaSyntaxError, parse
from .rewriting import folded

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
        try:
            found = folded(parse(_text(other), [symbol.name for symbol in symbols]))
        except FormulaSyntaxError:
            continue  # it has something that we have not
        if ex.n_nodes(found) < ex.n_nodes(best) and equivalent(expression, found, n, _RTOL):
            best = found
    return best


def _text(form: Any) -> str:
    """Return a SymPy expression as text that `parse` reads, if it can be read."""
    from sympy import nfloat
    from sympy.printing.str import StrPrinter

    class Printer(StrPrinter):
        def _as_ordered_terms(self, form, order=None):
            def place(term):  # no sum begins with a minus that it can do without
                negative = term.could_extract_minus_sign()
                return negative, term.is_number != negative

            return sorted(super()._as_ordered_terms(form, order), key=place)

        def _print_Float(self, number):
            return repr(float(number))

        def _print_Abs(self, node):
            return f"abs({self._print(node.args[0])})"

        def _print_Pow(self, node, rational=False):
            if not node.exp.is_Rational or node.exp.q != 2:
                return super()._print_Pow(node, rational)
            power = f"sqrt({self._print(node.base)})**{abs(node.exp.p)}"
            return f"1/{power}" if node.exp < 0 else power

    return Printer().doprint(nfloat(form, 30))
