"""The evidence of a structure, against the integral over its constants that it stands for."""

import math

import numpy as np
import pytest
from scipy.special import logsumexp

from symbayes.fitting.evidence import log_evidence, log_evidence_of_writings
from symbayes.fitting.model import Fitter
from symbayes.inputs.prior import NoisePrior, TermsPrior, TreePrior
from symbayes.inputs.validation import Table

from ..problems import problem, tree

RNG = np.random.default_rng(7)
X = RNG.uniform(-2.0, 2.0, (50, 2))
EVERY = {"+": 1.0, "*": 1.0, "lt": 1.0, "sin": 1.0, "exp": 1.0}
PRIOR, NOISE = TreePrior(), NoisePrior(3.0, 0.05)
WEIGHTS = np.ones(50)


def fitter_of(y, **options):
    rows = Table(X, y, WEIGHTS, np.arange(2))
    target = problem(rows, EVERY, TermsPrior(3, 0.5), PRIOR, NOISE, **options)
    return Fitter(target, y, WEIGHTS, plug_in=False)


def log_student(x, shape, scale):
    """The density of a constant whose variance is integrated out, by numerical integration."""
    steps = np.linspace(-14.0, 14.0, 3001)
    variance = np.exp(steps)
    log_prior = (
        0.5 * shape * math.log(0.5 * shape * scale)
        - math.lgamma(0.5 * shape)
        - (0.5 * shape + 1.0) * steps
        - 0.5 * shape * scale / variance
        + steps  # of the change of variable
    )
    log_normal = (
        -0.5 * np.log(2.0 * np.pi * variance) - 0.5 * np.square(np.asarray(x)[..., None]) / variance
    )
    return logsumexp(log_prior + log_normal, axis=-1) + math.log(steps[1] - steps[0])


def log_integral(fitter, function, slopes, offsets):
    """The log evidence of `function(a x0 + b)` without the prior of its trees, on a grid."""
    n, (nu, lam) = fitter.problem.data.n, fitter.problem.data.noise_prior
    y = fitter.scaled_y
    rows = []
    for a in slopes:
        values = function(a * X[:, 0] + offsets[:, None])
        values = values - values.mean(axis=1, keepdims=True)
        explained = (values @ y) ** 2 / (values**2).sum(axis=1)
        rows.append(-0.5 * (n - 1 + nu) * np.log(nu * lam + (y @ y) - explained))
    log_likelihood = np.array(rows) - 0.5 * math.log(1.0 + n)
    prior = (
        log_student(slopes - 1.0, PRIOR.slope_shape, PRIOR.slope_scale)[:, None]
        + log_student(offsets, PRIOR.offset_shape, PRIOR.offset_scale)[None, :]
    )
    cell = (slopes[1] - slopes[0]) * (offsets[1] - offsets[0])
    return float(logsumexp(log_likelihood + prior) + math.log(cell))


def evidence(fitter, terms, polish=True):
    model = fitter.fit_trees(terms)
    model = fitter.polished(model) if polish else model
    trees = model.state.trees
    return log_evidence(fitter, model), fitter.problem.log_prior.of_structure(trees), model


@pytest.mark.parametrize(("noise", "within"), [(0.05, 0.05), (0.3, 0.1), (0.6, 0.3)])
def test_both_constants_are_integrated_out(noise, within):
    y = 2.0 * np.sin(1.6 * X[:, 0] + 0.4) + noise * RNG.normal(size=50)
    fitter = fitter_of(y)
    found, structure, model = evidence(fitter, [tree("sin", "lt", 0, a=1.6, b=0.4)])
    a, b = (float(model.state.trees[0][name][1]) for name in "ab")
    slopes, offsets = np.linspace(a - 0.8, a + 0.8, 801), np.linspace(b - 0.9, b + 0.9, 801)
    assert found - structure == pytest.approx(
        log_integral(fitter, np.sin, slopes, offsets), abs=within
    )


def test_all_optima_near_which_there_are_draws_count():
    """sin(a x + b) = sin(a x + b + 2 pi) = -sin(a x + b + pi), and the same with -a."""
    y = 2.0 * np.sin(1.6 * X[:, 0] + 0.4) + 0.3 * RNG.normal(size=50)
    fitter = fitter_of(y)
    states = []
    for turn in (-1.0, 0.0, 1.0):
        for a in (1.6, -1.6):
            for _ in range(4):  # draws near each, in no order
                some = tree("sin", "lt", 0, a=a, b=np.sign(a) * 0.4 + turn * np.pi)
                some["a"] += 0.03 * RNG.normal()
                some["b"] += 0.03 * RNG.normal()
                states.append(fitter.fit_trees([some]).state)
    RNG.shuffle(states)
    model = fitter.fit(states[0])
    structure = fitter.problem.log_prior.of_structure(states[0].trees)
    found = log_evidence_of_writings(fitter, model, states)
    slopes, offsets = np.linspace(-2.4, 2.4, 1200), np.linspace(-5.0, 5.0, 1001)
    expected = log_integral(fitter, np.sin, slopes, offsets)
    assert found - structure == pytest.approx(expected, abs=0.15)
    # Without draws there, nobody knows of the others.
    assert log_evidence_of_writings(fitter, model, states[:1]) < found - 0.3


def test_a_constant_that_the_coefficient_takes_over_costs_nothing():
    """exp(a x + b) is exp(b) exp(a x): b is what the prior says."""
    y = 2.0 * np.exp(-0.7 * X[:, 0]) + 0.1 * RNG.normal(size=50)
    fitter = fitter_of(y)
    found, structure, model = evidence(fitter, [tree("exp", "lt", 0, a=-0.7, b=0.0)])
    assert model.state.trees[0]["b"][1] == 0.0
    a = float(model.state.trees[0]["a"][1])
    slopes, offsets = np.linspace(a - 0.5, a + 0.5, 401), np.linspace(-150.0, 150.0, 3001)
    expected = log_integral(fitter, np.exp, slopes, offsets)
    assert found - structure == pytest.approx(expected, abs=0.3)


def test_without_constants_it_is_likelihood_and_prior():
    y = X[:, 0] + 0.2 * RNG.normal(size=50)
    fitter = fitter_of(y)
    found, structure, model = evidence(fitter, [tree(0)])
    n, (nu, lam) = 50.0, fitter.problem.data.noise_prior
    likelihood = -0.5 * math.log(51.0) - 0.5 * (n - 1 + nu) * math.log(nu * lam + n * model.mse)
    assert found == pytest.approx(likelihood + structure, abs=1e-12)
    assert structure == pytest.approx(fitter.problem.log_prior([tree(0)]), abs=1e-12)


def test_the_truth_has_more_of_it_than_what_is_shorter_or_longer():
    y = 2.0 * np.sin(1.6 * X[:, 0] + 0.4) + 0.1 * RNG.normal(size=50)
    fitter = fitter_of(y)
    truth = [tree("sin", "lt", 0, a=1.6, b=0.4)]
    values = [evidence(fitter, some)[0] for some in (truth, [tree(0)], [*truth, tree(1)])]
    assert values[0] > values[1] + 10.0
    assert values[0] > values[2]


def test_operators_that_are_not_in_use_have_a_prior_too():
    """A formula that was tidied up may have some: 1/x in the place of x/x**2."""
    y = 1.0 / (X[:, 0] + 3.0) + 0.01 * RNG.normal(size=50)
    fitter = fitter_of(y)
    found, _, _ = evidence(fitter, [tree("inv", "lt", 0, a=1.0, b=3.0)])
    assert np.isfinite(found)
