"""Formulas as source code that needs only NumPy."""

from __future__ import annotations

import keyword
from collections.abc import Sequence

from .expression import CONSTANT, FEATURE, Expression, features
from .operators import ATOM, NEGATION, OPERATORS
from .printing import GROUPED, Form, Notation, write

_FORMS = {
    name: GROUPED[name] if row.code is None else Form(row.code.format, ATOM, (0,) * row.arity)
    for name, row in OPERATORS.items()
}

_CUBE = """
    def cube(v):
        return v * v * v
"""

_CODE = '''\
import numpy as np


def {name}(X):
    """Return the value of the formula on each row of X, a table with {n_columns}."""
    x = np.array(X, dtype=np.float64, order="F").T  # column by column
{columns}{helper}
    with np.errstate(all="ignore"):  # outside its domain the formula is nan
        return {value}
'''

# The kind of a constant that is written as an array as long as a column. Functions of arrays and
# of single numbers may differ in the last bit.
_FILLED = "filled"


def to_numpy_code(expression: Expression, names: Sequence[str], name: str = "formula") -> str:
    """Return the source of a function that computes what `evaluate` does, to the last bit.

    Column names stand only in comments, as Python writes strings: no name can end its line.
    """
    if not isinstance(name, str):
        raise TypeError(f"name must be a str, not {type(name).__name__}")
    if not name.isidentifier() or keyword.iskeyword(name) or name == "np":
        raise ValueError(
            f"name={name!r} cannot name the function; choose a Python identifier such as 'formula'"
        )
    value = write(_filled(expression), Notation(_leaf, _FORMS, "({0})", "-", "1.0"))
    columns = [f"    # x[{i}] is {names[i]!r}\n" for i in sorted(features(expression))]
    return _CODE.format(
        name=name,
        n_columns=f"{len(names)} column{'s' if len(names) > 1 else ''}",
        columns="".join(columns),
        helper=_CUBE if "cube(" in value else "",
        value=value,
    )


def _filled(node: Expression) -> Expression:
    """Mark the constants that meet no column."""
    if node[0] == CONSTANT:
        return (_FILLED, node[1])
    if node[0] == FEATURE:
        return node
    meets = bool(features(node))
    return (
        node[0],
        *(o if meets and o[0] == CONSTANT else _filled(o) for o in node[1:]),
    )


def _leaf(node: Expression) -> tuple[str, int]:
    if node[0] == FEATURE:
        return f"x[{node[1]}]", ATOM
    if node[0] == _FILLED:
        return f"np.full(x.shape[1], {node[1]!r})", ATOM
    return repr(node[1]), NEGATION if repr(node[1]).startswith("-") else ATOM
