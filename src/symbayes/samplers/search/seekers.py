"""What the parts of a search share: its ladders, and the best that they have found."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from ...inputs.problem import Problem
from ..ladder import Replicas
from ..trace import Find
from .targets import Target

# Priors of size with which most is found: trees at least so large, terms so rare. What is found is
# judged by the user's own priors afterwards.
_LEAST_ALPHA, _DECAY = 0.6, 0.1
# An improvement by less than so many nats is the same find with better constants.
_WORTH_A_NOTE = 3.0
# Steps of a chain that starts at a given state.
_STEPS_OF_A_GUEST = 200


@dataclass
class Seeker:
    """One ladder of the search, with what it is at."""

    seed: np.random.SeedSequence
    replicas: Replicas
    """On y itself."""
    target: Target | None = None
    other: Replicas | None = None
    """On a transformed target, while one is being tried."""
    stages: int = 0
    """How long it has been on y since its start."""

    @property
    def at_work(self) -> Replicas:
        return self.other or self.replicas

    def begin_at(self, trees: list[np.ndarray]) -> None:
        """Take over a state, on y."""
        self.replicas.put(trees)
        self.replicas.fit()


@dataclass
class Place:
    """How far a search has come."""

    done: int = 0
    """Draws a ladder."""
    spent: float = 0.0
    """What they have cost, in units of ordinary ones."""
    stage: int = 0
    in_stage: int = 0
    """Draws a ladder in this stage."""

    def advance(self, n: int, cost: float) -> None:
        self.done += n
        self.in_stage += n
        self.spent += n * cost

    def next_stage(self) -> None:
        self.stage += 1
        self.in_stage = 0


@dataclass
class Best:
    """The best state so far, and those before it."""

    score: float = -np.inf
    trees: list[np.ndarray] = field(default_factory=list)
    history: list[Find] = field(default_factory=list)

    def remember(self, score: float, trees: list[np.ndarray], seconds: float) -> None:
        """Take a state over if it is better; note when it was found if it is much better."""
        if not score > self.score:
            return
        self.score, self.trees = score, trees
        if self.history and score < self.history[-1].score + _WORTH_A_NOTE:
            self.history[-1] = replace(self.history[-1], trees=trees)
        else:
            self.history.append(Find(seconds, score, trees))


def guest(problem: Problem, seed: np.random.SeedSequence, trees: list[np.ndarray]) -> Replicas:
    """Return a chain that starts at these trees, after a few steps with optimised constants.

    Only constants move at first, if there are any: they are optimised where they are.
    """
    chain = Replicas(problem, seed.spawn(1)[0], np.ones(1))
    chain.optimise(1.0)
    chain.put(trees)
    chain.run(_STEPS_OF_A_GUEST, 1, 1)
    return chain


def for_searching(problem: Problem) -> Problem:
    """Return the problem with the priors of size of a search."""
    tree, terms = problem.tree_prior, problem.terms
    if not isinstance(terms, int):
        terms = replace(terms, decay=_DECAY)
    return replace(
        problem, tree_prior=replace(tree, alpha=max(tree.alpha, _LEAST_ALPHA)), terms=terms
    )


def columns_of(problem: Problem) -> np.ndarray:
    """Return the columns that may be used, 0 the others, on the rows that count."""
    data = problem.data
    columns = data.x.reshape(-1, len(data.y))[:, data.root_weight > 0]
    return columns * (problem.feature_weights > 0)[:, None]
