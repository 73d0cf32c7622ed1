"""The size of a formula, counted for every method, and for the truth, by the same function.

What is counted is the expression as `formulas.to_sympy` returns it: operators, columns and
constants, each one node.

* A sum of k terms has k - 1 operators, a product or quotient of k factors as well. A minus sign
  inside a sum is subtraction and costs nothing more; elsewhere it is one node.
* A power with an integer or half-integer exponent is one operator of one operand, whoever wrote it
  and however (x**2, square(x), x*x, sqrt(x), x**6). Any other exponent is a separate constant.
* A negative exponent is division: free next to other factors, as x/y is one operator, and one node
  (1/x) if there are none.
* exp(y*log(x)) is x**y.
* `ONE` and `ZERO` stand for constants that are not counted, as if they were not written: neither
  they nor the operator that binds them.

Size is `count`. Where a limit is put on size, `least` lets the outermost sum be written with its
common factors in front, if that is shorter: 0.5*x*y + 0.5*x*z is as good as 0.5*x*(y + z).
"""

from __future__ import annotations

from typing import Any

import sympy

from .formulas import undistributed

ONE = sympy.Symbol("one", positive=True)
ZERO = sympy.Symbol("zero", real=True)

# exp(0.5*log(x)) is evaluated to x**0.5, with an exponent in floating point.
_ROUNDING = 1.0e-9
# Coefficients that agree to this part are equal.
_EQUAL = 1.0e-5


def count(expression: Any) -> int:
    """Return the number of nodes of a SymPy expression.

    Examples
    --------
    >>> import sympy
    >>> x, y = sympy.symbols("x y", real=True)
    >>> count(x * y), count(x - 2.5 * y**2), count(1 / sympy.sqrt(x))
    (3, 6, 3)
    """
    return _count(_powers(expression))


def least(expression: Any) -> int:
    """Return the nodes of an expression, or fewer where its outermost sum has common factors.

    Examples
    --------
    >>> import sympy
    >>> x, y, z = sympy.symbols("x y z", real=True)
    >>> least(x * y + x * z), count(x * y + x * z)
    (5, 7)
    """
    return min(count(expression), count(_factored(expression)))


def _factored(expression: Any) -> Any:
    constant, rest = expression.as_coeff_Add()
    if not rest.is_Add:
        return expression
    terms = [term.as_coeff_Mul() for term in rest.args]
    first = terms[0][0]
    with undistributed():
        inner = sympy.Add(*(_near_one(number / first) * form for number, form in terms))
        # Bound by hand: a number would be multiplied into the sum again.
        factors = sympy.Mul.make_args(sympy.factor_terms(inner))
        return constant + sympy.Mul(first, *factors)


def _near_one(number: Any) -> Any:
    return sympy.sign(number) if abs(abs(number) - 1) < _EQUAL else number


def _powers(expression: Any) -> Any:
    """Write exp(y*log(x)) as x**y."""

    def is_power(e: Any) -> bool:
        return isinstance(e, sympy.exp) and any(
            isinstance(factor, sympy.log) for factor in sympy.Mul.make_args(e.args[0])
        )

    def power(e: Any) -> Any:
        factors = list(sympy.Mul.make_args(e.args[0]))
        logarithm = next(factor for factor in factors if isinstance(factor, sympy.log))
        factors.remove(logarithm)
        return sympy.Pow(logarithm.args[0], sympy.Mul(*factors), evaluate=False)

    return expression.replace(is_power, power) if expression.has(sympy.exp) else expression


def _count(expression: Any) -> int:
    if not expression.args:
        return 1
    if expression.is_Add:
        terms = [term for term in expression.args if term.free_symbols != {ZERO}]
        # -x - y needs a separate sign; in -2*x - y the constant has it.
        signs = all(term.as_coeff_Mul()[0] == -1 and not term.is_Number for term in terms)
        return sum(_count(_without_sign(t)) for t in terms) + len(terms) - 1 + signs
    if expression.is_Mul:
        return _count_product(expression)
    if expression.is_Pow:
        base, exponent = expression.args
        if not exponent.is_Number:
            return 1 + _count(base) + _count(exponent)
        if not _is_plain(exponent):
            return 2 + _count(base)
        # x**-2 is one over the square: two operators.
        return _count(base) + (float(exponent) < 0) + (abs(exponent) != 1)
    return sum(_count(argument) for argument in expression.args) + max(1, len(expression.args) - 1)


def _count_product(product: Any) -> int:
    """Count factors and the operators between them; a division is such an operator."""
    size = above = factors = 0
    for factor in product.args:
        if factor == -1:
            size += 1  # a sign
        if factor == -1 or factor.free_symbols == {ONE}:
            continue
        divides = factor.is_Pow and _is_plain(factor.args[1]) and float(factor.args[1]) < 0
        size += _count(1 / factor if divides else factor)
        above += not divides
        factors += 1
    return size + factors - 1 + (above == 0)


def _is_plain(exponent: Any) -> bool:
    """Return whether an exponent belongs to the operator, as in square and sqrt."""
    return bool(exponent.is_Number) and abs(2 * exponent - round(2 * exponent)) < _ROUNDING


def _is_negative(term: Any) -> bool:
    coefficient = term.as_coeff_Mul()[0]
    return bool(coefficient.is_Number and coefficient < 0)


def _without_sign(term: Any) -> Any:
    if not _is_negative(term):
        return term
    if term.is_Number:
        return -term
    coefficient, rest = term.as_coeff_Mul()
    if coefficient == -1:
        return rest
    return sympy.Mul(-coefficient, *sympy.Mul.make_args(rest), evaluate=False)
