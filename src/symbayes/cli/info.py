"""`symbayes info`: what is installed, and what a model was made with."""

from __future__ import annotations

import argparse
import platform
from importlib.metadata import version
from typing import Any

from joblib import cpu_count

from .. import PaperSampler, TemperedSampler, __version__, load
from ..kernels import units
from ..result import MOST_ROWS_KEPT
from .output import wrapped
from .wording import verdict_text

_PACKAGES = ("numpy", "numba", "scipy", "scikit-learn", "pandas")
_NOWHERE = "nowhere (no folder can be written to, or compilation is switched off)"


def run(options: argparse.Namespace) -> int:
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
    if settings["tune"] is None:
        named = {"tempered": TemperedSampler, "paper": PaperSampler}
        settings["tune"] = named.get(model.sampler, model.sampler).tune
    return {
        "target": repr(result.target),
        "rows": f"more than {MOST_ROWS_KEPT:,}" if result.n_rows is None else f"{result.n_rows:,}",
        "columns": ", ".join(map(repr, result.names)),
        "best formula": str(model.best_formula_),
        "verdict": verdict_text(model.diagnostics_),
        "seconds": f"{model.diagnostics_['seconds']:.1f}",
        **{name: repr(value) for name, value in settings.items()},
    }
