"""Settings of the two samplers; the algorithms are in `samplers/tempered.py` and `paper.py`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..formula.checks import require_count, require_real
from .prior import NoisePrior
from .problem import Problem, some_rows

# Rows on which proposals are judged first, and the size of a table from which on that pays.
_FIRST_ROWS, _FEWEST_IN_STAGES = 1024, 5000
# At the hottest temperature the data count as about this many rows.
_HOTTEST_ROWS = 3.0


@dataclass(frozen=True)
class TemperedSampler:
    """Settings of the default sampler.

    Parameters
    ----------
    temperatures : int
        Replicas per ladder. 1 is plain Markov chain Monte Carlo.
    hottest : float in (0, 1), optional
        Power of the likelihood at the hottest temperature; by default the data count there as
        about three rows.
    steps_per_draw : int
        Proposals of each replica between two draws.
    search : bool
        Whether warm-up begins with a search. Without it, chains start from the prior.
    teleport : bool
        Whether replicas may replace their whole state by one of a list that warm-up has made of
        the structures that it met, so that explanations far apart are weighed against each other.
        Only after a search, which has looked for them from several starts.
    first_rows : int, "auto" or None
        Rows on which proposals are judged first; only those that pass are judged on all rows, and
        what the first judgement had to say is taken out of the second, so that the posterior is
        that of all rows (delayed acceptance). "auto" takes 1,024 rows of tables with more than
        5,000. None judges on all rows at once.
    """

    temperatures: int = 12
    hottest: float | None = None
    steps_per_draw: int = 50
    search: bool = True
    teleport: bool = True
    first_rows: int | str | None = "auto"

    name = "tempered"
    plug_in = False
    #: Draws per ladder for warm-up, unless the user says otherwise.
    tune = 15_000
    #: Draws per ladder at most, unless the user says otherwise: without and with a time limit.
    draws, draws_in_time = 4000, 1_000_000
    #: Data without noise can be fitted to all digits.
    noise_prior = NoisePrior()

    def __post_init__(self):
        for name in ("temperatures", "steps_per_draw"):
            require_count("sampler", name, getattr(self, name))
        if self.first_rows not in ("auto", None):
            require_count("sampler", "first_rows", self.first_rows)
        if self.hottest is None:
            return
        if not 0 < require_real("sampler", "hottest", self.hottest) < 1:
            raise ValueError(f"sampler: hottest is {self.hottest}; it must lie in (0, 1)")

    @property
    def drawing(self) -> tuple:
        """What draws depend on, once warm-up is over."""
        return self.name, self.temperatures, self.steps_per_draw, self.first_rows, self.teleport

    def powers(self, n: float) -> np.ndarray:
        """Return the powers of the likelihood that a run on n rows begins with."""
        hottest = self.hottest or min(0.5, _HOTTEST_ROWS / n)
        return np.geomspace(1.0, hottest, self.temperatures)

    def in_stages(self, problem: Problem) -> Problem:
        """Return the problem as it is judged: on a part of the rows first where that pays."""
        n = np.count_nonzero(problem.data.root_weight)
        m = self.first_rows
        if m == "auto":
            m = _FIRST_ROWS if n > _FEWEST_IN_STAGES else None
        if m is None or n <= int(m):
            return problem
        return problem.in_two_stages(some_rows(problem, int(m)))


@dataclass(frozen=True)
class PaperSampler:
    """Settings of the paper's sampler, "Bayesian Symbolic Regression" (Jin et al., 2019).

    Trees are updated in turn by seven reversible moves, constants by reversible jump. Each chain
    stops after `max_trees` proposed trees, or when `tune + draws` models were accepted; the first
    `tune` of them, at most half of all, are left out of the posterior. An accepted model counts as
    long as it was held.

    Three things do not hold as printed and are repaired:

    * Prune has probability zero while a tree has at most six operators, so Grow could not be
      undone there: Grow's share of its third is capped at one half.
    * Delete may keep the right child, but Insert always puts the old subtree left: Insert picks
      the side.
    * The auxiliary variables of the reversible jump enter the ratio with the densities they are
      really drawn from, around 1 for slopes on expansion and around 0 on shrinkage, given the
      variances of the side they belong to. Those variances are shared by all trees, so that the
      constants of all trees enter as well.

    Parameters
    ----------
    max_trees : int
        Trees proposed per chain, at most.
    """

    max_trees: int = 100_000

    name = "paper"
    plug_in = True
    #: Accepted models per chain to leave out, unless the user says otherwise.
    tune = 2000
    #: Accepted models per chain to keep, unless the user says otherwise.
    draws = draws_in_time = 1000
    #: The noise is redrawn with every proposal, so a prior far from the data accepts nothing.
    noise_prior = NoisePrior(shape=1.0, scale=0.01)

    def __post_init__(self):
        require_count("sampler", "max_trees", self.max_trees)

    @property
    def drawing(self) -> tuple:
        """What draws depend on, besides the problem."""
        return (self.name,)


Sampler = TemperedSampler | PaperSampler

#: Settings by the names that `sampler` takes.
SAMPLERS: dict[str, type[TemperedSampler] | type[PaperSampler]] = {
    "tempered": TemperedSampler,
    "paper": PaperSampler,
}


def most_draws(sampler: Sampler, draws: int | None, timeout: float | None) -> int:
    """Return the draws per chain at most, as the estimator's parameters have it."""
    if draws is not None:
        return int(draws)
    return sampler.draws if timeout is None else sampler.draws_in_time
