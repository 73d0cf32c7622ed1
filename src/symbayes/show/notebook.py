"""What a notebook shows of a fitted model: scikit-learn's diagram, formulas and the verdict."""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from typing import Any

import pandas as pd
from sklearn.base import BaseEstimator

# Formulas that are shown; `formulas_` has them all.
_SHOWN = 5


class NotebookDisplay(BaseEstimator):
    """Adds to the display of an estimator, wherever scikit-learn has one."""

    @property
    def _repr_html_(self) -> Callable[[], str]:
        # With `sklearn.set_config(display="text")` there is none: an AttributeError says so.
        diagram = super()._repr_html_
        return lambda: diagram() + formulas_html(self)

    def _repr_mimebundle_(self, **options: Any) -> dict[str, str]:
        bundle = super()._repr_mimebundle_(**options)
        if "text/html" in bundle:
            bundle["text/html"] += formulas_html(self)
        return bundle


def formulas_html(model: Any) -> str:
    """Return the most probable formulas of a model and the verdict, nothing before the fit."""
    table = getattr(model, "formulas_", None)
    if table is None:
        return ""
    shown = table.head(_SHOWN)[["probability", "formula", "n_nodes", "rmse", "r2"]]
    # Names are data: neither HTML nor, between dollar signs, mathematics.
    with pd.option_context("display.html.use_mathjax", False, "display.max_colwidth", None):
        html = shown.to_html(index=False, escape=True, float_format="{:.4g}".format)
    more = len(table) - len(shown)
    below = f"<p>and {more} more in <code>formulas_</code></p>" if more else ""
    said = f"<p>{escape(model.diagnostics_['verdict'])}</p>"
    return f'<div class="symbayes-formulas">{html}{below}{said}</div>'
