"""From what a method reports to the figures that are stored."""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np

from .formulas import Unreadable, evaluate, symbols, to_sympy
from .identity import Decider
from .nodes import count
from .problems import Problem
from .verdicts import Structure, Truth

# Formulas that a record keeps, and those whose structure is judged.
_KEPT, _JUDGED = 5, 20
# Less probable formulas are not judged: they say nothing about calibration.
_LEAST_PROBABILITY = 0.005
_LEAST_INCLUSION = 0.01
# Seconds for judging formulas other than the first, and those of the history.
_SECONDS = 20.0


def figures(problem: Problem, result: dict[str, Any], decider: Decider) -> dict[str, Any]:
    """Return the figures of a run.

    Parameters
    ----------
    problem : Problem
    result : dict
        As a method's script writes it.
    decider : Decider
        It asks SymPy.
    """
    formulas = [(f["text"], f["probability"]) for f in result["formulas"]]
    text = formulas[0][0]
    seconds = float(result["seconds"])
    record: dict[str, Any] = {
        "formula": text,
        "formulas": formulas[:_KEPT],
        "nodes": _nodes(text, problem),
        "r2": _r2(problem.y_test, np.asarray(result["prediction"], dtype=float)),
        "r2_formula": _r2(problem.y_test, _values(text, problem.X_test)),
        "coverage": _coverage(problem.y_test_observed, result.get("lower"), result.get("upper")),
        "inclusion": _inclusion(result.get("inclusion")),
        "seconds_used": seconds,
        "found_at": _first(text, result["history"], seconds),
        "extra": result.get("extra", {}),
    }
    if problem.truth is None or problem.ranges is None:
        return record
    truth = Truth(problem.truth, problem.ranges, problem.X)
    structure = truth.structure(text)
    record["truth"] = problem.truth
    record["truth_nodes"] = truth.nodes
    record["right"], record["reason"] = structure.right, structure.reason
    record["srbench"], record["srbench_by"] = truth.srbench(text, decider)
    record |= _reported(truth, formulas, structure)
    if structure.right:
        record["found_at"] = _first_right(truth, result["history"], seconds)
    return record


def _reported(
    truth: Truth, formulas: list[tuple[str, float | None]], first: Structure
) -> dict[str, Any]:
    """Judge all formulas that were reported: [probability, right structure, truth itself].

    Null for those for which there was no time.
    """
    judged: list[tuple[float | None, bool | None, bool | None]] = []
    deadline = time.monotonic() + _SECONDS
    for i, (text, probability) in enumerate(formulas[:_JUDGED]):
        if probability is not None and probability < _LEAST_PROBABILITY:
            break
        if time.monotonic() > deadline:
            judged.append((probability, None, None))
            continue
        structure = truth.structure(text) if i else first
        judged.append((probability, structure.right, structure.itself))
    places = [i for i, (_, right, _) in enumerate(judged) if right]
    return {
        "reported": judged,
        "truth_rank": places[0] + 1 if places else None,
        "truth_probability": judged[places[0]][0] if places else None,
    }


def _first_right(truth: Truth, history: list[tuple[float, str]], seconds: float) -> float:
    """Return when a formula of the right structure first led."""
    deadline = time.monotonic() + _SECONDS
    for when, text in history:
        if time.monotonic() > deadline:
            break
        if truth.structure(text).right:
            return min(float(when), seconds)
    return seconds


def _first(text: str, history: list[tuple[float, str]], seconds: float) -> float:
    """Return when this very formula first led; without a history, the end."""
    return min([float(when) for when, other in history if other == text], default=seconds)


def _nodes(text: str, problem: Problem) -> int | None:
    try:
        return count(to_sympy(text, symbols(problem.X.shape[1])))
    except Unreadable:
        return None


def _values(text: str, X: np.ndarray) -> np.ndarray:
    try:
        return evaluate(text, X)
    except Unreadable:
        return np.full(len(X), np.nan)


def _r2(y: np.ndarray, prediction: np.ndarray) -> float | None:
    """Return R2; None where a prediction has no value, which is worse than any number."""
    if prediction.shape != y.shape or not np.isfinite(prediction).all():
        return None
    with np.errstate(all="ignore"):
        r2 = float(1.0 - np.sum((y - prediction) ** 2) / np.sum((y - y.mean()) ** 2))
    return r2 if math.isfinite(r2) else None


def _coverage(y: np.ndarray, lower: Any, upper: Any) -> float | None:
    if lower is None or upper is None:
        return None
    low, high = (np.asarray(bound, dtype=float) for bound in (lower, upper))
    with np.errstate(invalid="ignore"):
        return float(np.mean((low <= y) & (y <= high)))


def _inclusion(inclusion: Any) -> dict[str, float] | None:
    """Return the probabilities by column, those that are not negligible."""
    if inclusion is None:
        return None
    if not isinstance(inclusion, dict):
        inclusion = {f"x{i}": p for i, p in enumerate(inclusion)}
    return {name: round(p, 4) for name, p in inclusion.items() if p >= _LEAST_INCLUSION}
