"""The models on the way of the paper's sampler, whose path is of interest as well as its end."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..fitting.model import Fitter
from ..formula.trees import evaluate_trees, split_terms
from ..samplers.trace import ChainTrace


class Stages:
    """Every accepted model, chain after chain, fitted when it is asked for."""

    def __init__(self, fitter: Fitter, chains: list[ChainTrace]):
        self._fitter = fitter
        self._chains = chains

    def predict(self, X: np.ndarray) -> Iterator[np.ndarray]:
        """Yield what each model predicts; nan where it has no finite value."""
        columns = np.ascontiguousarray(X.T, dtype=np.float64)
        with np.errstate(all="ignore"):
            for chain in self._chains:
                for nodes, n_terms in zip(chain.nodes, chain.n_terms, strict=True):
                    model = self._fitter.fit_trees(split_terms(nodes, n_terms))
                    if model is None:
                        yield np.full(len(X), np.nan)
                    else:
                        values = evaluate_trees(model.state.trees, columns)
                        yield model.intercept + model.coefficients @ values
