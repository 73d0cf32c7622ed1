"""What compiled code is handed: a chain, the tables it sees, the mode, and room to work in."""

import math
from typing import NamedTuple

import numpy as np

from .tree import MoveScratch

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

# Bytes that a core fetches at a time.
_LINE = 64


class Chain(NamedTuple):
    """The state of one chain. Trees and columns live in slots; `slots` says which are in use."""

    rng: np.ndarray
    """State of the random number generator."""
    nodes: np.ndarray
    """Trees, `max_nodes` nodes per slot."""
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
    nested: np.ndarray
    """How many operators of all terms lie where they have their price (`nesting.py`), one entry."""
    numbers: np.ndarray
    """Log-likelihood, residual sum of squares, noise variance (paper's sampler). With delayed
    acceptance the first two are those of the part, and those of all rows follow; nan where the
    chain is at a temperature that does not see all rows."""
    counts: np.ndarray
    """Proposals made, trees evaluated and proposals accepted, by move (a death evaluates none)."""


class Data(NamedTuple):
    """A table. Rows are padded with copies that have weight zero."""

    x: np.ndarray
    """Columns of the table, one after the other."""
    y: np.ndarray
    """Response: centred, times the root of the weights, scaled so that its squares sum to n."""
    root_weight: np.ndarray
    """Square roots of the row weights, 0 for the padding."""
    n: float
    """Sum of the weights: the number of rows, as the likelihood counts them."""
    noise_prior: np.ndarray
    """`[nu, lam]` of the inverse-gamma prior of the noise variance of the scaled response."""
    most_constants: float
    """How many constants a model may have, its coefficients and its intercept included."""
    limits: np.ndarray
    """What trees are allowed, see `tree.is_allowed`; empty where all are."""
    known: np.ndarray
    """Columns of the terms that are always there, made orthonormal, one after the other. They are
    projected out of the response and of every column, as the intercept is."""
    probe: np.ndarray
    """Rows on which terms have to be sensible (`sensible.py`); empty where that is not asked."""
    most_size: float
    """What the sizes of the coefficients may sum to, for columns of length one; infinite where that
    does not matter."""
    is_part: bool
    """Whether proposals are judged on all rows afterwards (`all_rows.py`). Then nothing is refused
    here that may be possible there: a term that is constant or redundant on these rows has
    coefficient 0."""


class FewRows(NamedTuple):
    """A few rows of the table, on which constants are optimised."""

    x: np.ndarray
    y: np.ndarray
    root_weight: np.ndarray
    known: np.ndarray
    rows: np.ndarray
    """Which rows of the table these are."""


class Tables(NamedTuple):
    """The rows of the user's table, as the parts of a step see them."""

    seen: Data
    """What a proposal is judged on first: all rows, or a part of them."""
    few: FewRows
    """Some of these, for the optimisation of constants."""
    whole: Data
    """All rows where `seen` is a part of them (delayed acceptance); else empty."""


class Mode(NamedTuple):
    """What decides which law a chain samples. It is an argument of its own, hidden nowhere."""

    power: float
    """Power of the likelihood: 1 for the posterior, 0 for the prior."""
    ratio: float
    """With delayed acceptance, how many times more rows there are than in the part that proposals
    are judged on first; 0 where they are judged on all rows at once."""
    optimised: float
    """Share of proposals whose constants are optimised. Sampling is exact only where it is 0."""


class OptimiseScratch(NamedTuple):
    """Room for the optimisation of constants."""

    design: np.ndarray
    factor: np.ndarray
    z: np.ndarray
    constants: np.ndarray
    direction: np.ndarray
    trial: np.ndarray


class AllRowsScratch(NamedTuple):
    """Room for a fit on all rows; empty where there is none."""

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

    moves: MoveScratch
    where: np.ndarray
    stack: np.ndarray
    factor: np.ndarray
    solution: np.ndarray
    correction: np.ndarray
    products: np.ndarray
    other_products: np.ndarray
    residual: np.ndarray
    counts: np.ndarray
    probe: np.ndarray
    """Values of a term on the probe rows."""
    optimise: OptimiseScratch
    all_rows: AllRowsScratch


class Code(NamedTuple):
    """Compiled functions that a step calls by address, so that each is compiled only once."""

    evaluate: object
    fit: object
    propose: object
    optimise: object
    newton: object
    fit_all: object


def zeros(shape, dtype=np.float64):
    """Return an array of zeros in cache lines of its own.

    Vector instructions are slower on numbers that lie across two lines, and so are two threads
    that write to the same line, though they write to different arrays.
    """
    dtype = np.dtype(dtype)
    size = (math.prod(shape) if isinstance(shape, tuple) else shape) * dtype.itemsize
    room = np.zeros(size + 2 * _LINE, np.uint8)
    first = -room.__array_interface__["data"][0] % _LINE  # quicker than `ctypes`
    return np.ndarray(shape, dtype, room, first)
