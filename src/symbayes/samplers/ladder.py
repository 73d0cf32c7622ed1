"""One ladder: replicas of a chain at several temperatures, with all that belongs to them."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass

import numpy as np

from ..formula.evaluation import evaluate_trees
from ..inputs.problem import Problem
from ..kernels import units
from ..kernels.chain import ALL_LOG_LIKELIHOOD, ALL_RSS, LOG_LIKELIHOOD, RSS, Chain
from ..kernels.ladder import Ladder
from ..kernels.memory import zeros
from ..kernels.rng import seed_state
from ..kernels.run import KEPT
from ..kernels.tree_prior import Prior
from .ladder_state import LadderState, restore, state_of
from .run.turns import NoStart
from .search.library import LibraryCache
from .trace import Output, empty_output, packed_output, state_size, state_sizes, unpack

#: How often constants move: the share of such moves, and the `lt` nodes for half of it.
MOVE_SHAPE = (0.5, 1.0)
#: Draws a call of the loop at most, which bounds the memory of the output arrays.
LARGEST_ROUND = 64
# Draws between two stops of a round in parts, at least.
_FEWEST_AT_ONCE = 8
# Nodes of a state, on average over the replicas, up to which a draw costs what it usually does.
_ORDINARY_NODES = 18.0
# A term that moves the response by a smaller part of its spread does nothing.
_NEGLIGIBLE = 1.0e-9
# A pair that never rejects still gets some room, so that temperatures stay apart.
_LEAST_REJECTION = 0.01


@dataclass(frozen=True)
class Round:
    """What a ladder is to do until the others have done the same."""

    steps: int
    """Proposals of each replica between two draws."""
    n_draws: int
    good_enough: float = -1.0
    """It ends early at a draw with a residual sum of squares of at most this."""
    offer: bool = False
    """Whether the coldest state is offered a term from the library afterwards."""
    keep: bool = False
    """Whether the draws are wanted, or only where they lead."""
    times: int = 1
    """How often all of it is done, one time after the other; only once where draws are wanted."""


class Replicas:
    """A ladder of replicas on one problem."""

    def __init__(self, problem: Problem, seed: np.random.SeedSequence, powers: np.ndarray):
        n = len(powers)
        seeds = seed.spawn(n + 1)
        self.problem = problem
        self._loop = units.load("tempered", problem.part is not None)
        chain = problem.new_chain(seeds[0])
        # Room that is not written to until it is needed, which may be in another process.
        columns = zeros((n, *chain.columns.shape))
        self.chains = Chain(*_repeated(chain._replace(columns=columns[0, :0]), n))._replace(
            rng=np.array([seed_state(s) for s in seeds[:n]]), columns=columns
        )
        # Replicas whose columns are not there, since the state came from elsewhere.
        self._without_columns = np.zeros(n, bool)
        self.priors = Prior(*_repeated(problem.new_prior(MOVE_SHAPE), n))
        self.scratch = problem.new_scratch()
        self.ladder = Ladder(
            rng=seed_state(seeds[n]),
            power=np.array(powers, dtype=float),
            replica=np.arange(n),
            rejected=np.zeros(n - 1),
            tried=np.zeros(n - 1, np.int64),
            clock=np.zeros(2, np.int64),
            direction=np.zeros(n, np.int64),
        )
        self.output: Output = empty_output(
            LARGEST_ROUND, problem.most_terms * problem.max_nodes, KEPT + n
        )

    @classmethod
    def blank(cls, problem: Problem, state: LadderState) -> Replicas:
        """Return a ladder that a state of this size can be restored to."""
        return cls(problem, np.random.SeedSequence(0), state.own["power"])

    @classmethod
    def restored(cls, problem: Problem, state: LadderState) -> Replicas:
        """Return a ladder that goes on from a state of another on the same problem."""
        ladder = cls.blank(problem, state)
        ladder.restore(state)
        return ladder

    def run(
        self, steps: int, rounds: int, n_draws: int, good_enough: float = -1.0, first: int = 0
    ) -> int:
        """Make draws into `output`, from a row of it on; return how many.

        It ends early when a draw has a residual sum of squares of at most `good_enough`.
        """
        if first + n_draws > len(self.output[1]):  # compiled code would write behind the arrays
            raise ValueError(f"{n_draws} draws at once; the output has room for {LARGEST_ROUND}")
        if n_draws > 0:
            self._make_columns(self._without_columns)
        given = np.isnan(self.chains.numbers[:, LOG_LIKELIHOOD])
        done = self._loop(
            self.chains, self.priors, self.problem.seen, self.scratch, self.ladder,
            steps, rounds, first, n_draws, float(good_enough), *self.output,
        )  # fmt: skip
        if done < 0:
            raise NoStart
        self._without_columns[given] = False  # the loop has fitted them
        return done

    def carry_out(
        self, order: Round, libraries: LibraryCache, in_parts: bool = False
    ) -> Generator[int | None, None, int]:
        """Do what a round asks for; return the number of draws, the last ones now in `output`.

        Where it may be the last time, it stops in parts after half of what is left, and again.
        """
        made = 0
        for time in range(1, order.times + 1):
            if time > 1:
                yield made
            in_parts_now = in_parts and time == order.times
            done, exact = yield from self._draw(order, in_parts_now, made)
            if order.offer:
                self.offer(libraries)
            made += done
            if exact:
                break
        return made

    def _draw(
        self, order: Round, in_parts: bool, made: int
    ) -> Generator[int, None, tuple[int, bool]]:
        """Make the draws of a round; return their number, and whether the last is good enough.

        It stops in between where it could end, and yields all draws until then: those `made` before
        this round, and its own.
        """
        total, done = order.n_draws, 0
        while True:
            left = total - done
            n = min(left, max(_FEWEST_AT_ONCE, left // 2)) if in_parts else left
            done += self.run(order.steps, 1, n, order.good_enough, done)
            good_enough = done > 0 and bool(self.output[2][done - 1, RSS] <= order.good_enough)
            if good_enough or done == total:
                return done, good_enough
            yield made + done

    def state(self) -> LadderState:
        """Return all that has to be known to go on elsewhere, or later, with the same draws."""
        return state_of(self.chains, self.priors, self.ladder._asdict(), self.scratch.few.share[0])

    def restore(self, state: LadderState) -> None:
        """Go on from a state of a ladder on the same problem."""
        restore(state, self.chains, self.priors, self.ladder._asdict())
        self.optimise(state.share)
        self._without_columns[:] = True

    def kept(self, order: Round, n_draws: int) -> tuple[np.ndarray, ...]:
        """Return the draws of a round, as they are sent."""
        return packed_output(self.output, n_draws if order.keep else 0)

    def receive(self, kept: tuple[np.ndarray, ...]) -> None:
        """Take the draws of a round that was carried out elsewhere."""
        unpack(self.output, kept)

    def _make_columns(self, missing: np.ndarray) -> None:
        """Make columns where they are missing, which is then set to false."""
        if missing.any():
            make = units.load_make_columns()
            make(self.chains, self.problem.seen, self.scratch, missing)

    def optimise(self, share: float) -> None:
        """Set how often the constants of proposals are optimised; 0 keeps the sampler exact."""
        self.scratch.few.share[0] = share

    @property
    def cold(self) -> int:
        """The replica at temperature one."""
        return int(self.ladder.replica[0])

    @property
    def log_likelihood(self) -> float:
        """Log-likelihood of the coldest state."""
        place = LOG_LIKELIHOOD if self.problem.part is None else ALL_LOG_LIKELIHOOD
        return float(self.chains.numbers[self.cold, place])

    @property
    def score(self) -> float:
        """Log posterior of the coldest state, up to a constant; minus infinity before the start."""
        if self.chains.n_terms[self.cold, 0] < 0:
            return -np.inf
        return self.log_likelihood + self.problem.log_prior(self.trees())

    @property
    def rss(self) -> float:
        """Residual sum of squares of the coldest state."""
        place = RSS if self.problem.part is None else ALL_RSS
        return float(self.chains.numbers[self.cold, place])

    def trees(self, replica: int | None = None) -> list[np.ndarray]:
        """Return the terms of a replica, of the coldest one if none is named."""
        r = self.cold if replica is None else replica
        size = self.problem.max_nodes
        result = []
        for k in range(max(0, int(self.chains.n_terms[r, 0]))):
            slot = int(self.chains.slots[r, k])
            nodes = self.chains.nodes[r, slot * size : (slot + 1) * size]
            result.append(nodes[: state_size(nodes, 1)].copy())
        return result

    def residual(self) -> np.ndarray:
        """Return the weighted residuals of the coldest state, on all rows."""
        data, trees = self.problem.data, self.trees()
        if not trees:
            return data.y.copy()
        n = len(data.y)
        r = self.cold
        self._make_columns(self._without_columns)
        slots = self.chains.slots[r, : len(trees)]
        columns = self.chains.columns[r].reshape(-1, n)[slots]
        return data.y - np.linalg.lstsq(columns.T, data.y, rcond=None)[0] @ columns

    def coefficients(self) -> tuple[float, np.ndarray]:
        """Return intercept and coefficients of the coldest state, in units of its response.

        What is no more than a rounding error of the response is 0.
        """
        data, trees = self.problem.data, self.trees()
        used = data.root_weight > 0
        root = data.root_weight[used]
        values = evaluate_trees(trees, data.x.reshape(-1, len(data.y)))[:, used]
        design = np.column_stack([np.ones(used.sum()), *values]) * root[:, None]
        # In units of the largest value, so that squares neither overflow nor vanish.
        unit = np.abs(design).max(axis=0)
        y = self.problem.response()[used] * root
        with np.errstate(all="ignore"):
            design = design / unit
            if not np.isfinite(design).all():
                return 0.0, np.zeros(len(trees))
            try:
                solution = np.linalg.lstsq(design, y, rcond=None)[0] / unit
            except np.linalg.LinAlgError:  # numbers too extreme for it
                return 0.0, np.zeros(len(trees))
            share = np.abs(solution) * np.array([1.0, *values.std(axis=1)])
        solution[~(share > _NEGLIGIBLE * self.problem.y_scale)] = 0.0
        return float(solution[0]), solution[1:]

    def put(self, trees: list[np.ndarray], replica: int | None = None) -> None:
        """Give a replica other terms; they are fitted when it runs."""
        r = self.cold if replica is None else replica
        size = self.problem.max_nodes
        for k, tree in enumerate(trees):
            self.chains.nodes[r, k * size : k * size + len(tree)] = tree
        self.chains.slots[r] = np.arange(self.chains.slots.shape[1])
        self.chains.n_terms[r, 0] = len(trees)
        self.chains.numbers[r, LOG_LIKELIHOOD] = np.nan

    def fit(self) -> None:
        """Fit terms that were put, so that their log-likelihood is known; no step is made."""
        self.run(1, 1, 0)

    def coldest(self) -> list[np.ndarray]:
        """Return a copy of the coldest state with all that belongs to it."""
        r = self.cold
        rows = [array[r].copy() for array in self.chains]
        return [*rows, self._without_columns[r : r + 1].copy()]

    def put_back(self, coldest: list[np.ndarray]) -> None:
        """Give the coldest replica back what it was, at no cost."""
        r = self.cold
        for array, kept in zip((*self.chains, self._without_columns), coldest, strict=True):
            array[r] = kept

    def offer(self, libraries: LibraryCache) -> None:
        """Add the term to the coldest state that explains most of its residual, if that helps."""
        for suggested in libraries.suggest(self.problem, self):
            trees, before = self.trees(), self.score
            self.put(suggested)
            self.fit()
            if not self.score > before:
                self.put(trees)
                self.fit()

    def take_over(self, other: Replicas) -> None:
        """Copy the states of another ladder, temperature by temperature."""
        for t in range(len(self.ladder.power)):
            mine, source = int(self.ladder.replica[t]), int(other.ladder.replica[t])
            self.put(other.trees(source), mine)
            for name in ("scales", "operator_cdf", "feature_cdf"):
                getattr(self.priors, name)[mine] = getattr(other.priors, name)[source]

    def spread(self, trees: list[np.ndarray], nats: float) -> None:
        """Give a state to all temperatures at which it is better by more than so many nats.

        One far better state alone at temperature one would wander up the ladder, since at
        neighbouring temperatures all states but it are out of date.
        """
        self.fit()
        coldest = self.trees()
        self.put(trees)
        self.fit()
        numbers, prior = self.chains.numbers[self.cold].copy(), self.problem.log_prior(trees)
        self.put(coldest)
        self.fit()
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
        ladder = self.ladder
        rejection = np.maximum(ladder.rejected / np.maximum(ladder.tried, 1), _LEAST_REJECTION)
        barrier = np.concatenate([[0.0], np.cumsum(rejection)])
        even = np.linspace(0.0, barrier[-1], len(barrier))
        ladder.power[:] = np.exp(np.interp(even, barrier, np.log(ladder.power)))
        self.forget()

    def forget(self) -> None:
        """Set the counts of swaps and moves back to zero."""
        self.ladder.rejected[:] = 0.0
        self.ladder.tried[:] = 0
        self.ladder.clock[:] = 0
        self.ladder.direction[:] = 0


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
    """Return arrays with so many copies of each, one below the other."""
    result = [zeros((n, *array.shape), array.dtype) for array in arrays]
    for many, one in zip(result, arrays, strict=True):
        many[:] = one
    return result
