"""Formulas as text, read for every method in the same way.

Text is parsed by Python's own parser and then walked: only arithmetic, numbers, the columns and
the functions listed here are let through, and nothing is ever evaluated as code.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import sympy
from sympy.core.parameters import distribute

#: Other spellings of the functions below.
_ALIASES = {
    "ln": "log",
    "asin": "arcsin",
    "acos": "arccos",
    "atan": "arctan",
    "Abs": "abs",
    "fabs": "abs",
    "sqr": "square",
    "pow2": "square",
    "pow3": "cube",
    "reciprocal": "inv",
    "Pow": "pow",
    "power": "pow",
}
_CONSTANTS = {"pi": math.pi, "e": math.e, "E": math.e}
# An integer beyond this is a number like any other; SymPy would carry all its digits.
_LARGEST_INTEGER = 10**6
# A number this near to an integer, relatively, is meant to be one: 0.9999999999999998 is 1.
_ROUNDING = 1.0e-12


class Unreadable(ValueError):
    """A formula that cannot be read; the message says why, in one line."""


@dataclass(frozen=True)
class Algebra:
    """What numbers, columns and functions become while a text is walked."""

    number: Callable[[float], Any]
    is_number: Callable[[Any], bool]
    """Whether a function of it is to be computed at once: SymPy would never overflow."""
    functions: Mapping[str, Callable[..., Any]]
    power: Callable[[Any, Any], Any]


def _sympy_number(value: float) -> Any:
    if not math.isfinite(value):
        raise Unreadable(f"the constant {value}")
    whole = round(value)
    if 0 < abs(whole) <= _LARGEST_INTEGER and abs(value - whole) <= _ROUNDING * abs(whole):
        return sympy.Integer(whole)
    return sympy.Float(float(value)) if value else sympy.Integer(0)


def _sympy_power(base: Any, exponent: Any) -> Any:
    if exponent.is_Float and float(2 * exponent).is_integer() and abs(exponent) < 100:
        # Written x**2.0 or x**0.5: an exponent that is intended, not a constant that was fitted.
        exponent = sympy.Rational(int(2 * exponent), 2)
    if base.is_Number and exponent.is_Number:
        with np.errstate(all="ignore"):
            return _sympy_number(float(np.float_power(float(base), float(exponent))))
    return base**exponent


_SYMPY = Algebra(
    number=_sympy_number,
    is_number=lambda value: value.is_Number,
    power=_sympy_power,
    functions={
        "exp": sympy.exp,
        "log": sympy.log,
        "sqrt": sympy.sqrt,
        "cbrt": lambda x: x ** sympy.Rational(1, 3),
        "abs": sympy.Abs,
        "square": lambda x: x**2,
        "cube": lambda x: x**3,
        "inv": lambda x: 1 / x,
        "neg": lambda x: -x,
        "sin": sympy.sin,
        "cos": sympy.cos,
        "tan": sympy.tan,
        "sinh": sympy.sinh,
        "cosh": sympy.cosh,
        "tanh": sympy.tanh,
        "arcsin": sympy.asin,
        "arccos": sympy.acos,
        "arctan": sympy.atan,
        "pow": _sympy_power,
        "add": lambda x, y: x + y,
        "sub": lambda x, y: x - y,
        "mul": lambda x, y: x * y,
        "div": lambda x, y: x / y,
        # Forms that Operon prints.
        "aq": lambda x, y: x / sympy.sqrt(1 + y**2),
        "logabs": lambda x: sympy.log(sympy.Abs(x)),
        "log1p": lambda x: sympy.log(1 + x),
        "sqrtabs": lambda x: sympy.sqrt(sympy.Abs(x)),
    },
)

_NUMPY = Algebra(
    number=np.float64,
    is_number=lambda value: False,
    power=np.power,
    functions={
        **{
            name: getattr(np, name)
            for name in (
                "exp", "log", "sqrt", "cbrt", "abs", "square", "sin", "cos", "tan", "sinh", "cosh",
                "tanh", "arcsin", "arccos", "arctan", "log1p",
            )
        },
        "cube": lambda x: x * x * x,
        "inv": lambda x: 1.0 / x,
        "neg": np.negative,
        "pow": np.power,
        "add": np.add,
        "sub": np.subtract,
        "mul": np.multiply,
        "div": np.divide,
        "aq": lambda x, y: x / np.sqrt(1.0 + y**2),
        "logabs": lambda x: np.log(np.abs(x)),
        "sqrtabs": lambda x: np.sqrt(np.abs(x)),
    },
)  # fmt: skip


@contextmanager
def undistributed() -> Iterator[None]:
    """Let SymPy keep a factor in front of a sum, but multiply a sign into it.

    With `distribute(False)` alone it writes -(-x - 1) as a product with -1. Its odd and even
    functions then take the sign out of sin(-x - 1) and put it back for ever.
    """
    original = sympy.Add.__neg__
    sympy.Add.__neg__ = lambda self: sympy.Add(*(-term for term in self.args))
    try:
        with distribute(False):
            yield
    finally:
        sympy.Add.__neg__ = original


def symbols(n_columns: int, positive: Sequence[bool] | None = None) -> list[sympy.Symbol]:
    """Return the columns x0, x1, ... as SymPy symbols, real or positive."""
    flags = positive or [False] * n_columns
    return [
        sympy.Symbol(f"x{i}", positive=True) if flag else sympy.Symbol(f"x{i}", real=True)
        for i, flag in zip(range(n_columns), flags, strict=True)
    ]


def to_sympy(text: str, columns: Sequence[sympy.Symbol]) -> Any:
    """Return a formula in x0, x1, ... as SymPy evaluates it by default, less one of its habits.

    That folds constants (pi is a number here), collects equal terms and factors, and removes
    compositions such as exp(log(x)). A factor is not multiplied into a sum, which SymPy would do
    with a number but not with a column, so that the size of a formula does not depend on it.
    """
    with undistributed():
        result = _read(text, {str(column): column for column in columns}, _SYMPY)
        # Folding may have made integers: 0.5*2.0 is 1.0, which SymPy would keep as a factor.
        result = result.xreplace({f: _sympy_number(float(f)) for f in result.atoms(sympy.Float)})
    if result.has(sympy.zoo, sympy.nan, sympy.oo, -sympy.oo, sympy.I):
        raise Unreadable("it has no real value")
    return result


def evaluate(text: str, X: np.ndarray) -> np.ndarray:
    """Return the value of a formula in x0, x1, ... on each row, nan or inf where it has none."""
    columns = {f"x{i}": X[:, i] for i in range(X.shape[1])}
    with np.errstate(all="ignore"):
        value = _read(text, columns, _NUMPY)
    return np.broadcast_to(np.asarray(value, dtype=float), (len(X),)).copy()


def rename(text: str, names: Mapping[str, str]) -> str:
    """Return a formula with its columns renamed, all at once."""
    return re.sub(r"[A-Za-z_]\w*", lambda match: names.get(match[0], match[0]), text)


def _read(text: str, columns: Mapping[str, Any], algebra: Algebra) -> Any:
    try:
        tree = ast.parse(text.strip().replace("^", "**"), mode="eval")
        return _walk(tree.body, columns, algebra)
    except (SyntaxError, RecursionError, MemoryError) as error:
        raise Unreadable(f"not a formula: {type(error).__name__}") from None
    except (ZeroDivisionError, OverflowError, TypeError) as error:
        raise Unreadable(f"it has no value: {error}") from None


def _walk(node: ast.AST, columns: Mapping[str, Any], algebra: Algebra) -> Any:
    if isinstance(node, ast.Constant):
        if isinstance(node.value, bool) or not isinstance(node.value, int | float):
            raise Unreadable(f"{node.value!r} is not a number")
        return algebra.number(node.value)
    if isinstance(node, ast.Name):
        if node.id in columns:
            return columns[node.id]
        if node.id in _CONSTANTS:
            return algebra.number(_CONSTANTS[node.id])
        raise Unreadable(f"the name {node.id!r} is not known")
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
        value = _walk(node.operand, columns, algebra)
        return -value if isinstance(node.op, ast.USub) else value
    if isinstance(node, ast.BinOp):
        left = _walk(node.left, columns, algebra)
        right = _walk(node.right, columns, algebra)
        match node.op:
            case ast.Add():
                return left + right
            case ast.Sub():
                return left - right
            case ast.Mult():
                return left * right
            case ast.Div():
                return left / right
            case ast.Pow():
                return algebra.power(left, right)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
        name = _ALIASES.get(node.func.id, node.func.id)
        if name not in algebra.functions:
            raise Unreadable(f"the function {node.func.id!r} is not known")
        arguments = [_walk(argument, columns, algebra) for argument in node.args]
        if all(algebra.is_number(argument) for argument in arguments):
            with np.errstate(all="ignore"):
                return algebra.number(float(_NUMPY.functions[name](*map(float, arguments))))
        return algebra.functions[name](*arguments)
    raise Unreadable(f"{type(node).__name__} is not part of a formula")
