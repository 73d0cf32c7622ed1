"""What is kept of a run: its draws, packed, and the states from which it can be resumed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from ..formula.trees import state_sizes
from ..kernels.chain import LOG_LIKELIHOOD, NOISE_VARIANCE, RSS
from ..kernels.run import KEPT
from ..kernels.tree import NODE
from .front import Met, nothing_met


@dataclass
class ChainTrace:
    """The draws of one chain.

    A run may be of any length, and its memory has a limit: when `most` draws are kept, every second
    of them is dropped, and from then on only every second one is kept. So those that are kept are
    equally far apart over the whole run, and each counts the same.
    """

    nodes: list[np.ndarray] = field(default_factory=list)
    """Nodes of all terms of each draw, in preorder, one term after the other."""
    n_terms: list[int] = field(default_factory=list)
    numbers: list[np.ndarray] = field(default_factory=list)
    """Log-likelihood, residual sum of squares, noise variance, variances of the constants, and
    behind them the log-likelihoods at all temperatures, where there are any."""
    times: list[int] = field(default_factory=list)
    """Paper's sampler: the number of trees proposed until the draw was accepted."""
    most: int | None = None
    """Draws to keep at most, an even number; None keeps all."""
    made: int = 0
    """Draws made so far."""
    stride: int = 1
    """Every `stride`-th draw is kept."""

    def __len__(self) -> int:
        return len(self.n_terms)

    def extend(self, output: tuple[np.ndarray, ...], n_draws: int) -> None:
        """Pack the first rows of the output of a loop, those that are to be kept."""
        rows: list[int] = []
        for i in range(n_draws):
            self.made += 1
            if len(self) + len(rows) == self.most and self.made % self.stride == 0:
                self._pack(output, rows)
                self._thin()
                rows = []
            if self.made % self.stride == 0:
                rows.append(i)
        self._pack(output, rows)

    def _pack(self, output: tuple[np.ndarray, ...], rows: list[int]) -> None:
        """Keep copies of these rows, in one piece, which is faster than one by one."""
        if not rows:
            return
        some = slice(rows[0], rows[-1] + 1, self.stride)
        nodes, n_terms, numbers, *times = (array[some] for array in output)
        sizes = state_sizes(nodes["op"], n_terms)
        width = int(sizes.max())
        packed = nodes[:, :width][np.arange(width) < sizes[:, None]]
        ends = np.cumsum(sizes).tolist()
        self.nodes += [packed[a:b] for a, b in zip([0, *ends], ends, strict=False)]
        self.n_terms += n_terms.tolist()
        self.numbers += list(numbers.copy())
        for array in times:
            self.times += array.tolist()

    def _thin(self) -> None:
        """Drop every second draw, the last one not."""
        self.stride *= 2
        del self.n_terms[::2], self.times[::2]
        # Copied, since a part of a piece keeps all of it in memory.
        self.nodes = [nodes.copy() for nodes in self.nodes[1::2]]
        self.numbers = [numbers.copy() for numbers in self.numbers[1::2]]

    def copy(self) -> ChainTrace:
        """Return a trace that can grow without changing this one."""
        return replace(
            self,
            nodes=self.nodes[:],
            n_terms=self.n_terms[:],
            numbers=self.numbers[:],
            times=self.times[:],
        )

    @property
    def log_likelihood(self) -> np.ndarray:
        """Log-likelihood of each draw."""
        return np.array([numbers[LOG_LIKELIHOOD] for numbers in self.numbers])

    @property
    def by_temperature(self) -> np.ndarray:
        """Log-likelihood at each temperature, one row per draw; no columns without temperatures."""
        return np.array([numbers[KEPT:] for numbers in self.numbers])

    @property
    def rss(self) -> np.ndarray:
        """Residual sum of squares of each draw, for y scaled to unit variance."""
        return np.array([numbers[RSS] for numbers in self.numbers])

    @property
    def noise_variance(self) -> np.ndarray:
        """Noise variance of each draw of the paper's sampler, for y scaled to unit variance."""
        return np.array([numbers[NOISE_VARIANCE] for numbers in self.numbers])

    @property
    def n_nodes(self) -> np.ndarray:
        """Number of nodes of each draw."""
        return np.array([len(nodes) for nodes in self.nodes])


@dataclass(frozen=True)
class LadderRecord:
    """How the temperatures of one ladder mixed while drawing."""

    power: np.ndarray
    """Powers of the likelihood, from 1 down."""
    swap_rate: np.ndarray
    """For each pair of neighbours, the mean probability of accepting a swap; nan if none was
    proposed."""
    round_trips: int
    """How often a replica went from the coldest temperature to the hottest and back."""


@dataclass(frozen=True)
class Find:
    """A state that was the best so far when the search came upon it."""

    seconds: float
    score: float
    """Log posterior, up to a constant."""
    trees: list[np.ndarray]


@dataclass
class Trace:
    """The draws of all chains, and how they came about."""

    chains: list[ChainTrace]
    weights: list[np.ndarray]
    """For each chain, how much each draw counts: 1, or how long the paper's sampler held it."""
    counts: np.ndarray
    """Proposals made, evaluated and accepted, by chain and move."""
    seconds: float
    """Time spent sampling."""
    interrupted: bool = False
    """Whether the user stopped the run."""
    warmed_up: bool = True
    """Whether, after the search, the chains settled for as long as they were meant to."""
    timed_out: bool = False
    """Whether the time limit ended the run, or a phase of it, before it was done."""
    settled: bool = False
    """Whether the draws agreed when drawing ended, mostly early for that reason."""
    restarts: int = 0
    """How often warm-up was repeated because a chain found something far better."""
    search_counts: np.ndarray | None = None
    """Proposals of the search made, evaluated and accepted, by move."""
    search: list[Find] = field(default_factory=list)
    """What the search came upon, each better than the one before."""
    search_cut: bool = False
    """Whether the time limit, or the user, ended the search before it ended by itself."""
    search_agreed: bool | None = None
    """Whether several starts of the search came to the same end; None without a search."""
    search_met: Met = field(default_factory=nothing_met)
    """The best state of each size that the search has met, on the rows that it looked at."""
    ladders: list[LadderRecord] = field(default_factory=list)
    """One for each chain; empty without temperatures."""
    state: DrawingState = field(default_factory=lambda: DrawingState([], made=0))
    """What it takes to make further draws."""


@dataclass(frozen=True)
class LadderState:
    """The state of the chains of a ladder. All arrays are copies that nobody else writes to.

    Columns and Gram matrices are left out. They follow from the trees, bit for bit, since a column
    depends on its tree and the table alone, and an inner product on its two columns.
    """

    nodes: np.ndarray
    """Trees in use, chain by chain and term by term, one after the other."""
    chains: Mapping[str, np.ndarray]
    """The small arrays of `Chain`, by name; the first axis is the replica."""
    priors: Mapping[str, np.ndarray]
    """The learned arrays of `Prior`, by name; the first axis is the replica."""
    own: Mapping[str, np.ndarray]
    """What else belongs to it, by name: the arrays of `Ladder`, or the clock of the paper."""
    share: float
    """How often the constants of proposals are optimised."""
    met: Met = field(default_factory=nothing_met)
    """The best state of each size that its chains have met; the paper's sampler keeps none."""


class VisitedState(NamedTuple):
    """The best state of a structure that was visited."""

    nodes: np.ndarray
    n_terms: int
    log_likelihood: float


@dataclass(frozen=True)
class DrawingState:
    """Where the chains of a run are between two draws."""

    ladders: list[LadderState]
    made: int
    """Draws per chain so far, as the parameter `draws` counts them."""
    spent: float = 0.0
    """What the draws have cost until the last full look at them, in units of ordinary ones."""
    exact: bool = False
    """Whether the search has found an exact formula."""
    may_restart: bool = True
    """Whether draws have been cheap enough so far to repeat warm-up."""
    visited: list[VisitedState] = field(default_factory=list)
    """While settling: what the ladders have visited, one state of each structure."""
    listed: list[list[np.ndarray]] = field(default_factory=list)
    """The structures that ladders teleport between, with the constants they are listed with."""


@dataclass(frozen=True)
class SearchState:
    """A search between two rounds of a stage, apart from what its problem and its seeds tell."""

    done: int
    """Draws per ladder so far."""
    spent: float
    """What they have cost, in units of ordinary ones."""
    stage: int
    in_stage: int
    """Draws per ladder in this stage."""
    ladders: list[LadderState]
    """The ladders on y."""
    others: dict[int, LadderState]
    """Those on other targets, by the number of the ladder on y that they belong to."""
    stages: list[int]
    """How long each ladder has been on y since its start."""
    spawned: list[int]
    """How many seeds were taken from that of each ladder."""
    best: Find
    history: list[Find]
    ends: list[Find]
    """The ends that starts have come to."""
    counts: np.ndarray
    """Proposals made, evaluated and accepted, by move, of ladders that are gone."""
    met: Met = field(default_factory=nothing_met)
    """The best state of each size that they have met on y."""


@dataclass(frozen=True)
class RunState:
    """A moment between two rounds of a run, from which it can be resumed."""

    trace: Trace | None = None
    """The draws made so far, with the states of the ladders; None during a search."""
    settling: tuple[int, int] | None = None
    """Parts of settling that are over, and draws made in the next; None once drawing has begun."""
    search: SearchState | None = None
    finished: bool = False
    """Whether the trace is that of the whole run."""


def empty_output(
    n_rows: int, n_nodes: int, n_numbers: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return arrays for a loop to write states to: nodes, numbers of terms, numbers."""
    return (
        np.zeros((n_rows, n_nodes), NODE),
        np.zeros(n_rows, np.int64),
        np.zeros((n_rows, n_numbers)),
    )
