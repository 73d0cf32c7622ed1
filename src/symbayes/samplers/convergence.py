"""Has it converged: whether chains agree on everything that is read from their draws.

Log-likelihood and size may agree where formulas do not: two formulas that explain the data equally
well have the same of both. So the columns that formulas use, the leading formulas and predictions
are compared as well, and the temperatures have to have carried states through the whole ladder.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ..fitting.least_squares import fitted_values
from ..formula.trees import evaluate_trees, split_terms, structure
from ..inputs.problem import Problem, some_rows
from ..kernels.opcodes import FEATURE, LT
from .trace import ChainTrace

# Rules of thumb (Vehtari, Gelman, Simpson, Carpenter and Buerkner, 2021).
LARGEST_R_HAT, FEWEST_EFFECTIVE = 1.01, 400.0
#: A probability is known well enough with this standard error, which is that of 400 effective draws
#: of something that is as likely as not.
LARGEST_ERROR = 0.025
#: A formula that is as probable as the one found is missed by all of ten round trips between the
#: coldest and the hottest temperature in one case of a thousand.
FEWEST_TRIPS = 10
#: Fewer draws per chain have no variance in each half.
FEWEST_DRAWS = 4
# Exact formulas all the way: this many draws per chain are enough.
_FEWEST_EXACT = 128
# Moments of a chain of the paper's sampler, which holds a model for a while, that are looked at.
_MOMENTS = 10_000
# Leading formulas that are compared, and rows at which predictions are.
_FORMULAS, _ROWS = 5, 5
# Structures among which the leading formulas are, and how close the values of the same one are.
_STRUCTURES, _SAME_FIT, _DECIMALS = 40, 1.0e-7, 7
# Predictions are those of fits to this many rows at most, of this many chains at most, each at this
# many moments.
_ROWS_TO_FIT, _CHAINS_TO_FIT, _MOMENTS_TO_FIT = 200, 16, 500


@dataclass(frozen=True)
class Agreement:
    """How well chains agree on one quantity."""

    name: str
    """`log_likelihood`, `n_nodes`, or what `kind` and a column, a number or a row make of it."""
    kind: str
    """"whole" for the two above; "column", "formula" or "prediction"."""
    r_hat: float
    effective: float
    """How many independent draws those made are worth."""
    error: float
    """Standard error of the mean over all draws."""
    low: float
    high: float
    """The smallest and the largest mean of a chain."""

    @property
    def is_probability(self) -> bool:
        """Whether the quantity is 1 in some draws and 0 in all others."""
        return self.kind in ("column", "formula")

    @property
    def are_few(self) -> bool:
        """Whether there are too few effective draws."""
        if self.is_probability:
            return not self.error <= LARGEST_ERROR
        return not self.effective >= FEWEST_EFFECTIVE

    @property
    def is_good(self) -> bool:
        """Whether the chains agree, and have enough to say."""
        return not self.are_few and (self.is_probability or self.r_hat <= LARGEST_R_HAT)


def settled(
    chains: Sequence[ChainTrace], problem: Problem, exact: float, trips: int | None, look: int
) -> bool:
    """Return whether the draws so far are enough.

    They are when all fit the data to rounding error, with a residual sum of squares of at most
    `exact`; or when everything agrees, did so `look` draws per chain ago as well, and states have
    made enough round trips between the temperatures (None without temperatures).
    """
    n = min(len(chain) for chain in chains)
    if n >= _FEWEST_EXACT and all((chain.rss[-n // 2 :] <= exact).all() for chain in chains):
        return True
    if trips is not None and trips < FEWEST_TRIPS:
        return False
    before = n - -(-look // chains[0].stride)
    return all(
        length >= FEWEST_DRAWS
        and all(one.is_good for one in agreements(chains, [np.ones(length)] * len(chains), problem))
        for length in (n, before)
    )


def agreements(
    chains: Sequence[ChainTrace],
    weights: Sequence[np.ndarray],
    problem: Problem,
    names: Sequence[str] | None = None,
) -> Iterator[Agreement]:
    """Yield how well chains agree on one quantity after the other, those that cost least first.

    `weights` say how much the first draws of each chain count; `names` are those of the columns.
    """
    pairs = list(zip(chains, _moments(weights), strict=True))
    yield _agreement("log_likelihood", "whole", [c.log_likelihood[pick] for c, pick in pairs])
    yield _agreement("n_nodes", "whole", [c.n_nodes[pick] for c, pick in pairs])
    for j, uses in _uses(pairs, len(problem.feature_weights)):
        name = f"x{j}" if names is None else names[j]
        yield _agreement(f"uses {name}", "column", uses)
    fits = _Fits(problem)
    for k, shares in enumerate(_leading(pairs, fits)):
        yield _agreement(f"formula {k}", "formula", shares)
    for k, values in enumerate(_predictions(pairs, fits)):
        yield _agreement(f"prediction {k}", "prediction", values)


def _agreement(name: str, kind: str, values: Sequence[np.ndarray]) -> Agreement:
    draws = np.array(values, dtype=float)
    means, measured = draws.mean(axis=1), draws.shape[1] >= FEWEST_DRAWS
    effective = effective_draws(draws) if measured else np.nan
    return Agreement(
        name, kind, r_hat(draws) if measured else np.nan, effective,
        float(draws.std() / np.sqrt(effective)), float(means.min()), float(means.max()),
    )  # fmt: skip


def _moments(weights: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Return which draws the chains are at, at evenly spaced moments, as many for each chain."""
    lengths = [max(int(np.count_nonzero(w)), min(int(w.sum()), _MOMENTS)) for w in weights]
    moments = (np.arange(min(lengths)) + 0.5) / min(lengths)
    edges = [np.cumsum(w) for w in weights]
    return [np.searchsorted(edge, moments * edge[-1]) for edge in edges]


_Pairs = Sequence[tuple[ChainTrace, np.ndarray]]


def _uses(pairs: _Pairs, n_columns: int) -> Iterator[tuple[int, list[np.ndarray]]]:
    """Yield the columns that some draws use and others do not, and which."""
    used = []
    for chain, pick in pairs:
        nodes = np.concatenate([chain.nodes[i] for i in pick])
        draw = np.repeat(np.arange(len(pick)), [len(chain.nodes[i]) for i in pick])
        leaf = nodes["op"] == FEATURE
        uses = np.zeros((len(pick), n_columns), bool)
        uses[draw[leaf], nodes["feature"][leaf]] = True
        used.append(uses)
    counts = np.sum([uses.sum(axis=0) for uses in used], axis=0)
    for j in np.flatnonzero((counts > 0) & (counts < sum(map(len, used)))):
        yield int(j), [uses[:, j] for uses in used]


class _Fits:
    """Least-squares fits of draws to some of the rows, in units of the spread of y."""

    def __init__(self, problem: Problem):
        rows, data = some_rows(problem, _ROWS_TO_FIT), problem.data
        self._known_terms = problem.known
        self._columns = np.ascontiguousarray(data.x.reshape(-1, len(data.y))[:, rows])
        self._root, self._y = data.root_weight[rows], data.y[rows]
        self._values: dict[tuple[int, bytes], np.ndarray] = {}
        order = np.argsort(self._y / self._root, kind="stable")
        self.shown = order[np.linspace(0, len(rows) - 1, _ROWS + 2).astype(int)[1:-1]]
        """A few of the rows, from small to large values of y."""

    def of(self, chain: ChainTrace, i: int) -> np.ndarray:
        """Return the fitted values of a draw."""
        key = chain.n_terms[i], chain.nodes[i].tobytes()
        if key not in self._values:
            terms = split_terms(chain.nodes[i], chain.n_terms[i])
            with np.errstate(all="ignore"):
                values = evaluate_trees([*self._known_terms, *terms], self._columns)
                self._values[key] = fitted_values(values, self._y, self._root)
        return self._values[key]


def _leading(pairs: _Pairs, fits: _Fits) -> Iterator[list[np.ndarray]]:
    """Yield which draws are the most frequent formula, the second one, and so on.

    Formulas are told apart by their structure. Those without constants that have the same values
    are one: how a formula is written is nobody's concern.
    """
    formulas = [[structure(c.nodes[i], c.n_terms[i]) for i in pick] for c, pick in pairs]
    counts = Counter(one for chain in formulas for one in chain)
    groups: list[tuple[list[tuple[str, ...]], np.ndarray | None]] = []
    for formula, _ in counts.most_common(_STRUCTURES):
        c = next(c for c, chain in enumerate(formulas) if formula in chain)
        chain, pick = pairs[c]
        i = pick[formulas[c].index(formula)]
        values = None if (chain.nodes[i]["op"] == LT).any() else fits.of(chain, i)
        for members, others in groups if values is not None else ():
            if others is not None and np.abs(values - others).max() <= _SAME_FIT:
                members.append(formula)
                break
        else:
            groups.append(([formula], values))
    sizes = [sum(counts[one] for one in members) for members, _ in groups]
    for k in np.argsort(np.negative(sizes), kind="stable")[:_FORMULAS]:
        members, _ = groups[k]
        if sizes[k] < counts.total():
            yield [np.array([one in members for one in chain]) for chain in formulas]


def _predictions(pairs: _Pairs, fits: _Fits) -> Iterator[list[np.ndarray]]:
    """Yield what the draws predict at each of a few rows."""
    found = []
    for chain, pick in pairs[:: -(-len(pairs) // _CHAINS_TO_FIT)]:
        some = pick[:: -(-len(pick) // _MOMENTS_TO_FIT)]
        # What is the same formula, written in two ways, differs by rounding errors.
        found.append(np.round([fits.of(chain, i)[fits.shown] for i in some], _DECIMALS))
    for k in range(len(fits.shown)):
        yield [values[:, k] for values in found]


def r_hat(values: np.ndarray) -> float:
    """Return the split R-hat of draws, one row per chain; 1 where nothing varies."""
    half = values.shape[1] // 2
    parts = np.concatenate([values[:, :half], values[:, half : 2 * half]])
    if (parts == parts[:, :1]).all():
        return 1.0 if (parts == parts[0, 0]).all() else np.inf
    within = parts.var(axis=1, ddof=1).mean()
    between = half * parts.mean(axis=1).var(ddof=1)
    return float(np.sqrt((half - 1) / half + between / (half * within)))


def effective_draws(values: np.ndarray) -> float:
    """Return the number of independent draws that these, one row per chain, are worth.

    Autocorrelations are summed in pairs as long as those are positive (Geyer, 1992).
    """
    m, n = values.shape
    if (values == values[:, :1]).all():
        # Chains that never move are worth one draw each, unless there is but one value.
        return float(m * n) if (values == values[0, 0]).all() else float(m)
    centred = values - values.mean(axis=1, keepdims=True)
    within = values.var(axis=1, ddof=1).mean()
    between = values.mean(axis=1).var(ddof=1) if m > 1 else 0.0
    size = 2 ** int(np.ceil(np.log2(2 * n)))
    spectrum = np.fft.rfft(centred, size, axis=1)
    covariance = np.fft.irfft(spectrum * spectrum.conj(), size, axis=1)[:, :n].mean(axis=0) / n
    total = within * (n - 1) / n + between
    correlation = 1.0 - (within - covariance) / total
    tau, t = -1.0, 0
    while t + 1 < n and correlation[t] + correlation[t + 1] > 0.0:
        tau += 2.0 * (correlation[t] + correlation[t + 1])
        t += 2
    return float(m * n / max(tau, 1.0 / np.log10(max(m * n, 10))))
