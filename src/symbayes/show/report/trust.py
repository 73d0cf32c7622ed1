"""Trust: whether the chains agree, and whether the data look as the model says."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from ...inputs.validation import feature_names
from ..plots.chains import plot_trace
from ..plots.rows import Comparison, Intervals, compare, draw_predictions, draw_residuals, expect
from .figures import figure
from .markup import Markup, element, in_a_table, joined, probability, section, table, verdict

_LEVEL = 0.9
# Fewer rows are fitted by chance now and then.
_FEW_ROWS = 20
# What the chains are compared by, by how the names of these quantities begin.
_QUANTITIES = {
    "log_likelihood": "Log-likelihood",
    "n_nodes": "Size, in nodes of the trees",
    "uses ": "Use of a column",
    "formula ": "Probability of a leading formula",
    "prediction ": "Prediction at a row",
}
# Deviations of a binomial share that are no chance.
_SURPRISE = 3.0


def trust(model: Any) -> Markup:
    """Return the second section of the report."""
    comparison = compare(model)
    intervals = expect(model, comparison, _LEVEL)
    notes = list(_notes(model, comparison, intervals))
    return section(
        "trust",
        "Can it be trusted?",
        verdict(model.diagnostics_),
        element("ul", *(element("li", note) for note in notes), class_="notes") if notes else "",
        _convergence(model.diagnostics_),
        _chains(model) if model.diagnostics_["chains_disagree"] else "",
        element(
            "div",
            figure(
                "predictions",
                "Observed against predicted values of training rows, with intervals",
                "Each training row at its prediction. Grey bars are where a new observation is "
                "expected; crosses are rows outside. They should scatter evenly about the line.",
                lambda ax: draw_predictions(ax, comparison, intervals),
            ),
            figure(
                "residuals",
                "Residuals of training rows against predicted values",
                "What the formulas do not explain. A bend or a funnel means that something is "
                "missing, or that the noise is not the same everywhere.",
                partial(draw_residuals, comparison=comparison),
            ),
            figure(
                "trace",
                "Log-likelihood of the draws by temperature",
                "How the chains went along. Lines should hover without a trend, those of all "
                "chains at the same height; the thick one is the answer's.",
                lambda ax: plot_trace(model, ax=ax),
            ),
            class_="figures",
        ),
    )


def _notes(model: Any, comparison: Comparison, intervals: Intervals) -> Iterator[str]:
    """Yield what a reader should know before believing the answer."""
    diagnostics = model.diagnostics_
    if diagnostics["interrupted"]:
        yield "The run was interrupted; the answer is what was found until then."
    if diagnostics["timed_out"]:
        yield "The time limit ended the run before it was done."
    n = model._posterior.mixture.n
    if n < _FEW_ROWS:
        yield (
            f"There are only {n:,.0f} rows. So few are fitted by some formula by chance; take the "
            "probabilities with care."
        )
    first = model.formulas_["probability"].iloc[0]
    if first < 0.5:
        yield (
            f"No formula has half of the probability (the first has {first:.3f}). Trust what the "
            "first ones have in common, and the predictions, which average over all."
        )
    left_out = np.setdiff1d(np.arange(model.n_features_in_), model._used)
    if len(left_out):
        names = [feature_names(model)[i] for i in left_out]
        more = f" and {len(names) - 5} more" if len(names) > 5 else ""
        yield (
            "Left out, because constant or the same as another: "
            f"{', '.join(map(repr, names[:5]))}{more}."
        )
    share = float(np.mean(intervals.hold(comparison.observed)))
    spread = np.sqrt(_LEVEL * (1 - _LEVEL) / len(comparison.observed))
    if share < _LEVEL - _SURPRISE * spread:
        yield (
            f"Only {share:.0%} of the training rows lie in their {_LEVEL:.0%} intervals: the noise "
            "is not normal with the same spread everywhere, or something is missing."
        )
    yield "Errors and plots are those of the rows fitted; on new rows errors may be larger."


def _chains(model: Any) -> Markup:
    """Return what each chain found, for chains that do not agree."""
    found, weights = model.formulas_by_chain(), model.chain_weights_
    stacked = model.diagnostics_["stacking_weights"]
    formulas = in_a_table(model.formula_objects_[i] for i in found.index)
    rows = zip(found["chain"], found["probability"], formulas, strict=True)
    return joined(
        [
            table(
                "What each chain found",
                ["Chain ", "Weight ", "If stacked ", "Probability ", "Formula"],
                [
                    (
                        chain,
                        f"{weights[chain]:.3f}",
                        "" if stacked is None else f"{stacked[chain]:.3f}",
                        probability(share),
                        formula,
                    )
                    for chain, share, formula in rows
                ],
            ),
            element(
                "p",
                "Probabilities are those among the draws of one chain. The weights say how much a "
                "chain counts in this page; stacked ones are those with which the chains together "
                "predict best the rows that they have not seen.",
                class_="note",
            ),
        ]
    )


def _convergence(diagnostics: dict[str, Any]) -> Markup:
    """Return how well the chains agree, where that was measured."""
    r_hat = diagnostics.get("r_hat") or {}
    effective = diagnostics.get("effective_draws") or {}
    if not r_hat:
        return Markup()
    return joined(
        [
            table(
                "Agreement of the chains",
                ["Of the draws", "R-hat ", "Effective draws "],
                list(_worst(r_hat, effective)),
            ),
            element(
                "p",
                "R-hat compares the spread between chains with that within them; 1 is agreement. "
                "Effective draws are how many independent ones these are worth. Of several "
                "columns, formulas or rows these are the worst values.",
                class_="note",
            ),
        ]
    )


def _worst(r_hat: dict[str, float], effective: dict[str, float]) -> Iterator[tuple[str, str, str]]:
    """Yield each kind of quantity with its largest R-hat and its smallest number of draws."""
    for start, label in _QUANTITIES.items():
        names = [name for name in r_hat if name.startswith(start)]
        if names:
            hats = [r_hat[name] for name in names]
            draws = [effective.get(name, np.nan) for name in names]
            yield label, f"{np.max(hats):.3f}", f"{np.min(draws):,.0f}"
