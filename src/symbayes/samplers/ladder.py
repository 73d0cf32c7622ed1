"""Chains whose state can travel as small arrays, and ladders of them at several temperatures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from ..fitting import least_squares
from ..formula.trees import concatenated, evaluate_trees, state_size, state_sizes
from ..inputs.problem import Problem
from ..kernels import units
from ..kernels.chain import ALL_LOG_LIKELIHOOD, ALL_RSS, LOG_LIKELIHOOD, RSS, Chain, zeros
from ..kernels.front import Front, new_front
from ..kernels.ladder import Ladder
from ..kernels.rng import seed_state
from ..kernels.run import KEPT
from ..kernels.teleport import Odds
from ..kernels.tree_prior import Prior
from .catalogue import EMPTY, VisitedRows, make_odds, room_for
from .front import Met, nothing_met, packed, unpack
from .run.scheduler import NoStart, Work
from .search.library import LibraryCache
from .trace import LadderRecord, LadderState, empty_output

# Odds that are remembered, by the temperatures that they are for.
_MOST_ODDS = 32
# How often constants move: the share of such moves, and the `lt` nodes for half of it.
_MOVE_SHAPE = (0.5, 1.0)
#: Draws per call of the loop at most, which bounds the memory of the output arrays.
LARGEST_ROUND = 64
# Draws between two stops of a round in parts, at least.
_FEWEST_AT_ONCE = 8
# Nodes of a state, on average over the replicas, up to which a draw costs what it usually does.
_ORDINARY_NODES = 18.0
# A term that moves the response by a smaller part of its spread does nothing.
_NEGLIGIBLE = 1.0e-9
# A pair that never rejects still gets some room, so that temperatures stay apart.
_LEAST_REJECTION = 0.01
#: Arrays of a chain that follow from its trees. Trees are stored without the gaps between them, all
#: other arrays of a chain as they are.
DERIVED = ("columns", "gram", "dots", "nested")
_STORED = tuple(name for name in Chain._fields if name not in (*DERIVED, "nodes"))
#: What a chain learns of its prior; the rest follows from the problem.
LEARNED = ("operator_cdf", "feature_cdf", "scales")


@dataclass(frozen=True)
class Round:
    """What a ladder is ordered to do until the others have done the same."""

    steps: int
    """Proposals of each replica between two draws."""
    n_draws: int
    good_enough: float = -1.0
    """It ends early at a draw with a residual sum of squares of at most this."""
    offer: bool = False
    """Whether the coldest state is offered a term from the library afterwards."""
    keep: bool = False
    """Whether the draws are wanted, or only where they lead."""
    every: bool = False
    """Whether the states at all temperatures are wanted as well."""
    times: int = 1
    """How often all of it is done, one time after the other; only once where draws are wanted."""


class Chains:
    """Chains on one problem, one row of all arrays per chain; their state can travel."""

    #: Where the loop writes draws to: nodes, numbers of terms, numbers, times if there are any.
    output: tuple[np.ndarray, ...]
    #: The best state of each size that they have met, where the loop keeps it.
    front: Front | None = None

    def __init__(
        self,
        problem: Problem,
        seeds: Sequence[np.random.SeedSequence],
        move_shape: tuple[float, float],
        own: Mapping[str, np.ndarray],
    ):
        n = len(seeds)
        self.problem = problem
        chain = problem.new_chain(seeds[0])
        # Room that is not written to until it is needed, which may be in another process.
        columns = zeros((n, *chain.columns.shape))
        self.chains = Chain(*_repeated(chain._replace(columns=columns[0, :0]), n))._replace(
            rng=np.array([seed_state(seed) for seed in seeds]), columns=columns
        )
        self.priors = Prior(*_repeated(problem.new_prior(move_shape), n))
        self.scratch = problem.new_scratch()
        #: Share of proposals whose constants are optimised; 0 keeps the sampler exact.
        self.optimised = 0.0
        self._own = own
        # Chains whose columns are not there, since only their state was restored.
        self._without_columns = np.zeros(n, bool)

    @classmethod
    def blank(cls, problem: Problem, state: LadderState) -> Self:
        """Return one that a state of this size can be restored to."""
        raise NotImplementedError

    def carry_out(self, order: Any, libraries: LibraryCache, in_parts: bool = False) -> Work:
        """Do what is ordered; return the number of draws, now in `output`, or raise NoStart.

        In parts it stops more often. After every stop it may go on in another thread.
        """
        raise NotImplementedError

    def state(self) -> LadderState:
        """Return all that it takes to make the same draws in another process, or later."""
        trees = [tree for r in range(len(self.chains.n_terms)) for tree in self.trees(r)]
        return LadderState(
            nodes=concatenated(trees),
            chains={name: getattr(self.chains, name).copy() for name in _STORED},
            priors={name: getattr(self.priors, name).copy() for name in LEARNED},
            own={name: array.copy() for name, array in self._own.items()},
            share=self.optimised,
            met=self.met,
        )

    @property
    def met(self) -> Met:
        """The best state of each size that the chains have met, packed."""
        return nothing_met() if self.front is None else packed(self.front)

    def restore(self, state: LadderState) -> None:
        """Continue from the state of another one on the same problem."""
        for name in _STORED:
            getattr(self.chains, name)[...] = state.chains[name]
        for name in LEARNED:
            getattr(self.priors, name)[...] = state.priors[name]
        for name, array in self._own.items():
            array[...] = state.own[name]
        rest = state.nodes
        for r in range(len(self.chains.n_terms)):
            for room in self._terms(r):
                size = state_size(rest, 1)
                room[:size], rest = rest[:size], rest[size:]
        self.optimised = float(state.share)
        if self.front is not None:
            unpack(state.met, self.front)
        self._without_columns[:] = True

    def packed_draws(self, order: Any, n_draws: int) -> tuple[np.ndarray, ...]:
        """Return the draws of a round, as wide as their states are, to be sent."""
        rows = self._rows_of(order, n_draws)
        nodes, n_terms, *others = (array[rows] for array in self.output)
        width = int(state_sizes(nodes["op"], n_terms).max(initial=0))
        return tuple(array.copy() for array in (nodes[:, :width], n_terms, *others))

    def receive_draws(self, order: Any, n_draws: int, packed: tuple[np.ndarray, ...]) -> None:
        """Take the draws of a round that another process has carried out."""
        rows = self._rows_of(order, n_draws)
        nodes, *rest = zip(self.output, packed, strict=True)
        nodes[0][rows, : nodes[1].shape[1]] = nodes[1]
        for mine, sent in rest:
            mine[rows] = sent

    def _rows_of(self, order: Any, n_draws: int) -> np.ndarray:
        """Return the rows of the output that somebody wants to see after a round."""
        return np.arange(n_draws if order.keep else 0)

    def trees(self, chain: int) -> list[np.ndarray]:
        """Return the terms of a chain."""
        return [room[: state_size(room, 1)].copy() for room in self._terms(chain)]

    def put(self, trees: list[np.ndarray], chain: int) -> None:
        """Give a chain other terms; they are fitted when it runs."""
        self.chains.slots[chain] = np.arange(self.chains.slots.shape[1])
        self.chains.n_terms[chain, 0] = len(trees)
        self.chains.numbers[chain, LOG_LIKELIHOOD] = np.nan
        for room, tree in zip(self._terms(chain), trees, strict=True):
            room[: len(tree)] = tree

    def _terms(self, chain: int) -> list[np.ndarray]:
        """Return the room that each term of a chain has."""
        rooms = self.chains.nodes[chain].reshape(-1, self.problem.max_nodes)
        n_terms = max(0, int(self.chains.n_terms[chain, 0]))  # negative before the start
        return [rooms[slot] for slot in self.chains.slots[chain, :n_terms]]

    def _make_columns(self) -> None:
        if self._without_columns.any():
            make = units.load_make_columns()
            make(self.chains, self.problem.seen, self.scratch, self._without_columns)


class Replicas(Chains):
    """A ladder: replicas of a chain, each at a temperature of its own."""

    def __init__(self, problem: Problem, seed: np.random.SeedSequence, powers: np.ndarray):
        n = len(powers)
        *seeds, seed_of_swaps = seed.spawn(n + 1)
        self.ladder = Ladder(
            rng=seed_state(seed_of_swaps),
            power=np.array(powers, dtype=float),
            replica=np.arange(n),
            rejected=np.zeros(n - 1),
            tried=np.zeros(n - 1, np.int64),
            clock=np.zeros(2, np.int64),
            direction=np.zeros(n, np.int64),
            teleports=np.zeros((n, 3), np.int64),
        )
        super().__init__(problem, seeds, _MOVE_SHAPE, self.ladder._asdict())
        self.front = new_front()
        self._loop = units.load("tempered", problem.part is not None)
        self.tables = problem.tables()
        width = problem.most_terms * problem.max_nodes
        # Behind the draws there is room for those of all other temperatures.
        self.output = empty_output(LARGEST_ROUND * n, width, KEPT + n)
        self._room = room_for(problem)
        self._odds: dict[bytes, Odds] = {}
        self._spare = problem.new_chain(seed_of_swaps)._replace(columns=np.zeros(0))
        if problem.catalogue is not None:
            self.list_states(problem)

    def list_states(self, problem: Problem) -> None:
        """Let the replicas teleport: the problem is the same, now with a list of structures."""
        self.problem = problem
        self._odds = {}
        if not len(self._spare.columns):
            self._spare = self._spare._replace(columns=self.chains.columns[0].copy())

    @property
    def odds(self) -> Odds:
        """How readily each structure is proposed, at the present temperatures."""
        power = self.ladder.power
        if power.tobytes() not in self._odds:
            # Elsewhere one object works for several ladders by turns.
            while len(self._odds) >= _MOST_ODDS:
                del self._odds[next(iter(self._odds))]
            self._odds[power.tobytes()] = make_odds(self.problem, power)
        return self._odds[power.tobytes()]

    @classmethod
    def blank(cls, problem: Problem, state: LadderState) -> Self:
        return cls(problem, np.random.SeedSequence(0), state.own["power"])

    @classmethod
    def restored(cls, problem: Problem, state: LadderState) -> Self:
        """Return a ladder that continues from the state of another on the same problem."""
        ladder = cls.blank(problem, state)
        ladder.restore(state)
        return ladder

    def run(
        self,
        steps: int,
        rounds: int,
        n_draws: int,
        good_enough: float = -1.0,
        first: int = 0,
        every: bool = False,
    ) -> int:
        """Make draws into `output`, from a row of it on; return how many.

        It ends early when a draw has a residual sum of squares of at most `good_enough`.
        """
        if first + n_draws > LARGEST_ROUND:  # compiled code would write behind the arrays
            raise ValueError(f"{n_draws} draws at once; the output has room for {LARGEST_ROUND}")
        if n_draws > 0:
            self._make_columns()
        given = np.isnan(self.chains.numbers[:, LOG_LIKELIHOOD])
        done = self._loop(
            self.chains, self.priors, self.tables, self.optimised, self.scratch, self.ladder,
            self.front, self.problem.catalogue or EMPTY, self.odds, self._spare, self._room,
            steps, rounds, first, n_draws, float(good_enough), every, *self.output,
        )  # fmt: skip
        if done < 0:
            raise NoStart
        self._without_columns[given] = False  # the loop has fitted them
        return done

    def carry_out(self, order: Round, libraries: LibraryCache, in_parts: bool = False) -> Work:
        """Stop where the round could end, and yield the number of draws until then.

        That is between two times, and in parts also after half of what is left of the last time,
        and again.
        """
        made = 0
        for time in range(1, order.times + 1):
            if time > 1:
                yield made
            done = 0
            while True:
                n = left = order.n_draws - done
                if in_parts and time == order.times:
                    n = min(left, max(_FEWEST_AT_ONCE, left // 2))
                done += self.run(order.steps, 1, n, order.good_enough, done, order.every)
                good_enough = done > 0 and self.output[2][done - 1, RSS] <= order.good_enough
                if good_enough or done == order.n_draws:
                    break
                yield made + done
            if order.offer:
                self.offer(libraries)
            made += done
            if good_enough:
                break
        return made

    def _rows_of(self, order: Round, n_draws: int) -> np.ndarray:
        return self._every_row(n_draws) if order.every else super()._rows_of(order, n_draws)

    def _every_row(self, n_draws: int) -> np.ndarray:
        """Return the rows of the states at all temperatures."""
        first = np.arange(len(self.ladder.power)) * LARGEST_ROUND
        return np.add.outer(first, np.arange(n_draws)).reshape(-1)

    def visited(self, n_draws: int) -> VisitedRows:
        """Return the states at all temperatures of the last draws, made with `every`."""
        powers, problem = self.ladder.power, self.problem
        rows = self._every_row(n_draws)
        nodes, n_terms, numbers = (array[rows] for array in self.output)
        log_likelihood = numbers[:, LOG_LIKELIHOOD]
        if problem.part is not None:  # where only a part of the rows is seen
            ratio = problem.data.n / problem.part.n
            log_likelihood = log_likelihood * np.repeat(
                np.where(powers * ratio < 1, ratio, 1), n_draws
            )
        width = max(1, int(state_sizes(nodes["op"], n_terms).max(initial=0)))
        return VisitedRows(nodes[:, :width], n_terms, log_likelihood)

    def optimise(self, share: float) -> None:
        """Set how often the constants of proposals are optimised; 0 keeps the sampler exact."""
        self.optimised = float(share)

    @property
    def cold(self) -> int:
        """The replica at temperature one."""
        return int(self.ladder.replica[0])

    @property
    def log_likelihood(self) -> float:
        """Log-likelihood of the coldest state, on all rows."""
        place = LOG_LIKELIHOOD if self.problem.part is None else ALL_LOG_LIKELIHOOD
        return float(self.chains.numbers[self.cold, place])

    @property
    def rss(self) -> float:
        """Residual sum of squares of the coldest state, on all rows."""
        place = RSS if self.problem.part is None else ALL_RSS
        return float(self.chains.numbers[self.cold, place])

    @property
    def score(self) -> float:
        """Log posterior of the coldest state, up to a constant; minus infinity before the start."""
        if self.chains.n_terms[self.cold, 0] < 0:
            return -np.inf
        return self.log_likelihood + self.problem.log_prior(self.trees())

    def trees(self, chain: int | None = None) -> list[np.ndarray]:
        """Return the terms of a replica, of the coldest one if none is named."""
        return super().trees(self.cold if chain is None else chain)

    def put(self, trees: list[np.ndarray], chain: int | None = None) -> None:
        """Give a replica, the coldest one if none is named, other terms to start from."""
        super().put(trees, self.cold if chain is None else chain)

    def residual(self) -> np.ndarray:
        """Return the weighted residuals of the coldest state, on all rows."""
        y, n_terms = self.problem.data.y, len(self.trees())
        if n_terms == 0:
            return y.copy()
        self._make_columns()
        columns = self.chains.columns[self.cold].reshape(-1, len(y))
        return least_squares.remainder(columns[self.chains.slots[self.cold, :n_terms]], y)

    def coefficients(self) -> tuple[float, np.ndarray]:
        """Return intercept and coefficients of the coldest state, in units of its response.

        What is no more than a rounding error of the response is 0.
        """
        data, trees = self.problem.data, self.trees()
        used = data.root_weight > 0
        root = data.root_weight[used]
        values = evaluate_trees(trees, data.x.reshape(-1, len(data.y)))[:, used]
        y = self.problem.response()[used]
        with np.errstate(all="ignore"):
            solution = least_squares.coefficients(values, y, root)
            if solution is None:
                return 0.0, np.zeros(len(trees))
            share = np.abs(solution) * np.array([1.0, *values.std(axis=1)])
        solution[~(share > _NEGLIGIBLE * self.problem.y_scale)] = 0.0
        return float(solution[0]), solution[1:]

    def fit(self) -> None:
        """Fit terms that were put, so that their log-likelihood is known; no step is made."""
        self.run(1, 1, 0)

    def move_to(self, trees: list[np.ndarray]) -> None:
        """Give the coldest replica other terms, fitted."""
        self.put(trees)
        self.fit()

    def offer(self, libraries: LibraryCache) -> None:
        """Add the term to the coldest state that explains most of its residual, if that helps."""
        for suggested in libraries.suggest(self.problem, self):
            trees, before = self.trees(), self.score
            self.move_to(suggested)
            if not self.score > before:
                self.move_to(trees)

    def take_over(self, other: Replicas) -> None:
        """Copy the states of another ladder, temperature by temperature."""
        for t in range(len(self.ladder.power)):
            mine, source = int(self.ladder.replica[t]), int(other.ladder.replica[t])
            self.put(other.trees(source), mine)
            for name in LEARNED:
                getattr(self.priors, name)[mine] = getattr(other.priors, name)[source]

    def spread(self, trees: list[np.ndarray], nats: float) -> None:
        """Give a state to all temperatures at which it is better by more than `nats`.

        One far better state alone at temperature one would wander up the ladder, since at
        neighbouring temperatures all states but it are out of date.
        """
        self.fit()
        coldest = self.trees()
        self.move_to(trees)
        numbers, prior = self.chains.numbers[self.cold].copy(), self.problem.log_prior(trees)
        self.move_to(coldest)
        for power, r in zip(self.ladder.power, self.ladder.replica.copy(), strict=True):
            behind = self._energy(numbers, power) - self._energy(self.chains.numbers[r], power)
            behind += prior - self.problem.log_prior(self.trees(r))
            if behind > nats:
                self.put(trees, r)
        self.fit()

    def _energy(self, numbers: np.ndarray, power: float) -> float:
        """Return what `kernels.ladder.energy` does."""
        ratio = 0.0 if self.problem.part is None else self.problem.data.n / self.problem.part.n
        if power * ratio >= 1.0:
            return float(power * numbers[ALL_LOG_LIKELIHOOD])
        first = power if ratio == 0.0 else min(1.0, power * ratio)
        return float(first * numbers[LOG_LIKELIHOOD])

    def adapt(self) -> None:
        """Move the temperatures so that all pairs reject equally often; forget the counts."""
        power, tried = self.ladder.power, np.maximum(self.ladder.tried, 1)
        rejection = np.maximum(self.ladder.rejected / tried, _LEAST_REJECTION)
        barrier = np.concatenate([[0.0], np.cumsum(rejection)])
        even = np.linspace(0.0, barrier[-1], len(barrier))
        power[:] = np.exp(np.interp(even, barrier, np.log(power)))
        self.forget()

    def record(self) -> LadderRecord:
        """Return how the temperatures have mixed since the counts were set to zero."""
        ladder = self.ladder
        rate = 1.0 - ladder.rejected / np.maximum(ladder.tried, 1)
        swap_rate = np.where(ladder.tried > 0, rate, np.nan)
        return LadderRecord(ladder.power.copy(), swap_rate, int(ladder.clock[1]))

    def forget(self) -> None:
        """Set the counts of swaps, rounds and round trips back to zero."""
        ladder = self.ladder
        counted = ladder.rejected, ladder.tried, ladder.clock, ladder.direction, ladder.teleports
        for counts in counted:
            counts[:] = 0


def mean_cost(ladders: Sequence[Replicas]) -> float:
    """Return what a draw costs in units of one whose states have an ordinary size, at least 1."""
    chains = [ladder.chains for ladder in ladders]
    slots = np.concatenate([one.slots for one in chains])
    ops = np.concatenate([one.nodes["op"] for one in chains]).reshape(*slots.shape, -1)
    sizes = np.take_along_axis(state_sizes(ops, np.ones(slots.shape, np.int64)), slots, axis=1)
    n_terms = np.concatenate([one.n_terms for one in chains])
    sizes[np.arange(slots.shape[1]) >= n_terms] = 0
    nodes = sizes.reshape(len(ladders), -1).sum(axis=1) / len(ladders[0].ladder.power)
    return float(np.maximum(1.0, nodes / _ORDINARY_NODES).mean())


def _repeated(arrays: tuple, n: int) -> list[np.ndarray]:
    """Return arrays with n copies of each, one below the other."""
    result = [zeros((n, *array.shape), array.dtype) for array in arrays]
    for many, one in zip(result, arrays, strict=True):
        many[:] = one
    return result


def same_state(first: LadderState, second: LadderState) -> bool:
    """Return whether two states are the same, bit for bit."""
    return _content(first) == _content(second)


def _content(state: LadderState) -> list[Any]:
    groups = (state.chains, state.priors, state.own, {"nodes": state.nodes})
    arrays = ({name: a.tobytes() for name, a in group.items()} for group in groups)
    return [state.share, state.met.content(), *arrays]
