"""A model as JSON: strict, without NaN, in characters that every encoding has."""

from __future__ import annotations

import json
import math
from numbers import Integral
from typing import Any

import numpy as np

from .. import __version__
from ..inputs.validation import feature_names
from .answer_text import best_row
from .wording import with_options

_DIAGNOSTICS = (
    "verdict", "converged", "r_hat", "effective_draws", "leading_by_chain", "search_agreed",
    "search_cut", "chains_disagree", "stacking_weights", "stacking_gain", "interrupted",
    "timed_out", "settled", "restarts", "proposals", "evaluations", "acceptance",
)  # fmt: skip


def facts(model: Any, n: int | None = None, pareto: bool = False) -> dict[str, Any]:
    """Return what there is to tell about a fitted model.

    Parameters
    ----------
    model : BayesianSymbolicRegressor
    n : int or None
        Formulas at most; None for all.
    pareto : bool
        Whether formulas are only those to which no other is both shorter and closer.
    """
    diagnostics = model.diagnostics_
    formulas = model.pareto_ if pareto else model.formulas_
    return {
        "version": __version__,
        "target": model.result_.target,
        "columns": feature_names(model),
        "rows": n_rows(model),
        "seed": seed(model),
        "formulas": formulas.head(len(formulas) if n is None else n).to_dict("records"),
        "best": best_row(model) | {"rule": model.model_selection},
        "chains": {
            "combined": model.combine,
            "weights": model.chain_weights_,
            "formulas": model.formulas_by_chain().to_dict("records"),
        },
        "inclusion_probability": model.inclusion_probability().to_dict(),
        "diagnostics": {name: diagnostics[name] for name in _DIAGNOSTICS if name in diagnostics}
        | {"verdict": with_options(diagnostics["verdict"])},
        "seconds": diagnostics["seconds"],
    }


def n_rows(model: Any) -> int | None:
    """Return how many rows a model was fitted to; None where it has kept only some of them."""
    return model.result_.n_rows


def seed(model: Any) -> int | None:
    """Return the seed of a model, if it was a number."""
    return int(model.random_state) if isinstance(model.random_state, Integral) else None


def to_json(content: dict[str, Any]) -> str:
    r"""Return an object as JSON; numbers that are not finite become null.

    Examples
    --------
    >>> from symbayes.cli.facts import to_json
    >>> print(to_json({"r_hat": float("nan"), "name": "λ"}))
    {
      "r_hat": null,
      "name": "\u03bb"
    }
    """
    return json.dumps(_plain(content), allow_nan=False, indent=2)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [_plain(entry) for entry in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value
