"""Formulas that a user knows or guesses, as the trees of the chains."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from ..formula.formula import Formula
from ..formula.operators import BY_OPCODE
from ..formula.parser import parse
from ..formula.trees import term_tree, term_trees
from ..kernels import opcodes


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


def known_trees(
    texts: Sequence[str], names: Sequence[str], used: np.ndarray
) -> tuple[np.ndarray, ...]:
    """Return known terms as trees in the columns in use, each up to a factor and a summand."""
    trees = []
    for text in texts:
        tree = term_tree(_read("known_terms", text, names))
        if tree is None:
            raise ValueError(
                f"known_terms: {text!r} is a constant; the model has an intercept anyway, so leave "
                "it out"
            )
        trees.append(_in_use("known_terms", text, tree, names, used))
    return tuple(trees)


def guessed_trees(
    texts: Sequence[str],
    names: Sequence[str],
    used: np.ndarray,
    operators: Mapping[str, float],
    max_nodes: int,
    terms: tuple[int, int],
) -> list[list[np.ndarray]]:
    """Return formulas to start from, each as the trees of its terms.

    They have to be possible: made of the operators, with so many nodes at most, and with a number
    of terms between the fewest and the most of `terms`.
    """
    guesses = []
    for text in texts:
        trees = [
            _in_use("initial_formulas", text, tree, names, used)
            for tree in term_trees(_read("initial_formulas", text, names))
        ]
        fewest, most = terms
        if not fewest <= len(trees) <= most:
            allowed = str(most) if fewest == most else f"{fewest} to {most}"
            raise ValueError(
                f"initial_formulas: {text!r} has {len(trees)} terms and n_terms allows {allowed}"
            )
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


def _read(name: str, text: str, names: Sequence[str]):
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
    place = {int(column): i for i, column in enumerate(used)}
    tree = tree.copy()
    for node in tree:
        if node["op"] == opcodes.FEATURE:
            if int(node["feature"]) not in place:
                raise ValueError(
                    f"{name}: {text!r} uses column {names[node['feature']]!r}, which is constant "
                    "or a copy of another column and cannot matter"
                )
            node["feature"] = place[int(node["feature"])]
    return tree
