"""`symbayes show`: the formulas of a model."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from .. import Formula
from .answer_text import MOST_FORMULAS, answer_text, formulas_text
from .facts import facts, to_json
from .models import read_model


def _sympy_code(formula: Formula) -> str:
    """Return the code of an expression: as plain text, a column `E` would be a number."""
    from sympy import srepr

    return srepr(formula.sympy())


# How a formula is written, by the option that asks for it.
_FORMS: dict[str, Callable[[Formula], str]] = {
    "latex": Formula.latex,
    "sympy": _sympy_code,
    "mathml": Formula.mathml,
}


def run(options: argparse.Namespace) -> int:
    """Print the formulas of a model as a table, in another notation, or as JSON."""
    model = read_model(options.model)
    if options.json:
        print(to_json(facts(model, options.n, options.pareto)))
    elif options.form is not None:
        _print_in_form(_chosen(model, options.n, options.pareto), options.form)
    elif options.pareto:
        print(formulas_text(model.pareto_, options.n or MOST_FORMULAS))
    else:
        print(answer_text(model, options.n or MOST_FORMULAS))
    return 0


def _chosen(model: Any, n: int | None, pareto: bool) -> list[Formula]:
    """Return the first formulas; the best one, unless a number or a choice is asked for."""
    if n is None and not pareto:
        return [model.best_formula_]
    rows = model.pareto_ if pareto else model.formulas_
    return [model.formula_objects_[i] for i in rows.index[: n or MOST_FORMULAS]]


def _print_in_form(formulas: list[Formula], form: str) -> None:
    for i, formula in enumerate(formulas):
        if form == "numpy":
            # Functions in one file need names of their own.
            print("\n\n" * (i > 0) + formula.numpy_code(f"formula_{i + 1}" if i else "formula"))
        else:
            print(_FORMS[form](formula))
