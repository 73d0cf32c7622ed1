"""The formula a user holds in hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from . import expression as ex
from .parser import parse


class Formula:
    """A formula in named columns.

    Parameters
    ----------
    text : str
        The formula, for example ``"2*sin(x0) + 1"``.
    feature_names : sequence of str
        The columns of the tables it is evaluated on, in their order.

    Examples
    --------
    >>> import numpy as np
    >>> from symbayes import Formula
    >>> formula = Formula("8*x0**2 - 15", ["x0", "x1"])
    >>> formula.predict(np.array([[1.0, 5.0], [2.0, 7.0]]))
    array([-7., 17.])
    >>> formula.latex()
    '8 x_{0}^{2} - 15'
    """

    def __init__(self, text: str, feature_names: Sequence[str]):
        self._names = _checked_names(feature_names)
        if not isinstance(text, str):
            raise TypeError(f"text must be a str, not {type(text).__name__}")
        self._expression = parse(text, self._names)

    @classmethod
    def _from_expression(cls, expression: ex.Expression, names: Sequence[str]) -> Formula:
        formula = cls.__new__(cls)
        formula._names = tuple(names)
        formula._expression = expression
        return formula

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Columns of the tables it is evaluated on."""
        return self._names

    @property
    def n_nodes(self) -> int:
        """Number of operators, columns and constants."""
        return ex.n_nodes(self._expression)

    @property
    def features(self) -> list[str]:
        """Columns that occur in the formula."""
        return [self._names[i] for i in sorted(ex.features(self._expression))]

    def predict(self, X: Any) -> np.ndarray:
        """Return the value of the formula on each row.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_rows, n_columns)
            A DataFrame with names is read by them, anything else by position. A row outside the
            domain of the formula gives nan.
        """
        if _has_names(X):
            table = self._read_by_name(X)
        else:
            table = np.asarray(X, dtype=float)
        if table.ndim != 2 or table.shape[1] != len(self._names):
            raise ValueError(
                f"X has shape {table.shape}; the formula needs a table of {len(self._names)} "
                f"columns: {', '.join(self._names)}"
            )
        with np.errstate(all="ignore"):
            return np.array(ex.evaluate(self._expression, np.ascontiguousarray(table.T)))

    def _read_by_name(self, X: Any) -> np.ndarray:
        """Return the table with the columns in their order; those not needed may be missing."""
        needed = self.features
        columns = list(X.columns)
        missing = [name for name in needed if name not in columns]
        if missing:
            raise ValueError(
                f"X lacks the columns {', '.join(map(repr, missing))} of the formula {self}"
            )
        repeated = [name for name in needed if columns.count(name) > 1]
        if repeated:
            raise ValueError(
                f"X has more than one column named {', '.join(map(repr, repeated))}; rename them"
            )
        table = np.zeros((len(X), len(self._names)))
        for name in needed:
            table[:, self._names.index(name)] = np.asarray(X[name], dtype=float)
        return table

    def sympy(self) -> Any:
        """Return the formula as a SymPy expression, with its constants in full."""
        return ex.to_sympy(self._expression, self._names)

    def latex(self, digits: int = 6) -> str:
        """Return the formula in LaTeX, constants with so many significant digits."""
        return ex.to_latex(self._expression, self._names, digits)

    def text(self, digits: int = 6) -> str:
        """Return the formula as text, constants with so many significant digits."""
        return ex.to_text(self._expression, self._names, digits)

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        return f"Formula({self.text()!r}, {list(self._names)!r})"

    def _repr_latex_(self) -> str:
        return f"${self.latex()}$"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Formula):
            return NotImplemented
        return self._expression == other._expression and self._names == other._names

    def __hash__(self) -> int:
        return hash((self._expression, self._names))


def _checked_names(names: Sequence[str]) -> tuple[str, ...]:
    if isinstance(names, str) or not all(isinstance(name, str) for name in names):
        raise TypeError("feature_names must be a list of str, one for each column")
    result = tuple(names)
    repeated = sorted({name for name in result if result.count(name) > 1})
    if repeated:
        raise ValueError(f"feature_names has {', '.join(map(repr, repeated))} more than once")
    return result


def _has_names(X: Any) -> bool:
    """Return whether columns are known by names: a DataFrame whose labels are all str."""
    return hasattr(X, "columns") and all(isinstance(name, str) for name in X.columns)
