"""Posteriors and predictions against plain twins, on draws, weights and rows as nasty as they come.

Twins are written from the theory page, one model and one row at a time. Of the library they use
only what makes and fits the posterior.
"""

import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.special import logsumexp

from symbayes import NoisePrior, TreePrior
from symbayes.fitting.model import Fitter, State
from symbayes.inputs.problem import make_problem
from symbayes.inputs.validation import Table
from symbayes.kernels.chain import NUMBERS
from symbayes.kernels.tree import NODE
from symbayes.posterior.posterior import inclusion, make_posterior, systematic, thin
from symbayes.posterior.stacking import PRIOR, reweighted, stacking_weights
from symbayes.samplers.trace import ChainTrace, Trace

from ..problems import tree

RNG = np.random.default_rng(170)
X = RNG.uniform(0.5, 2.0, (16, 2))
Y = np.sqrt(X[:, 0]) - X[:, 1] + RNG.normal(0, 0.2, 16)
NU, LAM = 2.0, 0.01

# Terms with the columns they use and what they are. Beyond the training rows some of them have no
# value, some are infinite, and some take off.
TERMS = [
    (tree(0), {0}, lambda a, b: a),
    (tree(1), {1}, lambda a, b: b),
    (tree("sqrt", 0), {0}, lambda a, b: np.sqrt(a)),
    (tree("log", 1), {1}, lambda a, b: np.log(b)),
    (tree("exp", "square", 0), {0}, lambda a, b: np.exp(a * a)),
    (tree("inv", 1), {1}, lambda a, b: 1 / b),
    (tree("cube", "/", 0, "-", 1, 0), {0, 1}, lambda a, b: (a / (b - a)) ** 3),
]
# States as places in that list, the empty one among them.
STATES = [(), (0,), (1,), (2,), (3,), (4,), (5,), (6,), (0, 1), (2, 1), (4, 5), (0, 3, 4)]
VALUES = [0.5, 1.0, 1.7, 3.0, 0.0, -0.3, -4.0, 12.0, 26.0, 1e5, -1e150, 1e300]

chains = st.lists(
    st.lists(
        st.tuples(st.integers(0, len(STATES) - 1), st.sampled_from([1.0, 1.0, 0.0, 7.5, 1e-9])),
        min_size=1,
        max_size=12,
    ).filter(lambda chain: any(weight > 0 for _, weight in chain)),
    min_size=1,
    max_size=3,
)
rows = st.lists(
    st.tuples(st.sampled_from(VALUES), st.sampled_from(VALUES)), min_size=1, max_size=3
).map(np.array)
quick = settings(derandomize=True, max_examples=60, deadline=None)


def made(draws, plug_in=False):
    """The posterior of chains of states, each with how much it counts."""
    problem = make_problem(
        Table(X, Y, np.ones(16), np.arange(2)), {"+": 1.0}, np.full(2, 0.5), TreePrior(),
        NoisePrior(NU, LAM), 1,
    )  # fmt: skip
    traces = []
    for chain in draws:
        numbers = [np.zeros(NUMBERS + 2) for _ in chain]
        for i, one in enumerate(numbers):
            one[2] = 0.1 + 0.05 * (i % 3)
        nodes = [
            np.concatenate([np.zeros(0, NODE), *(TERMS[k][0] for k in STATES[i])]) for i, _ in chain
        ]
        traces.append(ChainTrace(nodes, [len(STATES[i]) for i, _ in chain], numbers))
    holding = [np.array([weight for _, weight in chain]) for chain in draws]
    trace = Trace(traces, holding, np.zeros((len(draws), 3, 9)), 0.0)
    return make_posterior(Fitter(problem, Y, np.ones(16), plug_in), trace)


def shares(draws):
    """How much of the posterior each state is, and the noise drawn with it."""
    share, noise = {}, {}
    for chain in draws:
        total = math.fsum(weight for _, weight in chain)
        for place, (i, weight) in enumerate(chain):
            if weight > 0:
                part = weight / total / len(draws)
                share[i] = share.get(i, 0.0) + part
                noise[i] = noise.get(i, 0.0) + part * (0.1 + 0.05 * (place % 3))
    return share, {i: noise[i] / share[i] for i in share}


def state_of(model):
    """The place of a model of the posterior in STATES."""
    known = [term.tobytes() for term, *_ in TERMS]
    return STATES.index(tuple(known.index(t.tobytes()) for t in model.state.trees))


class Law:
    """The predictive law of one state at a row, from the theory page."""

    def __init__(self, i, noise, plug_in):
        terms = [TERMS[k][2] for k in STATES[i]]
        self.terms, self.plug_in, self.noise, self.k = terms, plug_in, noise, len(terms)
        columns = np.array([f(X[:, 0], X[:, 1]) for f in terms]).reshape(-1, 16)
        self.spread = np.std(Y)
        self.mean = columns.mean(axis=1)
        self.length = np.array([np.linalg.norm(c - c.mean()) for c in columns])
        design = (columns - self.mean[:, None]).T / self.length
        self.beta = np.linalg.lstsq(design, Y - Y.mean(), rcond=None)[0]
        self.gram = np.linalg.inv(design.T @ design)
        self.rss = np.sum((Y - Y.mean() - design @ self.beta) ** 2) / self.spread**2

    def at(self, row, new):
        """Centre, scale and degrees of freedom, of a new observation or of its mean."""
        with np.errstate(all="ignore"):
            values = np.array([f(*row) for f in self.terms])
            design = (values - self.mean) / self.length
            centre = Y.mean() + design @ self.beta
            if self.plug_in:
                return centre, new * self.deviation() + 0.0 * centre, np.inf
            df = self.freedom
            # In units of the largest, so that no square overflows.
            unit = max(1.0, np.abs(design).max(initial=0.0))
            factor = (new + 1 / 16) / unit**2 + 16 / 17 * (
                design / unit @ self.gram @ (design / unit)
            )
            return centre, self.deviation() * unit * np.sqrt(factor), df

    @property
    def freedom(self):
        """Rows, and rows that the belief is worth, less intercept and coefficients."""
        return 16 + NU - 1 - self.k

    def deviation(self):
        """Of the noise."""
        if self.plug_in:
            return self.spread * np.sqrt(self.noise * (16 + NU - 2) / (self.freedom - 2))
        return self.spread * np.sqrt((NU * LAM + self.rss) / self.freedom)


def parts_at(draws, plug_in, row, new):
    """Weight, centre, scale and degrees of freedom of the parts that have a value at a row."""
    share, noise = shares(draws)
    parts = [(share[i], *Law(i, noise[i], plug_in).at(row, new)) for i in share]
    return [part for part in parts if math.isfinite(part[1]) and math.isfinite(part[2])]


def below(x, parts):
    total = math.fsum(weight for weight, *_ in parts)
    terms = []
    for weight, centre, scale, df in parts:
        if scale == 0.0:
            terms.append(weight * (x >= centre))
        else:
            law = stats.norm if math.isinf(df) else stats.t(df)
            terms.append(weight * law.cdf((x - centre) / scale))
    return math.fsum(terms) / total


def near(x, parts):
    """Two values around x that rounding in the fits cannot move it beyond."""
    step = 1e-7 * (abs(x) + 1e-3) + 1e-7 * min(scale for *_, scale, _ in parts)
    return x - step, x + step


@quick
@given(chains, rows, st.booleans(), st.booleans(), st.sampled_from([0.5, 0.9, 0.99]))
# The square root has no value left of 0, where the others say something plain.
@example([[(3, 1.0), (1, 1.0)]], np.array([[-0.3, 1.0]]), False, True, 0.9)
def test_quantiles(draws, new, plug_in, noise, level):
    tails = (0.5 - 0.5 * level, 0.5 + 0.5 * level)
    found, left_out = made(draws, plug_in).mixture.quantiles(new, tails, noise)
    for row, ends, out in zip(new, found.T, left_out, strict=True):
        parts = parts_at(draws, plug_in, row, noise)
        assert abs(out - 1.0 + math.fsum(weight for weight, *_ in parts)) < 1e-9
        if not parts:
            assert np.isnan(ends).all()
            continue
        assert ends[0] <= ends[1]
        for p, x in zip(tails, ends.tolist(), strict=True):
            lower, upper = near(x, parts)
            assert below(lower, parts) <= p + 1e-6
            assert below(upper, parts) >= p - 1e-6


def edge(values, p):
    """The p-quantile of values with weights; the middle of two where either is one."""
    total, reached = math.fsum(weight for _, weight in values), 0.0
    for i, (value, weight) in enumerate(sorted(values)):
        reached += weight
        if abs(reached - p * total) <= 1e-10 * total:
            return 0.5 * value + 0.5 * sorted(values)[i + 1][0]
        if reached > p * total:
            return value
    raise AssertionError


def is_inside(x, tail, parts):
    lower, upper = near(x, parts)
    return below(upper, parts) >= tail - 1e-6 and below(lower, parts) <= 1.0 - tail + 1e-6


@quick
@given(chains, rows, st.booleans())
# Nine in ten are near 1; one in ten has taken off, or stays where it is.
@example([[(1, 1.0)] * 9 + [(5, 1.0)]], np.array([[26.0, 1.0]]), False)
# Two far groups, each with half of the posterior, or nearly.
@example([[(1, 1.0), (4, 1.0)]], np.array([[3.0, 1.0]]), True)
@example([[(1, 0.7), (5, 0.3)]], np.array([[12.0, 1.0]]), False)
def test_predictions(draws, new, plug_in):
    """A mean with a tenth of the posterior on either side drawn in, and never outside 50 %."""
    mixture = made(draws, plug_in).mixture
    found, far, left_out = mixture.predict(new)
    std = mixture.deviations(new)
    for row, x, share, out, spread in zip(new, found, far, left_out, std, strict=True):
        observed, of_mean = (parts_at(draws, plug_in, row, kind) for kind in (1, 0))
        assert abs(out - 1.0 + math.fsum(weight for weight, *_ in observed)) < 1e-9
        if not observed:
            assert math.isnan(x)
            assert math.isnan(spread)
            continue
        centres = [(centre, weight) for weight, centre, *_ in observed]
        total = math.fsum(weight for _, weight in centres)
        low, high = edge(centres, 0.1), edge(centres, 0.9)
        plain = math.fsum(weight / total * min(max(c, low), high) for c, weight in centres)
        free = all(is_inside(plain, 0.26, parts) for parts in (observed, of_mean))
        if free:
            assert abs(x - plain) < 1e-6 * (abs(plain) + 1.0)
        for parts in (observed, of_mean):
            assert is_inside(x, 0.26, parts)
        for slack, compare in ((1e-6, np.greater_equal), (-1e-6, np.less_equal)):
            limit = 10.0 * np.std(Y) + slack * (abs(x) + 1.0)
            away = math.fsum(w for centre, w in centres if abs(centre - x) > limit)
            assert compare(share, away + np.sign(-slack) * 1e-9)
        # One deviation to either side of the middle holds 68.3 per cent, if it is symmetric; it is
        # the interval of that probability in any case.
        lower, upper = (
            ends[0] for ends in mixture.quantiles(row[None], (0.158655, 0.841345), 1)[0]
        )
        assert spread == pytest.approx((upper - lower) / 2, rel=1e-4)
        assert math.isfinite(spread)


@quick
@given(chains, st.sampled_from(VALUES[:4]), st.booleans())
def test_no_tenth_of_the_posterior_moves_a_prediction(draws, x, plug_in):
    """With a part that takes off, predictions stay where formulas without it are."""
    calm = [
        [(i, weight) for i, weight in chain if i in (0, 1, 8) and weight >= 1.0] for chain in draws
    ]
    calm = [chain for chain in calm if chain]
    if not calm:
        return
    # In each chain 9 % go to a formula that is 1e290 at the row, whatever its sign.
    wild = [[*chain, (5, 0.09 / 0.91 * math.fsum(weight for _, weight in chain))] for chain in calm]
    row = np.array([[26.0, x]])
    centres = [centre for _, centre, *_ in parts_at(calm, plug_in, row[0], 1)]
    found, far, _ = made(wild, plug_in).mixture.predict(row)
    assert min(centres) - 1e-6 <= found[0] <= max(centres) + 1e-6
    assert far[0] >= 0.089


class Still:
    """Random numbers without chance: normal ones are 0, gamma ones are their mean."""

    def normal(self, size):
        return np.zeros(size)

    def gamma(self, shape, size):
        return np.full(size, shape)


@quick
@given(chains, rows, st.booleans())
def test_draws_are_around_the_centres(draws, new, plug_in):
    mixture = made(draws, plug_in).mixture
    picks = np.arange(len(mixture.models))[::-1].repeat(2)
    means, noises = mixture.sample_from(picks, new, Still())
    _, noise = shares(draws)
    for pick, mean, sd in zip(picks, means, noises, strict=True):
        i = state_of(mixture.models[pick][1])
        law = Law(i, noise[i], plug_in)
        centres = [law.at(row, 1)[0] for row in new]
        np.testing.assert_allclose(mean, centres, rtol=1e-6, atol=1e-9)
        assert abs(sd - law.deviation()) < 1e-9


@quick
@given(chains)
def test_weights_places_and_columns(draws):
    found = made(draws)
    share, _ = shares(draws)
    for weight, model in found.mixture.models:
        assert abs(weight - share[state_of(model)]) < 1e-12
    assert len(found.mixture.models) == len(found.states) == len(share)
    for column, probability in enumerate(found.inclusion):
        uses = math.fsum(share[i] for i in share if any(column in TERMS[k][1] for k in STATES[i]))
        assert abs(probability - uses) < 1e-9
    for state, place in zip(found.states, found.model_places, strict=True):
        assert found.mixture.models[place][1].state is state
    np.testing.assert_allclose(found.stands_for, 1.0)
    # What each chain believes of a formula, and of all of them together.
    for one in found.groups:
        members = [state_of_trees(found.states[j].trees) for j in one.members]
        for chain, believed in zip(draws, found.by_chain(one), strict=True):
            total = math.fsum(weight for _, weight in chain)
            own = math.fsum(weight for i, weight in chain if i in members)
            assert abs(believed - own / total) < 1e-12
    assert abs(math.fsum(one.weight for one in found.groups) - 1.0) < 1e-9


def state_of_trees(trees):
    known = [term.tobytes() for term, *_ in TERMS]
    return STATES.index(tuple(known.index(t.tobytes()) for t in trees))


@quick
@given(chains, st.lists(st.floats(1e-6, 1.0), min_size=3, max_size=3))
def test_chains_that_count_otherwise(draws, numbers):
    weights = np.array(numbers[: len(draws)]) / math.fsum(numbers[: len(draws)])
    found, _ = reweighted(made(draws), weights)
    expected = dict.fromkeys(range(len(STATES)), 0.0)
    for chain, weight in zip(draws, weights, strict=True):
        total = math.fsum(own for _, own in chain)
        for i, own in chain:
            expected[i] += weight * own / total
    for weight, model in found.mixture.models:
        assert abs(weight - expected[state_of(model)]) < 1e-9


weights_of_states = st.lists(
    st.one_of(st.floats(1e-6, 1.0), st.sampled_from([0.0, 1e-300, 1e200])), min_size=1, max_size=40
).filter(any)


@quick
@given(weights_of_states, st.integers(1, 50))
def test_systematic_sampling_is_fair_to_within_one(weights, n):
    weights = np.array(weights)
    picks = systematic(weights, n)
    assert len(picks) == n
    assert (np.diff(picks) >= 0).all()
    times = np.bincount(picks, minlength=len(weights))
    share = weights / weights.sum()
    assert (times[weights == 0] == 0).all()
    assert (np.abs(times - n * share) < 1 + 1e-6).all()


@quick
@given(weights_of_states, st.integers(1, 50))
def test_thinned_states_weigh_one_together(weights, most):
    total = math.fsum(weights)
    states = [State((), weight / total, float(i), 0.0) for i, weight in enumerate(weights)]
    kept = thin(states, most)
    assert len(kept) <= most or kept is states
    assert abs(math.fsum(state.weight for state in kept) - 1.0) < 1e-9
    for state in kept:
        own = weights[int(state.log_likelihood)] / total
        assert abs(state.weight - own) <= 1.0 / most + 1e-9


@quick
@given(st.lists(st.tuples(st.integers(0, 11), st.floats(0.0, 1.0)), min_size=1, max_size=8))
def test_inclusion(parts):
    states = [State(tuple(TERMS[k][0] for k in STATES[i]), w, 0.0, 0.0) for i, w in parts]
    found = inclusion(states, 3)
    for column in range(3):
        uses = [w for i, w in parts if any(column in TERMS[k][1] for k in STATES[i])]
        assert abs(found[column] - min(1.0, math.fsum(uses))) < 1e-9


DENSITY = st.one_of(st.floats(-50, 5), st.sampled_from([-np.inf, -1e4, -1e300, 700.0]))


@quick
@given(st.integers(1, 5).flatmap(lambda k: st.lists(
    st.tuples(st.lists(DENSITY, min_size=k, max_size=k), st.sampled_from([1.0, 0.3, 50.0])),
    min_size=1, max_size=8)))  # fmt: skip
def test_no_weights_stack_better(table):
    """The objective, summed up row by row, is no higher anywhere around the weights."""
    density = np.array([row for row, _ in table])
    counts = np.array([count for _, count in table])
    weights = stacking_weights(density, counts)
    assert (weights > 0).all()
    assert abs(weights.sum() - 1.0) < 1e-9

    def worth(w):
        rows = [
            count * logsumexp(row - row.max(), b=w)
            for row, count in zip(density, counts, strict=True)
            if np.isfinite(row.max())
        ]
        return math.fsum(rows) + PRIOR * math.fsum(np.log(w))

    best = worth(weights)
    for i in range(len(weights)):
        for step in (0.1, -0.05):
            other = weights.copy()
            other[i] *= 1.0 + step
            assert worth(other / other.sum()) <= best + 1e-9 * counts.sum()
