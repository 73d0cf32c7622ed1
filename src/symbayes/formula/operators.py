"""The operators: one table that drives whatever is done with them.

A row says what an operator computes and how it is written in every notation. The parser, the
printers, evaluation, SymPy, simplification, the search and the command line read the table; only
compiled code has its own switch (`kernels/evaluate.py`), by the opcodes of `kernels/opcodes.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from numbers import Real
from typing import Any

import numpy as np

from ..kernels import opcodes
from .checks import repeated, require_type

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
    mathml: str
    """MathML form."""
    code: str | None = None
    """Form in NumPy code, a call; None where it is the printed form."""
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
    aliases: tuple[str, ...] = ()
    """Other names that a formula may use for it."""
    commutative: bool = False
    """Whether its operands may change places."""
    neutral: float | None = None
    """What changes nothing as the second operand, or as any if they may change places."""
    exponent: float | None = None
    """Its exponent, for a power."""

    @property
    def symbol(self) -> str | None:
        """Infix symbol, for binary operators."""
        return self.name if self.arity == 2 else None


def _function(
    name: str, opcode: int, latex: str = "", mathml: str = "", sympy: str = "", **fields: Any
) -> Operator:
    """Return the row of a function that NumPy, LaTeX and (unless told) SymPy call by its name."""
    in_sympy = sympy or name
    return Operator(
        name,
        1,
        opcode,
        numpy=getattr(np, name),
        sympy=lambda module, x: getattr(module, in_sympy)(x),
        text=f"{name}({{0}})",
        latex=latex or rf"\{name}\left({{0}}\right)",
        mathml=mathml or f"<mi>{name}</mi><mo>&#x2061;</mo><mrow><mo>(</mo>{{0}}<mo>)</mo></mrow>",
        code=f"np.{name}({{0}})",
        **fields,
    )


_TABLE = (
    Operator(
        "+", 2, opcodes.ADD, np.add, lambda sp, x, y: x + y,
        text="{0} + {1}", latex="{0} + {1}", mathml="{0}<mo>+</mo>{1}",
        strength=SUM, needs=(SUM, SUM), commutative=True, neutral=0.0,
    ),
    Operator(
        "-", 2, opcodes.SUB, np.subtract, lambda sp, x, y: x - y,
        text="{0} - {1}", latex="{0} - {1}", mathml="{0}<mo>&#x2212;</mo>{1}",
        strength=SUM, needs=(SUM, PRODUCT), neutral=0.0,
    ),
    Operator(
        "*", 2, opcodes.MUL, np.multiply, lambda sp, x, y: x * y,
        text="{0}*{1}", latex="{0} {1}", mathml="{0}<mo>&#x2062;</mo>{1}",
        strength=PRODUCT, needs=(PRODUCT, PRODUCT), commutative=True, neutral=1.0,
    ),
    Operator(
        "/", 2, opcodes.DIV, np.divide, lambda sp, x, y: x / y,
        text="{0}/{1}", latex=r"\frac{{{0}}}{{{1}}}",
        mathml="<mfrac><mrow>{0}</mrow><mrow>{1}</mrow></mfrac>",
        strength=PRODUCT, needs=(PRODUCT, POWER), latex_needs=(0, 0),
        domain="second operand not 0", neutral=1.0,
    ),
    Operator(
        "neg", 1, opcodes.NEG, np.negative, lambda sp, x: -x,
        text="-{0}", latex="-{0}", mathml="<mo>&#x2212;</mo>{0}",
        strength=NEGATION, needs=(NEGATION,), latex_needs=(PRODUCT,),
    ),
    Operator(
        "inv", 1, opcodes.INV, np.reciprocal, lambda sp, x: 1 / x,
        text="1/{0}", latex=r"\frac{{1}}{{{0}}}",
        mathml="<mfrac><mn>1</mn><mrow>{0}</mrow></mfrac>",
        strength=PRODUCT, needs=(POWER,), latex_needs=(0,), domain="not 0", exponent=-1,
    ),
    # lt(x) = a x + b never reaches a printer: a formula shows its constants.
    Operator(
        "lt", 1, opcodes.LT, lambda x, a=1.0, b=0.0: a * x + b,
        lambda sp, x, a=1, b=0: a * x + b,
        text="lt({0})", latex=r"\operatorname{{lt}}\left({0}\right)", mathml="<mi>lt</mi>{0}",
    ),
    _function(
        "exp", opcodes.EXP, r"e^{{{0}}}", "<msup><mi>e</mi><mrow>{0}</mrow></msup>",
        latex_strength=POWER,
    ),
    _function("log", opcodes.LOG, domain="positive", aliases=("ln",)),
    _function(
        "sqrt", opcodes.SQRT, r"\sqrt{{{0}}}", "<msqrt>{0}</msqrt>", domain="not negative",
        exponent=0.5,
    ),
    Operator(
        "abs", 1, opcodes.ABS, np.abs, lambda sp, x: abs(x),
        text="abs({0})", latex=r"\left|{0}\right|",
        mathml="<mrow><mo>|</mo>{0}<mo>|</mo></mrow>", code="np.abs({0})",
    ),
    Operator(
        "square", 1, opcodes.SQUARE, np.square, lambda sp, x: x**2,
        text="{0}**2", latex="{0}^{{2}}", mathml="<msup><mrow>{0}</mrow><mn>2</mn></msup>",
        code="np.square({0})", strength=POWER, needs=(ATOM,), exponent=2,
    ),
    Operator(
        "cube", 1, opcodes.CUBE, lambda x: x * x * x, lambda sp, x: x**3,
        text="{0}**3", latex="{0}^{{3}}", mathml="<msup><mrow>{0}</mrow><mn>3</mn></msup>",
        code="cube({0})", strength=POWER, needs=(ATOM,), exponent=3,
    ),
    _function("sin", opcodes.SIN),
    _function("cos", opcodes.COS),
    _function("tan", opcodes.TAN),
    _function("tanh", opcodes.TANH),
    _function("arcsin", opcodes.ARCSIN, sympy="asin", domain="[-1, 1]", aliases=("asin",)),
    _function("arccos", opcodes.ARCCOS, sympy="acos", domain="[-1, 1]", aliases=("acos",)),
    _function("arctan", opcodes.ARCTAN, sympy="atan", aliases=("atan",)),
)  # fmt: skip

#: All operators, by name.
OPERATORS: dict[str, Operator] = {operator.name: operator for operator in _TABLE}

#: The same, by opcode.
BY_OPCODE: dict[int, Operator] = {operator.opcode: operator for operator in _TABLE}

#: Whole powers, with their exponents.
POWERS: dict[str, int] = {
    operator.name: int(operator.exponent)
    for operator in _TABLE
    if operator.exponent is not None and operator.exponent > 1
}

#: Sets of operators that have a name.
OPERATOR_SETS: dict[str, tuple[str, ...]] = {
    "default": ("+", "-", "*", "/", "lt", "exp", "log", "sqrt", "square", "cube", "sin", "cos"),
    "paper": ("exp", "lt", "inv", "neg", "+", "*"),
    "paper-simulation": ("+", "-", "*", "/", "sin", "cos", "exp", "square", "cube", "lt"),
    "arithmetic": ("+", "-", "*", "/", "lt"),
    "all": tuple(OPERATORS),
}

# Other names of functions that a formula may use.
FUNCTION_ALIASES = {alias: operator.name for operator in _TABLE for alias in operator.aliases}

# What other tools call operators, and what to write instead.
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


def require_operator(owner: str, name: object) -> None:
    """Complain about anything but the name of an operator."""
    if not isinstance(name, str) or name not in OPERATORS:
        raise ValueError(
            f"{owner}: {name!r} is not an operator{operator_hint(str(name))}; known are "
            f"{', '.join(OPERATORS)}"
        )


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
        if twice := repeated(names):
            raise ValueError(
                f"operators lists {', '.join(twice)} more than once; to prefer an operator, pass a "
                "dict of weights"
            )
        weights = dict.fromkeys(names, 1.0)
    else:
        raise TypeError(
            "operators must be the name of a set, a list of names or a dict of weights, not "
            f"{type(operators).__name__}"
        )
    for name, weight in weights.items():
        require_operator("operators", name)
        require_type(f"operators: the weight of {name!r}", weight, Real, "a number")
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
