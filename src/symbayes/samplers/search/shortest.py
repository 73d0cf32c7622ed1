"""The end of a search: a shorter way to write what was found.

Any state may have parts that equal something smaller (`equal_parts.py`). A formula that fits to all
digits can besides be looked for in other ways, since every other exact one is as good.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...formula.trees import split_terms
from ...inputs.problem import Problem
from ..exactness import is_exact
from ..ladder import LARGEST_ROUND, Replicas, Round
from ..run.clock import Watch
from ..run.workers import Workers
from ..trace import ChainTrace
from .equal_parts import shorter_states
from .heuristics import Heuristics
from .seekers import Best, Seeker, guest

# An exact formula counts as the shortest after so many rounds without one that is better by so
# many nats.
_ROUNDS_TO_SHORTEN, _SHORTER = 6, 0.1
# An exact formula of more nodes is looked for from new starts, for so many draws.
_SHORT, _DRAWS_FOR_OTHERS = 8, 2304


class Shortest:
    """Ways to a shorter form of the best state."""

    def __init__(
        self,
        problem: Problem,
        seekers: list[Seeker],
        best: Best,
        steps: int,
        start: Callable[[np.random.SeedSequence], Replicas],
        advance: Callable[[int, Workers], object],
        tell: Callable[[], None],
        use: Heuristics,
    ):
        self._problem, self._seekers, self._best = problem, seekers, best
        self._steps, self._start, self._advance, self._tell = steps, start, advance, tell
        self._use = use

    def simplify(self, watch: Watch, share: float) -> None:
        """Replace parts of the best state by shorter equals, as long as that helps."""
        best, data = self._best, self._problem.data
        table = data.x.reshape(-1, len(data.y))[:, data.root_weight > 0]
        seeker = max(self._seekers, key=lambda seeker: seeker.replicas.score)
        helped = self._use.equal_parts
        while helped and not watch.should_stop(share):
            helped = False
            for trees in shorter_states(best.trees, table, self._problem.operator_weights):
                if watch.should_stop(share):
                    break
                chain = guest(self._problem, seeker.seed, trees)
                if chain.score > best.score + _SHORTER:
                    best.remember(chain.score, chain.trees(), watch.seconds)
                    helped = True
                    break
        if best.score > seeker.replicas.score:
            seeker.begin_at(best.trees)

    def shorten(self, workers: Workers, watch: Watch, share: float) -> None:
        """Look for shorter exact fits around the best: one step is enough for many.

        Constants are optimised as before, and each find is the start of the next round.
        """
        best, idle = self._best, 0 if self._use.shortening else _ROUNDS_TO_SHORTEN
        self.simplify(watch, share)
        while idle < _ROUNDS_TO_SHORTEN and not watch.should_stop(share):
            before = best.score
            for seeker in self._seekers:
                seeker.replicas.put(best.trees)
            ladders = [seeker.replicas for seeker in self._seekers]
            made = workers.advance_all(ladders, Round(self._steps, LARGEST_ROUND, keep=True))
            for ladder, n in zip(ladders, made, strict=True):
                score, trees = _best_draw(ladder, n)
                best.remember(score, trees, watch.seconds)
            self._tell()
            idle += 1
            if best.score > before + _SHORTER:
                self.simplify(watch, share)
                idle = 0
        for seeker in self._seekers:
            seeker.begin_at(best.trees)

    def find_others(self, workers: Workers, watch: Watch, share: float) -> None:
        """Start anew, again and again, for other ways to write a long exact formula."""
        best = self._best
        if not self._use.new_starts or sum(map(len, best.trees)) <= _SHORT:
            return
        before = best.score
        for seeker in self._seekers:
            seeker.replicas = self._start(seeker.seed)
        for _ in range(0, _DRAWS_FOR_OTHERS, LARGEST_ROUND):
            if watch.should_stop(share):
                break
            self._advance(LARGEST_ROUND, workers)
            for seeker in self._seekers:
                if is_exact(seeker.replicas):
                    best.remember(seeker.replicas.score, seeker.replicas.trees(), watch.seconds)
                    seeker.replicas = self._start(seeker.seed)
            self._tell()
        if best.score > before:
            self.shorten(workers, watch, share)
        for seeker in self._seekers:
            seeker.begin_at(best.trees)


def _best_draw(replicas: Replicas, n: int) -> tuple[float, list[np.ndarray]]:
    """Return the best of the draws of a round with its score."""
    draws = ChainTrace()
    draws.extend(replicas.output, n)
    best: tuple[float, list[np.ndarray]] = (-np.inf, [])
    for nodes, terms, likelihood in zip(
        draws.nodes, draws.n_terms, draws.log_likelihood, strict=True
    ):
        trees = split_terms(nodes, terms)
        score = likelihood + replicas.problem.log_prior(trees)
        if score > best[0]:
            best = (score, trees)
    return best
