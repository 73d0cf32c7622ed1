"""Detail: size against error, columns, the tree, the run, settings, and how to use the result."""

from __future__ import annotations

import platform
import re
from importlib.metadata import version
from typing import Any

import numpy as np

from ...version import __version__
from ..plots import plot_formulas, plot_inclusion, plot_pareto, plot_tree
from ..plots.tree import natural_size
from .answer import MOST_FORMULAS
from .figures import figure, wide_figure
from .markup import Markup, code, element, in_a_table, joined, number, probability, section, table

_PACKAGES = ("numpy", "scipy", "numba", "scikit-learn", "pandas", "matplotlib")
_MOST_COLUMNS = 12
_PAPER = "https://arxiv.org/abs/1910.08892"
_CLASS = re.compile(r"\b(?:BayesianSymbolicRegressor|[A-Z]\w+(?:Prior|Sampler))(?=\()")
_ADDRESS = re.compile(r" at 0x[0-9A-Fa-f]+")


def detail(model: Any) -> Markup:
    """Return the last section of the report."""
    return section(
        "detail",
        "Detail",
        _plots(model),
        _front(model),
        wide_figure(
            "tree",
            "The best formula as a tree",
            "The best formula as a tree: operators (round) over what they are applied to, columns "
            "(rounded) and constants (square).",
            lambda ax: plot_tree(model.best_formula_, ax=ax),
            natural_size(model.best_formula_),
        ),
        element("h3", "The run"),
        _run(model),
        _found(model.diagnostics_["found"]),
        element("h3", "Settings and versions"),
        element("div", _settings(model), _versions(), class_="pair"),
        element("h3", "Use it, repeat it, cite it"),
        _use(model),
    )


def _plots(model: Any) -> Markup:
    n_formulas = min(MOST_FORMULAS, len(model.formulas_))
    n_columns = min(_MOST_COLUMNS, model.n_features_in_)
    return element(
        "div",
        figure(
            "formulas",
            "Probabilities of the first formulas",
            "How the probability is spread over formulas.",
            lambda ax: plot_formulas(model, MOST_FORMULAS, ax=ax),
            height=1.0 + 0.62 * n_formulas,
        ),
        figure(
            "inclusion",
            "Probability that a column is used, by column",
            "How probable it is that a column matters at all.",
            lambda ax: plot_inclusion(model, _MOST_COLUMNS, ax=ax),
            height=1.0 + 0.25 * n_columns,
        ),
        figure(
            "pareto",
            "Errors of formulas against their sizes",
            "What more nodes buy. Where the front goes flat, they fit noise.",
            lambda ax: plot_pareto(model, ax=ax),
        ),
        class_="figures",
    )


def _front(model: Any) -> Markup:
    front = model.pareto_
    formulas = in_a_table(model.formula_objects_[i] for i in front.index)
    return table(
        "No shorter formula has a smaller error",
        ["Nodes ", "RMSE ", "Formula", "R² ", "Probability "],
        [
            (
                row.n_nodes,
                number(row.rmse),
                formula,
                f"{row.r2:.4f}",
                probability(row.probability),
            )
            for row, formula in zip(front.itertuples(), formulas, strict=True)
        ],
    )


def _run(model: Any) -> Markup:
    diagnostics = model.diagnostics_
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
        [(name, element("code", _repr(value))) for name, value in model.get_params().items()],
    )


def _repr(value: Any) -> str:
    """Return how a value is written, without a place in memory."""
    return _ADDRESS.sub("", repr(value))


def _versions() -> Markup:
    rows = [
        ("symbayes", __version__),
        ("Python", platform.python_version()),
        *((name, version(name)) for name in _PACKAGES),
    ]
    return table("Versions that wrote this page", ["What", "Version"], rows)


def _use(model: Any) -> Markup:
    best = model.best_formula_
    use = (
        "from symbayes import Formula\n\n"
        f"formula = Formula({best.text(17)!r}, {best.features!r})\n"
        "formula.predict(table)  # a DataFrame with these columns"
    )
    changed = _ADDRESS.sub("", model.__repr__(N_CHAR_MAX=10**6))
    names = ", ".join(sorted(set(_CLASS.findall(changed))))
    weights = ", sample_weight" if (model._rows.weights != 1.0).any() else ""
    repeat = f"from symbayes import {names}\n\nmodel = {changed}\nmodel.fit(X, y{weights})"
    return joined(
        [
            element("p", "The best formula, with all digits:"),
            code(use),
            element(
                "p",
                "The same settings again; there was no random_state, so that draws will differ:"
                if model.random_state is None
                else "The same fit again:",
            ),
            code(repeat),
            element(
                "p",
                f"Please cite symbayes {__version__} and the paper whose model it implements: "
                "Y. Jin, W. Fu, J. Kang, J. Guo and J. Guo (2019), Bayesian Symbolic Regression, ",
                element("a", "arXiv:1910.08892", href=_PAPER, rel="noreferrer"),
                ".",
            ),
        ]
    )
