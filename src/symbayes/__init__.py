"""Bayesian symbolic regression: formulas that explain a table, and how probable each is."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .version import __version__

if TYPE_CHECKING:
    from . import plots
    from .archive import ModelFileError
    from .cautions import ConvergenceWarning, SamplingWarning
    from .formula import Formula
    from .loading import load
    from .operators import OPERATOR_SETS, OPERATORS
    from .prior import NoisePrior, TermsPrior, TreePrior
    from .progress import Progress
    from .regressor import BayesianSymbolicRegressor
    from .samplers.elsewhere import ClusterError
    from .samplers.paper import PaperSampler
    from .samplers.tempered import TemperedSampler
    from .validation import DataWarning

# Names are looked up when they are first used: Numba and SymPy take seconds to import, in which the
# command line could not yet answer to Ctrl-C.
_HOMES = {
    "OPERATORS": "operators",
    "OPERATOR_SETS": "operators",
    "BayesianSymbolicRegressor": "regressor",
    "ClusterError": "samplers.elsewhere",
    "ConvergenceWarning": "cautions",
    "DataWarning": "validation",
    "Formula": "formula",
    "ModelFileError": "archive",
    "NoisePrior": "prior",
    "PaperSampler": "samplers.paper",
    "Progress": "progress",
    "SamplingWarning": "cautions",
    "TemperedSampler": "samplers.tempered",
    "TermsPrior": "prior",
    "TreePrior": "prior",
    "load": "loading",
}

__all__ = [
    "OPERATORS",
    "OPERATOR_SETS",
    "BayesianSymbolicRegressor",
    "ClusterError",
    "ConvergenceWarning",
    "DataWarning",
    "Formula",
    "ModelFileError",
    "NoisePrior",
    "PaperSampler",
    "Progress",
    "SamplingWarning",
    "TemperedSampler",
    "TermsPrior",
    "TreePrior",
    "__version__",
    "load",
    "plots",
]


def __getattr__(name: str) -> Any:
    if name in ("datasets", "plots"):
        return import_module(f".{name}", __name__)
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{_HOMES[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
