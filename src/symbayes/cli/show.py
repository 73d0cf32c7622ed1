"""`symbayes show`, `report`, `info`: a saved model on screen or as a page; what is installed."""

from __future__ import annotations

import argparse
import platform
from importlib.metadata import version
from typing import Any

from joblib import cpu_count

from .. import Formula, __version__, load
from ..inputs.sampler_settings import SAMPLERS, most_draws
from ..kernels import units
from ..result import MOST_ROWS_KEPT
from .output import (
    MOST_FORMULAS,
    answer_text,
    check_destinations,
    facts,
    formulas_text,
    to_json,
    wrapped,
)
from .wording import verdict_text

_PACKAGES = ("numpy", "numba", "scipy", "scikit-learn", "pandas")
_NOWHERE = "nowhere (no folder can be written to, or compilation is switched off)"


def show(options: argparse.Namespace) -> int:
    """Print the formulas of a model as a table, in another notation, or as JSON."""
    model = load(options.model)
    n = options.n or (len(model.pareto_objects_) if options.pareto else MOST_FORMULAS)
    if options.json:
        print(to_json(facts(model, options.n, options.pareto)))
    elif options.form is not None:
        chosen = [model.best_formula_]
        if options.n or options.pareto:
            chosen = (model.pareto_objects_ if options.pareto else model.formula_objects_)[:n]
        for i, formula in enumerate(chosen):
            print(_in_form(formula, options.form, i))
    elif options.pareto:
        print(formulas_text(model.pareto_, n))
    else:
        print(answer_text(model, n))
    return 0


def _in_form(formula: Formula, form: str, i: int) -> str:
    if form == "sympy":
        from sympy import srepr

        # Code that makes the expression: as plain text, a column `E` would be a number.
        return srepr(formula.sympy())
    if form == "numpy":
        # Functions in one file need names of their own.
        return "\n\n" * (i > 0) + formula.numpy_code(f"formula_{i + 1}" if i else "formula")
    return formula.latex() if form == "latex" else formula.mathml()


def report(options: argparse.Namespace) -> int:
    """Write the page about a model, and print where."""
    check_destinations([options.model], out=options.out)
    load(options.model).report(options.out)
    print(options.out)
    return 0


def info(options: argparse.Namespace) -> int:
    """Print facts, one per line."""
    about = installation() if options.model is None else about_model(load(options.model))
    width = max(map(len, about)) + 2
    for name, value in about.items():
        print(wrapped(value, f"{name + ':':<{width}}"))
    return 0


def installation() -> dict[str, str]:
    """Return versions, cores and the state of the compiled code."""
    ready = "ready" if units.is_cached("tempered") else "not there yet; the first fit compiles it"
    return {
        "symbayes": __version__,
        "Python": platform.python_version(),
        **{name: version(name) for name in _PACKAGES},
        "system": platform.platform(),
        "cores": str(cpu_count()),
        "compiled code": ready,
        "kept in": units.cache_folder() or _NOWHERE,
    }


def about_model(model: Any) -> dict[str, str]:
    """Return settings, columns and verdict of a model."""
    result = model.result_
    settings = model.get_params(deep=False)
    sampler = SAMPLERS.get(model.sampler, model.sampler)
    settings["draws"] = most_draws(sampler, model.draws, model.timeout)
    if settings["tune"] is None:
        settings["tune"] = sampler.tune
    return {
        "target": repr(result.target),
        "rows": f"more than {MOST_ROWS_KEPT:,}" if result.n_rows is None else f"{result.n_rows:,}",
        "columns": ", ".join(map(repr, result.names)),
        "best formula": str(model.best_formula_),
        "verdict": verdict_text(model.diagnostics_),
        "seconds": f"{model.diagnostics_['seconds']:.1f}",
        **{name: repr(value) for name, value in settings.items()},
    }
