"""The estimator: parameters, fit, predict; no mathematics."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.metrics import r2_score

from .cautions import SamplingWarning
from .inputs.prior import NoisePrior, TermsPrior, TreePrior
from .inputs.sampler_settings import PaperSampler, TemperedSampler
from .inputs.task import make_task
from .inputs.validation import check_new_target
from .runs import Runs
from .samplers.run.workers import check_client
from .samplers.sampling import trace_to_extend
from .samplers.trace import RunState
from .show.notebook import NotebookDisplay
from .show.progress import Progress
from .storage.checkpoint import begin_checkpoints, refuse_existing


class BayesianSymbolicRegressor(NotebookDisplay, Runs, RegressorMixin, BaseEstimator):
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
    hyperparameters : "learn" or "fixed", default="learn"
        Whether the weights of operators and columns are learned along with the formulas, with
        `operators` and `feature_weights` as their prior means, or fixed at those. Learned, few
        relevant columns among many are found sooner. The paper's sampler has them fixed.
    sampler : "tempered", "paper", TemperedSampler or PaperSampler, default="tempered"
        "tempered" searches first and then samples by parallel tempering, coefficients and noise
        integrated out; "paper" is the sampler of the paper,
        with a fixed number of terms (2 if `n_terms` is "auto").
    draws : int, default=1000
        Draws a chain, at most; fewer when they agree before or formulas are very large. Of more
        than 10,000 a chain (80,000 in all), equally spaced ones are kept.
    tune : int, optional
        Draws a chain for warm-up, thrown away. With the default sampler it is the most that a
        search may take, 15000 if not given; it ends sooner when the answer is settled.
    chains : int, default=4
        Independent chains; with the default sampler, ladders of tempered chains.
    combine : "pool" or "stack", default="pool"
        How chains become one answer: every chain counts the same, or by stacking weights, with
        which their mixture predicts best the training rows, each left out in turn. Stacking is for
        chains that have not agreed, as the verdict tells; `combined` does it after a fit.
    model_selection : "probability", "one_standard_error" or "accuracy", default="probability"
        What makes the best formula: it is the most probable, the simplest whose mean squared error
        is within one standard error of the smallest, or the one with the smallest error. `select`
        answers for the other rules.
    warm_start : bool, default=False
        Whether a further `fit` on the same table goes on where the last one ended, without warm-up
        and as if it had never stopped: `draws` is then the number in all. It may be raised, and so
        may `timeout`; what draws depend on has to stay as it was. A fit whose warm-up was not
        finished, or a model from a file, begins anew.
    timeout : float, optional
        Seconds after which a fit ends with what it has, at most 75 % of them for warm-up;
        compilation is not counted. `diagnostics_["timed_out"]` tells whether it was needed: the
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
        not object, for the first five.
    best_formula_ : Formula
        The best one by `model_selection`; has ``str()``, ``.sympy()``, ``.latex()`` and
        ``.predict(X)``.
    pareto_ : DataFrame
        Of `formulas_` those to which no other is both shorter and closer, the shortest first.
    formula_objects_ : list of Formula
        All of them, in the order of `formulas_`.
    chain_weights_ : ndarray
        How much each chain counts in all answers, by `combine`; the weights sum to 1.
    history_ : DataFrame
        With ``sampler="paper"``: RMSE and number of nodes at every acceptance.
    diagnostics_ : dict
        Printed, its arrays are told by their sizes.
        `verdict`, in plain words: whether the run has converged, why, and what to do; `converged`,
        the same as a bool: at least two chains agree, or the formula found is exact; `r_hat` and
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
        `restarts` of the warm-up, `thinning` (of so many draws one was kept, so that memory stays
        within limits), `found` (what the search came upon, and after how many seconds), and for
        each ladder of temperatures its `powers`, `swap_rates` and `round_trips`.
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
        hyperparameters: str = "learn",
        sampler: str | TemperedSampler | PaperSampler = "tempered",
        draws: int = 1000,
        tune: int | None = None,
        chains: int = 4,
        combine: str = "pool",
        model_selection: str = "probability",
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
            and when it ends: what was killed goes on from there with `resume`, to the same draws.
            The one before stays beside it as ``PATH.previous``.

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
        task = make_task(self, X, y, sample_weight)
        before = None
        if self.warm_start:
            before = trace_to_extend(
                getattr(self, "_earlier", None), task.problem, task.sampler, int(self.chains),
                int(self.draws),
            )  # fmt: skip
            if before is None and hasattr(self, "_posterior"):
                warnings.warn(
                    "warm_start: there is nothing to go on with, so the fit begins anew; a model "
                    "from a file, one fitted without warm_start, or one that had not warmed up "
                    "cannot be continued",
                    SamplingWarning,
                    stacklevel=2,
                )
        entropy = task.random_state.randint(0, 2**31 - 1, size=4).tolist()
        start = RunState(before)
        checkpoints = None
        if path is not None:
            checkpoints = begin_checkpoints(path, self, task.table, entropy, start)
        return self._run(task, entropy, client, checkpoints, lambda: start, before, began)

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
