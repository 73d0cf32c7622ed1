"""The formulas of a posterior as a user sees them: a table, objects, and which one is the best."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd

from ..deadline import Deadline, OutOfTime
from ..fitting.model import Fitter, Model, expression_of
from ..fitting.rounding import TrainingRows, is_simple, rounded
from ..formula import expression as ex
from ..formula.formula import DIGITS, Formula
from ..formula.rewriting import collected
from ..kernels import opcodes
from .posterior import Budget, Posterior, shares_by_evidence, to_polish

# Formulas, from the most probable on, for which simple constants are looked for.
_ROUNDED = 5
# Work on simple constants of formulas that are only on the front, as `Budget` counts it.
_MOST_ROUNDING = 500_000


class FormulaWriter:
    """Writes fitted models as formulas.

    `names` are those of all columns of the user's table, `used` the positions of the columns of the
    problem among them.
    """

    def __init__(self, fitter: Fitter, names: Sequence[str], used: np.ndarray):
        self._fitter, self._names, self._used = fitter, names, used
        problem, n_rows = fitter.problem, len(fitter.scaled_y)
        # Constants inside known terms are what the user says they are: none is touched then.
        self._free = not any((tree["op"] == opcodes.LT).any() for tree in problem.known)
        nu, lam = problem.data.noise_prior.tolist()
        y = problem.y_mean + problem.y_scale * fitter.scaled_y
        self._rows = TrainingRows(
            fitter.columns[:, :n_rows], y, fitter.weights, (nu, lam), problem.y_scale,
            used.tolist(),
        )  # fmt: skip

    def table(
        self, posterior: Posterior, deadline: Deadline | None = None
    ) -> tuple[pd.DataFrame, list[Formula]]:
        """Return the table of formulas and the formulas themselves.

        Simple constants are looked for until the deadline or a Ctrl-C.
        """
        deadline = deadline or Deadline()
        fits = [one.model for one in posterior.groups]
        formulas = [self._formula(fit) for fit in fits]
        # Digits take next to no time, unless there are very many constants.
        budget = Budget(self._fitter, deadline.over)
        for i in to_polish([formula.n_nodes for formula in formulas], [fit.mse for fit in fits]):
            if budget.allows(fits[i]):
                formulas[i] = self._shown(fits[i])
        rounded_texts = [str(formula) for formula in formulas]
        budget = Budget(self._fitter, deadline.cut_short)
        for i in range(min(_ROUNDED, len(fits)) if self._free else 0):
            if budget.allows(fits[i]):
                with contextlib.suppress(OutOfTime):
                    rounded_texts[i] = self._with_simple_constants(formulas[i], deadline.over)
        r2 = [self._r2(fit) for fit in fits]
        return formula_table(posterior, formulas, r2, rounded_texts), formulas

    def front(
        self,
        posterior: Posterior,
        table: pd.DataFrame,
        formulas: Sequence[Formula],
        deadline: Deadline | None = None,
    ) -> tuple[pd.DataFrame, list[Formula]]:
        """Return the table of the front and its formulas.

        Those that are in the table of formulas are the same objects. For the others simple
        constants are looked for, in the shortest first, until the deadline or a Ctrl-C.
        """
        deadline = deadline or Deadline()
        objects, texts, r2 = [], [], []
        budget = Budget(self._fitter, deadline.cut_short, _MOST_ROUNDING)
        for one in posterior.front:
            if one.group >= 0 and one.model is posterior.groups[one.group].model:
                objects.append(formulas[one.group])
                texts.append(str(table["rounded"].iloc[one.group]))
                r2.append(float(table["r2"].iloc[one.group]))
                continue
            objects.append(self._shown(one.model))
            texts.append(str(objects[-1]))
            r2.append(self._r2(one.model))
            if self._free and budget.allows(one.model):
                with contextlib.suppress(OutOfTime):
                    texts[-1] = self._with_simple_constants(objects[-1], deadline.over)
        return front_table(posterior, objects, r2, texts), objects

    def _r2(self, fit: Model) -> float:
        problem = self._fitter.problem
        return 1.0 - fit.mse * (problem.y_scale / problem.y_spread) ** 2

    def one_standard_error_rmse(self, models: list[tuple[float, Model]]) -> float:
        """Return the RMSE whose square is one standard error above the smallest."""
        fitter = self._fitter
        model = min((model for _, model in models), key=lambda model: model.mse)
        values, n = fitter.residuals(model), fitter.problem.data.n
        values *= values  # in place: there may be millions
        values -= model.mse
        values *= values
        values *= fitter.weights
        variance = float(np.sum(values)) / n
        return float(np.sqrt(model.mse + np.sqrt(variance / n))) * fitter.problem.y_scale

    def formula(self, trees: Sequence[np.ndarray]) -> Formula | None:
        """Return trees with their least-squares fit as a formula, None if there is no such fit."""
        model = self._fitter.fit_trees(trees)
        return None if model is None else self._shown(model)

    def text(self, model: Model) -> str:
        """Return a fitted model as text."""
        return str(self._formula(model))

    def formula_and_rmse(self, trees: Sequence[np.ndarray]) -> tuple[Formula | None, float]:
        """Return trees as a formula, and its RMSE; None and nan if there is no fit."""
        model = self._fitter.fit_trees(trees)
        if model is None:
            return None, np.nan
        return self._formula(model), float(np.sqrt(model.mse)) * self._fitter.problem.y_scale

    def _with_simple_constants(self, formula: Formula, stop: Callable[[], bool]) -> str:
        """Return a formula with simple constants, as text; the same where there are none."""
        found = rounded(formula._expression, self._rows, stop)
        return str(formula if found == formula._expression else self._of(collected(found)))

    def _of(self, expression: ex.Expression) -> Formula:
        """Return a formula that is shown with the digits that the data support."""
        digits = [
            max(n, DIGITS) if is_simple(value) else n  # simple numbers are not measured
            for n, value in zip(
                self._rows.digits(expression), ex.constants(expression), strict=True
            )
        ]
        return Formula._from_expression(expression, self._names, digits)

    def _shown(self, model: Model) -> Formula:
        formula = self._formula(model)
        return self._of(formula._expression) if self._free else formula

    def _formula(self, model: Model) -> Formula:
        return fitted_formula(model, self._names, self._used)


def fitted_formula(model: Model, names: Sequence[str], used: np.ndarray) -> Formula:
    """Return a fitted model as a formula; names and used columns are those of `FormulaWriter`."""
    return Formula._from_expression(expression_of(model, used), names)


def formula_table(
    posterior: Posterior,
    formulas: Sequence[Formula],
    r2: Sequence[float],
    rounded_texts: Sequence[str],
) -> pd.DataFrame:
    """Return the table of formulas, which are given with their fits and texts.

    A loaded model gets its table here too: a column that follows from the posterior and `formulas`
    needs nothing in the file.
    """
    evidence = [one.log_evidence for one in posterior.groups]
    return _table(posterior, posterior.formula_models, formulas, r2, rounded_texts, evidence)


def front_table(
    posterior: Posterior,
    formulas: Sequence[Formula],
    r2: Sequence[float],
    rounded_texts: Sequence[str],
) -> pd.DataFrame:
    """Return the table of the front, whose formulas are given; what was not drawn has weight 0."""
    models = [
        (0.0 if one.group < 0 else posterior.groups[one.group].weight, one.model)
        for one in posterior.front
    ]
    evidence = [one.log_evidence for one in posterior.front]
    return _table(posterior, models, formulas, r2, rounded_texts, evidence)


def _table(
    posterior: Posterior,
    models: Sequence[tuple[float, Model]],
    formulas: Sequence[Formula],
    r2: Sequence[float],
    rounded_texts: Sequence[str],
    evidence: Sequence[float],
) -> pd.DataFrame:
    """Texts are objects: pandas' own kind of text does not take every name a column may have."""
    scale = posterior.mixture.y_scale
    return pd.DataFrame(
        {
            "probability": [min(1.0, probability) for probability, _ in models],
            "formula": pd.Series([str(formula) for formula in formulas], dtype=object),
            "n_terms": [len(model.state.trees) for _, model in models],
            "n_nodes": [formula.n_nodes for formula in formulas],
            "rmse": [np.sqrt(model.mse) * scale for _, model in models],
            "r2": r2,
            "rounded": pd.Series(rounded_texts, dtype=object),
            "log_evidence": np.asarray(evidence, dtype=float),
        }
    )


def with_shares(
    posterior: Posterior, formulas: pd.DataFrame, front: pd.DataFrame
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the tables of formulas and front with probabilities that follow from the evidence."""
    of_formulas, of_front = shares_by_evidence(posterior)
    formulas, front = formulas.copy(), front.copy()
    formulas["by_evidence"], front["by_evidence"] = of_formulas, of_front
    return formulas, front


def formulas_by_chain(posterior: Posterior, formulas: pd.DataFrame, n: int) -> pd.DataFrame:
    """Return the leading formulas of each chain, with their probabilities in that chain."""
    probability = np.array([posterior.by_chain(one) for one in posterior.groups])
    parts = []
    for chain, shares in enumerate(probability.T):
        order = np.argsort(-shares, kind="stable")[:n]
        order = order[shares[order] > 0.0]
        part = formulas.iloc[order][["formula", "n_terms", "n_nodes", "rmse", "r2"]].copy()
        part.insert(0, "chain", chain)
        part.insert(1, "probability", shares[order])
        parts.append(part)
    return pd.concat(parts)
