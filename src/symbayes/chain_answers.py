"""What a fitted model can be asked about its chains: what each found, and how they are combined."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from .answers import Answers
from .formula.formula import Formula
from .inputs.parameters import WAYS, check_choice
from .inputs.prior import require_count
from .posterior.combining import formulas_by_chain, reweighted, stack
from .posterior.verdict import stacking_advice

Model = TypeVar("Model", bound="ChainAnswers")


class ChainAnswers(Answers):
    """The part of the estimator that knows that there are several chains."""

    # Set by `fit`.
    best_formula_: Formula
    diagnostics_: dict[str, Any]
    combine: str
    model_selection: str

    @property
    def chain_weights_(self) -> np.ndarray:
        """How much each chain counts in all answers; the weights sum to 1."""
        check_is_fitted(self)
        return self._posterior.chain_weights.copy()

    def formulas_by_chain(self, n: int = 3) -> pd.DataFrame:
        """Return the leading formulas of each chain on its own.

        Chains that have converged list the same formulas with much the same probabilities.

        Parameters
        ----------
        n : int
            Formulas a chain, at most.

        Returns
        -------
        DataFrame
            With columns `chain`, `probability` (among the draws of that chain), `formula`,
            `n_terms`, `n_nodes`, `rmse` and `r2`, indexed by the row of `formulas_`.

        Examples
        --------
        >>> from symbayes import BayesianSymbolicRegressor
        >>> from symbayes.datasets import paper_task
        >>> X, y = paper_task("f2", random_state=0)
        >>> model = BayesianSymbolicRegressor(["+", "square", "cube"], random_state=0).fit(X, y)
        >>> model.formulas_by_chain(n=1)["chain"].tolist()
        [0, 1, 2, 3]
        """
        check_is_fitted(self)
        require_count("formulas_by_chain", "n", n)
        return formulas_by_chain(self._posterior, self.formulas_, int(n))

    def combined(self: Model, how: str) -> Model:
        """Return the same fit with its chains combined in another way, without a run.

        Parameters
        ----------
        how : "pool" or "stack"
            As the parameter `combine`.

        Returns
        -------
        BayesianSymbolicRegressor
            What ``combine=how`` would have given: predictions, intervals, `formulas_`,
            `best_formula_` and `inclusion_probability` are those of the chains so combined. This
            model stays as it is.

        Examples
        --------
        >>> from symbayes import BayesianSymbolicRegressor
        >>> from symbayes.datasets import paper_task
        >>> X, y = paper_task("f2", random_state=0)
        >>> model = BayesianSymbolicRegressor(["+", "square", "cube"], random_state=0).fit(X, y)
        >>> model.chain_weights_
        array([0.25, 0.25, 0.25, 0.25])
        >>> float(model.combined("stack").chain_weights_.sum().round(12))
        1.0
        """
        check_is_fitted(self)
        check_choice("how", how, WAYS)
        other = copy.copy(self)
        other._told = set()
        other.combine = how
        other._combine_chains()
        return other

    def _combine_chains(self) -> None:
        """Let the chains count as `combine` says, in all that was fitted."""
        n_chains = len(self._posterior.draws)
        weights = np.full(n_chains, 1.0 / n_chains)
        if self.combine == "stack" and n_chains > 1:
            self._measure_stacking()
            weights = np.array(self.diagnostics_["stacking_weights"])
        self._say_how_combined()
        if np.array_equal(weights, self._posterior.chain_weights):
            return
        self._posterior, order = reweighted(self._posterior, weights)
        formulas = self.formulas_.iloc[order].reset_index(drop=True)
        formulas["probability"] = [min(1.0, one.weight) for one in self._posterior.groups]
        self.formulas_ = formulas
        self.formula_objects_ = [self.formula_objects_[i] for i in order]
        self.best_formula_ = self.select(self.model_selection)
        leading = self._posterior.leading_by_chain
        self.diagnostics_ = self.diagnostics_ | {"leading_by_chain": leading}

    def _say_how_combined(self) -> None:
        """Let the verdict advise what is not done already."""
        gain, stacked = self.diagnostics_["stacking_gain"], self.combine == "stack"
        if self.diagnostics_["chains_disagree"] and gain is not None:
            verdict = self.diagnostics_["verdict"].replace(
                stacking_advice(gain, not stacked), stacking_advice(gain, stacked)
            )
            self.diagnostics_ = self.diagnostics_ | {"verdict": verdict}

    def _measure_stacking(self, stop: Callable[[], bool] = lambda: False) -> None:
        if self.diagnostics_["stacking_weights"] is None:
            found = stack(self._posterior, self._rows, stop)
            self.diagnostics_ = self.diagnostics_ | {
                "stacking_weights": found.weights.tolist(), "stacking_gain": found.gain,
            }  # fmt: skip
