"""The frozen bundle a sampler gets: data, operators and beliefs, as the kernels want them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ..formula.operators import OPERATORS
from ..kernels import opcodes
from ..kernels.chain import (
    ALL_NUMBERS,
    AllRowsScratch,
    Chain,
    Data,
    FewRows,
    OptimiseScratch,
    Scratch,
    Tables,
    zeros,
)
from ..kernels.evaluate import BLOCK, padded, stack_slots
from ..kernels.moves.choice import N_MOVES
from ..kernels.optimise import MOST_CONSTANTS, MOST_ROWS
from ..kernels.rng import seed_state
from ..kernels.sensible import MOST_CANCELLED, PROBE_ROWS
from ..kernels.teleport import Catalogue
from ..kernels.tree import NODE, SWAPS, UNLIMITED, MoveScratch
from ..kernels.tree_prior import Prior
from .prior import NoisePrior, StatePrior, TermsPrior, TreePrior
from .probe import is_sensible, probe_rows
from .user_formulas import orthonormal, without
from .validation import Table, padded_columns, some_of

#: Rows of a large table that are read at once.
ROWS_AT_ONCE = 65_536
# Concentration of the prior of learned column weights: about as many columns matter.
_RELEVANT_COLUMNS = 4.0
# Constants a model may have for each row. Where there are as many as rows, a formula goes through
# all of them whatever the noise, and its likelihood has no bound: it would be certain, and wrong.
_CONSTANTS_PER_ROW = 0.4


@dataclass(frozen=True)
class Problem:
    """Everything about a fit but its budget and its seed."""

    data: Data
    """The table, all rows, as the kernels see it."""
    y_mean: float
    """Weighted mean of y."""
    y_scale: float
    """Weighted standard deviation of y, without what the known terms explain."""
    operator_weights: dict[str, float]
    feature_weights: np.ndarray
    tree_prior: TreePrior
    terms: TermsPrior | int
    """Prior of the number of terms, or that number."""
    learn: bool = False
    """Whether the weights of operators and columns are learned."""
    known: tuple[np.ndarray, ...] = ()
    """Terms that are always there."""
    y_spread: float = 1.0
    """Weighted standard deviation of y before the known terms are taken out."""
    catalogue: Catalogue | None = None
    """Structures that chains may teleport to, once warm-up has found some."""
    plain: Problem | None = None
    """The problem without them, if it has any: other processes get each once."""
    trust: float = 1.0
    """What a row counts, as a part of the weight that the user gives it."""
    part: Data | None = None
    """The rows that proposals are judged on first, and only those that pass on all; None: on all
    rows at once."""

    @property
    def max_nodes(self) -> int:
        """Most nodes a tree may have."""
        return int(self.tree_prior.max_nodes)

    @property
    def most_terms(self) -> int:
        """Most terms a model may have."""
        return self.terms if isinstance(self.terms, int) else int(self.terms.most)

    @property
    def seen(self) -> Data:
        """The table that a chain sees."""
        return self.data if self.part is None else self.part

    def new_prior(self, move_shape: tuple[float, float]) -> Prior:
        """Return the prior in a chain's own copy."""
        tree = self.tree_prior
        weights = _by_opcode(self.operator_weights)
        log_terms = np.full(self.most_terms + 1, -np.inf)
        if isinstance(self.terms, int):
            log_terms[self.terms] = 0.0
        else:
            log_terms[:] = np.arange(self.most_terms + 1) * np.log(self.terms.decay)
        split = np.array([tree.split_probability(d) for d in range(self.max_nodes + 3)])
        return Prior(
            operator_cdf=_cdf(weights),
            feature_cdf=_cdf(self.feature_weights),
            split=split,
            operator_shift=np.diff(np.log(split)),
            terminal_shift=np.diff(np.log1p(-split)),
            scales=np.array([tree.slope_scale, tree.offset_scale], dtype=float),
            scale_prior=np.array(
                [tree.slope_shape, tree.slope_scale, tree.offset_shape, tree.offset_scale],
                dtype=float,
            ),
            operator_concentration=self._concentration(weights, np.inf),
            feature_concentration=self._concentration(self.feature_weights, _RELEVANT_COLUMNS),
            log_terms=log_terms,
            move_shape=np.array(move_shape, dtype=float),
            nesting=np.array([tree.nesting_price], dtype=float),
        )

    def _concentration(self, weights: np.ndarray, most: float) -> np.ndarray:
        """Return the Dirichlet prior of weights whose prior means are given."""
        if not self.learn:
            return np.empty(0)
        used = np.count_nonzero(weights)
        return weights / weights.sum() * min(used, most)

    @cached_property
    def log_prior(self) -> StatePrior:
        """The log prior of a state, up to a constant; called with its trees."""
        return StatePrior(
            self.tree_prior,
            self.terms,
            self.operator_weights,
            self.feature_weights,
            (
                self._concentration(_by_opcode(self.operator_weights), np.inf),
                self._concentration(self.feature_weights, _RELEVANT_COLUMNS),
            ),
        )

    def with_any_terms(self) -> Problem:
        """Return the same problem, but terms need not be sensible, nor is nesting dearer."""
        tree = self.tree_prior
        if not tree.sensible and tree.nesting_price == 0.0:
            return self

        def freed(data: Data) -> Data:
            return data._replace(probe=np.empty(0), most_size=np.inf)

        return replace(
            self,
            data=freed(self.data),
            tree_prior=replace(tree, sensible=False, nesting_price=0.0),
            part=None if self.part is None else freed(self.part),
        )

    def are_sensible(self, trees: Sequence[np.ndarray]) -> bool:
        """Return whether the kernels would take these terms for sensible functions."""
        return all(is_sensible(tree, self.data.probe) for tree in trees)

    def may_be_drawn(self, trees: Sequence[np.ndarray]) -> bool:
        """Return whether a state of these terms, finite and distinct, is within the prior's limits.

        A formula that was tidied up may not be: it may have other operators. Limits on depth and
        nesting are not looked at; where there are any, the answer is no.
        """
        allowed = {opcodes.FEATURE, *(OPERATORS[name].opcode for name in self.operator_weights)}
        transforms = sum(int((tree["op"] == opcodes.LT).sum()) for tree in trees)
        fewest = self.terms if isinstance(self.terms, int) else 0
        return (
            not len(self.data.limits)
            and fewest <= len(trees) <= self.most_terms
            and 1 + len(trees) + 2 * transforms <= self.data.most_constants
            and all(len(tree) <= self.max_nodes for tree in trees)
            and all(allowed.issuperset(tree["op"].tolist()) for tree in trees)
            and self.are_sensible(trees)
        )

    def new_chain(self, seed: np.random.SeedSequence) -> Chain:
        """Return a chain that has not started (see `kernels.run`)."""
        slots = self.most_terms + 2
        start = self.terms if isinstance(self.terms, int) else 0
        return Chain(
            rng=seed_state(seed),
            nodes=zeros(slots * self.max_nodes, NODE),
            columns=zeros(slots * len(self.seen.y)),
            gram=zeros(slots * slots),
            dots=zeros(slots),
            slots=np.arange(slots),
            n_terms=np.array([-1 - start]),
            nested=zeros(1, np.int64),
            numbers=zeros(ALL_NUMBERS),
            counts=zeros((3, N_MOVES), np.int64),
        )

    def response(self, rows: slice | np.ndarray = slice(None)) -> np.ndarray:
        """Return y in its own units, of all rows or some; nan for the padding.

        What the known terms explain is taken out of it.
        """
        with np.errstate(all="ignore"):
            scaled = self.data.y[rows] / self.data.root_weight[rows]
            return self.y_mean + self.y_scale * scaled

    def on_rows(self, rows: np.ndarray, y: np.ndarray | None = None) -> Problem:
        """Return the same problem on some of the rows.

        With another response, if one is given: then without known terms, which are those of y, and
        with any terms, which are only parts of one for y. Else the same terms are sensible.

        Where rows are not trusted, those chosen may count as much as all together, but none counts
        more than the user's weight.
        """
        data = self.data
        probe = data.probe if y is None else np.empty(0)
        known = self.known if y is None else ()
        weights = data.root_weight[rows] ** 2
        more = min(1.0 / self.trust, data.n / float(weights.sum())) if self.trust < 1.0 else 1.0
        weights *= more
        y = self.response(rows) if y is None else y
        x = data.x.reshape(-1, len(data.y))[:, rows]
        table = Table(x.T, y, weights, np.arange(len(x)))
        return make_problem(
            table,
            self.operator_weights,
            self.feature_weights,
            self.tree_prior,
            NoisePrior(*data.noise_prior),
            self.terms,
            self.learn,
            known,
            probe,
            self.trust * more,
        )

    def in_two_stages(self, rows: np.ndarray) -> Problem:
        """Return the problem with proposals judged on these rows first."""
        return replace(self, part=self.on_rows(rows).data._replace(is_part=True))

    def tables(self) -> Tables:
        """Return the rows that the parts of a step see."""
        data = self.seen
        # A few rows, spread over the table.
        with_weight = np.flatnonzero(data.root_weight > 0)
        m = min(MOST_ROWS, len(with_weight))
        rows = with_weight[np.linspace(0, len(with_weight) - 1, m).astype(np.int64)]
        few = FewRows(
            x=data.x.reshape(-1, len(data.y))[:, rows].reshape(-1),
            y=data.y[rows],
            root_weight=data.root_weight[rows],
            known=data.known.reshape(-1, len(data.y))[:, rows].reshape(-1),
            rows=rows,
        )
        whole = self.data
        if self.part is None:
            none = np.empty(0)
            whole = whole._replace(x=none, y=none, root_weight=none, n=0.0, known=none)
        return Tables(data, few, whole)

    def new_scratch(self) -> Scratch:
        """Return room to work in for one chain."""
        slots, seen = self.most_terms + 2, self.seen
        m = min(MOST_ROWS, int(np.count_nonzero(seen.root_weight > 0)))
        width = slots + len(seen.known) // len(seen.y) + MOST_CONSTANTS
        # Room for a fit on all rows, where there is a second stage.
        n = 0 if self.part is None else slots
        n_known = len(self.data.known) // len(self.data.y)
        return Scratch(
            moves=MoveScratch(
                pending=zeros(self.max_nodes + 2, np.int64), swaps=zeros(SWAPS, np.int64)
            ),
            where=zeros(2 * self.max_nodes + 4, np.int64),
            stack=zeros(stack_slots(self.max_nodes) * BLOCK),
            factor=zeros(slots * slots),
            solution=zeros(slots),
            correction=zeros(slots),
            products=zeros(slots),
            other_products=zeros(slots),
            residual=zeros(len(seen.y)),
            counts=zeros(opcodes.N_OPCODES + len(self.feature_weights)),
            probe=zeros(3 * PROBE_ROWS),
            optimise=OptimiseScratch(
                design=zeros(width * m),
                factor=zeros(width * width),
                z=zeros(width),
                constants=zeros(MOST_CONSTANTS),
                direction=zeros(MOST_CONSTANTS),
                trial=zeros(MOST_CONSTANTS),
            ),
            all_rows=AllRowsScratch(
                block=zeros((n + 1) * BLOCK if n else 0),
                order=zeros(n, np.int64),
                shift=zeros(n),
                unit=zeros(n),
                totals=zeros(n),
                dots=zeros(n),
                gram=zeros(n * n),
                beside=zeros(n * n_known),
                length=zeros(n),
                other=zeros(n_known),
            ),
        )


def make_problem(
    table: Table,
    operator_weights: Mapping[str, float],
    feature_weights: np.ndarray,
    tree_prior: TreePrior,
    noise_prior: NoisePrior,
    terms: TermsPrior | int,
    learn: bool = False,
    known: tuple[np.ndarray, ...] = (),
    probe: np.ndarray | None = None,
    trust: float = 1.0,
) -> Problem:
    """Bring a validated table and the user's beliefs into the form of the kernels.

    `known` are trees in the columns in use; see `user_formulas.py` for what is asked of them.
    `probe` are the rows on which terms have to be sensible; None: those of this table, if the prior
    asks for it. `trust` is the part of the user's weights that those of the table are.
    """
    columns = table.padded
    if columns is None:
        columns = padded_columns(table.X, table.used, len(table.y))
    x = columns.reshape(-1)
    root_weight = pad(table.weights, 0.0)
    np.sqrt(root_weight, out=root_weight)
    # In units of its largest value first, so that squares neither overflow nor vanish. In place,
    # since the table may be large.
    unit = max(table.y.max(), -table.y.min())
    y = pad(table.y, 0.0)
    values = y[: len(table.y)]
    values /= unit
    mean = _mean(values, table.weights)
    values -= mean
    spread = np.sqrt(_mean(values, table.weights, 2))
    values /= spread
    values *= root_weight[: len(values)]
    n = float(table.weights.sum())
    basis = orthonormal(known, x.reshape(-1, len(y)), root_weight)
    left = 1.0  # the spread of what is left of y, as a part of what it was
    if known:
        y = without(y, basis)
        left = np.sqrt(y @ y / n)
        y = y / left
    fewest = 1.0 + (terms if isinstance(terms, int) else 1)  # else there would be no model at all
    if probe is None:
        asked = tree_prior.sensible
        known_rows = columns[:, : len(table.y)]
        if asked and not table.weights.all():
            known_rows = known_rows[:, table.weights > 0]
        probe = probe_rows(known_rows) if asked else np.empty(0)
    data = Data(
        x=x,
        y=y,
        root_weight=root_weight,
        n=n,
        # The user's guess is a part of the variance of y, whatever the known terms explain.
        noise_prior=np.array([noise_prior.shape, noise_prior.scale / left**2], dtype=float),
        most_constants=max(_CONSTANTS_PER_ROW * n - len(known), fewest),
        limits=_limits(tree_prior),
        probe=probe,
        most_size=MOST_CANCELLED * np.sqrt(n) if tree_prior.sensible else np.inf,
        known=basis.reshape(-1),
        is_part=False,
    )
    return Problem(
        data=data,
        y_mean=float(mean * unit),
        y_scale=float(spread * left * unit),
        operator_weights=dict(operator_weights),
        feature_weights=feature_weights,
        tree_prior=tree_prior,
        terms=terms,
        learn=learn,
        known=known,
        y_spread=float(spread * unit),
        trust=trust,
    )


def some_rows(problem: Problem, most: int) -> np.ndarray:
    """Return some of the rows, at random but always the same ones."""
    used = problem.data.root_weight > 0
    n = int(np.count_nonzero(used))
    chosen = some_of(n, most)
    # A list of all rows would take as much memory as a column.
    return chosen if used[:n].all() else np.flatnonzero(used)[chosen]


def _by_opcode(weights: Mapping[str, float]) -> np.ndarray:
    result = np.zeros(opcodes.N_OPCODES)
    for name, weight in weights.items():
        result[OPERATORS[name].opcode] = weight
    return result


def _limits(tree_prior: TreePrior) -> np.ndarray:
    """Return the limits on trees as the kernels want them, see `tree.is_allowed`."""
    if tree_prior.max_depth is None and not tree_prior.nesting:
        return np.empty(0, np.int64)
    limits = np.full(1 + opcodes.N_OPCODES**2, UNLIMITED, np.int64)
    if tree_prior.max_depth is not None:
        limits[0] = tree_prior.max_depth
    for outer, inners in (tree_prior.nesting or {}).items():
        for inner, most in inners.items():
            place = OPERATORS[outer].opcode * opcodes.N_OPCODES + OPERATORS[inner].opcode
            limits[1 + place] = most
    return limits


def _mean(values: np.ndarray, weights: np.ndarray, power: int = 1) -> float:
    """Return the weighted mean of values, or of their squares, with little memory."""
    total = 0.0
    for start in range(0, len(values), ROWS_AT_ONCE):
        some = values[start : start + ROWS_AT_ONCE]
        total += float(np.sum(some**power * weights[start : start + ROWS_AT_ONCE]))
    return total / float(np.sum(weights))


def pad(values: np.ndarray, filler: float) -> np.ndarray:
    """Return a contiguous copy of a column with the padding behind it."""
    result = zeros(padded(len(values)))
    result[: len(values)] = values
    result[len(values) :] = filler
    return result


def _cdf(weights: np.ndarray) -> np.ndarray:
    """Return running sums that end with exactly 1, from the last positive weight on."""
    cdf = np.cumsum(weights)
    cdf /= cdf[-1]
    cdf[np.flatnonzero(weights)[-1] :] = 1.0
    return cdf
