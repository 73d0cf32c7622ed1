"""A thousand columns of which five matter: they are found, and the weights say which they are."""

from __future__ import annotations

import numpy as np
import pytest

from symbayes import BayesianSymbolicRegressor, TemperedSampler, TermsPrior
from symbayes.formula.operators import operator_weights
from symbayes.inputs.prior import NoisePrior, TreePrior
from symbayes.inputs.problem import make_problem
from symbayes.inputs.validation import check_table
from symbayes.kernels import units
from symbayes.samplers.ladder import Replicas

N_COLUMNS, N_ROWS, NOISE = 1_000, 500, 0.05
FORMULAS = {
    # Each column shows on its own.
    "sum": ((-2, 2), lambda a, b, c, d, e: 1.5 * a - 2 * b + c + 0.8 * d - 1.2 * e),
    # The first two show only together.
    "product": ((-2, 2), lambda a, b, c, d, e: a * b + np.sin(2 * c) + d * d - e),
    # The third shows only together with the first two.
    "ratio": ((-2, 2), lambda a, b, c, d, e: a * b / (c * c + 2) + 2 * np.exp(d) - e),
    # One term with all of them (I.12.11 of the Feynman collection).
    "nested": ((1, 3), lambda a, b, c, d, e: a * (b + c * d * np.sin(e))),
}


def data(name, seed):
    """Return a table, its response, the columns that matter, and the truth for new rows."""
    (low, high), truth = FORMULAS[name]
    rng = np.random.default_rng(seed)
    X = rng.uniform(low, high, (N_ROWS, N_COLUMNS))
    columns = np.sort(rng.choice(N_COLUMNS, 5, replace=False))
    y = truth(*X[:, columns].T)
    return X, y + NOISE * y.std() * rng.normal(size=N_ROWS), columns, truth


def check_found(model, X, columns, truth):
    """The five are certain, no other is likely, and the formula is closer than the noise."""
    probability = model.inclusion_probability().to_numpy()
    assert probability[columns].min() > 0.95
    others = np.delete(probability, columns)
    # Among a thousand there may be one that goes along with the noise by chance: in one of these
    # tables 4,000 draws give it 0.48.
    assert others.max() < 0.75
    assert np.count_nonzero(others > 0.05) <= 5
    expected = truth(*X[:, columns].T)
    error = model.best_formula_.predict(X) - expected
    assert np.sqrt(np.mean(error**2)) < 0.4 * NOISE * expected.std()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::symbayes.SamplingWarning")
@pytest.mark.parametrize(("seed", "name"), list(enumerate(FORMULAS)))
def test_five_of_a_thousand_columns(name, seed):
    X, y, columns, truth = data(name, seed)
    model = BayesianSymbolicRegressor(draws=200, tune=4000, random_state=seed).fit(X, y)
    check_found(model, X, columns, truth)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::symbayes.SamplingWarning")
def test_columns_that_are_nearly_the_same():
    """Of twenty versions of each of the five, the one that y was made of is found."""
    X, y, columns, truth = data("sum", 5)
    rng = np.random.default_rng(6)
    others = np.setdiff1d(np.arange(N_COLUMNS), columns)[:100].reshape(5, 20)
    for column, versions in zip(columns, others, strict=True):
        X[:, versions] = X[:, [column]] + 0.3 * rng.normal(size=(N_ROWS, 20))
    model = BayesianSymbolicRegressor(draws=200, tune=4000, random_state=0).fit(X, y)
    check_found(model, X, columns, truth)


def chain(seed, learn):
    """A ladder of chains alone: nothing but the sampler's own moves leads to the columns."""
    X, y, columns, _ = data("nested", seed)
    table = check_table(BayesianSymbolicRegressor(), X, y, None)
    problem = make_problem(
        table, operator_weights("default"), np.full(N_COLUMNS, 1 / N_COLUMNS), TreePrior(),
        NoisePrior(), TermsPrior(), learn,
    )  # fmt: skip
    return Replicas(
        problem, np.random.SeedSequence(seed), TemperedSampler().powers(N_ROWS)
    ), columns


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_learned_weights_go_to_the_columns_that_matter(seed):
    """Without a search, so that only the weights can lead there; fixed ones stay where they are."""
    units.load("tempered")
    for learn in (True, False):
        ladder, columns = chain(seed, learn)
        ladder.run(50, 600, 1)
        leaves = [tree["feature"][tree["op"] == 0] for tree in ladder.trees()]
        assert set(np.concatenate(leaves)) >= set(columns)
        mass = []
        for _ in range(50):
            ladder.run(50, 1, 1)
            weights = np.diff(ladder.priors.feature_cdf[ladder.cold], prepend=0.0)
            mass.append(weights[columns].sum())
        # Beforehand they have 0.005 together. Given eight leaves, 8 / (8 + 4) are expected.
        assert (np.mean(mass) > 0.5) if learn else (max(mass) < 0.0051)
