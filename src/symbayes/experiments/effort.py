"""How much of everything: as in the paper, or a quick look."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Effort:
    """What a run of the experiments does, apart from its seed."""

    replications: int
    """Of each simulated task."""
    trees: int
    """That the paper's sampler proposes."""
    generations: int
    """Of genetic programming."""
    noisy_replications: int
    """Of each task and noise level."""
    memory_replications: int
    signals: int
    """Independent runs on the index."""
    signal_trees: int
    draws: int
    """A chain that the default sampler keeps."""
    tune: int | None = None
    """Draws of its search at most; None is its default."""

    def repeated(self, times: int) -> Effort:
        """Return the same with so many replications of everything."""
        return replace(
            self,
            replications=times,
            noisy_replications=times,
            memory_replications=times,
            signals=times,
        )


#: What the paper did, where it says so.
FULL = Effort(
    replications=50,
    trees=100_000,
    generations=200,
    noisy_replications=5,
    memory_replications=1,
    signals=200,
    signal_trees=10_000,
    draws=1000,
)
#: A few minutes on two cores.
QUICK = Effort(
    replications=1,
    trees=10_000,
    generations=10,
    noisy_replications=1,
    memory_replications=1,
    signals=20,
    signal_trees=2_000,
    draws=200,
    tune=1_500,
)
