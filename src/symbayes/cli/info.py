"""`symbayes info`: what is installed, and what a model was made with."""

from __future__ import annotations

import argparse
import platform
from importlib.metadata import version
from typing import Any

from joblib import cpu_count

from .. import __version__
from ..inputs.parameters import check_parameters
from ..inputs.validation import feature_names
from ..kernels import units
from ..runs import MOST_ROWS_KEPT
from .answer_text import wrapped
from .facts import n_rows
from .models import read_model
from .wording import with_options

_PACKAGES = ("numpy", "numba", "scipy", "scikit-learn", "pandas")
_NOWHERE = "nowhere (no folder can be written to, or compilation is switched off)"


def run(options: argparse.Namespace) -> int:
    """Print facts, one a line."""
    about = installation() if options.model is None else about_model(read_model(options.model))
    width = max(map(len, about)) + 2
    for name, value in about.items():
        print(wrapped(value, f"{name + ':':<{width}}"))
    return 0


def installation() -> dict[str, str]:
    """Return versions, cores and the state of the compiled code."""
    folder = units.cache_folder()
    ready = "ready" if units.is_cached("tempered") else "not there yet; the first fit compiles it"
    return {
        "symbayes": __version__,
        "Python": platform.python_version(),
        **{name: version(name) for name in _PACKAGES},
        "system": platform.platform(),
        "cores": str(cpu_count()),
        "compiled code": ready,
        "kept in": folder or _NOWHERE,
    }


def about_model(model: Any) -> dict[str, str]:
    """Return settings, columns and verdict of a model."""
    rows = n_rows(model)
    settings = model.get_params(deep=False)
    if settings["tune"] is None:
        settings["tune"] = check_parameters(model).tune
    return {
        "target": repr(model._target),
        "rows": f"more than {MOST_ROWS_KEPT:,}" if rows is None else f"{rows:,}",
        "columns": ", ".join(map(repr, feature_names(model))),
        "best formula": str(model.best_formula_),
        "verdict": with_options(model.diagnostics_["verdict"]),
        "seconds": f"{model.diagnostics_['seconds']:.1f}",
        **{name: repr(value) for name, value in settings.items()},
    }
