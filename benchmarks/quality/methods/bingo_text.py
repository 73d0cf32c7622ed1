"""Used by the scripts of bingo and pysips: operators, and an expression as a formula."""

from __future__ import annotations

import re

import numpy as np
from bingo.symbolic_regression.agraph import agraph, string_generation
from bingo.symbolic_regression.agraph.operator_definitions import LOGARITHM, SQRT
from spelling import FUNCTIONS, NUMPY

OPERATORS = {
    **FUNCTIONS,
    "+": "+",
    "-": "-",
    "neg": "-",
    "*": "*",
    "/": "/",
    "inv": "/",
    "abs": "|",
    "square": "square",
    "cube": "cube",
}
# Its compiled evaluation lacks seven of these operators and is no faster on hundreds of rows.
agraph.force_use_of_python_backends()

PLAIN = dict(string_generation.SYMPY_PRINT_MAP)
PROTECTED = {**PLAIN, LOGARITHM: "log(Abs({}))", SQRT: "sqrt(Abs({}))"}


def operators(names):
    """Return bingo's operators for ours; constants take the place of lt."""
    return list(dict.fromkeys(OPERATORS[name] for name in names if name in OPERATORS))


def text(model, X):
    """Return an expression as a formula with all digits.

    Bingo's log and sqrt take the absolute value first, which is written only where it matters on
    the rows `X`.
    """
    formula = _format(model, PLAIN)
    columns = {f"x{i}": column for i, column in enumerate(X.T)}
    with np.errstate(all="ignore"):
        try:
            value = eval(formula, {"__builtins__": {}}, NUMPY | columns)
        except (ArithmeticError, TypeError):  # a constant expression, evaluated by Python
            value = 0.0
    return formula if np.all(np.isfinite(value)) else _format(model, PROTECTED)


def _format(model, forms):
    string_generation.SYMPY_PRINT_MAP.update(forms)
    formula = model.get_formatted_string("sympy").replace("X_", "x")
    return re.sub(r"\babs\(", "Abs(", formula)
