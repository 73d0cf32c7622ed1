"""A model as text: the table of formulas, the best of them, the verdict."""

from __future__ import annotations

import math
import re
import shutil
import textwrap
from typing import Any

import pandas as pd

from ..show.display import printable
from .wording import with_options

#: Formulas in a table, if nothing else is said.
MOST_FORMULAS = 10
# Narrower than this, nothing is readable; wider lines are hard to follow.
_NARROWEST, _WIDEST = 60, 160
# A part of the variation that may be a rounding error.
_ROUNDING_ERROR = 1.0e-12
# A name in backticks, in which a backslash takes the next character as it is; and what stands for
# a blank in it while lines are broken: printable text has none.
_QUOTED, _NO_BREAK = re.compile(r"`(?:[^`\\]|\\.)*`"), "\0"
_RULES = {
    "probability": "the most probable",
    "one_standard_error": "the simplest within one standard error",
    "accuracy": "the smallest error",
}


def formulas_text(formulas: pd.DataFrame, n: int) -> str:
    """Return the first formulas as a table, as wide as the terminal or 80 characters."""
    shown = formulas.head(n)
    explained = [r2_text(r2) for r2 in shown["r2"]]
    width = max(6, *map(len, explained))
    lines = [f"probability  nodes  {'R2':>{width}}  formula"]
    for row, r2 in zip(shown.itertuples(), explained, strict=True):
        start = f"{_probability(row.probability):>11}  {row.n_nodes:5d}  {r2:<{width}}  "
        lines.append(wrapped(row.formula, start))
    if len(formulas) > n:
        lines.append(f"... and {len(formulas) - n} more")
    return "\n".join(lines)


def r2_text(r2: float) -> str:
    """Return a share of variation with four decimals, or as many as tell it from all of it.

    Examples
    --------
    >>> from symbayes.cli.answer_text import r2_text
    >>> r2_text(0.99712), r2_text(0.999983), r2_text(1 - 1e-15)
    ('0.9971', '0.99998', '1.0000')
    """
    rest = 1.0 - r2
    if rest < _ROUNDING_ERROR:
        return "1.0000"
    return f"{r2:.{max(4, math.ceil(-math.log10(rest)))}f}"


def answer_text(model: Any, n: int = MOST_FORMULAS) -> str:
    """Return what a fit has found: formulas, the best one, its error, and the verdict."""
    best = best_row(model)
    parts = [
        formulas_text(model.formulas_, n),
        "",
        f"best formula ({_RULES[model.model_selection]}):",
        wrapped(best["formula"], "  "),
    ]
    if best["rounded"] != best["formula"]:
        parts += ["with simple constants:", wrapped(best["rounded"], "  ")]
    parts += [
        f"error: {best['rmse']:.3g} (root mean square on the training rows), "
        f"R2 {r2_text(best['r2'])}",
        wrapped(with_options(model.diagnostics_["verdict"]), "verdict: "),
    ]
    if model.diagnostics_["chains_disagree"]:
        parts += ["", chains_text(model)]
    return "\n".join(parts)


def chains_text(model: Any) -> str:
    """Return the leading formulas of each chain, and how much it counts."""
    weights = model.chain_weights_
    lines = ["chain  weight  probability  formula"]
    for row in model.formulas_by_chain().itertuples():
        share = _probability(row.probability)
        start = f"{row.chain:5d}  {weights[row.chain]:6.3f}  {share:>11}  "
        lines.append(wrapped(row.formula, start))
    return "\n".join(lines)


def _probability(share: float) -> str:
    return "<0.001" if share < 0.0005 else f"{share:.3f}"


def best_row(model: Any) -> dict[str, Any]:
    """Return the row of the best formula."""
    place = model.formula_objects_.index(model.best_formula_)
    return model.formulas_.iloc[place].to_dict()


def wrapped(text: str, start: str) -> str:
    """Return text after its label, with further lines below its beginning.

    A name in backticks stays on one line, so that it can be copied.
    """
    columns = shutil.get_terminal_size().columns
    kept = _QUOTED.sub(lambda name: name[0].replace(" ", _NO_BREAK), printable(text))
    filled = textwrap.fill(
        kept,
        width=min(max(columns, _NARROWEST), _WIDEST),
        initial_indent=start,
        subsequent_indent=" " * len(start),
        break_long_words=False,
        break_on_hyphens=False,
    )
    return filled.replace(_NO_BREAK, " ")
