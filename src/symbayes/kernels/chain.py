"""What a chain is made of, and how a proposed tree becomes a column and a fit."""

from typing import NamedTuple

import numpy as np

from .compiling import entry_point, kernel
from .likelihood import project, residual_sum_of_squares, standardise
from .limits import is_allowed
from .tree import count_nodes

# Entries of `Chain.numbers`.
LOG_LIKELIHOOD = 0
RSS = 1
NOISE_VARIANCE = 2
#: Entries that are kept of a draw; with delayed acceptance those of all rows, which follow.
NUMBERS = 3
ALL_LOG_LIKELIHOOD = 3
ALL_RSS = 4
ALL_NUMBERS = 5

# Rows of `Chain.counts`.
PROPOSED = 0
EVALUATED = 1
ACCEPTED = 2


class Chain(NamedTuple):
    """The state of one chain. Trees and columns live in slots; `slots` says which are in use."""

    rng: np.ndarray
    """State of the random number generator."""
    nodes: np.ndarray
    """Trees, `max_nodes` nodes a slot."""
    columns: np.ndarray
    """Columns of the design, one slot after the other."""
    gram: np.ndarray
    """Inner products of the columns, by slot; right for the slots in use."""
    dots: np.ndarray
    """Inner products of the columns with the response, by slot."""
    slots: np.ndarray
    """Slots of the terms in their order; the last two entries are slots for proposals."""
    n_terms: np.ndarray
    """The number of terms, one entry."""
    numbers: np.ndarray
    """Log-likelihood, residual sum of squares, noise variance (paper's sampler). With delayed
    acceptance the first two are those of the part, and those of all rows follow; nan where the
    chain is at a temperature that does not see all rows."""
    counts: np.ndarray
    """Proposals made, trees evaluated and proposals accepted, by move (a death evaluates none)."""


class Code(NamedTuple):
    """Compiled functions that a step calls by address, so that each is compiled only once."""

    evaluate: object
    fit: object
    propose: object
    jump: object
    optimise: object
    newton: object
    fit_all: object


class Few(NamedTuple):
    """A few rows of the table, and room for the optimisation of constants on them."""

    x: np.ndarray
    y: np.ndarray
    root_weight: np.ndarray
    rows: np.ndarray
    """Which rows of the table these are."""
    known: np.ndarray
    """The known terms on these rows."""
    share: np.ndarray
    """How often the constants of a proposal are optimised; 0 while drawing. One entry."""
    design: np.ndarray
    factor: np.ndarray
    z: np.ndarray
    constants: np.ndarray
    direction: np.ndarray
    trial: np.ndarray


class AllRows(NamedTuple):
    """The whole table, where `Data` is a part of it, and room for a fit on it; else empty."""

    x: np.ndarray
    y: np.ndarray
    root_weight: np.ndarray
    n: float
    noise_prior: np.ndarray
    most_constants: float
    known: np.ndarray
    block: np.ndarray
    """A block of rows of every term, and one of residuals."""
    order: np.ndarray
    shift: np.ndarray
    unit: np.ndarray
    totals: np.ndarray
    dots: np.ndarray
    gram: np.ndarray
    beside: np.ndarray
    """Products of the columns with the known terms."""
    length: np.ndarray
    other: np.ndarray


class Scratch(NamedTuple):
    """Room to work in; holds nothing between two steps."""

    pending: np.ndarray
    where: np.ndarray
    stack: np.ndarray
    factor: np.ndarray
    solution: np.ndarray
    correction: np.ndarray
    products: np.ndarray
    other_products: np.ndarray
    residual: np.ndarray
    counts: np.ndarray
    swaps: np.ndarray
    few: Few
    all_rows: AllRows


@kernel
def max_nodes(chain):
    """Return how many nodes a tree may have: the size of a slot."""
    return chain.nodes.shape[0] // chain.slots.shape[0]


@kernel
def tree_start(chain, slot):
    """Return where the tree in a slot begins."""
    return slot * (chain.nodes.shape[0] // chain.slots.shape[0])


@kernel
def count_constants(chain, n_terms):
    """Return the number of constants of a model: those of its trees, coefficients, intercept."""
    constants = 1 + n_terms
    for k in range(n_terms):
        _, transforms, _ = count_nodes(chain.nodes, tree_start(chain, chain.slots[k]))
        constants += 2 * transforms
    return constants


@entry_point
def fit(evaluate, chain, slot, n_terms, data, scratch, allow):
    """Return the residual sum of squares of the first `n_terms` terms.

    If `slot` is not negative, the tree there is new: its column is made first. Return -1 when it is
    not allowed or has no column (not finite somewhere, or constant). Return -1 as well when a term
    is redundant or the model has too many constants, unless `allow` says that neither matters (a
    redundant term has coefficient 0).
    """
    allow = allow or data.is_part
    if not allow and count_constants(chain, n_terms) > data.most_constants:
        return -1.0
    n_rows = data.y.shape[0]
    if slot >= 0:
        if not is_allowed(
            chain.nodes, tree_start(chain, slot), data.limits, scratch.where, scratch.pending
        ):
            return -1.0
        evaluate(
            chain.nodes,
            tree_start(chain, slot),
            data.x,
            n_rows,
            0,
            n_rows,
            chain.columns,
            slot * n_rows,
            scratch.stack,
            scratch.where,
        )
        _, length = standardise(chain.columns, slot * n_rows, data)
        if length < 0.0:
            return -1.0
        project(chain.columns, slot, chain.slots, n_terms, data, chain.gram, chain.dots)
        if length == 0.0:
            chain.gram[slot * chain.slots.shape[0] + slot] = 0.0
    return residual_sum_of_squares(
        chain.columns,
        chain.slots,
        n_terms,
        data,
        chain.gram,
        chain.dots,
        scratch.factor,
        scratch.solution,
        scratch.correction,
        scratch.residual,
        allow,
    )
