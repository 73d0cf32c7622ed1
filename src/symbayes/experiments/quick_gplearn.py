"""gplearn's own results, sooner.

gplearn spends most of its time on making random generators (each asks the system for entropy that
it then throws away), on choosing all rows out of all rows, and on computing anew what many
individuals have in common. Here one generator is seeded again instead, and a part that this
generation or the last has computed is taken from there. Every individual is the same as without,
to the last bit; a test compares them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

#: Columns and constants; all else is a function.
_LEAVES = (int, float)


@dataclass(eq=False, slots=True)
class _Part:
    """Values that some individuals share."""

    values: np.ndarray
    arguments: tuple[_Part, ...] = ()
    """Kept alive, as a part is known by the identity of its arguments."""
    fitness: float | None = None


@dataclass
class SharedParts:
    """What the individuals of this generation and the last have in common.

    One object serves one evolution: it takes every table and all weights to be the same.
    """

    _now: dict[Any, _Part] = field(default_factory=dict)
    _before: dict[Any, _Part] = field(default_factory=dict)
    _points: dict[int, tuple[list[Any], np.ndarray]] = field(default_factory=dict)
    _generator: np.random.RandomState = field(default_factory=lambda: np.random.RandomState(0))

    @contextmanager
    def generation(self) -> Iterator[None]:
        """Let gplearn use them for a generation, in this process."""
        from gplearn import genetic

        self._before, self._now, self._points = self._now, {}, {}
        original = genetic._Program, genetic.check_random_state

        def seeded(seed: Any) -> np.random.RandomState:
            """Return a generator; those of individuals, whose seeds are NumPy's, never overlap."""
            if not isinstance(seed, np.integer):
                return original[1](seed)
            self._generator.seed(int(seed))
            return self._generator

        genetic._Program, genetic.check_random_state = _program_class(self), seeded
        try:
            yield
        finally:
            genetic._Program, genetic.check_random_state = original

    def of(self, program: list[Any], X: np.ndarray) -> _Part:
        """Return the values of a program, which is in prefix order."""
        stack: list[_Part] = []
        arguments: tuple[_Part, ...]
        key: Any
        for node in reversed(program):
            if isinstance(node, _LEAVES):
                arguments, key = (), (type(node), node)  # as 1 == 1.0
            elif node.arity == 1:
                arguments = (stack.pop(),)
                key = (node, id(arguments[0]))
            else:
                arguments = (stack.pop(), stack.pop())
                key = (node, id(arguments[0]), id(arguments[1]))
            part = self._now.get(key)
            if part is None:
                part = self._before.get(key)
                if part is None:
                    part = _Part(_compute(node, arguments, X), arguments)
                self._now[key] = part
            stack.append(part)
        return stack[0]

    def points(self, program: list[Any]) -> np.ndarray:
        """Return the cumulated probabilities of cutting at a node, as gplearn has them."""
        known = self._points.get(id(program))
        if known is None:
            weights = np.array([0.1 if isinstance(node, _LEAVES) else 0.9 for node in program])
            # With the program, so that no other gets its identity.
            known = self._points[id(program)] = program, np.cumsum(weights / weights.sum())
        return known[1]


def _compute(node: Any, arguments: tuple[_Part, ...], X: np.ndarray) -> np.ndarray:
    if isinstance(node, int):
        return X[:, node]
    if isinstance(node, float):
        return np.repeat(node, len(X))
    return node(*(part.values for part in arguments))


def _program_class(shared: SharedParts) -> type:
    """Return gplearn's individual, with what it does often replaced."""
    from gplearn._program import _Program

    rows: list[tuple[np.ndarray, np.ndarray]] = []

    class Program(_Program):
        def validate_program(self) -> bool:
            """Agree: what gplearn's own moves make is complete."""
            return True

        def get_all_indices(
            self, n_samples: Any = None, max_samples: Any = None, random_state: Any = None
        ) -> tuple[np.ndarray, np.ndarray]:
            """Return all rows and none, as for max_samples=1."""
            if not rows:
                rows.append((np.arange(n_samples), np.empty(0, dtype=int)))
            return rows[0]

        def raw_fitness(self, X: np.ndarray, y: np.ndarray, sample_weight: np.ndarray) -> float:
            part = shared.of(self.program, X)
            if part.fitness is None:
                part.fitness = self.metric(y, part.values, sample_weight)
            return part.fitness

        def get_subtree(
            self, random_state: np.random.RandomState, program: list[Any] | None = None
        ) -> tuple[int, int]:
            program = self.program if program is None else program
            start = end = int(shared.points(program).searchsorted(random_state.uniform()))
            wanted = 1
            while wanted > end - start:
                node = program[end]
                if not isinstance(node, _LEAVES):
                    wanted += node.arity
                end += 1
            return start, end

    return Program
