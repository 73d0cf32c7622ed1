"""Bayesian symbolic regression: formulas that explain a table, and how probable each is."""

from .formula import Formula
from .operators import OPERATOR_SETS, OPERATORS
from .prior import NoisePrior, TermsPrior, TreePrior
from .regressor import BayesianSymbolicRegressor, SamplingWarning
from .samplers.paper import PaperSampler
from .samplers.tempered import TemperedSampler
from .validation import DataWarning

__version__ = "0.1.0"

__all__ = [
    "OPERATORS",
    "OPERATOR_SETS",
    "BayesianSymbolicRegressor",
    "DataWarning",
    "Formula",
    "NoisePrior",
    "PaperSampler",
    "SamplingWarning",
    "TemperedSampler",
    "TermsPrior",
    "TreePrior",
    "__version__",
]
