"""Bayesian symbolic regression: formulas that explain a table, and how probable each is."""

from . import plots
from .archive import ModelFileError
from .formula import Formula
from .loading import load
from .operators import OPERATOR_SETS, OPERATORS
from .prior import NoisePrior, TermsPrior, TreePrior
from .progress import Progress
from .regressor import BayesianSymbolicRegressor, SamplingWarning
from .samplers.paper import PaperSampler
from .samplers.tempered import TemperedSampler
from .validation import DataWarning
from .version import __version__

__all__ = [
    "OPERATORS",
    "OPERATOR_SETS",
    "BayesianSymbolicRegressor",
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
