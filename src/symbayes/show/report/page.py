"""One HTML page about a fitted model: the answer, then trust, then detail."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib.metadata import version
from importlib.resources import files
from numbers import Integral
from pathlib import Path
from string import Template
from typing import Any

import numpy as np
import pandas as pd

from ...formula.formula import Formula
from ...posterior.table import formulas_by_chain
from ...result import Result
from ...storage.atomic import replacing
from ...version import __version__
from .. import plots
from ..plots import Comparison, probability
from ..tree_plot import natural_size, plot_tree
from .markup import Markup, element, escaped, joined, scrolling, svg, table

# Formulas and columns that are shown at most, and formulas of each chain.
_MOST_FORMULAS, _MOST_COLUMNS, _OF_EACH_CHAIN = 8, 12, 3
# A browser does not break the lines of a formula; longer ones are shown as text, which it breaks.
_WIDEST_FORMULA = 90
# Inches of a plot; a phone shows them without shrinking letters much.
_WIDTH, _HEIGHT = 4.0, 3.2
# Probability that an interval holds a constant, or a new observation.
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
_PACKAGES = ("numpy", "scipy", "numba", "scikit-learn", "pandas", "matplotlib")
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
    folder = files(__package__)
    style, page = (
        folder.joinpath(n).read_text(encoding="utf-8") for n in ("style.css", "page.html")
    )
    comparison = plots.compare(result, level=_LEVEL)
    parts = {
        "title": title or f"A formula for {result.target}",
        "style": Markup(style),
        **_answer(result, model.model_selection),
        **_trust(result, comparison),
        **_plots(result, comparison),
        **_detail(result),
        **_settings_and_use(result, model),
    }
    page = Template(page).substitute({name: escaped(part) for name, part in parts.items()})
    with replacing(os.fspath(path)) as file:
        file.write(page.encode("utf-8", "xmlcharrefreplace"))
    return path


def number(value: Any) -> str:
    """Return a number with four digits: 0.04700, 1.234e+04."""
    return f"{float(value):#.4g}".rstrip(".")


def _written(formulas: Iterable[Formula]) -> list[Markup]:
    """Return formulas as mathematics, or all of them as text where one is long."""
    formulas = list(formulas)
    texts = [formula.text() for formula in formulas]
    if max(map(len, texts), default=0) > _WIDEST_FORMULA:
        return [element("code", text) for text in texts]
    return [Markup(formula.mathml()) for formula in formulas]


# Columns of tables of formulas: their headings, and how their values are written.
_COLUMNS: dict[str, tuple[str, Callable[[Any], str]]] = {
    "probability": ("Probability ", probability),
    "formula": ("Formula", str),
    "rmse": ("RMSE ", number),
    "r2": ("R² ", "{:.4f}".format),
    "n_nodes": ("Nodes ", str),
    "chain": ("Chain ", str),
    "weight": ("Weight ", str),
    "stacked": ("If stacked ", str),
}


def _formulas(
    caption: str,
    formulas: Sequence[Formula],
    rows: pd.DataFrame,
    columns: Sequence[str],
    note: str = "",
) -> Markup:
    """Return a table of formulas; the index of the rows is their place among these."""
    written = _written(formulas[place] for place in rows.index)
    cells = [
        written if name == "formula" else map(_COLUMNS[name][1], rows[name]) for name in columns
    ]
    return table(caption, [_COLUMNS[name][0] for name in columns], zip(*cells, strict=True), note)


def _answer(result: Result, rule: str) -> dict[str, object]:
    """Return which formula it is, how sure and how close that is, and what else it might be."""
    best, row = result.best_formula, result.best_row
    names = ", ".join(name or "(no name)" for name in best.features)
    shown, total = result.formulas.head(_MOST_FORMULAS), len(result.formulas)
    share = probability(min(1.0, shown["probability"].sum()))
    count = (
        f"The {len(shown)} most probable of {total:,} formulas found; together they have {share} "
        "of the probability."
        if total > 1
        else "It is the only formula found."
    )
    constants = [
        (i, number(one.value), number(one.std), f"{number(one.lower)} to {number(one.upper)}")
        if np.isfinite(one.std)
        else (i, number(one.value), "", "any, as others make up for it")
        for i, one in enumerate(result.constants(best, _LEVEL).itertuples(), 1)
    ]
    quality = "good" if result.diagnostics["converged"] else "doubtful"
    return {
        "headline": _headline(result.target, best),
        "verdict": element("p", result.diagnostics["verdict"], class_=f"verdict {quality}"),
        "other_forms": _other_forms(row["rounded"], best),
        "probability": probability(row["probability"]),
        "rmse": number(row["rmse"]),
        "r2": f"{row['r2']:.4f}",
        "rows": _rows(result),
        "columns": f"{len(best.features)} of {result.n_columns}" + (names and f": {names}"),
        "rule": result.chosen_by(rule),
        "constants": table(
            "Constants of the best formula",
            ["From left to right ", "Value ", "Standard deviation ", f"{_LEVEL:.0%} interval "],
            constants,
            "Intervals are those of the constants given that the formula is the right one.",
        ),
        "formulas": _formulas(
            "The most probable formulas",
            result.formula_objects,
            shown,
            ["probability", "formula", "rmse", "r2", "n_nodes"],
            f"{count} A probability is the share of the model's belief, given these rows, the "
            "operators allowed and a prior that prefers short formulas. RMSE and R² are those of "
            "the training rows; nodes are operators, columns and constants.",
        ),
    }


def _rows(result: Result) -> str:
    text = f"{result.total_weight:,.0f}{' (sum of weights)' if result.is_weighted else ''}"
    return text if result.trust == 1.0 else f"{text}, counting as {result.posterior.mixture.n:,.0f}"


def _headline(target: str, best: Formula) -> Markup:
    (shown,) = _written([best])
    text, parts = best.text(), (element("span", target, class_="target"), " = ", shown)
    if len(text) > _WIDEST_FORMULA:
        return element("div", *parts, class_="formula long")
    box = scrolling("Best formula", *parts, class_="formula scroll")
    return joined(box, element("pre", element("code", text)))


def _other_forms(rounded: str, best: Formula) -> Markup:
    """Return the formula in a shorter form, and with simple constants, where they are others."""
    forms = []
    shorter = best.simplify()
    if shorter.text() != best.text():
        forms.append(("Shorter, the same function", shorter))
    if rounded not in (best.text(), shorter.text()):
        simple = Formula(rounded, best.feature_names).simplify()
        forms.append(("With simple constants, to which the data do not object", simple))
    return joined(*(scrolling(label, f"{label}: ", *_written([form])) for label, form in forms))


def _trust(result: Result, comparison: Comparison) -> dict[str, object]:
    """Return whether the chains agree, and whether the data look as the model says."""
    diagnostics = result.diagnostics
    r_hat, effective = diagnostics["r_hat"], diagnostics["effective_draws"]
    worst = [
        (
            label,
            f"{np.max([r_hat[n] for n in names]):.3f}",
            f"{np.min([effective[n] for n in names]):,.0f}",
        )
        for start, label in _QUANTITIES.items()
        if (names := [name for name in r_hat if name.startswith(start)])
    ]
    return {
        "notes": joined(*(element("li", note) for note in _notes(result, comparison))),
        "agreement": table(
            "Agreement of the chains",
            ["Of the draws", "R-hat ", "Effective draws "],
            worst,
            "R-hat compares the spread between chains with that within them; 1 is agreement. "
            "Effective draws are how many independent ones these are worth. Of several columns, "
            "formulas or rows these are the worst values.",
        ),
        "chains": _chains(result) if diagnostics["chains_disagree"] else "",
    }


def _notes(result: Result, comparison: Comparison) -> Iterator[str]:
    """Yield what a reader should know before believing the answer."""
    if result.diagnostics["interrupted"]:
        yield "The run was interrupted; the answer is what was found until then."
    if result.diagnostics["timed_out"]:
        yield "The time limit ended the run before it was done."
    if result.total_weight < _FEW_ROWS:
        yield (
            f"There are only {result.total_weight:,.0f} rows. So few are fitted by some formula by "
            "chance; take the probabilities with care."
        )
    first = result.formulas["probability"].iloc[0]
    if first < 0.5:
        yield (
            f"No formula has half of the probability (the first has {first:.3f}). Trust what the "
            "first ones have in common, and the predictions, which average over all."
        )
    left_out = np.delete(np.array(result.names, object), result.used).tolist()
    if left_out:
        more = f" and {len(left_out) - 5} more" if len(left_out) > 5 else ""
        yield (
            "Left out, because constant or the same as another: "
            f"{', '.join(map(repr, left_out[:5]))}{more}."
        )
    share = np.mean(comparison.inside)
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
    return _formulas(
        "What each chain found",
        result.formula_objects,
        found.assign(
            weight=[f"{weights[chain]:.3f}" for chain in found["chain"]],
            stacked=["" if stacked is None else f"{stacked[c]:.3f}" for c in found["chain"]],
        ),
        ["chain", "weight", "stacked", "probability", "formula"],
        "Probabilities are those among the draws of one chain. The weights say how much a chain "
        "counts in this page; stacked ones are those with which the chains together predict best "
        "the rows that they have not seen.",
    )


def _detail(result: Result) -> dict[str, object]:
    """Return size against error, the run, its moves, and what the search found."""
    diagnostics = result.diagnostics
    draws = [len(values) for values in diagnostics["log_likelihood"]]
    run = [
        ("Time", f"{diagnostics['seconds']:.1f} s"),
        ("Formulas proposed", f"{diagnostics['proposals']:,}"),
        ("Formulas evaluated", f"{diagnostics['evaluations']:,}"),
        ("Draws kept", f"{sum(draws):,} in {len(draws)} chains"),
        ("Restarts of the warm-up", diagnostics["restarts"]),
    ]
    if diagnostics["powers"]:
        rates = np.concatenate(diagnostics["swap_rates"])
        rates = rates[~np.isnan(rates)]  # of pairs that were due at least once
        run += [
            ("Temperatures in each chain", len(diagnostics["powers"][0])),
            (
                "Swaps of neighbours accepted",
                f"{rates.min():.0%} to {rates.max():.0%}" if len(rates) else "none proposed",
            ),
            ("Round trips between coldest and hottest", sum(diagnostics["round_trips"])),
        ]
    moves = [(name, f"{share:.1%}") for name, share in diagnostics["acceptance"].items()]
    found = [(f"{after:.2f} s", element("code", text)) for after, text in diagnostics["found"]]
    return {
        "front": _formulas(
            "No shorter formula has a smaller error",
            result.front_objects,
            result.front,
            ["n_nodes", "rmse", "formula", "r2", "probability"],
            "Those with probability 0 were met on the way, and never drawn from the posterior.",
        ),
        "run": table("How the run went", ["What", "How much "], run),
        "moves": table("Proposals accepted", ["Move", "Share "], moves),
        "search": table("What the search found, and when", ["After ", "Formula"], found),
    }


def _plots(result: Result, comparison: Comparison) -> dict[str, object]:
    """Return all plots by name."""
    best = result.best_formula

    def tree(ax: Any) -> None:
        ax.set_position((0, 0, 1, 1))
        plot_tree(best, ax)

    draw: dict[str, Callable[[Any], object]] = {
        "predictions": lambda ax: plots.plot_predictions(comparison, ax=ax),
        "residuals": lambda ax: plots.plot_residuals(comparison, ax=ax),
        "trace": lambda ax: plots.plot_trace(result, ax=ax),
        "formulas": lambda ax: plots.plot_formulas(result, _MOST_FORMULAS, ax),
        "inclusion": lambda ax: plots.plot_inclusion(result, _MOST_COLUMNS, ax),
        "pareto": lambda ax: plots.plot_pareto(result, ax),
        "tree": tree,
    }
    sizes = dict.fromkeys(draw, (_WIDTH, _HEIGHT)) | {
        "formulas": (_WIDTH, 1.0 + 0.62 * min(_MOST_FORMULAS, len(result.formulas))),
        "inclusion": (_WIDTH, 1.0 + 0.25 * min(_MOST_COLUMNS, result.n_columns)),
        "tree": natural_size(best),
    }
    return {f"plot_{name}": svg(name, draw[name], sizes[name]) for name in draw}


def _repetition(model: Any, diagnostics: Mapping[str, Any]) -> str:
    """Return what the code that repeats the fit can promise."""
    if not isinstance(model.random_state, Integral):
        return "The same settings again; random_state was no number, so that draws will differ:"
    if diagnostics["timed_out"] or diagnostics["interrupted"]:
        return "The same settings again; the fit was ended early, so that draws may differ:"
    return "The same fit again:"


def _settings_and_use(result: Result, model: Any) -> dict[str, object]:
    """Return how the fit was made, and how to use and to repeat it."""
    # A subclass, such as that of the command line, is no class to import.
    kind = type("BayesianSymbolicRegressor", (type(model),), {})
    same = kind(**model.get_params(deep=False)).__repr__(N_CHAR_MAX=10**6)
    best, changed = result.best_formula, _ADDRESS.sub("", same)
    settings = [
        (name, element("code", _ADDRESS.sub("", repr(value))))
        for name, value in model.get_params().items()
    ]
    versions = [("symbayes", __version__), ("Python", platform.python_version())]
    versions += [(name, version(name)) for name in _PACKAGES]
    return {
        "settings": table("Settings of the estimator", ["Parameter", "Value"], settings),
        "versions": table("Versions that wrote this page", ["What", "Version"], versions),
        "version": __version__,
        "all_digits": repr(best.text(17)),
        "features": best.features,
        "repetition": _repetition(model, result.diagnostics),
        "classes": ", ".join(sorted(set(_CLASS.findall(changed)))),
        "model": changed,
        "arguments": "X, y, sample_weight" if result.is_weighted else "X, y",
    }
