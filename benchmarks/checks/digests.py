"""Digests of 34 fits: whether a change that should change no result has changed none.

    python -m benchmarks.checks.digests --record FILE     before the change
    python -m benchmarks.checks.digests --compare FILE    after it, on the same machine

Fits are equal bit for bit only on one machine: another processor may round differently. A digest
covers the table of formulas, predictions with their deviations and intervals, and the diagnostics
without times. Only the public interface is used, so the same file runs on any version.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd

from symbayes import (
    BayesianSymbolicRegressor,
    NoisePrior,
    PaperSampler,
    TemperedSampler,
    TermsPrior,
    TreePrior,
    load,
)
from symbayes.datasets import boyle, paper_task

# Diagnostics that a clock has part in.
_TIMED = {"seconds", "found"}
# Prose has a digest of its own: it may be reworded while every number stays.
_PROSE = {"verdict", "verdict_data"}


def table(n: int, columns: int = 2, noise: float = 0.1, seed: int = 0) -> tuple[Any, Any]:
    """Return positive columns and a noisy response that has no exact formula."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(0.5, 3.0, (n, columns))
    y = np.sqrt(X[:, 0] + X[:, -1] ** 2) + np.sin(X[:, 0])
    return X, y + rng.normal(0.0, noise, n)


def _estimator(**options: Any) -> BayesianSymbolicRegressor:
    defaults = {"draws": 100, "tune": 300, "chains": 2, "random_state": 0}
    return BayesianSymbolicRegressor(**(defaults | options))


def plain(data: tuple[Any, ...], **options: Any) -> BayesianSymbolicRegressor:
    """Fit in threads."""
    return _estimator(**options).fit(*data)


def after_warm_start(data: tuple[Any, ...], **options: Any) -> BayesianSymbolicRegressor:
    """Fit, and fit again with more draws."""
    model = _estimator(warm_start=True, **options).fit(*data)
    return model.set_params(draws=2 * model.draws).fit(*data)


def from_file(data: tuple[Any, ...], **options: Any) -> BayesianSymbolicRegressor:
    """Fit, save, load."""
    with tempfile.TemporaryDirectory() as folder:
        _estimator(**options).fit(*data).save(f"{folder}/model")
        return load(f"{folder}/model")


class _Stop(Exception):
    pass


def resumed(
    data: tuple[Any, ...], phase: str, done: int = 0, **options: Any
) -> BayesianSymbolicRegressor:
    """Fit with a checkpoint, end in a phase with an error, resume."""

    def stop(status: Any) -> None:
        if status.phase == phase and status.done >= done:
            raise _Stop

    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/run"
        with contextlib.suppress(_Stop):
            _estimator(progress=stop, **options).fit(*data, checkpoint=path)
        return BayesianSymbolicRegressor.resume(path, *data)


def in_processes(data: tuple[Any, ...], **options: Any) -> BayesianSymbolicRegressor:
    """Fit on the processes of joblib's own backend."""
    with joblib.parallel_config(backend="loky", n_jobs=2):
        return _estimator(**options).fit(*data)


def on_dask(data: tuple[Any, ...], **options: Any) -> BayesianSymbolicRegressor:
    """Fit on a cluster of two workers in this process."""
    from distributed import Client, LocalCluster

    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None
        ) as cluster,
        Client(cluster) as client,
    ):
        return _estimator(**options).fit(*data, client=client)


def _cases() -> Iterator[tuple[str, Callable[[], tuple[BayesianSymbolicRegressor, Any]]]]:
    small, large = table(60), table(6000)
    weights = np.random.default_rng(1).integers(1, 4, 60).astype(float)
    wide = table(80, columns=30)
    named = pd.DataFrame(small[0], columns=["length of the day", "t"])
    short = TemperedSampler(temperatures=4, steps_per_draw=20)
    positive = ["+", "*", "inv", "square", "sqrt", "log", "exp"]

    def case(make: Callable[..., Any], data: tuple[Any, ...], *args: Any, **options: Any) -> Any:
        return lambda: (make(data, *args, **options), data[0])

    yield "small", case(plain, small)
    yield "small, one thread", case(plain, small, n_jobs=1)
    yield "small, four chains, longer", case(plain, small, chains=4, tune=800, draws=300)
    yield "named columns", case(plain, (named, pd.Series(small[1], name="delay")))
    yield "weights", case(plain, (*small, weights))
    yield "known terms", case(plain, small, known_terms=["x0*x1"])
    yield "known terms, weights", case(plain, (*small, weights), known_terms=["sin(x0)"])
    yield "initial formulas", case(plain, small, initial_formulas=["2*sin(x0) + x1"])
    yield "fixed number of terms", case(plain, small, n_terms=2)
    yield "prior of terms", case(plain, small, n_terms=TermsPrior(decay=0.5))
    yield "limits", case(plain, small, tree_prior=TreePrior(max_depth=3, max_nodes=12))
    yield "arithmetic", case(plain, small, operators="arithmetic")
    yield "all operators", case(plain, small, operators="all", hyperparameters="fixed")
    yield "weights of operators", case(plain, small, operators={"+": 2, "*": 1, "sin": 1, "lt": 1})
    yield "noise", case(plain, small, noise_prior=NoisePrior(shape=3.0, scale=0.02))
    yield "many columns", case(plain, wide, feature_weights={"x3": 4.0})
    yield "no noise", case(plain, paper_task("f6", random_state=3), operators="paper-simulation")
    yield "power law", case(plain, boyle(), operators=positive, draws=200)
    yield "no search", case(plain, small, sampler=TemperedSampler(search=False))
    yield "stacked", case(plain, small, sampler=short, combine="stack", chains=3)
    yield "one standard error", case(plain, small, model_selection="one_standard_error")
    yield "large", case(plain, large)
    yield "large, all rows at once", case(plain, large, sampler=TemperedSampler(first_rows=None))
    yield "paper", case(plain, small, sampler="paper", n_terms=2)
    yield "paper, settings", case(plain, small, sampler=PaperSampler(), tune=50, chains=3)
    yield "warm start", case(after_warm_start, small, sampler=short)
    yield "saved and loaded", case(from_file, small)
    yield "paper, saved and loaded", case(from_file, small, sampler="paper")
    for phase in ("search", "settling", "drawing"):
        yield f"resumed in {phase}", case(resumed, small, phase, 1, sampler=short, tune=600)
    yield "paper, resumed", case(resumed, small, "drawing", 1, sampler="paper")
    yield "processes", case(in_processes, small, sampler=short)
    yield "Dask", case(on_dask, small, sampler=short)


def _content(value: Any) -> Any:
    """Return a value as something whose JSON is the same where the value is, to the last bit."""
    if isinstance(value, dict):
        return {str(key): _content(one) for key, one in sorted(value.items(), key=str)}
    if isinstance(value, list | tuple):
        return [_content(one) for one in value]
    if isinstance(value, np.ndarray):
        return [str(value.dtype), value.shape, value.tobytes().hex()]
    if isinstance(value, float | np.floating):
        return float(value).hex()
    return value if isinstance(value, bool | int | str | None) else repr(value)


def _digest(value: Any) -> str:
    text = json.dumps(_content(value), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def digests(model: BayesianSymbolicRegressor, X: Any) -> dict[str, str]:
    """Return digests of what a fitted model says, by what it says."""
    diagnostics = {
        name: value for name, value in model.diagnostics_.items() if name not in _TIMED | _PROSE
    }
    found = [text for _, text in model.diagnostics_["found"]]
    columns = {name: model.formulas_[name].tolist() for name in model.formulas_}
    with np.errstate(all="ignore"):
        predictions = [
            *model.predict(X, return_std=True),
            *model.predict_interval(X, level=0.9),
            model.best_formula_.predict(X),
        ]
    return {
        "formulas": _digest(columns),
        "predictions": _digest([np.asarray(one) for one in predictions]),
        "diagnostics": _digest([diagnostics, found]),
        "verdict": _digest(model.diagnostics_["verdict"]),
        "best": str(model.best_formula_),
    }


def measure(only: str | None = None) -> dict[str, dict[str, str]]:
    """Return the digests of all fits by name; `only` restricts them to names with this text."""
    result = {}
    for name, make in _cases():
        if only is not None and only not in name:
            continue
        began = time.monotonic()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model, X = make()
            result[name] = digests(model, X)
        print(f"{name}: {time.monotonic() - began:.1f} s", file=sys.stderr, flush=True)
    return result


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--record", type=Path, metavar="FILE", help="write the digests")
    action.add_argument("--compare", type=Path, metavar="FILE", help="compare with written ones")
    parser.add_argument("--only", help="only fits whose name contains this text")
    args = parser.parse_args()
    found = measure(args.only)
    if args.record is not None:
        args.record.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
        return 0
    expected = json.loads(args.compare.read_text(encoding="utf-8"))
    different = 0
    for name, one in found.items():
        changed = [what for what, digest in one.items() if expected[name].get(what) != digest]
        if changed:
            different += 1
            print(f"{name}: {', '.join(changed)} differ")
    print(f"{different} of {len(found)} fits differ")
    return int(different > 0)


if __name__ == "__main__":
    sys.exit(main())
