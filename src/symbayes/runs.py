"""The part of the estimator that carries out a run, anew or from a checkpoint."""

from __future__ import annotations

import contextlib
import os
import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import numpy as np
from threadpoolctl import threadpool_limits

from .cautions import ConvergenceWarning, SamplingWarning
from .chain_answers import ChainAnswers
from .deadline import Deadline, OutOfTime
from .fitting.fitter import Fitter
from .inputs.sampler_settings import TemperedSampler
from .inputs.task import Task, make_task
from .inputs.validation import LARGE, Table, column_name, feature_names
from .kernels import units
from .posterior.diagnostics import cut_short, effort, history, nothing_new
from .posterior.listing import Lister
from .posterior.posterior import NoFiniteModel, make_posterior, seconds_after
from .posterior.stages import Stages
from .posterior.verdict import judge, stacking_advice
from .samplers.run.clock import Watch
from .samplers.run.context import RunContext
from .samplers.run.remote import ClusterError
from .samplers.run.scheduler import NoStart
from .samplers.run.workers import check_client, workers_for
from .samplers.sampling import remember, sample
from .samplers.trace import Find, RunState, Trace
from .show.display import Display, reports
from .show.progress import Progress
from .storage.checkpoint import Checkpoints, Stored, read_checkpoint

#: Training rows that a fitted model keeps for plots, reports and ArviZ, at most.
MOST_ROWS_KEPT = 10_000
# Parts of the time left after sampling for the posterior, and then for its table of formulas; the
# rest is for what is said about them.
_FOR_POSTERIOR, _FOR_TABLE = 0.6, 0.5

Estimator = TypeVar("Estimator", bound="Runs")


class Runs(ChainAnswers):
    """The part of the estimator that carries out a run, anew or from a checkpoint."""

    # Whether a display ends with the verdict; not where it is said elsewhere.
    _says_verdict = True
    # What a checkpoint is to tell about where its run comes from, as JSON.
    _origin: dict[str, Any] | None = None

    # Parameters, set by the constructor.
    chains: int
    draws: int
    n_jobs: int | None
    progress: bool | Callable[[Progress], object]
    timeout: float | None
    tune: int | None
    warm_start: bool

    @classmethod
    def resume(
        cls: type[Estimator],
        path: str | os.PathLike[str],
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        n_jobs: int | None = None,
        progress: bool | Callable[[Progress], object] | None = None,
        client: Any = None,
    ) -> Estimator:
        """Go on with a run from its checkpoint, as if it had never stopped.

        Parameters
        ----------
        path : str or path-like
            What was passed to `fit` as `checkpoint`. If that file is damaged, the one before it
            is used, and a warning says so. The run goes on writing to it.
        X, y, sample_weight
            The table of that fit; another one is refused.
        n_jobs, progress : optional
            As the parameters of the estimator; None leaves them as they were, but that no
            function is kept for `progress`.
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
        stored = read_checkpoint(path, cls)
        given = {"n_jobs": n_jobs, "progress": progress}
        changed = {name: value for name, value in given.items() if value is not None}
        return cls(**stored.parameters | changed)._go_on(stored, X, y, sample_weight, client)

    def _go_on(
        self: Estimator, stored: Stored, X: Any, y: Any, sample_weight: Any, client: Any = None
    ) -> Estimator:
        """Go on with the run of a checkpoint, whose parameters these are."""
        began = time.monotonic()
        self._origin = stored.origin
        check_client(client)
        task = make_task(self, X, y, sample_weight)
        stored.check_table(self, task.table)
        return self._run(
            task, stored.entropy, client, stored.checkpoints(),
            lambda: stored.point(task, int(self.chains)), None, began, stored.seconds,
        )  # fmt: skip

    def _run(
        self: Estimator,
        task: Task,
        entropy: list[int],
        client: Any,
        checkpoints: Checkpoints | None,
        start: Callable[[], RunState],
        before: Trace | None,
        began: float,
        seconds: float = 0.0,
    ) -> Estimator:
        """Sample from a point on, and make the answers.

        The run took `seconds` before that point. This part of it began at `began`; compilation is
        not counted.
        """
        problem, table, sampler = task.problem, task.table, task.sampler
        with Display(not callable(self.progress) and bool(self.progress)) as display:
            if not units.is_cached(sampler.name):
                display.say("compiling, once (ten to thirty seconds)")
            compiling = time.monotonic()
            # A large table needs more of it, for the run and for the fits after it.
            by_parts = isinstance(sampler, TemperedSampler) and (
                sampler.in_stages(problem).part is not None or len(table.y) > LARGE
            )
            units.load(sampler.name, by_parts)
            began += time.monotonic() - compiling
            fitter = Fitter(problem, table.y, table.weights, sampler.plug_in)
            lister = Lister(fitter, feature_names(self), table.used)
            point = start()
            watch = Watch(self.timeout, began - seconds)
            if self.timeout is not None:
                watch.keep_back(seconds_after(fitter))
            report = reports(self.progress, display, lister, watch)
            # Chains share the cores; threads of the linear algebra would only get in their way.
            with threadpool_limits(1, user_api="blas"), watch:
                with workers_for(self.n_jobs, int(self.chains), client) as workers:
                    save = None if checkpoints is None else partial(checkpoints.save, watch)
                    run = RunContext(workers, watch, report, save)
                    trace = point.trace if point.finished else self._sample(
                        task, entropy, run, point, checkpoints
                    )  # fmt: skip
                assert trace is not None
                if checkpoints is not None and not point.finished:
                    checkpoints.finish(watch, trace)
                advice = None if checkpoints is None else checkpoints.advice
                self._finish(fitter, lister, trace, before, table, watch, advice)
            if self.warm_start or checkpoints is not None:
                self._earlier = remember(trace, problem, sampler)
            if self._says_verdict:
                display.conclude(self.diagnostics_["verdict"])
        return self

    def _sample(
        self,
        task: Task,
        entropy: list[int],
        run: RunContext,
        point: RunState,
        checkpoints: Checkpoints | None,
    ) -> Trace:
        sampler, problem = task.sampler, task.problem
        try:
            return sample(
                sampler,
                problem,
                tune=sampler.tune if self.tune is None else int(self.tune),
                draws=int(self.draws),
                guesses=task.guesses,
                seeds=np.random.SeedSequence(entropy).spawn(int(self.chains)),
                run=run,
                before=point,
            )
        except NoStart:
            raise ValueError(
                f"no model of {problem.most_terms} terms could be found that is finite on all rows "
                "and free of redundant terms; use fewer terms (n_terms), more operators, or "
                "rescale columns of extreme size"
            ) from None
        except ClusterError as error:
            if checkpoints is None:
                raise
            raise ClusterError(f"{error}; {checkpoints.advice}") from error

    def _finish(
        self,
        fitter: Fitter,
        lister: Lister,
        trace: Trace,
        before: Trace | None,
        table: Table,
        watch: Watch,
        advice: str | None,
    ) -> None:
        stopped, deadline = watch.interrupted, watch.deadline
        self._used = table.used
        self._range = (table.columns.min(axis=1), table.columns.max(axis=1))
        self._told: set[str] = set()
        self._rows = table.sample(MOST_ROWS_KEPT)
        try:
            self._posterior = make_posterior(
                fitter, trace, watch.over, deadline.share(_FOR_POSTERIOR)
            )
        except NoFiniteModel:
            raise ValueError(
                "the coefficients of all formulas found are too large or too small for a number; "
                "rescale y or columns of extreme size"
            ) from None
        self.formulas_, self.formula_objects_ = lister.table(
            self._posterior.formula_models, lambda: watch.interrupted, deadline.share(_FOR_TABLE)
        )
        self._near = lister.near(self._posterior.formula_models)
        self.best_formula_ = self.select(self.model_selection)
        self.diagnostics_ = effort(trace)
        # A Ctrl-C since then leaves formulas unpolished.
        self.diagnostics_["interrupted"] |= watch.interrupted and not stopped
        names = [column_name(self, i) for i in table.used]
        self.diagnostics_ |= judge(trace, fitter.problem, self._posterior.leading_by_chain, names)
        self.diagnostics_ |= {"stacking_weights": None, "stacking_gain": None}
        verdict = self.diagnostics_["verdict"]
        if self.diagnostics_["chains_disagree"]:
            with contextlib.suppress(OutOfTime):
                self._measure_stacking(deadline.over)
                self.diagnostics_["verdict"] += stacking_advice(self.diagnostics_["stacking_gain"])
        self._combine_chains()
        self.diagnostics_["found"] = _told(trace.search, lister, deadline)
        for name in ("history_", "_stages", "_earlier"):
            if hasattr(self, name):
                delattr(self, name)  # of an earlier fit
        if fitter.plug_in:
            self.history_ = history(trace, fitter.problem)
            self._stages = Stages(fitter, trace.chains)
        message = nothing_new(before, trace) or cut_short(trace)
        if message is not None and advice is not None and trace.interrupted:
            message = f"{message}; {advice}"
        if not self.diagnostics_["converged"]:
            # At a time limit the verdict says as much, and why.
            if message is None or (trace.timed_out and not trace.interrupted):
                message = verdict
            warnings.warn(message, ConvergenceWarning, stacklevel=4)
        elif message is not None:
            warnings.warn(message, SamplingWarning, stacklevel=4)


def _told(finds: list[Find], lister: Lister, deadline: Deadline) -> list[tuple[float, str]]:
    """Return what a search found when; only the last ones where there is no time for more."""
    told: list[tuple[float, str]] = []
    for find in reversed(finds):
        if told and deadline.over():
            break
        told.append((find.seconds, str(lister.formula(find.trees))))
    return told[::-1]
