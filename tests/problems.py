"""Small problems that several test files share."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from symbayes.formula.operators import OPERATORS
from symbayes.inputs.prior import NoisePrior, TermsPrior, TreePrior
from symbayes.inputs.problem import Problem, make_problem
from symbayes.inputs.validation import Table
from symbayes.kernels import opcodes
from symbayes.kernels.tree import NODE

from . import naive


def table(n_rows=6, n_features=2, seed=0, weights=None) -> Table:
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (n_rows, n_features))
    y = X[:, 0] * X[:, -1] + 0.5 * rng.normal(size=n_rows)
    weights = np.ones(n_rows) if weights is None else np.asarray(weights, dtype=float)
    return Table(np.asfortranarray(X), y, weights, np.arange(n_features))


def problem(
    rows: Table,
    operators: dict[str, float],
    terms: TermsPrior | int = 1,
    tree_prior: TreePrior | None = None,
    noise_prior: NoisePrior | None = None,
    feature_weights=None,
    learn: bool = False,
    most_constants: float = math.inf,
    known: tuple[np.ndarray, ...] = (),
    sensible: bool = False,
    nesting_price: float = 0.0,
    trust: float = 1.0,
) -> Problem:
    """Return a problem; the tables are so small that few constants would be allowed by default.

    Whether terms are sensible is asked only where that is tested, and so is a price of nesting.
    """
    total = sum(operators.values())
    n_features = rows.X.shape[1]
    weights = np.ones(n_features) if feature_weights is None else np.asarray(feature_weights)
    made = make_problem(
        rows,
        {name: weight / total for name, weight in operators.items()},
        weights / weights.sum(),
        replace(tree_prior or TreePrior(), sensible=sensible, nesting_price=nesting_price),
        noise_prior or NoisePrior(shape=4.0, scale=0.5),
        terms,
        learn,
        known,
        trust=trust,
    )
    return replace(made, data=made.data._replace(most_constants=float(most_constants)))


def posed(columns: np.ndarray, y: np.ndarray, operators: dict[str, float]) -> Problem:
    """Return the problem of a response to some columns, given one after the other."""
    n = len(y)
    return problem(
        Table(np.asfortranarray(columns.T), y, np.ones(n), np.arange(len(columns))), operators
    )


def beliefs(made: Problem, scales=(1.0, 1.0), move_shape=(0.25, 3.0)) -> naive.Beliefs:
    weights = [0.0] * opcodes.N_OPCODES
    for name, weight in made.operator_weights.items():
        weights[OPERATORS[name].opcode] = weight
    tree = made.tree_prior
    return naive.Beliefs(
        weights,
        made.feature_weights.tolist(),
        tree.alpha,
        tree.beta,
        int(tree.max_nodes),
        scales,
        move_shape,
    )


def tree(*parts, a=2.0, b=3.0):
    """Nodes from names of operators and numbers of columns, in preorder."""
    nodes = np.zeros(len(parts), NODE)
    for node, part in zip(nodes, parts, strict=True):
        if isinstance(part, int):
            node["feature"] = part
        else:
            node["op"] = OPERATORS[part].opcode
            if part == "lt":
                node["a"], node["b"] = a, b
    return nodes
