"""What a fitted model can be asked: predictions, intervals, draws, columns, formulas."""

from __future__ import annotations

import os
from collections.abc import Iterator
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats
from sklearn.utils.validation import check_is_fitted

from .cautions import is_wild, tell_left_out, tell_outside, tell_wild, without_value
from .fitting.constants import Sight
from .formula import expression as ex
from .formula.expression import signs
from .formula.formula import Formula
from .inputs.parameters import RULES, check_choice, check_level, generator
from .inputs.prior import require_count
from .inputs.validation import Table, check_new_rows, column_name, feature_names
from .posterior.posterior import Posterior
from .posterior.prediction import FAR
from .posterior.selection import pareto, select
from .posterior.stages import Stages
from .show.report import write_report
from .storage.model_file import save_model

# Rows may lie outside the training range by this part of it before anything is said: the ends of a
# sample are not the ends of what it was drawn from, and in cross-validation some rows always are.
_BEYOND = 0.1
# What intervals and draws are of.
_KINDS = ("mean", "observation")


class Answers:
    """The part of the estimator that needs no data but what the fit has kept."""

    # Set by `fit`.
    formulas_: pd.DataFrame
    formula_objects_: list[Formula]
    history_: pd.DataFrame
    _posterior: Posterior
    _used: np.ndarray
    _range: tuple[np.ndarray, np.ndarray]
    _told: set[str]
    _rows: Table
    _target: str
    _stages: Stages
    _near: float

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Predict by a posterior mean that no tenth of the posterior can move.

        It is the mean over formulas, weighted by their probabilities, not the value of
        `best_formula_`. Formulas of little weight may take off at a row, also between the training
        rows: the tenth of the posterior that predicts most there counts with the least value in
        it, the tenth that predicts least with the largest, and draws without a finite value are
        left out. A prediction lies inside all intervals of `predict_interval` of 50 per cent or
        more. Where more than one per cent of the posterior is far from it, a warning says so, once
        for each fit.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_rows, n_columns)
        return_std : bool
            Whether to return the spread of the predictive distribution as well: that between
            formulas, of coefficients, and of the noise. It is half the width of the interval that
            holds 68.3 per cent, which is the standard deviation where it is normal.

        Returns
        -------
        mean : ndarray of shape (n_rows,)
        std : ndarray of shape (n_rows,), only with `return_std`
        """
        X = self._new_rows(X)
        mixture = self._posterior.mixture
        mean, far, left_out = mixture.predict(X)
        self._tell_left_out(left_out)
        if is_wild(far).any() and self._not_told("wild"):
            tell_wild(far, FAR)
        return (mean, mixture.deviations(X)) if return_std else mean

    def predict_interval(
        self, X: Any, level: float = 0.9, kind: str = "observation"
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the central interval that holds the target with a given probability.

        Its ends are quantiles of the predictive distribution, the mixture over all formulas, and
        not a multiple of a standard deviation.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_rows, n_columns)
        level : float in (0, 1)
            Probability that the interval holds it.
        kind : "observation" or "mean"
            Whether the target is a new observation, with its noise, or the mean of y.

        Returns
        -------
        lower, upper : ndarray of shape (n_rows,)
            nan where no formula has a finite value.

        Examples
        --------
        >>> from symbayes import BayesianSymbolicRegressor
        >>> from symbayes.datasets import paper_task
        >>> X, y = paper_task("f2", random_state=0)
        >>> model = BayesianSymbolicRegressor(["+", "square", "cube"], random_state=0).fit(X, y)
        >>> lower, upper = model.predict_interval([[1, 1]])
        >>> bool(lower[0] <= 1.0 <= upper[0])
        True
        """
        check_level("predict_interval", level)
        check_choice("kind", kind, _KINDS)
        X = self._new_rows(X)
        tail = 0.5 * (1.0 - float(level))
        (lower, upper), left_out = self._posterior.mixture.quantiles(
            X, (tail, 1.0 - tail), kind == "observation"
        )
        self._tell_left_out(left_out)
        return lower, upper

    def sample_predictive(
        self, X: Any, n: int = 1000, kind: str = "observation", random_state: Any = 0
    ) -> np.ndarray:
        """Return draws from the predictive distribution.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_rows, n_columns)
        n : int
            Number of draws.
        kind : "observation" or "mean"
            Whether draws are of new observations, with their noise, or of the mean of y.
        random_state : int, RandomState or None
            Seed.

        Returns
        -------
        draws : ndarray of shape (n, n_rows)
            Each row is one draw for all rows of `X` together. A formula without a finite value at
            a row is replaced there by one that has one; nan where none has.
        """
        check_is_fitted(self)
        require_count("sample_predictive", "n", n)
        check_choice("kind", kind, _KINDS)
        rng = generator(random_state)
        X = self._new_rows(X)
        draws, noise = self._posterior.mixture.sample(X, int(n), rng)
        draws = rng.permutation(np.column_stack([draws, noise]), axis=0)
        draws, noise = draws[:, :-1], draws[:, -1:]
        finite = np.isfinite(draws)
        for row in np.flatnonzero(~finite.all(axis=0) & finite.any(axis=0)):
            good = finite[:, row]
            draws[~good, row] = rng.choice(draws[good, row], int((~good).sum()))
        draws[:, ~finite.any(axis=0)] = np.nan
        self._tell_left_out(1.0 - finite.mean(axis=0))
        return draws + noise * rng.normal(size=draws.shape) if kind == "observation" else draws

    def to_arviz(self, max_rows: int = 1000, random_state: Any = 0) -> Any:
        """Return the draws in ArviZ's schema; needs ``pip install 'symbayes[arviz]'``.

        The groups are `posterior` (quantities that every formula has, however large it is),
        `sample_stats`, `log_likelihood`, `posterior_predictive`, `observed_data`, `constant_data`
        and `trees` (the formula of each draw). For each draw of the chains, coefficients and noise
        are drawn from their exact posterior given the trees; those of the paper's sampler are
        plugged in, so that its draws spread less than they should.

        `n_nodes` counts the nodes of the trees as they were sampled, which is what the chains are
        compared by. In `formulas_` coefficients and the intercept are nodes as well, and formulas
        are tidied up. ArviZ's R-hat is rank-normalised, and there is one for each variable; with
        ``method="split"`` it is that of `diagnostics_`.

        A row of weight w counts w times in `log_likelihood`. Of more than 1500 distinct states,
        or fewer for large tables, a sample is fitted after a run; then draws are resampled, chain
        by chain and in their order, from those that are. The attribute `draws` says whether they
        were. Stacked chains come as they were drawn, with the attribute `chain_weights`.

        Parameters
        ----------
        max_rows : int
            Training rows in `log_likelihood`, `posterior_predictive` and the data, at most. Of more
            a random sample is taken, always the same one; the coordinate `row` names them. A model
            keeps 10,000 rows at most. Each takes 16 bytes a draw.
        random_state : int, RandomState or None
            Seed for coefficients, noise and new observations.

        Returns
        -------
        InferenceData, or from ArviZ 1.0 on xarray.DataTree
        """
        from .show.arviz_io import to_arviz

        return to_arviz(self, max_rows, random_state)

    def staged_predict(self, X: Any) -> Iterator[np.ndarray]:
        """Yield what each accepted model of the paper's sampler predicts.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_rows, n_columns)

        Yields
        ------
        prediction : ndarray of shape (n_rows,)
            In the order of `history_`; nan where a model has no finite value.
        """
        check_is_fitted(self)
        if not hasattr(self, "_stages"):
            if hasattr(self, "history_"):
                raise AttributeError(
                    "staged_predict needs the accepted models, which files do not keep; fit again, "
                    "or keep the model with pickle or joblib"
                )
            raise AttributeError("staged_predict needs a model fitted with sampler='paper'")
        return self._stages.predict(check_new_rows(self, X)[:, self._used])

    def inclusion_probability(self) -> pd.Series:
        """Return for each column the probability that the formula uses it.

        Returns
        -------
        Series
            Indexed by column name, or by ``x0, x1, ...`` where columns have none.
        """
        check_is_fitted(self)
        names = feature_names(self)
        result = np.zeros(len(names))
        result[self._used] = self._posterior.inclusion
        index = pd.Index(names, dtype=object)
        return pd.Series(result, index=index, name="inclusion probability")

    def constants(self, formula: int = 0, level: float = 0.9) -> pd.DataFrame:
        """Return the constants of a formula with intervals.

        They are those of the normal law that fits the posterior of the constants, given the
        formula: from the curvature at their best values, with the noise integrated out.

        Parameters
        ----------
        formula : int
            Its place in `formulas_`.
        level : float in (0, 1)
            Probability that an interval holds the constant.

        Returns
        -------
        DataFrame
            One row a constant, in the order and with the sign in which they stand in the text:
            `value`, `std`, `lower` and `upper`. The last three are infinite for constants that
            others can make up for.
        """
        check_is_fitted(self)
        check_level("constants", level)
        n_formulas = len(self.formula_objects_)
        if isinstance(formula, bool) or not isinstance(formula, Integral):
            raise TypeError(f"formula must be a place in formulas_, not {formula!r}")
        if not -n_formulas <= formula < n_formulas:
            raise IndexError(f"formula is {formula} and formulas_ has {n_formulas} rows")
        rows, mixture = self._rows, self._posterior.mixture
        sight = Sight(
            rows.X.T, rows.y, rows.weights, mixture.noise_prior, mixture.y_scale, n=mixture.n
        )
        expression = self.formula_objects_[formula]._expression
        value = np.array(list(ex.constants(expression))) * list(signs(expression))
        std, df = sight.deviations(expression)
        reach = std * stats.t.ppf(0.5 + 0.5 * float(level), df)
        return pd.DataFrame(
            {"value": value, "std": std, "lower": value - reach, "upper": value + reach}
        )

    def select(self, rule: str) -> Formula:
        """Return the best formula by a rule.

        Parameters
        ----------
        rule : str
            "probability": the most probable. "one_standard_error": the simplest whose mean squared
            error on the training rows is within one standard error of the smallest. "accuracy":
            the one with the smallest error.

        Returns
        -------
        Formula
        """
        check_is_fitted(self)
        check_choice("rule", rule, RULES)
        return self.formula_objects_[select(self.formulas_, rule, self._near)]

    def report(self, path: str | os.PathLike[str], title: str | None = None) -> Path:
        """Write a page that shows the model to a reader: formulas, trust, detail.

        Parameters
        ----------
        path : path-like
            The HTML file to write. It needs nothing else, neither network nor scripts.
        title : str, optional
            "A formula for" the name of y, if not given.

        Returns
        -------
        Path
            Where it was written.

        Examples
        --------
        >>> import tempfile
        >>> from symbayes import BayesianSymbolicRegressor
        >>> from symbayes.datasets import paper_task
        >>> X, y = paper_task("f2", random_state=0)
        >>> model = BayesianSymbolicRegressor(["square", "cube"], draws=50, tune=50, random_state=0)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     model.fit(X, y).report(f"{folder}/f2.html").name
        'f2.html'
        """
        return write_report(self, path, title)

    @property
    def pareto_(self) -> pd.DataFrame:
        """The formulas to which no other is both shorter and closer, the shortest first."""
        check_is_fitted(self)
        return pareto(self.formulas_)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save the fitted model; `symbayes.load` reads it, also with another version of Python.

        The file is a zip of JSON and arrays. Predictions, intervals, draws and formulas are the
        same to the last bit after loading. It holds up to 10,000 rows of the training data, which
        plots and reports show.

        Not kept: what `staged_predict` and `warm_start` need, a `progress` that is a function
        (False is kept instead), and a `random_state` that is no integer (None is). A `Formula`
        among the parameters is kept as text, and operators or weights in a container of another
        type than list, tuple, dict or array as a list.

        Parameters
        ----------
        path : str or path-like
            Where to; the folder must exist. A file of that name is replaced when the new one is
            complete.

        Examples
        --------
        >>> import tempfile
        >>> from symbayes import BayesianSymbolicRegressor, load
        >>> from symbayes.datasets import paper_task
        >>> X, y = paper_task("f2", random_state=0)
        >>> model = BayesianSymbolicRegressor(["+", "square", "cube"], random_state=0).fit(X, y)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     model.save(f"{folder}/model.symbayes")
        ...     load(f"{folder}/model.symbayes").best_formula_ == model.best_formula_
        True
        """
        check_is_fitted(self, "formulas_")
        save_model(self, path)

    def _new_rows(self, X: Any) -> np.ndarray:
        """Validate rows to predict on; return the columns that formulas may use."""
        check_is_fitted(self)
        X = check_new_rows(self, X)
        if len(self._used) < X.shape[1]:
            X = X[:, self._used]
        outside, names = self._outside(X)
        if names and self._not_told("range"):
            tell_outside(outside, names)
        return X

    def _outside(self, X: np.ndarray) -> tuple[np.ndarray, list[str]]:
        """Return which rows lie well outside the training range, and in which columns."""
        low, high = self._range
        beyond = _BEYOND * (high - low)
        outside, names = np.zeros(len(X), bool), []
        for i in np.flatnonzero(self._posterior.inclusion):
            rows = (X[:, i] < low[i] - beyond[i]) | (X[:, i] > high[i] + beyond[i])
            if rows.any():
                outside |= rows
                names.append(column_name(self, self._used[i]))
        return outside, names

    def _tell_left_out(self, left_out: np.ndarray) -> None:
        """Warn of rows where some or all formulas have no finite value, each once."""
        by = without_value(left_out)
        if by is not None and self._not_told(f"without a value by {by}"):
            tell_left_out(left_out)

    def _not_told(self, what: str) -> bool:
        """Return whether something is new to whoever uses this fit, which then it is no more."""
        if what in self._told:
            return False
        self._told.add(what)
        return True
