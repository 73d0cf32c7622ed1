"""What a notebook shows of a fitted model: scikit-learn's diagram, formulas and the verdict."""

from __future__ import annotations

from html import escape

import pandas as pd

from ..result import Result

# Formulas that are shown; `formulas_` has them all.
_SHOWN = 5


def formulas_html(result: Result | None) -> str:
    """Return the most probable formulas and the verdict; nothing before a fit."""
    if result is None:
        return ""
    table = result.formulas
    shown = table.head(_SHOWN)[["probability", "formula", "n_nodes", "rmse", "r2"]]
    # Names are data: neither HTML nor, between dollar signs, mathematics.
    with pd.option_context("display.html.use_mathjax", False, "display.max_colwidth", None):
        html = shown.to_html(index=False, escape=True, float_format="{:.4g}".format)
    more = len(table) - len(shown)
    below = f"<p>and {more} more in <code>formulas_</code></p>" if more else ""
    said = f"<p>{escape(result.diagnostics['verdict'])}</p>"
    return f'<div class="symbayes-formulas">{html}{below}{said}</div>'
