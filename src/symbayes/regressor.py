"""The estimator: parameters, fit, predict; no mathematics."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from joblib import effective_n_jobs
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits

from .diagnostics import cut_short, effort, history
from .kernels import units
from .operators import operator_weights
from .parameters import Sampler, check_parameters, check_seed, terms_for
from .posterior import NoFiniteModel, Posterior
from .prior import NoisePrior, TermsPrior, TreePrior
from .problem import Problem, check_buildable, make_problem, resolve_feature_weights
from .progress import Display
from .samplers.ladder import NoStart
from .samplers.paper import PaperSampler
from .samplers.running import Watch, Workers
from .samplers.tempered import TemperedSampler
from .trace import Trace
from .validation import Table, check_new_rows, check_table, feature_names


class SamplingWarning(UserWarning):
    """A run did not go as far as it was meant to, or a prediction needs care."""


class BayesianSymbolicRegressor(RegressorMixin, BaseEstimator):
    """Bayesian symbolic regression.

    The model is ``y = b0 + b1 g1(x) + ... + bK gK(x) + noise``. Each g is a formula, drawn from a
    prior that prefers short ones; the fit is a sample from the posterior over formulas.

    Parameters
    ----------
    operators : str, list of str, or dict of weights, default="default"
        What formulas may be made of: the name of a set ("default", "paper", "paper-simulation",
        "arithmetic", "all"), a list such as ``["+", "*", "sin"]``, or weights such as
        ``{"+": 2, "sin": 1}``. `symbayes.OPERATORS` lists all. Nothing is protected: a formula
        that has no finite value on some training row has probability zero.
    n_terms : "auto", int or TermsPrior, default="auto"
        The number of terms K: learned, fixed, or learned with a prior of your own.
    tree_prior : TreePrior, optional
        Beliefs about the size of terms and about constants.
    feature_weights : sequence or dict, optional
        How readily columns are used, by position or by name; columns a dict does not name have
        weight 1, weight 0 leaves a column out.
    noise_prior : NoisePrior, optional
        Belief about the noise. The default lets data without noise be fitted to all digits;
        the paper's sampler, which draws the noise from this prior, expects about 10 %.
    hyperparameters : "learn" or "fixed", default="learn"
        Whether the weights of operators and columns are learned along with the formulas, with
        `operators` and `feature_weights` as their prior means, or fixed at those. Learned, few
        relevant columns among many are found sooner. The paper's sampler has them fixed.
    sampler : "tempered", "paper", TemperedSampler or PaperSampler, default="tempered"
        "tempered" searches first and then samples by parallel tempering, coefficients and noise
        integrated out; "paper" is the sampler of the paper,
        with a fixed number of terms (2 if `n_terms` is "auto").
    draws : int, default=1000
        Draws a chain to keep, at most; fewer when they agree before or formulas are very large.
    tune : int, optional
        Draws a chain for warm-up, thrown away. With the default sampler it is the most that a
        search may take, 15000 if not given; it ends sooner when the answer is settled.
    chains : int, default=4
        Independent chains; with the default sampler, ladders of tempered chains.
    timeout : float, optional
        Seconds after which a fit ends with what it has, at most 75 % of them for warm-up;
        compilation is not counted. `diagnostics_["timed_out"]` tells whether it was needed.
    n_jobs : int, default=-1
        Chains that run at the same time, as in joblib; -1 uses all cores. The result does not
        depend on it.
    random_state : int, RandomState or None
        Seed. The same seed gives the same result.
    progress : bool, default=False
        Whether to show how far the run is.

    Attributes
    ----------
    formulas_ : DataFrame
        The formulas found, most probable first, with columns `probability`, `formula`,
        `n_terms`, `n_nodes`, `rmse` and `r2` (both on the training rows), and `rounded`: the
        formula with simple constants (whole numbers, fractions, multiples of pi) where the data do
        not object, for the first five.
    best_formula_ : Formula
        The most probable one; has ``str()``, ``.sympy()``, ``.latex()`` and ``.predict(X)``.
    formula_objects_ : list of Formula
        All of them, in the order of `formulas_`.
    history_ : DataFrame
        With ``sampler="paper"``: RMSE and number of nodes at every acceptance.
    diagnostics_ : dict
        `proposals` and `evaluations` (with those of the search), `acceptance` by move, `seconds`,
        `log_likelihood` of the draws of each chain, whether the run was `interrupted`,
        `timed_out` or `settled` before its budget was spent, `restarts` of the warm-up, `found`
        (what the search came upon, and after how many seconds), and for each ladder of
        temperatures its `powers`, `swap_rates` and `round_trips`.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Only when `X` has column names.

    References
    ----------
    Y. Jin, W. Fu, J. Kang, J. Guo, J. Guo (2019). Bayesian Symbolic Regression. arXiv:1910.08892.

    Examples
    --------
    >>> from symbayes import BayesianSymbolicRegressor
    >>> from symbayes.datasets import paper_task
    >>> X, y = paper_task("f2", random_state=0)
    >>> model = BayesianSymbolicRegressor(operators=["+", "*", "square", "cube"], random_state=0)
    >>> model.fit(X, y).best_formula_.text(digits=4)
    '8*x1**3 + 8*x0**2 - 15'
    """

    def __init__(
        self,
        operators: str | Iterable[str] | Mapping[str, float] = "default",
        *,
        n_terms: str | int | TermsPrior = "auto",
        tree_prior: TreePrior | None = None,
        feature_weights: Sequence[float] | Mapping[str | int, float] | None = None,
        noise_prior: NoisePrior | None = None,
        hyperparameters: str = "learn",
        sampler: str | TemperedSampler | PaperSampler = "tempered",
        draws: int = 1000,
        tune: int | None = None,
        chains: int = 4,
        timeout: float | None = None,
        n_jobs: int | None = -1,
        random_state: int | np.random.RandomState | None = None,
        progress: bool = False,
    ):
        self.operators = operators
        self.n_terms = n_terms
        self.tree_prior = tree_prior
        self.feature_weights = feature_weights
        self.noise_prior = noise_prior
        self.hyperparameters = hyperparameters
        self.sampler = sampler
        self.draws = draws
        self.tune = tune
        self.chains = chains
        self.timeout = timeout
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.progress = progress

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> BayesianSymbolicRegressor:
        """Sample the posterior over formulas.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_rows, n_columns)
        y : array-like of shape (n_rows,)
        sample_weight : array-like of shape (n_rows,), optional
            How often each row counts: a weight of 2 is the row twice.

        Returns
        -------
        self
            Ctrl-C ends the run early; what was drawn so far is kept, and a warning says so. A
            second one within two seconds raises KeyboardInterrupt.
        """
        sampler = check_parameters(self)
        random_state = check_seed(self.random_state)
        terms = terms_for(sampler, self.n_terms)
        weights = operator_weights(self.operators)
        table = check_table(self, X, y, sample_weight)
        problem = self._make_problem(table, weights, terms, sampler.noise_prior)
        with Display(bool(self.progress)) as display:
            if not units.is_cached(sampler.name):
                display.say("symbayes: compiling, once (about ten seconds)")
            units.load(sampler.name)
            watch = Watch(self.timeout)
            # Chains share the cores; threads of the linear algebra would only get in their way.
            with threadpool_limits(1, user_api="blas"), watch:
                trace = self._sample(problem, sampler, random_state, watch, display)
                self._finish(problem, sampler, trace, table, watch)
        return self

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Predict by the posterior mean.

        It is the mean over formulas, weighted by their probabilities, not the value of
        `best_formula_`. At each row the most extreme draws are left out, 0.2 per cent of the
        posterior on either side, as are those without a finite value there.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_rows, n_columns)
        return_std : bool
            Whether to return the standard deviation of the predictive distribution as well:
            spread between formulas, uncertainty of coefficients, and noise.

        Returns
        -------
        mean : ndarray of shape (n_rows,)
        std : ndarray of shape (n_rows,), only with `return_std`
        """
        check_is_fitted(self)
        X = check_new_rows(self, X)
        mean, std, left_out = self._posterior.predict(X[:, self._used])
        if (left_out > 1e-9).any():
            rows = int((left_out > 1e-9).sum())
            warnings.warn(
                f"some formulas have no finite value on {rows} of {len(X)} rows and were left out "
                f"there (up to {max(left_out.max(), 0.01):.0%} of the posterior)"
                + ("; rows where none has one are nan" if (left_out > 1 - 1e-9).any() else ""),
                SamplingWarning,
                stacklevel=2,
            )
        return (mean, std) if return_std else mean

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
        if not hasattr(self, "history_"):
            raise AttributeError("staged_predict needs a model fitted with sampler='paper'")
        return self._posterior.stages(check_new_rows(self, X)[:, self._used])

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
        result[self._used] = self._posterior.inclusion()
        return pd.Series(result, index=names, name="inclusion probability")

    def _make_problem(
        self,
        table: Table,
        weights: dict[str, float],
        terms: TermsPrior | int,
        default_noise: NoisePrior,
    ) -> Problem:
        tree_prior = self.tree_prior or TreePrior()
        by_column = resolve_feature_weights(self.feature_weights, feature_names(self), table.used)
        check_buildable(weights, tree_prior, int((by_column > 0).sum()))
        if isinstance(terms, int) and terms >= len(table.y):
            raise ValueError(
                f"n_terms is {terms} and there are {len(table.y)} rows to fit them to; n_terms must"
                f" be at most {len(table.y) - 1}, or 'auto'"
            )
        return make_problem(
            table,
            weights,
            by_column,
            tree_prior,
            self.noise_prior or default_noise,
            terms,
            self.hyperparameters == "learn",
        )

    def _sample(
        self,
        problem: Problem,
        sampler: Sampler,
        random_state: np.random.RandomState,
        watch: Watch,
        display: Display,
    ) -> Trace:
        entropy = random_state.randint(0, 2**31 - 1, size=4).tolist()
        seeds = np.random.SeedSequence(entropy).spawn(int(self.chains))
        n_jobs = min(effective_n_jobs(self.n_jobs), int(self.chains))
        try:
            with Workers(n_jobs) as workers:
                return sampler.sample(
                    problem,
                    tune=sampler.tune if self.tune is None else int(self.tune),
                    draws=int(self.draws),
                    seeds=seeds,
                    workers=workers,
                    watch=watch,
                    progress=display.callback,
                )
        except NoStart:
            raise ValueError(
                f"no model of {problem.most_terms} terms could be found that is finite on all rows "
                "and free of redundant terms; use fewer terms (n_terms), more operators, or "
                "rescale columns of extreme size"
            ) from None

    def _finish(
        self,
        problem: Problem,
        sampler: Sampler,
        trace: Trace,
        table: Table,
        watch: Watch,
    ) -> None:
        self._used = table.used
        data = (table.y, table.weights)
        try:
            self._posterior = Posterior(problem, trace, *data, sampler.plug_in, watch.over)
        except NoFiniteModel:
            raise ValueError(
                "the coefficients of all formulas found are too large or too small for a number; "
                "rescale y or columns of extreme size"
            ) from None
        names = feature_names(self)
        self.formulas_, self.formula_objects_ = self._posterior.formulas(
            names, table.used, watch.over
        )
        self.best_formula_ = self.formula_objects_[0]
        self.diagnostics_ = effort(trace)
        self.diagnostics_["found"] = [
            (find.seconds, str(self._posterior.formula_of(find.trees, names, table.used)))
            for find in trace.search
        ]
        if sampler.plug_in:
            self.history_ = history(trace, problem)
        elif hasattr(self, "history_"):
            del self.history_  # of an earlier fit
        if (message := cut_short(trace)) is not None:
            warnings.warn(message, SamplingWarning, stacklevel=3)
