"""The formula a user holds in hand."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from numbers import Real
from typing import Any

import numpy as np

from . import expression as ex
from .checks import repeated, require_type, require_whole
from .equivalence import equivalent
from .parser import parse
from .printing import to_latex, to_mathml, to_numpy_code, to_text
from .simplification import simplified

#: Significant digits of constants, where a fit does not say that fewer mean something.
DIGITS = 6


class Formula:
    """A formula in named columns.

    ``==`` compares how formulas are written, `is_equivalent` what they compute.

    Parameters
    ----------
    text : str
        The formula, for example ``"2*sin(x0) + 1"``. Column names that are not plain words stand in
        backticks. Text is parsed, never run as code.
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
        self._digits: tuple[int, ...] | None = None

    @classmethod
    def _from_expression(
        cls,
        expression: ex.Expression,
        names: Sequence[str],
        digits: Sequence[int] | None = None,
    ) -> Formula:
        """Return a formula; `digits` says how many digits of each constant mean something."""
        formula = cls.__new__(cls)
        formula._names = tuple(names)
        formula._expression = expression
        formula._digits = None if digits is None else tuple(digits)
        return formula

    def _shown(self, digits: int | None) -> tuple[ex.Expression, int]:
        """Return what to print, and with how many digits."""
        if digits is not None:
            return self._expression, require_whole("digits", digits, 1)
        if self._digits is None:
            return self._expression, DIGITS
        return ex.with_digits(self._expression, self._digits), max((DIGITS, *self._digits))

    def _written(self, write: Callable[..., str], digits: int | None) -> str:
        expression, digits = self._shown(digits)
        return write(expression, self._names, digits)

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Columns of the tables it is evaluated on."""
        return self._names

    @property
    def n_nodes(self) -> int:
        """Number of operators, columns and constants."""
        return ex.n_nodes(self._expression)

    @property
    def depth(self) -> int:
        """Number of levels of the formula as a tree; a column alone has one."""
        return ex.depth(self._expression)

    @property
    def features(self) -> list[str]:
        """Columns that occur in the formula, in the order of the table."""
        return [self._names[i] for i in sorted(ex.features(self._expression))]

    def predict(self, X: Any) -> np.ndarray:
        """Return the value of the formula on each row.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_rows, n_columns)
            A DataFrame with names is read by them, anything else by position.

        Returns
        -------
        ndarray of shape (n_rows,)
            The values; nan for a row outside the domain of the formula.
        """
        if hasattr(X, "columns") and all(isinstance(name, str) for name in X.columns):
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
        needed, columns = self.features, list(X.columns)
        if missing := [repr(name) for name in needed if name not in columns]:
            raise ValueError(f"X lacks the columns {', '.join(missing)} of the formula {self}")
        if twice := repeated(name for name in columns if name in needed):
            raise ValueError(f"X has more than one column named {', '.join(twice)}; rename them")
        table = np.zeros((len(X), len(self._names)))
        for name in needed:
            table[:, self._names.index(name)] = np.asarray(X[name], dtype=float)
        return table

    def is_equivalent(self, other: Formula, *, rtol: float = 1e-9) -> bool:
        """Return whether another formula is the same function of the same columns.

        Formulas are compared by values at a few thousand fixed points of many sizes, with 60 digits
        where they seem to differ. ``False`` is sure: at some point the values differ by more than
        `rtol`, or only one formula has a value. ``True`` means that no such point was found, which
        is strong evidence but no proof. Single points do not count: ``x/x`` is equivalent to 1.
        Ranges do: ``2*log(x)`` has no value for negative x and is not equivalent to ``log(x**2)``.
        Formulas without a common point in their domains are equivalent only if they are equal.

        Parameters
        ----------
        other : Formula
            Its columns are matched by name; their order does not matter.
        rtol : float, default=1e-9
            Relative difference up to which values count as equal. The same holds for constants: a
            difference that other constants within `rtol` would make is none.

        Examples
        --------
        >>> from symbayes import Formula
        >>> formula = Formula("(a + b)**2", ["a", "b"])
        >>> formula.is_equivalent(Formula("a**2 + 2*a*b + b**2", ["b", "a"]))
        True
        >>> formula.is_equivalent(Formula("a**2 + b**2", ["a", "b"]))
        False
        """
        if not isinstance(other, Formula):
            raise TypeError(f"other must be a Formula, not {type(other).__name__}")
        require_type("rtol", rtol, Real, "a number")
        if not 0.0 <= float(rtol) < 1.0:
            raise ValueError(f"rtol is {rtol}; it must be from 0 to less than 1")
        place = {name: i for i, name in enumerate(sorted({*self.features, *other.features}))}
        first, second = (
            ex.with_columns(
                formula._expression, [place.get(name, -1) for name in formula.feature_names]
            )
            for formula in (self, other)
        )
        return equivalent(first, second, len(place), float(rtol))

    def text(self, digits: int | None = None) -> str:
        """Return the formula as text that `Formula` reads.

        Parameters
        ----------
        digits : int, optional
            Significant digits of constants. By default 6, or as many as a fit knows of each. With
            17 the text gives the formula back to the last bit; with fewer, sums in sums, products
            in products and powers of powers lose their parentheses.
        """
        return self._written(to_text, digits)

    def latex(self, digits: int | None = None) -> str:
        """Return the formula in LaTeX, also for MathJax, KaTeX and Matplotlib.

        `digits` are those of `text`.
        """
        return self._written(to_latex, digits)

    def mathml(self, digits: int | None = None) -> str:
        """Return the formula in MathML, an element ``<math>`` that browsers show as it is.

        It is well-formed whatever the column names are. `digits` are those of `text`.
        """
        return self._written(to_mathml, digits)

    def numpy_code(self, name: str = "formula") -> str:
        """Return Python source that computes the formula with nothing but NumPy.

        Parameters
        ----------
        name : str, default="formula"
            The name of its function, which takes a table, columns by position, and returns what
            `predict` does, to the last bit.

        Examples
        --------
        >>> from symbayes import Formula
        >>> print(Formula("exp(a) - 0.5", ["a"]).numpy_code())
        import numpy as np
        ...
                return np.exp(x[0]) - 0.5
        """
        return to_numpy_code(self._expression, self._names, name)

    def simplify(self) -> Formula:
        """Return a shorter formula that is the same function, or the formula itself.

        SymPy simplifies it, with columns that are real numbers, and the result is taken if it is
        shorter and has the same values. Long formulas, of more than 60 nodes, stay as they are.

        Examples
        --------
        >>> from symbayes import Formula
        >>> print(Formula("3*sqrt(exp(t)) + t - t", ["t"]).simplify())
        3*exp(0.5*t)
        """
        found = simplified(self._expression)
        if found == self._expression:
            return self
        return Formula._from_expression(found, self._names, self._digits_in(found))

    def _digits_in(self, expression: ex.Expression) -> list[int] | None:
        """Return how many digits the constants of another form of the formula have.

        Those that are the formula's own keep theirs; others, such as exponents, are not measured.
        """
        if self._digits is None:
            return None
        own = list(zip(ex.constants(self._expression), self._digits, strict=True))
        return [
            next((n for c, n in own if np.isclose(abs(c), abs(value), 1e-9, 0.0)), DIGITS)
            for value in ex.constants(expression)
        ]

    def sympy(self) -> Any:
        """Return the formula as a SymPy expression, with its constants in full."""
        return ex.to_sympy(self._expression, self._names)

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
    # A str is a sequence of str as well, but hardly meant as one.
    result = tuple(names) if isinstance(names, Iterable) and not isinstance(names, str) else (None,)
    if not all(isinstance(name, str) for name in result):
        raise TypeError("feature_names must be a list of str, one for each column")
    result = tuple(map(str, result))
    if twice := repeated(result):
        raise ValueError(f"feature_names has {', '.join(twice)} more than once")
    return result
