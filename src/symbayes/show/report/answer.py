"""The answer: which formula, how sure, how close, and what else it might be."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...formula.formula import Formula
from .markup import (
    WIDEST_FORMULA,
    Markup,
    code,
    element,
    facts,
    in_a_table,
    joined,
    mathml,
    number,
    probability,
    section,
    table,
    verdict,
)

#: Formulas that are shown first.
MOST_FORMULAS = 8
# Probability that an interval holds a constant.
_LEVEL = 0.9
_RULES = {
    "probability": "the most probable",
    "one_standard_error": "the simplest within one standard error",
    "accuracy": "the one with the smallest error",
}


def answer(model: Any) -> Markup:
    """Return the first section of the report."""
    best = model.best_formula_
    place = model.formula_objects_.index(best)
    row = model.formulas_.iloc[place]
    return section(
        "answer",
        "The answer",
        _headline(model._target, best),
        verdict(model.diagnostics_),
        _other_forms(row["rounded"], best),
        facts(
            [
                ("Probability", probability(row["probability"])),
                ("Typical error (RMSE)", number(row["rmse"])),
                ("Variation explained (R²)", f"{row['r2']:.4f}"),
                ("Rows", _rows(model)),
                ("Columns used", _columns(best, model.n_features_in_)),
                ("Chosen as", _RULES[model.model_selection]),
            ]
        ),
        _constants(model, place),
        _formulas(model),
    )


def _headline(target: str, best: Formula) -> Markup:
    name = element("span", target, class_="target")
    if len(best.text()) > WIDEST_FORMULA:
        # Browsers do not break the lines of mathematics, those of text they do.
        text = element("code", best.text())
        return element("div", name, " = ", text, class_="formula long")
    return joined(
        [
            element(
                "div",
                name,
                " = ",
                mathml(best),
                class_="formula scroll",
                role="region",
                aria_label="Best formula",
                tabindex=0,
            ),
            code(best.text()),
        ]
    )


def _other_forms(rounded: str, best: Formula) -> Markup:
    """Return the formula in a shorter form, and with simple constants, where they are others."""
    forms = []
    shorter = best.simplify()
    if shorter.text() != best.text():
        forms.append(_form("Shorter, the same function: ", shorter))
    if rounded not in (best.text(), shorter.text()):
        simple = Formula(rounded, best.feature_names).simplify()
        forms.append(_form("With simple constants, to which the data do not object: ", simple))
    return joined(forms)


def _form(label: str, formula: Formula) -> Markup:
    text = formula.text()
    return element(
        "div",
        label,
        element("code", text) if len(text) > WIDEST_FORMULA else mathml(formula),
        class_="scroll",
        role="region",
        aria_label=label.rstrip(": "),
        tabindex=0,
    )


def _rows(model: Any) -> str:
    weighted = (model._rows.weights != 1.0).any()
    return f"{model._posterior.mixture.n:,.0f}" + (" (sum of weights)" if weighted else "")


def _columns(best: Formula, n_columns: int) -> str:
    names = ", ".join(name or "(no name)" for name in best.features)
    return f"{len(best.features)} of {n_columns}" + (f": {names}" if names else "")


def _constants(model: Any, place: int) -> Markup:
    """Return the constants of the best formula with their intervals."""
    found = model.constants(place, _LEVEL)
    if found.empty:
        return Markup()
    known = np.isfinite(found["std"])
    rows = [
        (i, number(row.value), number(row.std), f"{number(row.lower)} to {number(row.upper)}")
        if sure
        else (i, number(row.value), "", "any, as others make up for it")
        for i, (row, sure) in enumerate(zip(found.itertuples(), known, strict=True), 1)
    ]
    return joined(
        [
            table(
                "Constants of the best formula",
                ["From left to right ", "Value ", "Standard deviation ", f"{_LEVEL:.0%} interval "],
                rows,
            ),
            element(
                "p",
                "Intervals are those of the constants given that the formula is the right one.",
                class_="note",
            ),
        ]
    )


def _formulas(model: Any) -> Markup:
    shown = model.formulas_.head(MOST_FORMULAS)
    formulas = in_a_table(model.formula_objects_[:MOST_FORMULAS])
    rows = [
        (
            probability(row.probability),
            formula,
            number(row.rmse),
            f"{row.r2:.4f}",
            row.n_nodes,
        )
        for row, formula in zip(shown.itertuples(), formulas, strict=True)
    ]
    share = probability(min(1.0, shown["probability"].sum()))
    count = (
        f"The {len(rows)} most probable of {len(model.formulas_):,} formulas found; together they "
        f"have {share} of the probability."
        if len(model.formulas_) > 1
        else "It is the only formula found."
    )
    return joined(
        [
            table(
                "The most probable formulas",
                ["Probability ", "Formula", "RMSE ", "R² ", "Nodes "],
                rows,
            ),
            element(
                "p",
                f"{count} A probability is the share of the model's belief, given these rows, the "
                "operators allowed and a prior that prefers short formulas. RMSE and R² are those "
                "of the training rows; nodes are operators, columns and constants.",
                class_="note",
            ),
        ]
    )
