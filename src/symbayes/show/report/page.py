"""One HTML page about a fitted model: the answer, then trust, then detail."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Iterator
from functools import partial
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from ...formula.formula import Formula
from ...posterior.table import formulas_by_chain
from ...result import Result
from ...storage.atomic import replacing
from ...version import __version__
from ..plots.chains import plot_trace
from ..plots.formulas import plot_formulas, plot_inclusion, plot_pareto
from ..plots.rows import Comparison, Intervals, compare, draw_predictions, draw_residuals
from ..plots.tree import natural_size, plot_tree
from .figures import figure, wide_figure
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
    scrolling,
    section,
    table,
    verdict,
)

# Nothing is fetched and nothing is run; a browser refuses both.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
# Formulas and columns that are shown at most, and formulas of each chain.
_MOST_FORMULAS, _MOST_COLUMNS, _OF_EACH_CHAIN = 8, 12, 3
# Probability that an interval holds a constant, or a new observation.
_LEVEL = 0.9
_RULES = {
    "probability": "the most probable",
    "one_standard_error": "the simplest within one standard error",
    "accuracy": "the one with the smallest error",
}
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
_PACKAGES = ("numpy", "scipy", "numba", "scikit-learn", "pandas", "matplotlib")
_PAPER = "https://arxiv.org/abs/1910.08892"
_CLASS = re.compile(r"\b(?:BayesianSymbolicRegressor|[A-Z]\w+(?:Prior|Sampler))(?=\()")
# Where in memory an object lies.
_ADDRESS = re.compile(r" at 0x[0-9A-Fa-f]+")


def write_report(
    result: Result, model: Any, path: str | os.PathLike[str], title: str | None = None
) -> Path:
    """Write a page that shows the result of a fit to a reader, and return its path.

    It is one HTML file that needs nothing else, neither network nor scripts. The same result gives
    the same file. A file of that name is replaced once the new one is complete. Of the estimator,
    `model`, only the parameters are read.
    """
    path = Path(path)
    if title is not None and not isinstance(title, str):
        raise TypeError(f"title must be a str or None, not {type(title).__name__}")
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; add a file name, such as report.html")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {path.parent}; create it first")
    page = _page(result, model, title or f"A formula for {result.target}")
    with replacing(os.fspath(path)) as file:
        file.write(page.encode("utf-8", "xmlcharrefreplace"))
    return path


def _page(result: Result, model: Any, title: str) -> str:
    style = files(__package__).joinpath("style.css").read_text(encoding="utf-8")
    head = element(
        "head",
        Markup('<meta charset="utf-8">'),
        Markup(f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'),
        Markup('<meta name="viewport" content="width=device-width, initial-scale=1">'),
        Markup('<meta name="color-scheme" content="light dark">'),
        element("title", title),
        element("style", Markup(style)),
    )
    links = [("#answer", "Answer"), ("#trust", "Trust"), ("#detail", "Detail")]
    header = element(
        "header",
        element("h1", title),
        element("nav", *(element("a", name, href=target) for target, name in links)),
    )
    sections = _answer(result, model.model_selection), _trust(result), _detail(result, model)
    body = element("body", header, element("main", *sections))
    return f"<!DOCTYPE html>\n{element('html', head, body, lang='en')}\n"


# The answer: which formula, how sure, how close, and what else it might be.


def _answer(result: Result, rule: str) -> Markup:
    """Return the first section of the report."""
    best = result.best_formula
    row = result.formulas.iloc[result.best]
    weighted = " (sum of weights)" if result.is_weighted else ""
    return section(
        "answer",
        "The answer",
        _headline(result.target, best),
        verdict(result.diagnostics),
        _other_forms(row["rounded"], best),
        facts(
            [
                ("Probability", probability(row["probability"])),
                ("Typical error (RMSE)", number(row["rmse"])),
                ("Variation explained (R²)", f"{row['r2']:.4f}"),
                ("Rows", f"{result.total_weight:,.0f}" + weighted),
                ("Columns used", _columns(best, result.n_columns)),
                ("Chosen as", _RULES[rule]),
            ]
        ),
        _constants(result),
        _formulas(result),
    )


def _headline(target: str, best: Formula) -> Markup:
    name = element("span", target, class_="target")
    if len(best.text()) > WIDEST_FORMULA:
        # Browsers do not break the lines of mathematics, those of text they do.
        text = element("code", best.text())
        return element("div", name, " = ", text, class_="formula long")
    shown = scrolling("Best formula", name, " = ", mathml(best), class_="formula scroll")
    return joined(shown, code(best.text()))


def _other_forms(rounded: str, best: Formula) -> Markup:
    """Return the formula in a shorter form, and with simple constants, where they are others."""
    forms = []
    shorter = best.simplify()
    if shorter.text() != best.text():
        forms.append(_form("Shorter, the same function: ", shorter))
    if rounded not in (best.text(), shorter.text()):
        simple = Formula(rounded, best.feature_names).simplify()
        forms.append(_form("With simple constants, to which the data do not object: ", simple))
    return joined(*forms)


def _form(label: str, formula: Formula) -> Markup:
    text = formula.text()
    shown = element("code", text) if len(text) > WIDEST_FORMULA else mathml(formula)
    return scrolling(label.rstrip(": "), label, shown)


def _columns(best: Formula, n_columns: int) -> str:
    names = ", ".join(name or "(no name)" for name in best.features)
    return f"{len(best.features)} of {n_columns}" + (f": {names}" if names else "")


def _constants(result: Result) -> Markup:
    """Return the constants of the best formula with their intervals."""
    found = result.constants(result.best, _LEVEL)
    if found.empty:
        return Markup()
    rows = [
        (i, number(row.value), number(row.std), f"{number(row.lower)} to {number(row.upper)}")
        if np.isfinite(row.std)
        else (i, number(row.value), "", "any, as others make up for it")
        for i, row in enumerate(found.itertuples(), 1)
    ]
    return table(
        "Constants of the best formula",
        ["From left to right ", "Value ", "Standard deviation ", f"{_LEVEL:.0%} interval "],
        rows,
        note="Intervals are those of the constants given that the formula is the right one.",
    )


def _formulas(result: Result) -> Markup:
    shown = result.formulas.head(_MOST_FORMULAS)
    formulas = in_a_table(result.formula_objects[:_MOST_FORMULAS])
    rows = [
        (probability(row.probability), formula, number(row.rmse), f"{row.r2:.4f}", row.n_nodes)
        for row, formula in zip(shown.itertuples(), formulas, strict=True)
    ]
    share = probability(min(1.0, shown["probability"].sum()))
    count = (
        f"The {len(rows)} most probable of {len(result.formulas):,} formulas found; together they "
        f"have {share} of the probability."
        if len(result.formulas) > 1
        else "It is the only formula found."
    )
    return table(
        "The most probable formulas",
        ["Probability ", "Formula", "RMSE ", "R² ", "Nodes "],
        rows,
        note=f"{count} A probability is the share of the model's belief, given these rows, the "
        "operators allowed and a prior that prefers short formulas. RMSE and R² are those of the "
        "training rows; nodes are operators, columns and constants.",
    )


# Trust: whether the chains agree, and whether the data look as the model says.


def _trust(result: Result) -> Markup:
    """Return the second section of the report."""
    comparison = compare(result)
    intervals = comparison.intervals(_LEVEL)
    notes = [element("li", text) for text in _notes(result, comparison, intervals)]
    return section(
        "trust",
        "Can it be trusted?",
        verdict(result.diagnostics),
        element("ul", *notes, class_="notes"),
        _convergence(result.diagnostics),
        _chains(result) if result.diagnostics["chains_disagree"] else "",
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
                lambda ax: plot_trace(result, ax=ax),
            ),
            class_="figures",
        ),
    )


def _notes(result: Result, comparison: Comparison, intervals: Intervals) -> Iterator[str]:
    """Yield what a reader should know before believing the answer."""
    diagnostics = result.diagnostics
    if diagnostics["interrupted"]:
        yield "The run was interrupted; the answer is what was found until then."
    if diagnostics["timed_out"]:
        yield "The time limit ended the run before it was done."
    n = result.total_weight
    if n < _FEW_ROWS:
        yield (
            f"There are only {n:,.0f} rows. So few are fitted by some formula by chance; take the "
            "probabilities with care."
        )
    first = result.formulas["probability"].iloc[0]
    if first < 0.5:
        yield (
            f"No formula has half of the probability (the first has {first:.3f}). Trust what the "
            "first ones have in common, and the predictions, which average over all."
        )
    left_out = np.setdiff1d(np.arange(result.n_columns), result.used)
    if len(left_out):
        names = [result.names[i] for i in left_out]
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


def _chains(result: Result) -> Markup:
    """Return what each chain found, for chains that do not agree."""
    found = formulas_by_chain(result.posterior, result.formulas, _OF_EACH_CHAIN)
    weights, stacked = result.posterior.chain_weights, result.diagnostics["stacking_weights"]
    formulas = in_a_table(result.formula_objects[i] for i in found.index)
    rows = [
        (
            chain,
            f"{weights[chain]:.3f}",
            "" if stacked is None else f"{stacked[chain]:.3f}",
            probability(share),
            formula,
        )
        for chain, share, formula in zip(
            found["chain"], found["probability"], formulas, strict=True
        )
    ]
    return table(
        "What each chain found",
        ["Chain ", "Weight ", "If stacked ", "Probability ", "Formula"],
        rows,
        note="Probabilities are those among the draws of one chain. The weights say how much a "
        "chain counts in this page; stacked ones are those with which the chains together predict "
        "best the rows that they have not seen.",
    )


def _convergence(diagnostics: dict[str, Any]) -> Markup:
    """Return how well the chains agree."""
    return table(
        "Agreement of the chains",
        ["Of the draws", "R-hat ", "Effective draws "],
        list(_worst(diagnostics["r_hat"], diagnostics["effective_draws"])),
        note="R-hat compares the spread between chains with that within them; 1 is agreement. "
        "Effective draws are how many independent ones these are worth. Of several columns, "
        "formulas or rows these are the worst values.",
    )


def _worst(r_hat: dict[str, float], effective: dict[str, float]) -> Iterator[tuple[str, str, str]]:
    """Yield each kind of quantity with its largest R-hat and its smallest number of draws."""
    for start, label in _QUANTITIES.items():
        names = [name for name in r_hat if name.startswith(start)]
        if names:
            hats = [r_hat[name] for name in names]
            draws = [effective[name] for name in names]
            yield label, f"{np.max(hats):.3f}", f"{np.min(draws):,.0f}"


# Detail: size against error, columns, the tree, the run, settings, and how to use the result.


def _detail(result: Result, model: Any) -> Markup:
    """Return the last section of the report."""
    return section(
        "detail",
        "Detail",
        _plots(result),
        _front(result),
        wide_figure(
            "tree",
            "The best formula as a tree",
            "The best formula as a tree: operators (round) over what they are applied to, columns "
            "(rounded) and constants (square).",
            lambda ax: plot_tree(result.best_formula, ax=ax),
            natural_size(result.best_formula),
        ),
        element("h3", "The run"),
        _run(result),
        _found(result.diagnostics["found"]),
        element("h3", "Settings and versions"),
        element("div", _settings(model), _versions(), class_="pair"),
        element("h3", "Use it, repeat it, cite it"),
        _use(result, model),
    )


def _plots(result: Result) -> Markup:
    n_formulas = min(_MOST_FORMULAS, len(result.formulas))
    n_columns = min(_MOST_COLUMNS, result.n_columns)
    return element(
        "div",
        figure(
            "formulas",
            "Probabilities of the first formulas",
            "How the probability is spread over formulas.",
            lambda ax: plot_formulas(result, _MOST_FORMULAS, ax=ax),
            height=1.0 + 0.62 * n_formulas,
        ),
        figure(
            "inclusion",
            "Probability that a column is used, by column",
            "How probable it is that a column matters at all.",
            lambda ax: plot_inclusion(result, _MOST_COLUMNS, ax=ax),
            height=1.0 + 0.25 * n_columns,
        ),
        figure(
            "pareto",
            "Errors of formulas against their sizes",
            "What more nodes buy. Where the front goes flat, they fit noise.",
            lambda ax: plot_pareto(result, ax=ax),
        ),
        class_="figures",
    )


def _front(result: Result) -> Markup:
    front = result.pareto
    formulas = in_a_table(result.formula_objects[i] for i in front.index)
    return table(
        "No shorter formula has a smaller error",
        ["Nodes ", "RMSE ", "Formula", "R² ", "Probability "],
        [
            (row.n_nodes, number(row.rmse), formula, f"{row.r2:.4f}", probability(row.probability))
            for row, formula in zip(front.itertuples(), formulas, strict=True)
        ],
    )


def _run(result: Result) -> Markup:
    diagnostics = result.diagnostics
    draws = [len(values) for values in diagnostics["log_likelihood"]]
    rows = [
        ("Time", f"{diagnostics['seconds']:.1f} s"),
        ("Formulas proposed", f"{diagnostics['proposals']:,}"),
        ("Formulas evaluated", f"{diagnostics['evaluations']:,}"),
        ("Draws kept", f"{sum(draws):,} in {len(draws)} chains"),
        ("Restarts of the warm-up", diagnostics["restarts"]),
    ]
    if diagnostics["powers"]:
        rates = np.concatenate(diagnostics["swap_rates"])
        rows += [
            ("Temperatures in each chain", len(diagnostics["powers"][0])),
            ("Swaps of neighbours accepted", f"{rates.min():.0%} to {rates.max():.0%}"),
            ("Round trips between coldest and hottest", sum(diagnostics["round_trips"])),
        ]
    moves = [(name, f"{share:.1%}") for name, share in diagnostics["acceptance"].items()]
    return element(
        "div",
        table("How the run went", ["What", "How much "], rows),
        table("Proposals accepted", ["Move", "Share "], moves),
        class_="pair",
    )


def _found(found: list[tuple[float, str]]) -> Markup:
    if not found:
        return Markup()
    return table(
        "What the search found, and when",
        ["After ", "Formula"],
        [(f"{seconds:.2f} s", element("code", text)) for seconds, text in found],
    )


def _settings(model: Any) -> Markup:
    return table(
        "Settings of the estimator",
        ["Parameter", "Value"],
        [
            (name, element("code", _ADDRESS.sub("", repr(value))))
            for name, value in model.get_params().items()
        ],
    )


def _versions() -> Markup:
    rows = [
        ("symbayes", __version__),
        ("Python", platform.python_version()),
        *((name, version(name)) for name in _PACKAGES),
    ]
    return table("Versions that wrote this page", ["What", "Version"], rows)


def _use(result: Result, model: Any) -> Markup:
    best = result.best_formula
    use = (
        "from symbayes import Formula\n\n"
        f"formula = Formula({best.text(17)!r}, {best.features!r})\n"
        "formula.predict(table)  # a DataFrame with these columns"
    )
    changed = _ADDRESS.sub("", model.__repr__(N_CHAR_MAX=10**6))
    names = ", ".join(sorted(set(_CLASS.findall(changed))))
    weights = ", sample_weight" if result.is_weighted else ""
    repeat = f"from symbayes import {names}\n\nmodel = {changed}\nmodel.fit(X, y{weights})"
    again = (
        "The same settings again; there was no random_state, so that draws will differ:"
        if model.random_state is None
        else "The same fit again:"
    )
    return joined(
        element("p", "The best formula, with all digits:"),
        code(use),
        element("p", again),
        code(repeat),
        element(
            "p",
            f"Please cite symbayes {__version__} and the paper whose model it implements: "
            "Y. Jin, W. Fu, J. Kang, J. Guo and J. Guo (2019), Bayesian Symbolic Regression, ",
            element("a", "arXiv:1910.08892", href=_PAPER, rel="noreferrer"),
            ".",
        ),
    )
