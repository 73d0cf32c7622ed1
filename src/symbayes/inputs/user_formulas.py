"""Formulas that a user knows or guesses: known terms and starts of the chains, as trees.

Known terms are always in the model, with coefficients that are learned. Those have the same prior
as the coefficients of all other terms, centred at the least-squares estimate. So known terms enter
the likelihood only by what they leave of y unexplained, and it is enough to project them out, of y
and of every column.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from ..formula.expression import Expression
from ..formula.formula import Formula
from ..formula.operators import BY_OPCODE
from ..formula.parser import parse
from ..formula.trees import evaluate_trees, term_tree, term_trees
from ..kernels import opcodes
from .validation import Table

# A known term of which a smaller part (squared) lies outside the span of the others is redundant.
_REDUNDANT = 1.0e-10
# What is left of y below this part of its spread is a rounding error.
_NOTHING = 1.0e-12


def texts_of(name: str, formulas: object) -> list[str]:
    """Return formulas as text; complain about anything but a list of texts or Formula objects."""
    if formulas is None:
        return []
    # Something that can be read only once would be gone before it is needed.
    if isinstance(formulas, str | Formula) or not isinstance(formulas, Collection):
        raise TypeError(
            f"{name} must be a list of formulas, for example ['x0*x1'], not {formulas!r}"
        )
    texts = []
    for formula in formulas:
        if not isinstance(formula, str | Formula):
            raise TypeError(f"{name}: a formula is a str or a Formula, not {formula!r}")
        texts.append(formula if isinstance(formula, str) else formula.text(digits=17))
    return texts


def known_trees(texts: Sequence[str], names: Sequence[str], table: Table) -> tuple[np.ndarray, ...]:
    """Return known terms as trees in the columns in use, each up to a factor and a summand.

    Terms that have no value on some row, say nothing new or leave nothing to find are refused.
    """
    trees = []
    for text in texts:
        tree = term_tree(_read("known_terms", text, names))
        if tree is None:
            raise ValueError(
                f"known_terms: {text!r} is a constant; the model has an intercept anyway, so leave "
                "it out"
            )
        trees.append(_in_use("known_terms", text, tree, names, table.used))
    if trees:
        _check_known(trees, texts, table)
    return tuple(trees)


def guessed_trees(
    texts: Sequence[str],
    names: Sequence[str],
    table: Table,
    operators: Mapping[str, float],
    max_nodes: int,
    terms: tuple[int, int],
) -> list[list[np.ndarray]]:
    """Return formulas to start from, each as the trees of its terms.

    They have to be possible: with a value on every row, made of the operators, terms of at most
    `max_nodes` nodes, and as many terms as `terms` allows, from the fewest to the most.
    """
    guesses = []
    fewest, most = terms
    for text in texts:
        found = term_trees(_read("initial_formulas", text, names))
        trees = [_in_use("initial_formulas", text, tree, names, table.used) for tree in found]
        if trees:
            _values("initial_formulas", text, trees, table)
        if not fewest <= len(trees) <= most:
            allowed = str(most) if fewest == most else f"{fewest} to {most}"
            has = "1 term" if len(trees) == 1 else f"{len(trees)} terms"
            raise ValueError(f"initial_formulas: {text!r} has {has} and n_terms allows {allowed}")
        for tree in trees:
            missing = [
                BY_OPCODE[op].name
                for op in np.unique(tree["op"]).tolist()
                if op != opcodes.FEATURE and BY_OPCODE[op].name not in operators
            ]
            if missing:
                needs = "lt (constants inside it)" if missing[0] == "lt" else repr(missing[0])
                raise ValueError(
                    f"initial_formulas: {text!r} needs the operator {needs}, which is not among "
                    f"the operators ({', '.join(operators)}); add it"
                )
            if len(tree) > max_nodes:
                raise ValueError(
                    f"initial_formulas: a term of {text!r} has {len(tree)} nodes and "
                    f"tree_prior.max_nodes is {max_nodes}; raise it"
                )
        guesses.append(trees)
    return guesses


def _read(name: str, text: str, names: Sequence[str]) -> Expression:
    try:
        return parse(text, names)
    except ValueError as error:
        raise type(error)(f"{name}: {error}") from None


def _in_use(
    name: str, text: str, tree: np.ndarray, names: Sequence[str], used: np.ndarray
) -> np.ndarray:
    """Return a tree with its columns numbered as the problem numbers them."""
    if not np.isfinite([tree["a"], tree["b"]]).all():
        raise ValueError(f"{name}: {text!r} divides by 0 or has a constant that is not finite")
    leaves = tree["op"] == opcodes.FEATURE
    for column in tree["feature"][leaves].tolist():
        if column not in used:
            raise ValueError(
                f"{name}: {text!r} uses column {names[column]!r}, which is constant or a copy of "
                "another column and cannot matter"
            )
    tree = tree.copy()
    tree["feature"][leaves] = np.searchsorted(used, tree["feature"][leaves])
    return tree


def orthonormal(
    trees: Sequence[np.ndarray], columns: np.ndarray, root_weight: np.ndarray
) -> np.ndarray:
    """Return an orthonormal basis of the centred, weighted columns of trees, one row each."""
    if not trees:
        return np.empty((0, len(root_weight)))
    values = evaluate_trees(trees, columns)
    values /= np.abs(values).max(axis=1)[:, None]
    weights = root_weight**2
    values -= (values @ weights / weights.sum())[:, None]
    q, _ = np.linalg.qr((values * root_weight).T)
    return np.ascontiguousarray(q.T)


def without(values: np.ndarray, basis: np.ndarray) -> np.ndarray:
    """Return what of some values lies outside the span of a basis."""
    for _ in range(2 if len(basis) else 0):  # once leaves rounding errors of what was taken out
        values = values - basis.T @ (basis @ values)
    return values


def _values(name: str, text: str, trees: Sequence[np.ndarray], table: Table) -> np.ndarray:
    """Return the values of the terms of a formula on the training rows, one row for each."""
    with np.errstate(all="ignore"):
        values = evaluate_trees(trees, table.columns)
    bad = ~np.isfinite(values).all(axis=0)
    if bad.any():
        raise ValueError(
            f"{name}: {text!r} has no finite value on {int(bad.sum())} of {len(table.y)} training "
            f"rows (the first is row {int(np.argmax(bad))}); drop the formula, or those rows"
        )
    return values


def _check_known(trees: Sequence[np.ndarray], texts: Sequence[str], table: Table) -> None:
    y, weights = table.y, table.weights
    values = np.array(
        [
            _values("known_terms", text, [tree], table)[0]
            for text, tree in zip(texts, trees, strict=True)
        ]
    )
    root = np.sqrt(weights)

    def centred(column: np.ndarray) -> np.ndarray:
        return (column - np.average(column, weights=weights)) * root

    basis = np.empty((0, len(y)))
    for text, column in zip(texts, values, strict=True):
        column = column / max(np.abs(column).max(), np.finfo(float).tiny)
        whole = centred(column)
        rest = without(whole, basis)
        size = rest @ rest
        if not (whole @ whole > _REDUNDANT * (weights @ column**2)):
            raise ValueError(
                f"known_terms: {text!r} is constant on the training rows; the model has an "
                "intercept anyway, so leave it out"
            )
        if not size > _REDUNDANT * (whole @ whole):
            raise ValueError(
                f"known_terms: {text!r} is a combination of the other known terms on the training "
                "rows; leave it out"
            )
        basis = np.vstack([basis, rest / np.sqrt(size)])
    whole = centred(y / np.abs(y).max())
    rest = without(whole, basis)
    if rest @ rest <= _NOTHING**2 * (whole @ whole):
        raise ValueError(
            "known_terms explain y to all digits, so there is nothing left to find; leave one of "
            "them out to have it found"
        )
