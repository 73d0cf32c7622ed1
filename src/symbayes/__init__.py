"""Bayesian symbolic regression: formulas that explain a table, and how probable each is."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .version import __version__

if TYPE_CHECKING:
    from . import plots
    from .cautions import ConvergenceWarning, DataWarning, SamplingWarning
    from .formula.formula import Formula
    from .formula.operators import OPERATOR_SETS, OPERATORS
    from .inputs.prior import NoisePrior, TermsPrior, TreePrior
    from .inputs.sampler_settings import PaperSampler, TemperedSampler
    from .regressor import BayesianSymbolicRegressor, load
    from .samplers.run.remote import ClusterError
    from .show.progress import Progress
    from .storage.archive import ModelFileError

# Names are looked up when they are first used: Numba and SymPy take seconds to import, in which the
# command line could not yet answer to Ctrl-C.
_HOMES = {
    "OPERATORS": "formula.operators",
    "OPERATOR_SETS": "formula.operators",
    "BayesianSymbolicRegressor": "regressor",
    "ClusterError": "samplers.run.remote",
    "ConvergenceWarning": "cautions",
    "DataWarning": "cautions",
    "Formula": "formula.formula",
    "ModelFileError": "storage.archive",
    "NoisePrior": "inputs.prior",
    "PaperSampler": "inputs.sampler_settings",
    "Progress": "show.progress",
    "SamplingWarning": "cautions",
    "TemperedSampler": "inputs.sampler_settings",
    "TermsPrior": "inputs.prior",
    "TreePrior": "inputs.prior",
    "load": "regressor",
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
