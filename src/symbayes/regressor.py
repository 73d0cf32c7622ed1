"""The estimator: parameters, what a fit gives, and what it can be asked; the work is elsewhere."""

from __future__ import annotations

import copy
import os
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from numbers import Integral
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils.validation import check_is_fitted

from .cautions import SamplingWarning
from .formula.checks import require_count
from .formula.formula import Formula
from .inputs.parameters import WAYS, check_choice, check_level, check_rule, generator
from .inputs.prior import NoisePrior, TermsPrior, TreePrior
from .inputs.sampler_settings import PaperSampler, TemperedSampler
from .inputs.task import make_task
from .inputs.validation import check_new_rows, check_new_target, target_name
from .posterior.table import formulas_by_chain
from .result import Result, combined
from .run import run_fit
from .samplers.run.workers import check_client
from .show.notebook import formulas_html
from .show.progress import Progress
from .show.report.page import write_report
from .storage.checkpoint import checked_note, read_checkpoint, refuse_existing
from .storage.model_file import load_model, save_model

# What intervals and draws are of.
_KINDS = ("mean", "observation")
#: Larger files are not read, unless the user says so.
MOST_BYTES = 100_000_000

Model = TypeVar("Model", bound="BayesianSymbolicRegressor")


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
    known_terms : list of str, optional
        Terms that are always in the model, such as ``["x0*x1"]``; their coefficients are learned,
        constants inside them stay as they are.
    initial_formulas : list of str, optional
        Formulas to start from, such as ``["2*sin(x0) + x1"]``. They only tell where to begin.
    noise_prior : "small", float or NoisePrior, optional
        Belief about the noise: 0.05 is about 5 % of the spread of y. The default lets data without
        noise be fitted to all digits; the paper's sampler, which draws the noise from this prior,
        expects about 10 %.
    tolerance : float from 0 to 0.05, default=0
        For short formulas of many rows: an error that is larger by this part costs one nat, so that
        with 0.005 another operator or column has to lower the error by about 1 % to be worth it.
        The table then counts as at most ``1 / tolerance`` rows. Measured data follow no formula
        exactly, and chains agree sooner if they need not tell apart what differs by less. With 0,
        all that the rows can tell counts.
    hyperparameters : "learn" or "fixed", default="learn"
        Whether the weights of operators and columns are learned along with the formulas, with
        `operators` and `feature_weights` as their prior means, or fixed at those. Learned, few
        relevant columns among many are found sooner. The paper's sampler has them fixed.
    sampler : "tempered", "paper", TemperedSampler or PaperSampler, default="tempered"
        "tempered" searches first and then samples by parallel tempering, coefficients and noise
        integrated out; "paper" is the sampler of the paper,
        with a fixed number of terms (2 if `n_terms` is "auto").
    draws : int, optional
        Draws per chain, at most; fewer when chains agree earlier or formulas are very large. If it
        is not given, a fit with a `timeout` draws until chains agree or time is up, and one without
        it makes at most 4000 (the paper's sampler 1000). Of more than 10,000 per chain (80,000 in
        all), equally spaced ones are kept.
    tune : int, optional
        Draws per chain for warm-up, thrown away. With the default sampler it is the most that a
        search may take, 15000 if not given; it ends sooner when the answer is settled.
    chains : int, default=4
        Independent chains; with the default sampler, ladders of tempered chains.
    combine : "pool" or "stack", default="pool"
        How chains become one answer: every chain counts the same, or by stacking weights, with
        which their mixture predicts best the training rows, each left out in turn. Stacking is for
        chains that have not agreed, as the verdict says; `combined` does it after a fit.
    model_selection : str, default="auto"
        What makes the best formula: it is the most probable ("probability"); the shortest of
        `pareto_` that loses little of R2 ("simplest within 0.01"); the simplest whose mean squared
        error is within one standard error of the smallest ("one_standard_error"); or the one with
        the smallest error ("accuracy"). With "auto" it is the most probable if that has a
        probability of at least 0.1. Among many that are less probable it is chance which leads, and
        the best is the shortest of `pareto_` that is nearly as close: it loses at most 0.01 of R2,
        and a tenth of what the leading one leaves unexplained.
        `select` answers for the other rules.
    warm_start : bool, default=False
        Whether a further `fit` on the same table continues where the last one ended, without
        warm-up and as if it had never stopped: `draws` is then the number in all. It may be raised,
        and so may `timeout`; what draws depend on has to stay as it was. A fit whose warm-up was
        not finished, or a model from a file, starts from the beginning.
    timeout : float, optional
        Seconds after which a fit ends with what it has, at most 75 % of them for warm-up;
        compilation is not counted. `diagnostics_["timed_out"]` says whether it was needed: the
        result then depends on how fast the machine was, and may differ for the same
        `random_state`.
    n_jobs : int, default=-1
        Chains that run at the same time, as in joblib; -1 uses all cores. The result does not
        depend on it.
    random_state : int, RandomState or None
        Seed. The same seed gives the same result, unless a `timeout` has ended the fit.
    progress : bool or callable, default=False
        Whether to show how the run goes: phase, leading formula, its error and size, time left; on
        standard error or in the notebook. A function is called instead with a `Progress`, in the
        thread of `fit`, a few times a second at most and at the end of every phase. If it returns
        something true, the run ends early with what it has, as after Ctrl-C; if it raises, `fit`
        does. Reports have no influence on the result.

    Attributes
    ----------
    formulas_ : DataFrame
        The formulas found, most probable first, with columns `probability`, `formula`,
        `n_terms`, `n_nodes`, `rmse` and `r2` (both on the training rows), and `rounded`: the
        formula with simple constants (whole numbers, fractions, multiples of pi) where the data do
        not object, for the first five. `log_evidence` compares the structures of the first 20
        whatever their constants, and `by_evidence` is the probability that follows from it; both
        are nan for the others.
    best_formula_ : Formula
        The best one by `model_selection`; has ``str()``, ``.sympy()``, ``.latex()`` and
        ``.predict(X)``.
    pareto_ : DataFrame
        The best formula of each size, from one column up: those to which no other is both shorter
        and closer, the shortest first. They need not be in `formulas_`: `probability` is 0 for one
        that was met on the way and never drawn. The columns are those of `formulas_`.
    pareto_objects_ : list of Formula
        All of them, in the order of `pareto_`.
    formula_objects_ : list of Formula
        All of them, in the order of `formulas_`.
    chain_weights_ : ndarray
        How much each chain counts in all answers, by `combine`; the weights sum to 1.
    history_ : DataFrame
        With ``sampler="paper"``: RMSE and number of nodes at every acceptance.
    diagnostics_ : dict
        When printed, arrays are shown by their sizes.
        `verdict`, in plain words: whether the run has converged, why, and what to do;
        `verdict_data`, the same as data: `reason`, its `facts`, `remedies`; `converged`, as a
        bool: at least two chains agree, or the formula found is exact; `r_hat` and
        `effective_draws` of log-likelihood, size, use of each column, leading formulas and
        predictions at a few rows; `leading_by_chain`, the probability that each
        chain on its own gives the leading formula; `search_agreed`, whether several starts of the
        search came to the same formula, and `search_cut`, whether it was ended before its time;
        `chains_disagree`, whether R-hat shows that the chains do
        not (`formulas_by_chain` shows what each found). If so, or with ``combine="stack"``,
        `stacking_weights` of the chains, and `stacking_gain`: the log predictive density of the
        training rows, each left out in turn, less that of pooled chains.
        Besides `proposals` and `evaluations` (with those of the search), `acceptance` by move,
        `seconds`, `log_likelihood` of the draws of each chain and `log_likelihood_by_temperature`,
        whether the run was `interrupted`, `timed_out` or `settled` before its budget was spent,
        `restarts` of the warm-up, `thinning` (one of this many draws was kept, so that memory stays
        within limits), `found` (what the search came upon, and after how many seconds), and for
        each ladder of temperatures its `powers`, `swap_rates` and `round_trips`.
    result_ : Result
        All that the fit has made, frozen: what files, plots, reports and predictions are made of.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Only when `X` has column names.

    References
    ----------
    Jin, Y., Fu, W., Kang, J., Guo, J., Guo, J. (2019). Bayesian Symbolic Regression.
    arXiv:1910.08892.

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
        known_terms: Sequence[str] | None = None,
        initial_formulas: Sequence[str] | None = None,
        noise_prior: NoisePrior | float | str | None = None,
        tolerance: float = 0.0,
        hyperparameters: str = "learn",
        sampler: str | TemperedSampler | PaperSampler = "tempered",
        draws: int | None = None,
        tune: int | None = None,
        chains: int = 4,
        combine: str = "pool",
        model_selection: str = "auto",
        warm_start: bool = False,
        timeout: float | None = None,
        n_jobs: int | None = -1,
        random_state: int | np.random.RandomState | None = None,
        progress: bool | Callable[[Progress], object] = False,
    ):
        self.operators = operators
        self.n_terms = n_terms
        self.tree_prior = tree_prior
        self.feature_weights = feature_weights
        self.known_terms = known_terms
        self.initial_formulas = initial_formulas
        self.noise_prior = noise_prior
        self.tolerance = tolerance
        self.hyperparameters = hyperparameters
        self.sampler = sampler
        self.draws = draws
        self.tune = tune
        self.chains = chains
        self.combine = combine
        self.model_selection = model_selection
        self.warm_start = warm_start
        self.timeout = timeout
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.progress = progress

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        client: Any = None,
        checkpoint: str | os.PathLike[str] | None = None,
        note: dict[str, Any] | None = None,
    ) -> BayesianSymbolicRegressor:
        """Sample the posterior over formulas.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_rows, n_columns)
        y : array-like of shape (n_rows,)
        sample_weight : array-like of shape (n_rows,), optional
            How often each row counts: a weight of 2 is the row twice.
        client : dask.distributed.Client, optional
            A Dask cluster to run the chains on. Without one they run in threads, or where a
            joblib backend that you have chosen says
            (``with joblib.parallel_config(backend="dask")``, or "loky"). The result is the same.
        checkpoint : str or path-like, optional
            A new file, to which the state of the run is written when it begins, every minute or so,
            and when it ends: `resume` continues a run that was killed from there, with the same
            draws. The previous one stays beside it as ``PATH.previous``.
        note : dict, optional
            What checkpoints are to tell of where their run comes from, as JSON: the command line
            notes its call there. Nothing is read from it.

        Returns
        -------
        self
            Ctrl-C ends the run after the current round; what was drawn so far is kept, and a
            warning says so. A second one raises KeyboardInterrupt.

        Warns
        -----
        ConvergenceWarning
            If the draws cannot be relied on yet, with the reason and what to do: a subclass of
            scikit-learn's warning of that name.
        """
        began = time.monotonic()
        check_client(client)
        path = None if checkpoint is None else refuse_existing(checkpoint)
        note = checked_note(note, path)
        task = make_task(self, X, y, sample_weight)
        self._keep(*run_fit(self, task, target_name(y), began, client, path, note))
        return self

    @classmethod
    def resume(
        cls: type[Model],
        path: str | os.PathLike[str],
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        n_jobs: int | None = None,
        progress: bool | Callable[[Progress], object] | None = None,
        client: Any = None,
    ) -> Model:
        """Resume a run from its checkpoint, as if it had never stopped.

        Parameters
        ----------
        path : str or path-like
            What was passed to `fit` as `checkpoint`. If that file is damaged, the one before it
            is used, and a warning says so. The run keeps writing to it.
        X, y, sample_weight
            The table of that fit; another one is refused.
        n_jobs, progress : optional
            As the parameters of the estimator; None leaves them as they were; a function
            given as `progress` is not kept.
        client : dask.distributed.Client, optional
            As for `fit`.

        Returns
        -------
        BayesianSymbolicRegressor
            Fitted, with the parameters of that run and the draws that it would have made; at once,
            if it was finished. A run with `timeout` has the time that was left.

        Raises
        ------
        ModelFileError
            If there is no checkpoint that can be read, or if it is of another version of symbayes.
        ValueError
            If the table is another one.

        Examples
        --------
        >>> import tempfile
        >>> from symbayes import BayesianSymbolicRegressor
        >>> from symbayes.datasets import paper_task
        >>> X, y = paper_task("f2", random_state=0)
        >>> model = BayesianSymbolicRegressor(["+", "square", "cube"], random_state=0)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = f"{folder}/run.checkpoint"
        ...     model = model.fit(X, y, checkpoint=path)
        ...     resumed = BayesianSymbolicRegressor.resume(path, X, y)
        >>> resumed.formulas_.equals(model.formulas_)
        True
        """
        began = time.monotonic()
        stored = read_checkpoint(path, cls)
        given = {"n_jobs": n_jobs, "progress": progress}
        changed = {name: value for name, value in given.items() if value is not None}
        model = cls(**stored.parameters | changed)
        check_client(client)
        task = make_task(model, X, y, sample_weight)
        stored.check_table(model, task.table)
        model._keep(*run_fit(model, task, target_name(y), began, client, stored=stored))
        return model

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
        return self._fitted.predict(check_new_rows(self, X), return_std)

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
        check_is_fitted(self)
        X = check_new_rows(self, X)
        return self.result_.interval(X, float(level), noise=kind == "observation")

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
        X = check_new_rows(self, X)
        return self.result_.sample(X, int(n), kind == "observation", rng)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the coefficient of determination R2 of the predictions on rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows.
        y : array-like of shape (n_samples,)
            What was observed there.
        sample_weight : array-like of shape (n_samples,), optional
            How much each row counts.

        Returns
        -------
        float
            1 for perfect predictions, 0 for those of the mean of y.
        """
        predicted = self.predict(X)
        observed = check_new_target(y, len(predicted))
        # Squares of extreme values overflow or vanish; a power of 2 leaves all digits as they are.
        _, exponent = np.frexp(np.abs(observed).max())
        observed, predicted = np.ldexp(observed, -exponent), np.ldexp(predicted, -exponent)
        return float(r2_score(observed, predicted, sample_weight=sample_weight))

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
        result = self._fitted
        if result.accepted is None:
            raise AttributeError(
                "staged_predict needs a model fitted with sampler='paper'"
                if result.history is None
                else "staged_predict needs the accepted models, which files do not keep; fit "
                "again, or keep the model with pickle or joblib"
            )
        return result.accepted.predict(check_new_rows(self, X)[:, result.used])

    def select(self, rule: str) -> Formula:
        """Return the best formula by a rule.

        Parameters
        ----------
        rule : str
            "auto": the most probable if it stands out, with a probability of at least 0.1, and else
            the shortest of `pareto_` that is nearly as close. "probability": the most probable.
            "simplest within 0.01" (or another number below 1, or "simplest within 1 %"):
            the shortest of `pareto_` whose R2 is at most that much below the best in `formulas_`.
            "one_standard_error": the simplest of `formulas_` whose mean squared error on the
            training rows is within one standard error of the smallest.
            "accuracy": the one of `formulas_` with the smallest error.

        Returns
        -------
        Formula
        """
        result = self._fitted
        check_rule("rule", rule)
        return result.selected(rule)

    @property
    def pareto_(self) -> pd.DataFrame:
        """The formulas to which no other is both shorter and closer, the shortest first."""
        return self._fitted.front.copy()

    @property
    def pareto_objects_(self) -> list[Formula]:
        """The formulas of `pareto_` as objects, in the same order."""
        return list(self._fitted.front_objects)

    def inclusion_probability(self) -> pd.Series:
        """Return for each column the probability that the formula uses it.

        Returns
        -------
        Series
            Indexed by column name, or by ``x0, x1, ...`` where columns have none.
        """
        return self._fitted.inclusion

    def constants(self, formula: int | Formula | None = None, level: float = 0.9) -> pd.DataFrame:
        """Return the constants of a formula with intervals.

        They are those of the normal law that fits the posterior of the constants, given the
        formula: from the curvature at their best values, with the noise integrated out.

        Parameters
        ----------
        formula : int or Formula, optional
            Its place in `formulas_`, or one of the formulas of this model, as from `select`; the
            best formula if it is not given.
        level : float in (0, 1)
            Probability that an interval holds the constant.

        Returns
        -------
        DataFrame
            One row per constant, in the order and with the sign in which they stand in the text:
            `value`, `std`, `lower` and `upper`. The last three are infinite for constants that
            others can make up for.
        """
        check_is_fitted(self)
        check_level("constants", level)
        n_formulas = len(self.formula_objects_)
        if formula is None:
            return self.result_.constants(self.best_formula_, float(level))
        if isinstance(formula, Formula):
            if formula not in [*self.formula_objects_, *self.pareto_objects_]:
                raise ValueError(
                    "formula is none of this model; pass one of formula_objects_ or "
                    "pareto_objects_, or a place in formulas_"
                )
            return self.result_.constants(formula, float(level))
        if isinstance(formula, bool) or not isinstance(formula, Integral):
            raise TypeError(f"formula must be a place in formulas_, not {formula!r}")
        if not -n_formulas <= formula < n_formulas:
            raise IndexError(f"formula is {formula} and formulas_ has {n_formulas} rows")
        return self.result_.constants(self.formula_objects_[formula], float(level))

    def formulas_by_chain(self, n: int = 3) -> pd.DataFrame:
        """Return the leading formulas of each chain on its own.

        Chains that have converged list the same formulas with much the same probabilities.

        Parameters
        ----------
        n : int
            Formulas per chain, at most.

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
        return formulas_by_chain(self.result_.posterior, self.formulas_, int(n))

    @property
    def chain_weights_(self) -> np.ndarray:
        """How much each chain counts in all answers; the weights sum to 1."""
        return self._fitted.posterior.chain_weights.copy()

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
        other.combine = how
        other._keep(combined(self.result_, how, self.model_selection))
        return other

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
        return write_report(self._fitted, self, path, title)

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
            keeps 10,000 rows at most. Each takes 16 bytes per draw.
        random_state : int, RandomState or None
            Seed for coefficients, noise and new observations.

        Returns
        -------
        InferenceData, or from ArviZ 1.0 on xarray.DataTree
        """
        from .show.arviz_io import to_arviz

        return to_arviz(self._fitted, max_rows, random_state)

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
        save_model(self, self._fitted, path)

    @property
    def _fitted(self) -> Result:
        check_is_fitted(self)
        return self.result_

    @property
    def _repr_html_(self) -> Callable[[], str]:
        # With `sklearn.set_config(display="text")` there is none: an AttributeError says so.
        diagram = super()._repr_html_
        return lambda: diagram() + formulas_html(getattr(self, "result_", None))

    def _repr_mimebundle_(self, **options: Any) -> dict[str, str]:
        bundle = super()._repr_mimebundle_(**options)
        if "text/html" in bundle:
            bundle["text/html"] += formulas_html(getattr(self, "result_", None))
        return bundle

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "result_")  # not after a fit that failed halfway

    def _keep(self, result: Result, warning: SamplingWarning | None = None) -> None:
        """Set the attributes of a fitted model, and tell the caller of `fit` what needs care."""
        self.result_, self.diagnostics_ = result, result.diagnostics
        self.formulas_, self.formula_objects_ = result.formulas, result.formula_objects
        self.best_formula_ = result.best_formula
        if result.history is not None:
            self.history_ = result.history
        elif hasattr(self, "history_"):
            del self.history_  # of an earlier fit
        if warning is not None:
            warnings.warn(warning, stacklevel=3)


def load(path: str | os.PathLike[str], *, max_bytes: int = MOST_BYTES) -> BayesianSymbolicRegressor:
    """Load a model that was saved with `BayesianSymbolicRegressor.save`.

    Nothing in a file is run, whatever it holds, so that files of strangers are safe to load. What
    they say may be wrong all the same.

    Parameters
    ----------
    path : str or path-like
        The file.
    max_bytes : int, default=100_000_000
        Larger files are refused, before they are read.

    Returns
    -------
    BayesianSymbolicRegressor
        Fitted, with the same parameters, formulas and predictions as the one that was saved.

    Raises
    ------
    ModelFileError
        If the file is damaged, saved by a newer version of symbayes, or something else.
    OSError
        If it cannot be opened.

    Examples
    --------
    >>> import tempfile
    >>> from symbayes import BayesianSymbolicRegressor, load
    >>> from symbayes.datasets import paper_task
    >>> X, y = paper_task("f2", random_state=0)
    >>> model = BayesianSymbolicRegressor(["+", "square", "cube"], random_state=0).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(f"{folder}/model.symbayes")
    ...     loaded = load(f"{folder}/model.symbayes")
    >>> bool((loaded.predict(X) == model.predict(X)).all())
    True
    """
    require_count("load", "max_bytes", max_bytes)
    parameters, result = load_model(BayesianSymbolicRegressor, path, max_bytes)
    model = BayesianSymbolicRegressor(**parameters)
    model.n_features_in_ = result.n_columns
    if result.column_names is not None:
        model.feature_names_in_ = np.array(result.column_names, dtype=object)
    model._keep(result)
    return model
