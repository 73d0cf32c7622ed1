"""What a user asks for, checked and brought together: before any work starts."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..cautions import DataWarning
from ..formula.operators import operator_weights
from .parameters import check_parameters, check_seed, terms_for
from .prior import TreePrior, check_buildable, noise_prior, resolve_feature_weights
from .problem import Problem, make_problem
from .sampler_settings import PaperSampler, Sampler
from .user_formulas import guessed_trees, known_trees, texts_of
from .validation import Table, check_table, feature_names


@dataclass(frozen=True)
class Task:
    """What is to be done."""

    sampler: Sampler
    random_state: np.random.RandomState
    table: Table
    """Rows have the weights that they count with."""
    problem: Problem
    guesses: list[list[np.ndarray]]


def make_task(model: Any, X: Any, y: Any, sample_weight: Any) -> Task:
    """Check parameters and data of an estimator, which is told names and number of the columns."""
    sampler = check_parameters(model)
    random_state = check_seed(model.random_state)
    terms = terms_for(sampler, model.n_terms)
    weights = operator_weights(model.operators)
    table = check_table(model, X, y, sample_weight)
    names, used = feature_names(model), table.used
    tree_prior = model.tree_prior or TreePrior()
    if isinstance(sampler, PaperSampler):
        tree_prior = replace(tree_prior, sensible=False, nesting_price=0.0)  # as the paper has it
    by_column = resolve_feature_weights(model.feature_weights, names, used)
    check_buildable(weights, tree_prior)
    if isinstance(terms, int) and terms >= len(table.y):
        raise ValueError(
            f"n_terms is {terms} and there are {len(table.y)} rows to fit them to; n_terms must"
            f" be at most {len(table.y) - 1}, or 'auto'"
        )
    # A belief that the data are not as the model says: all of them count as a few rows only (a
    # coarsened posterior, Miller and Dunson, 2019).
    trust = 1.0
    if model.tolerance > 0.0:
        trust = min(1.0, 1.0 / (model.tolerance * float(table.weights.sum())))
        table = replace(table, weights=table.weights * trust)
    problem = make_problem(
        table,
        weights,
        by_column,
        tree_prior,
        noise_prior(model.noise_prior, sampler.noise_prior),
        terms,
        model.hyperparameters == "learn",
        known_trees(texts_of("known_terms", model.known_terms), names, table),
        trust=trust,
    )
    guesses = guessed_trees(
        texts_of("initial_formulas", model.initial_formulas),
        names,
        table,
        weights,
        problem.max_nodes,
        (terms, terms) if isinstance(terms, int) else (0, terms.most),
    )
    for text, trees in zip(model.initial_formulas or (), guesses, strict=True):
        if not problem.are_sensible(trees):
            message = (
                f"initial_formulas: {str(text)!r} is dropped unless it fits to all digits, since "
                "a term of it is not sensible: on other rows of the box of X it explodes, has no "
                "value or oscillates faster than the rows can tell; "
                "tree_prior=TreePrior(sensible=False) allows it"
            )
            warnings.warn(DataWarning(message), stacklevel=3)
    return Task(sampler, random_state, table, problem, guesses)
