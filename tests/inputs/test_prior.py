"""What a user may believe: every mistake is named."""

import numpy as np
import pytest

from symbayes import NoisePrior, PaperSampler, TemperedSampler, TermsPrior, TreePrior
from symbayes.inputs.prior import terms_prior


@pytest.mark.parametrize("value", [0.0, 1.0, -0.2, 1.5])
def test_alpha_is_a_probability(value):
    with pytest.raises(ValueError, match=r"tree_prior: alpha is .*strictly between 0 and 1"):
        TreePrior(alpha=value)


def test_beta_is_not_negative():
    assert TreePrior(beta=0).split_probability(7) == TreePrior().alpha
    with pytest.raises(ValueError, match=r"tree_prior: beta is -0\.1"):
        TreePrior(beta=-0.1)


@pytest.mark.parametrize("value", [0, -3])
def test_a_tree_has_a_node(value):
    with pytest.raises(ValueError, match=f"tree_prior: max_nodes is {value}; .*at least 1"):
        TreePrior(max_nodes=value)


@pytest.mark.parametrize("value", [10.0, "10", True, None, np.float64(3)])
def test_max_nodes_is_an_integer(value):
    with pytest.raises(TypeError, match="tree_prior: max_nodes must be an integer, not"):
        TreePrior(max_nodes=value)


@pytest.mark.parametrize("name", ["alpha", "beta"])
@pytest.mark.parametrize("value", ["0.5", True, None, [0.5]])
def test_alpha_and_beta_are_numbers(name, value):
    with pytest.raises(TypeError, match=f"tree_prior: {name} must be a number"):
        TreePrior(**{name: value})


POSITIVE = [
    (TreePrior, "tree_prior", "slope_shape"),
    (TreePrior, "tree_prior", "slope_scale"),
    (TreePrior, "tree_prior", "offset_shape"),
    (TreePrior, "tree_prior", "offset_scale"),
    (NoisePrior, "noise_prior", "shape"),
    (NoisePrior, "noise_prior", "scale"),
    (TermsPrior, "n_terms", "decay"),
]


@pytest.mark.parametrize(("kind", "owner", "name"), POSITIVE)
def test_shapes_scales_and_decay_are_positive(kind, owner, name):
    assert getattr(kind(**{name: np.float32(0.5)}), name) == 0.5
    for value in (0, -1.0):
        with pytest.raises(ValueError, match=f"{owner}: {name} is .*above 0"):
            kind(**{name: value})
    for value in (np.nan, np.inf, -np.inf):
        with pytest.raises(ValueError, match=f"{owner}: {name} is .*finite"):
            kind(**{name: value})
    for value in ("1", True, None):
        with pytest.raises(TypeError, match=f"{owner}: {name} must be a number"):
            kind(**{name: value})


def test_alpha_nan():
    with pytest.raises(ValueError, match="alpha is nan; it must be finite"):
        TreePrior(alpha=float("nan"))


def test_priors_are_frozen_and_take_numpy_numbers():
    prior = TreePrior(alpha=np.float64(0.5), max_nodes=np.int64(5))
    assert prior.split_probability(1) == pytest.approx(0.5 * 2**-prior.beta)
    with pytest.raises(AttributeError):
        prior.alpha = 0.1


@pytest.mark.parametrize("value", [0, -1])
def test_most_terms_at_least_one(value):
    with pytest.raises(ValueError, match=f"n_terms: most is {value}"):
        TermsPrior(most=value)


@pytest.mark.parametrize("value", [2.0, "2", False])
def test_most_terms_is_an_integer(value):
    with pytest.raises(TypeError, match="n_terms: most must be an integer"):
        TermsPrior(most=value)


def test_terms_prior():
    assert terms_prior("auto") == TermsPrior()
    assert terms_prior(3) == 3
    assert type(terms_prior(np.int64(3))) is int
    own = TermsPrior(most=2, decay=0.1)
    assert terms_prior(own) is own
    for value in (0, -1):
        with pytest.raises(ValueError, match=f"n_terms is {value}; it must be at least 1"):
            terms_prior(value)
    with pytest.raises(ValueError, match="n_terms='many'; it must be 'auto'"):
        terms_prior("many")
    for value in (2.0, True, None, [2]):
        with pytest.raises(TypeError, match="n_terms must be 'auto', an integer or a TermsPrior"):
            terms_prior(value)


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (TemperedSampler, "steps_per_draw"),
        (TemperedSampler, "temperatures"),
        (PaperSampler, "max_trees"),
    ],
)
def test_sampler_counts(kind, name):
    assert getattr(kind(**{name: np.int64(5)}), name) == 5
    with pytest.raises(ValueError, match=f"sampler: {name} is 0; it must be at least 1"):
        kind(**{name: 0})
    for value in (1.5, "5", True):
        with pytest.raises(TypeError, match=f"sampler: {name} must be an integer"):
            kind(**{name: value})


def test_sampler_hottest():
    for value in (0, -1, 1, 1.5):
        with pytest.raises(ValueError, match=f"sampler: hottest is {value}; it must lie in"):
            TemperedSampler(hottest=value)
    with pytest.raises(ValueError, match="sampler: hottest is nan"):
        TemperedSampler(hottest=np.nan)
    with pytest.raises(TypeError, match="sampler: hottest must be a number, not str"):
        TemperedSampler(hottest="1")
