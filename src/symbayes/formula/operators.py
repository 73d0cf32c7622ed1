"""The operators: one table that drives parsing, evaluation, printing, SymPy and LaTeX."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import numpy as np

from ..kernels import opcodes

# How tightly a printed form holds together; an operand that binds less gets parentheses.
SUM, PRODUCT, NEGATION, POWER, ATOM = range(1, 6)

#: Integer powers are made of squares, cubes and products; beyond this that makes no sense.
LARGEST_POWER = 12


@dataclass(frozen=True)
class Operator:
    """One row of the table."""

    name: str
    """How users call it."""
    arity: int
    """Number of operands; `lt` has one, and two constants."""
    opcode: int
    """How compiled code calls it."""
    numpy: Callable[..., Any]
    """What it computes, on NumPy arrays."""
    sympy: Callable[..., Any]
    """Its form in SymPy, or in mpmath: called with the module and the operands."""
    text: str
    """Printed form, with `{0}` and `{1}` for the operands."""
    latex: str
    """LaTeX form."""
    strength: int = ATOM
    """How tightly the printed form binds."""
    needs: tuple[int, ...] = (0,)
    """How tightly an operand has to bind to stand without parentheses."""
    latex_strength: int | None = None
    """`strength` in LaTeX and MathML, where it differs: exp is a power there."""
    latex_needs: tuple[int, ...] | None = None
    """`needs` in LaTeX and MathML, where it differs: a fraction needs no parentheses."""
    domain: str = "all reals"
    """Where it has a value; outside it is nan, or inf at a pole, and the state is rejected."""
    symbol: str | None = None
    """Infix symbol, for binary operators."""


def _function(name, opcode, numpy, sympy, latex, domain="all reals", latex_strength=None):
    return Operator(
        name, 1, opcode, numpy, sympy, f"{name}({{0}})", latex, latex_strength=latex_strength,
        domain=domain,
    )  # fmt: skip


_TABLE = (
    Operator(
        "+", 2, opcodes.ADD, np.add, lambda sp, x, y: x + y,
        "{0} + {1}", "{0} + {1}", SUM, (SUM, SUM), symbol="+",
    ),
    Operator(
        "-", 2, opcodes.SUB, np.subtract, lambda sp, x, y: x - y,
        "{0} - {1}", "{0} - {1}", SUM, (SUM, PRODUCT), symbol="-",
    ),
    Operator(
        "*", 2, opcodes.MUL, np.multiply, lambda sp, x, y: x * y,
        "{0}*{1}", "{0} {1}", PRODUCT, (PRODUCT, PRODUCT), symbol="*",
    ),
    Operator(
        "/", 2, opcodes.DIV, np.divide, lambda sp, x, y: x / y,
        "{0}/{1}", r"\frac{{{0}}}{{{1}}}", PRODUCT, (PRODUCT, POWER), latex_needs=(0, 0),
        domain="second operand not 0", symbol="/",
    ),
    Operator(
        "neg", 1, opcodes.NEG, np.negative, lambda sp, x: -x,
        "-{0}", "-{0}", NEGATION, (NEGATION,), latex_needs=(PRODUCT,),
    ),
    Operator(
        "inv", 1, opcodes.INV, np.reciprocal, lambda sp, x: 1 / x,
        "1/{0}", r"\frac{{1}}{{{0}}}", PRODUCT, (POWER,), latex_needs=(0,), domain="not 0",
    ),
    # lt(x) = a x + b never reaches a printer: a formula shows its constants.
    Operator(
        "lt", 1, opcodes.LT, lambda x, a=1.0, b=0.0: a * x + b,
        lambda sp, x, a=1, b=0: a * x + b, "lt({0})", r"\operatorname{{lt}}\left({0}\right)",
    ),
    _function(
        "exp", opcodes.EXP, np.exp, lambda sp, x: sp.exp(x), r"e^{{{0}}}", latex_strength=POWER
    ),
    _function(
        "log", opcodes.LOG, np.log, lambda sp, x: sp.log(x), r"\log\left({0}\right)", "positive"
    ),
    _function(
        "sqrt", opcodes.SQRT, np.sqrt, lambda sp, x: sp.sqrt(x), r"\sqrt{{{0}}}", "not negative"
    ),
    _function("abs", opcodes.ABS, np.abs, lambda sp, x: abs(x), r"\left|{0}\right|"),
    Operator(
        "square", 1, opcodes.SQUARE, np.square, lambda sp, x: x**2,
        "{0}**2", "{0}^{{2}}", POWER, (ATOM,),
    ),
    Operator(
        "cube", 1, opcodes.CUBE, lambda x: x * x * x, lambda sp, x: x**3,
        "{0}**3", "{0}^{{3}}", POWER, (ATOM,),
    ),
    _function("sin", opcodes.SIN, np.sin, lambda sp, x: sp.sin(x), r"\sin\left({0}\right)"),
    _function("cos", opcodes.COS, np.cos, lambda sp, x: sp.cos(x), r"\cos\left({0}\right)"),
    _function("tan", opcodes.TAN, np.tan, lambda sp, x: sp.tan(x), r"\tan\left({0}\right)"),
    _function("tanh", opcodes.TANH, np.tanh, lambda sp, x: sp.tanh(x), r"\tanh\left({0}\right)"),
    _function(
        "arcsin", opcodes.ARCSIN, np.arcsin, lambda sp, x: sp.asin(x), r"\arcsin\left({0}\right)",
        "[-1, 1]",
    ),
    _function(
        "arccos", opcodes.ARCCOS, np.arccos, lambda sp, x: sp.acos(x), r"\arccos\left({0}\right)",
        "[-1, 1]",
    ),
    _function(
        "arctan", opcodes.ARCTAN, np.arctan, lambda sp, x: sp.atan(x), r"\arctan\left({0}\right)"
    ),
)  # fmt: skip

#: All operators, by name.
OPERATORS: dict[str, Operator] = {operator.name: operator for operator in _TABLE}

#: The same, by opcode.
BY_OPCODE: dict[int, Operator] = {operator.opcode: operator for operator in _TABLE}

#: Sets of operators that have a name.
OPERATOR_SETS: dict[str, tuple[str, ...]] = {
    "default": ("+", "-", "*", "/", "lt", "exp", "log", "sqrt", "square", "cube", "sin", "cos"),
    "paper": ("exp", "lt", "inv", "neg", "+", "*"),
    "paper-simulation": ("+", "-", "*", "/", "sin", "cos", "exp", "square", "cube", "lt"),
    "arithmetic": ("+", "-", "*", "/", "lt"),
    "all": tuple(OPERATORS),
}


# Other names of functions that a formula may use.
FUNCTION_ALIASES = {"ln": "log", "asin": "arcsin", "acos": "arccos", "atan": "arctan"}

# What other tools call them.
_ALIASES = {
    "add": "'+'", "plus": "'+'", "sub": "'-'", "minus": "'-'", "mul": "'*'", "times": "'*'",
    "div": "'/'", "^": "'square' or 'cube'", "**": "'square' or 'cube'",
    "pow": "'square' or 'cube'", "reciprocal": "'inv'", "sqr": "'square'", "linear": "'lt'",
    **{alias: repr(name) for alias, name in FUNCTION_ALIASES.items()},
}  # fmt: skip


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return what a user may have meant, in parentheses after a space, or nothing."""
    by_lower = {entry.lower(): entry for entry in known}
    close = get_close_matches(name.lower(), by_lower, n=1)
    return f" (did you mean {by_lower[close[0]]!r}?)" if close else ""


def operator_hint(name: str) -> str:
    """Return which operator a user may have meant."""
    if name.lower() in _ALIASES:
        return f" (did you mean {_ALIASES[name.lower()]}?)"
    return did_you_mean(name, OPERATORS)


def operator_weights(operators: str | Iterable[str] | Mapping[str, float]) -> dict[str, float]:
    """Return the operators a user asked for, with weights that sum to 1.

    Parameters
    ----------
    operators : str, iterable of str, or mapping
        The name of a set, names of operators (equal weights), or a weight for each.

    Examples
    --------
    >>> from symbayes.formula.operators import operator_weights
    >>> operator_weights({"+": 3, "sin": 1})
    {'+': 0.75, 'sin': 0.25}
    """
    if isinstance(operators, str):
        if operators not in OPERATOR_SETS:
            raise ValueError(
                f"operators={operators!r} is not the name of a set; the sets are "
                f"{', '.join(map(repr, OPERATOR_SETS))}, or pass a list such as ['+', '*', 'sin']"
            )
        operators = OPERATOR_SETS[operators]
    if isinstance(operators, Mapping):
        weights = dict(operators)
    elif isinstance(operators, Iterable):
        names = list(operators)
        repeated = sorted({str(name) for name in names if names.count(name) > 1})
        if repeated:
            raise ValueError(
                f"operators lists {', '.join(map(repr, repeated))} more than once; to prefer an "
                "operator, pass a dict of weights"
            )
        weights = dict.fromkeys(names, 1.0)
    else:
        raise TypeError(
            "operators must be the name of a set, a list of names or a dict of weights, not "
            f"{type(operators).__name__}"
        )
    for name, weight in weights.items():
        if not isinstance(name, str) or name not in OPERATORS:
            raise ValueError(
                f"operators: {name!r} is not an operator{operator_hint(str(name))}; known are "
                f"{', '.join(OPERATORS)}"
            )
        if isinstance(weight, bool) or not isinstance(weight, int | float | np.number):
            raise TypeError(
                f"operators: the weight of {name!r} must be a number, not {type(weight).__name__}"
            )
        if not np.isfinite(weight) or weight < 0:
            raise ValueError(
                f"operators: the weight of {name!r} is {weight}; it must be finite and not negative"
            )
    total = float(sum(weights.values()))
    if not weights:
        raise ValueError("operators is empty; pass at least one, for example ['+', '*']")
    if not 0 < total < np.inf:
        raise ValueError("operators: the weights must have a positive, finite sum")
    return {name: float(weight) / total for name, weight in weights.items() if weight > 0}
