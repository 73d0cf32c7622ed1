"""What is kept of a run: the trees of every draw, packed one after the other."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..formula.trees import state_sizes
from ..kernels.chain import LOG_LIKELIHOOD, NOISE_VARIANCE, RSS
from ..kernels.run import KEPT
from ..kernels.tree import NODE

#: Arrays a loop writes states to: nodes, numbers of terms, numbers.
Output = tuple[np.ndarray, np.ndarray, np.ndarray]


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
    """Of so many draws in a row, the last is kept."""

    def __len__(self) -> int:
        return len(self.n_terms)

    def extend(self, output: Output, n_draws: int, out_times: np.ndarray | None = None) -> None:
        """Pack the first rows of the output of a loop, those that are to be kept."""
        rows: list[int] = []
        for i in range(n_draws):
            self.made += 1
            if len(self) + len(rows) == self.most and self.made % self.stride == 0:
                self._pack(output, out_times, rows)
                self._thin()
                rows = []
            if self.made % self.stride == 0:
                rows.append(i)
        self._pack(output, out_times, rows)

    def _pack(self, output: Output, out_times: np.ndarray | None, rows: list[int]) -> None:
        """Keep copies of these rows, in one piece, which is faster than one by one."""
        if not rows:
            return
        some = slice(rows[0], rows[-1] + 1, self.stride)
        nodes, n_terms, numbers = (array[some] for array in output)
        sizes = state_sizes(nodes["op"], n_terms)
        width = int(sizes.max())
        packed = nodes[:, :width][np.arange(width) < sizes[:, None]]
        ends = np.cumsum(sizes).tolist()
        self.nodes += [packed[a:b] for a, b in zip([0, *ends], ends, strict=False)]
        self.n_terms += n_terms.tolist()
        self.numbers += list(numbers.copy())
        if out_times is not None:
            self.times += out_times[some].tolist()

    def _thin(self) -> None:
        """Drop every second draw, the last one not."""
        self.stride *= 2
        del self.n_terms[::2], self.times[::2]
        # Copied, since a part of a piece keeps all of it in memory.
        self.nodes = [nodes.copy() for nodes in self.nodes[1::2]]
        self.numbers = [numbers.copy() for numbers in self.numbers[1::2]]

    def copy(self) -> ChainTrace:
        """Return a trace that can go on without changing this one."""
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
        """Log-likelihood at each temperature, one row a draw; no columns without temperatures."""
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
    """For each pair of neighbours, the share of swaps accepted."""
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
    """How often warm-up had to be gone through again because a chain found something far better."""
    search_counts: np.ndarray | None = None
    """Proposals of the search made, evaluated and accepted, by move."""
    search: list[Find] = field(default_factory=list)
    """What the search came upon, each better than the one before."""
    search_cut: bool = False
    """Whether the time limit, or the user, ended the search before it ended by itself."""
    search_agreed: bool | None = None
    """Whether several starts of the search came to the same end; None without a search."""
    ladders: list[LadderRecord] = field(default_factory=list)
    """One for each chain; empty without temperatures."""
    pause: Any = None
    """A `samplers.pause.Pause`: what it takes to go on from here."""


def empty_output(n_rows: int, n_nodes: int, n_numbers: int) -> Output:
    """Return arrays for a loop to write states to."""
    return (
        np.zeros((n_rows, n_nodes), NODE),
        np.zeros(n_rows, np.int64),
        np.zeros((n_rows, n_numbers)),
    )


def packed_output(output: Output, n_rows: int) -> Output:
    """Return the first rows of an output, copied, as wide as their states are."""
    nodes, terms, numbers = (array[:n_rows] for array in output)
    width = int(state_sizes(nodes["op"], terms).max(initial=0))
    return nodes[:, :width].copy(), terms.copy(), numbers.copy()


def unpack(output: tuple[np.ndarray, ...], packed: tuple[np.ndarray, ...]) -> None:
    """Write packed rows to the first rows of an output."""
    for mine, sent in zip(output, packed, strict=True):
        mine[tuple(map(slice, sent.shape))] = sent
