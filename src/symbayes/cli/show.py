"""`symbayes show`: the formulas of a model."""

from __future__ import annotations

import argparse

from .. import BayesianSymbolicRegressor, Formula, load
from .output import MOST_FORMULAS, answer_text, facts, formulas_text, to_json


def run(options: argparse.Namespace) -> int:
    """Print the formulas of a model as a table, in another notation, or as JSON."""
    model = load(options.model)
    n = options.n or MOST_FORMULAS
    if options.json:
        print(to_json(facts(model, options.n, options.pareto)))
    elif options.form is not None:
        for i, formula in enumerate(_chosen(model, options.n, options.pareto)):
            print(_in_form(formula, options.form, i))
    elif options.pareto:
        print(formulas_text(model.pareto_, n))
    else:
        print(answer_text(model, n))
    return 0


def _chosen(model: BayesianSymbolicRegressor, n: int | None, pareto: bool) -> list[Formula]:
    """Return the first formulas; the best one, unless a number or a choice is asked for."""
    if n is None and not pareto:
        return [model.best_formula_]
    rows = model.pareto_ if pareto else model.formulas_
    return [model.formula_objects_[i] for i in rows.index[: n or MOST_FORMULAS]]


def _in_form(formula: Formula, form: str, i: int) -> str:
    if form == "latex":
        return formula.latex()
    if form == "mathml":
        return formula.mathml()
    if form == "sympy":
        from sympy import srepr

        # Code that makes the expression: as plain text, a column `E` would be a number.
        return srepr(formula.sympy())
    # Functions in one file need names of their own.
    return "\n\n" * (i > 0) + formula.numpy_code(f"formula_{i + 1}" if i else "formula")
