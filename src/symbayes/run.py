"""One run, from a checked task to its `Result`: compile, sample, make the answers, warn."""

from __future__ import annotations

import contextlib
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from .cautions import ConvergenceWarning, Remedy, SamplingWarning
from .deadline import Deadline, OutOfTime
from .fitting.model import Fitter
from .inputs.problem import Problem
from .inputs.sampler_settings import TemperedSampler, most_draws
from .inputs.task import Task
from .inputs.validation import LARGE, column_name, feature_names
from .kernels import units
from .posterior.diagnostics import cut_short, effort, history
from .posterior.front import make_front, seconds_of_front
from .posterior.posterior import Gap, gap_to_evidence, make_posterior, seconds_after
from .posterior.prediction import AcceptedModels
from .posterior.table import FormulaWriter, with_shares
from .posterior.verdict import judge
from .result import MOST_ROWS_KEPT, Result, combined, with_diagnostics, with_stacking
from .samplers.run.clock import Watch
from .samplers.run.context import RunContext
from .samplers.run.remote import ClusterError
from .samplers.run.scheduler import NoStart
from .samplers.run.workers import workers_for
from .samplers.sampling import remember, sample, trace_to_extend
from .samplers.trace import Find, RunState, Trace
from .show.display import Display
from .show.progress import Progress, Reporter
from .storage.checkpoint import CheckpointWriter, LoadedCheckpoint, begin_checkpoints

# Parts of the time left after sampling for the posterior, then for its table of formulas, for the
# front and for its table; the rest is for what is said about them.
_FOR_POSTERIOR, _FOR_TABLE, _FOR_FRONT = 0.6, 0.5, 0.7


def run_fit(
    model: Any,
    task: Task,
    target: str,
    began: float,
    client: Any,
    checkpoint: str | None = None,
    note: dict[str, Any] | None = None,
    stored: LoadedCheckpoint | None = None,
) -> tuple[Result, SamplingWarning | None]:
    """Carry out a fit: from its beginning, where an earlier one has ended, or where one is stored.

    Of the estimator only the parameters are read, and with `warm_start` the result of the earlier
    fit; `target` is the name of y, `began` when the fit began by `time.monotonic`, and `checkpoint`
    a new file for the state of the run, with a `note`.
    """
    before, chains = None, int(model.chains)
    checkpoints: CheckpointWriter | None = None
    if stored is not None:
        began -= stored.seconds
        entropy, checkpoints = stored.entropy, stored.writer()
    else:
        if model.warm_start:
            before = _earlier(model, task, chains)
        entropy = task.random_state.randint(0, 2**31 - 1, size=4).tolist()
        if checkpoint is not None:
            checkpoints = begin_checkpoints(
                checkpoint, model, task.table, entropy, RunState(before), note
            )
    path = None if checkpoints is None else checkpoints.path
    problem, table, sampler = task.problem, task.table, task.sampler
    with Display(not callable(model.progress) and bool(model.progress)) as display:
        receiver = model.progress if callable(model.progress) else display
        began += _compile(task, receiver)  # which no time limit counts
        fitter = Fitter(problem, table.y, table.weights, sampler.plug_in)
        writer = FormulaWriter(fitter, feature_names(model), table.used)
        point = RunState(before) if stored is None else stored.point(task, chains)
        watch = Watch(model.timeout, began)
        if model.timeout is not None:
            watch.keep_back(seconds_after(fitter) + seconds_of_front(model.timeout))
        report = Reporter(receiver, writer, watch) if model.progress else lambda status: None
        # Chains share the cores; threads of the linear algebra would only get in their way.
        with threadpool_limits(1, user_api="blas"), watch:
            with workers_for(model.n_jobs, chains, client) as workers:
                save = None if checkpoints is None else partial(checkpoints.save, watch)
                context = RunContext(workers, watch, report, save)
                trace = point.trace
                if not point.finished:
                    with _explained(problem, path):
                        trace = sample(
                            sampler,
                            problem,
                            tune=sampler.tune if model.tune is None else int(model.tune),
                            draws=most_draws(sampler, model.draws, model.timeout),
                            guesses=task.guesses,
                            seeds=np.random.SeedSequence(entropy).spawn(chains),
                            run=context,
                            before=point,
                        )
            assert trace is not None
            if checkpoints is not None and not point.finished:
                checkpoints.finish(watch, trace)
            if trace.state.exact:
                fitter.problem = problem.with_any_terms()
            result, verdict = _answers(model, task, target, fitter, writer, trace, watch)
        if model.warm_start or checkpoints is not None:
            result = replace(result, run=remember(trace, problem, sampler))
        display.conclude(result.diagnostics["verdict"])
    return result, _warning(trace, before, result.diagnostics["converged"], verdict, path)


def _earlier(model: Any, task: Task, chains: int) -> Trace | None:
    """Return the run of the earlier fit, which a warm start continues, if there is one."""
    earlier = getattr(model, "result_", None)
    before = trace_to_extend(
        None if earlier is None else earlier.run, task.problem, task.sampler,
        chains, most_draws(task.sampler, model.draws, model.timeout),
    )  # fmt: skip
    if before is None and earlier is not None:
        warnings.warn(
            "warm_start: there is no run to continue, so the fit starts from the beginning; a "
            "model from a file, one fitted without warm_start, or one that had not warmed up "
            "cannot be continued",
            SamplingWarning,
            stacklevel=4,
        )
    return before


def _compile(task: Task, report: Callable[[Progress], object]) -> float:
    """Have the kernels compiled that a fit needs, and return how many seconds that took."""
    sampler, start = task.sampler, time.monotonic()
    if not units.is_cached(sampler.name):
        report(Progress("compiling", 0, 1))
    # A large table needs more of it, for the run and for the fits after it.
    by_parts = isinstance(sampler, TemperedSampler) and (
        sampler.in_stages(task.problem).part is not None or len(task.table.y) > LARGE
    )
    units.load(sampler.name, by_parts)
    return time.monotonic() - start


@contextlib.contextmanager
def _explained(problem: Problem, path: str | None) -> Iterator[None]:
    """Say what to do where sampling has failed."""
    try:
        yield
    except NoStart:
        raise ValueError(
            f"no model of {problem.most_terms} terms could be found that is finite on all rows and "
            "free of redundant terms; use fewer terms (n_terms), more operators, or rescale "
            "columns of extreme size"
        ) from None
    except ClusterError as error:
        if path is None:
            raise
        raise ClusterError(f"{error}; {Remedy.RESUME.value.format(path=path)}") from error


def _answers(
    model: Any,
    task: Task,
    target: str,
    fitter: Fitter,
    writer: FormulaWriter,
    trace: Trace,
    watch: Watch,
) -> tuple[Result, str]:
    """Return the result of a run, and its verdict on the draws before any advice on stacking."""
    stopped, deadline, table = watch.interrupted, watch.deadline, task.table
    before_front = deadline.earlier(seconds_of_front(watch.timeout))
    posterior = make_posterior(fitter, trace, before_front.share(_FOR_POSTERIOR))
    formulas, objects = writer.table(posterior, before_front.share(_FOR_TABLE))
    members, rivals = make_front(
        fitter, trace, posterior.groups, formulas["n_nodes"].tolist(), deadline.share(_FOR_FRONT)
    )
    posterior = replace(posterior, front=members)
    front, front_objects = writer.front(posterior, formulas, objects, deadline.share(_FOR_TABLE))
    formulas, front = with_shares(posterior, formulas, front)
    rmse = writer.one_standard_error_rmse(posterior.formula_models)
    diagnostics = effort(trace)
    # A Ctrl-C since sampling ended leaves formulas unpolished.
    diagnostics["interrupted"] |= watch.interrupted and not stopped
    names = [column_name(model, i) for i in table.used]
    # The evidence is that of the default sampler's likelihood.
    gap = Gap() if fitter.plug_in else gap_to_evidence(posterior.groups, rivals)
    missed = "" if gap.formula is None else writer.text(gap.formula)
    diagnostics |= judge(trace, fitter.problem, posterior.leading_by_chain, names, gap, missed)
    diagnostics |= {"stacking_weights": None, "stacking_gain": None}
    verdict = diagnostics["verdict"]
    result = Result(
        posterior=posterior,
        rows=table.sample(MOST_ROWS_KEPT),
        ranges=(table.columns.min(axis=1), table.columns.max(axis=1)),
        column_names=feature_names(model) if hasattr(model, "feature_names_in_") else None,
        target=target,
        formulas=formulas,
        formula_objects=objects,
        best=0,
        front=front,
        front_objects=front_objects,
        one_standard_error_rmse=rmse,
        diagnostics=diagnostics,
        history=history(trace, fitter.problem) if fitter.plug_in else None,
        accepted=AcceptedModels(fitter, trace.chains) if fitter.plug_in else None,
        trust=fitter.problem.trust,
    )
    if diagnostics["chains_disagree"]:
        with contextlib.suppress(OutOfTime):
            result = with_stacking(result, deadline)
    result = combined(result, model.combine, model.model_selection)  # which finds the best formula
    found = _formulas_of(trace.search, writer, deadline)
    return with_diagnostics(result, found=found), verdict


def _formulas_of(
    finds: list[Find], writer: FormulaWriter, deadline: Deadline
) -> list[tuple[float, str]]:
    """Return what a search found and when; only the last finds where there is no time for more."""
    texts: list[tuple[float, str]] = []
    for find in reversed(finds):
        if texts and deadline.over():
            break
        texts.append((find.seconds, str(writer.formula(find.trees))))
    return texts[::-1]


def _warning(
    trace: Trace, before: Trace | None, converged: bool, verdict: str, checkpoint: str | None
) -> SamplingWarning | None:
    """Return what to say of a run that was cut short, had nothing to do, or has not converged."""
    parts = cut_short(trace)
    some_left = before is None or trace.interrupted or trace.counts.sum() > before.counts.sum()
    if not some_left:
        parts = "warm_start: there was nothing left to draw; ", Remedy.RAISE_DRAWS, " to continue"
    # At a time limit the verdict says as much, and why.
    if not converged and (parts is None or (trace.timed_out and not trace.interrupted)):
        warning = ConvergenceWarning(verdict)
        warning.is_verdict = True
        return warning
    if parts is None:
        return None
    if checkpoint is not None and trace.interrupted:
        parts = (*parts, "; ", Remedy.RESUME)
    return (SamplingWarning if converged else ConvergenceWarning)(*parts, path=checkpoint)
