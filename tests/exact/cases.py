"""The small spaces the samplers are tested on, and how they are run."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from symbayes.inputs.prior import NoisePrior, TermsPrior, TreePrior
from symbayes.kernels.moves.choice import N_MOVES
from symbayes.kernels.sensible import PROBE_ROWS
from symbayes.kernels.tree import NODE

from .. import problems
from . import loops
from .spaces import Space, enumerate_space, p_value

# What coefficients may sum to in sensible cases, in units of the response.
MOST_SIZE = 2.0
# Every statistical test fails by chance with this probability, or less. There are under two hundred
# of them, the slow ones included: one false alarm of the whole suite in 10,000 runs.
FALSE_ALARM = 2e-7

OPERATORS = {
    "plain": {"*": 1.0, "sin": 2.0},
    "lt": {"lt": 2.0, "square": 1.0, "*": 1.0},
    "sums": {"+": 2.0, "-": 1.0, "square": 3.0},
    # Constants with several modes, far from normal.
    "waves": {"lt": 2.0, "sin": 3.0},
    # No root is finite on all rows: many proposals leave columns without numbers behind.
    "roots": {"+": 2.0, "-": 1.0, "sqrt": 3.0},
}


@dataclass(frozen=True)
class Case:
    """One small space."""

    likelihood: str
    terms: int | tuple[int, float]
    """A fixed number, or the most and the decay of `TermsPrior`."""
    operators: str = "plain"
    max_nodes: int = 5
    temperature: float = 1.0
    weighted: bool = False
    n_features: int = 2
    beta: float = 0.3
    learn: bool = False
    most_constants: float = math.inf
    max_depth: int | None = None
    nesting: tuple[tuple[str, str, int], ...] = ()
    """Outer operator, inner operator, how many of them inside one another."""
    known: tuple[tuple[str | int, ...], ...] = ()
    """Known terms, as parts in preorder."""
    part: int = 0
    """Rows that proposals are judged on first, if any."""
    sensible: bool = False
    """Whether terms have to be sensible, on probe rows and by a limit that cut off a lot."""
    price: float = 0.0
    """The price of waves in waves and the like."""
    trust: float = 1.0
    """What a row counts: with a part of the rows first, those count more."""

    @property
    def name(self) -> str:
        terms = f"K={self.terms}" if isinstance(self.terms, int) else f"K<={self.terms[0]}"
        parts = [self.likelihood, terms, self.operators]
        if self.temperature != 1.0:
            parts.append(f"T={self.temperature}")
        if self.weighted:
            parts.append("weighted")
        if self.beta != 0.3:
            parts.append("steep")
        if self.learn:
            parts.append("learned")
        if self.most_constants < math.inf:
            parts.append(f"constants<={self.most_constants}")
        if self.max_depth is not None:
            parts.append(f"depth<={self.max_depth}")
        if self.nesting:
            parts.append("nested")
        if self.known:
            parts.append(f"{len(self.known)}-known")
        if self.part:
            parts.append(f"{self.part}-rows-first")
        if self.sensible:
            parts.append("sensible")
        if self.price:
            parts.append("price")
        if self.trust < 1.0:
            parts.append(f"trust={self.trust}")
        return "-".join(parts)

    @property
    def has_constants(self) -> bool:
        return "lt" in OPERATORS[self.operators]

    @property
    def move_shape(self) -> tuple[float, float]:
        return (0.25, 3.0) if self.likelihood == "plug-in" else (0.5, 1.0)


def _coarse_probe(X: np.ndarray) -> np.ndarray:
    """Return probe rows so far away and so far apart that many small trees are not sensible."""
    n_rows, n_columns = X.shape
    i = np.arange(PROBE_ROWS)
    known = X[i % n_rows]
    picks = [(i * (j + 1) + i // n_rows) % n_rows for j in range(n_columns)]
    scale = np.where(i[:, None] % 4 == 0, 6.0, 1.5)  # a few rows are far away
    box = scale * np.column_stack([column[pick] for column, pick in zip(X.T, picks, strict=True)])
    moved = box + np.where(scale < 2.0, 0.12, 0.0) * (-1.0) ** i[:, None]
    return np.vstack([known, box, moved]).T.reshape(-1)


@cache
def space_of(case: Case) -> Space:
    weights = [1.0, 2.0, 0.5, 1.5, 1.0, 3.0] if case.weighted else None
    rows = problems.table(n_features=case.n_features, weights=weights)
    rows = replace(rows, weights=rows.weights * case.trust)
    terms = case.terms if isinstance(case.terms, int) else TermsPrior(*case.terms)
    nesting: dict[str, dict[str, int]] = {}
    for outer, inner, most in case.nesting:
        nesting.setdefault(outer, {})[inner] = most
    problem = problems.problem(
        rows,
        OPERATORS[case.operators],
        terms=terms,
        tree_prior=TreePrior(
            alpha=0.7, beta=case.beta, max_nodes=case.max_nodes, slope_shape=2.5, slope_scale=0.5,
            offset_shape=3.0, offset_scale=1.5, max_depth=case.max_depth, nesting=nesting,
        ),
        noise_prior=NoisePrior(shape=4.0, scale=0.5),
        feature_weights=[1.0, 2.0][: case.n_features],
        learn=case.learn,
        most_constants=case.most_constants,
        known=tuple(problems.tree(*parts) for parts in case.known),
        nesting_price=case.price,
        trust=case.trust,
    )  # fmt: skip
    if case.sensible:
        data = problem.data
        data = data._replace(probe=_coarse_probe(rows.X), most_size=MOST_SIZE * np.sqrt(data.n))
        problem = replace(problem, data=data)
    temperature, n = case.temperature, len(rows.y)
    if case.part:
        problem = problem.in_two_stages(np.arange(case.part))
        assert problem.part is not None
        ratio = problem.data.n / problem.part.n
        if temperature * ratio < 1.0:  # then the likelihood of the part takes its place
            temperature, n = temperature * ratio, case.part
    return enumerate_space(
        problem, rows.X[:n], rows.y[:n], rows.weights[:n], case.likelihood, temperature
    )


def run(
    case: Case, start: str, steps: int, n: int, allowed=None, seed: int = 0,
    gibbs=("scales", "weights"),
):  # fmt: skip
    """Run `n` chains of `steps` steps; return what they end in.

    They start from exact draws of the posterior (`start="exact"`), or all from the least probable
    state (`start="worst"`).
    """
    space = space_of(case)
    problem = space.problem
    rng = np.random.default_rng([seed, steps])
    if start == "exact":
        nodes, terms, scales, noise, weights = space.draw(n, rng)
        picks = np.arange(n)
    else:
        worst = int(np.argmin(space.probability))
        trees = [tree.copy() for tree in space.states[worst]]
        nodes_of_constants = [node for tree in trees for node in tree.transforms()]
        constants = [(2.5, -1.5)] * len(nodes_of_constants)
        if case.sensible:  # not all constants are possible
            constants = space.prepared["draw"](worst, rng)[0]
        for node, (a, b) in zip(nodes_of_constants, constants, strict=True):
            node.a, node.b = a, b
        nodes, terms = space.pack(trees)[None, :], np.array([len(trees)])
        scales, noise = np.ones((1, 2)), np.ones(1)
        prior = problem.new_prior(case.move_shape)
        weights = np.concatenate([prior.operator_cdf, prior.feature_cdf])[None, :]
        if not case.learn:
            weights = np.zeros((1, 0))
        picks = np.zeros(n, np.int64)
    permitted = np.ones(N_MOVES, np.bool_)
    if allowed is not None:
        permitted[:] = False
        permitted[list(allowed)] = True
    chain = problem.new_chain(np.random.SeedSequence([seed, steps, n]))
    prior, scratch = problem.new_prior(case.move_shape), problem.new_scratch()
    out_nodes, out_terms = np.zeros((n, space.width), NODE), np.zeros(n, np.int64)
    out_scales, out_noise = np.zeros((n, 2)), np.zeros(n)
    out_weights = np.zeros((n, weights.shape[1]))
    if case.likelihood == "collapsed":
        loops.load("collapsed")(
            chain, prior, problem.tables(), scratch,
            nodes, terms, scales, weights, picks, permitted,
            "scales" in gibbs and case.has_constants, "weights" in gibbs and case.learn,
            case.temperature, steps, out_nodes, out_terms, out_scales, out_weights,
        )  # fmt: skip
    else:
        loops.load("paper")(
            chain, prior, problem.data, scratch, nodes, terms, scales, noise, picks, permitted,
            steps, out_nodes, out_terms, out_scales, out_noise,
        )  # fmt: skip
    after = (out_nodes, out_terms, out_scales, out_noise, out_weights)
    return p_value(space, out_nodes, out_terms), after, chain
