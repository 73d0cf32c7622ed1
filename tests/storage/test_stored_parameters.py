"""Parameters of a saved model: those that are kept, kept as something close, and refused."""

import pickle

import numpy as np
import pandas as pd
import pytest

from symbayes import Formula, NoisePrior, PaperSampler, TemperedSampler, TermsPrior, TreePrior

from ..fits import NOISY, X, reloaded, small


@pytest.fixture(scope="module")
def fitted():
    return small(chains=2).fit(X, NOISY)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.symbayes"


KEPT = [
    {"operators": "paper"},
    {"operators": ["+", "sin"]},
    {"operators": ("+", "sin")},
    {"operators": {"+": 2, "sin": 0.1}},
    {"n_terms": 3},
    {"n_terms": "auto"},
    {"n_terms": TermsPrior(most=3, decay=0.1)},
    {"tree_prior": TreePrior(alpha=0.3, max_depth=4, nesting={"sin": {"cos": 0}})},
    {"tree_prior": TreePrior(sensible=False, nesting_price=2.5)},
    {"feature_weights": [1, 0.5]},
    {"feature_weights": (1, 0.5)},
    {"feature_weights": {0: 2.0}},
    {"feature_weights": {"x1": 0}},
    {"known_terms": ["x0*x1"]},
    {"known_terms": ("x0*x1", "`x1`**2")},
    {"known_terms": []},
    {"initial_formulas": ["2*sin(x0) + 0.1"]},
    {"noise_prior": 0.05},
    {"noise_prior": "small"},
    {"noise_prior": NoisePrior(3.0, 1e-300)},
    {"hyperparameters": "fixed", "tolerance": 0.02},
    {"sampler": "paper"},
    {"sampler": TemperedSampler(temperatures=3, hottest=0.1, steps_per_draw=7, search=False)},
    {"sampler": PaperSampler(max_trees=77), "n_terms": 1},
    {"draws": 7, "tune": None, "chains": 3, "n_jobs": None},
    {"model_selection": "accuracy"},
    {"timeout": 0.1, "draws": None},
    {"timeout": float("inf")},
    {"random_state": None},
    {"random_state": 2**32 - 1},
    {"progress": True},
]


@pytest.mark.parametrize("changed", KEPT, ids=repr)
def test_parameters_are_kept(fitted, path, changed):
    model = pickle.loads(pickle.dumps(fitted)).set_params(**changed)
    loaded = reloaded(model, path)
    assert loaded.get_params() == model.get_params()
    assert repr(loaded.get_params()) == repr(model.get_params())
    assert loaded.best_formula_ == fitted.best_formula_  # as fitted, whatever the rule is now


KEPT_AS = [
    ({"progress": print}, False),
    ({"progress": np.True_}, True),
    ({"random_state": np.random.RandomState(3)}, None),
    ({"random_state": np.uint8(3)}, 3),
    ({"operators": np.array(["+", "sin"])}, ["+", "sin"]),
    ({"operators": {"+": 1}.keys()}, ["+"]),
    ({"feature_weights": pd.Series([1.0, 2.0], index=["p", "q"])}, [1.0, 2.0]),
    ({"feature_weights": np.array([1, 2], dtype=object)}, [1, 2]),
    ({"feature_weights": {np.int64(1): np.float32(0.5)}}, {1: 0.5}),
    ({"known_terms": [Formula("0.1*a + b", ["a", "b"])]}, [f"{0.1:.17g}*a + b"]),
    ({"draws": np.int16(5)}, 5),
    ({"timeout": np.float32(0.5)}, 0.5),
]


@pytest.mark.parametrize(("changed", "expected"), KEPT_AS, ids=map(str, range(len(KEPT_AS))))
def test_parameters_kept_as_something_close(fitted, path, changed, expected):
    model = pickle.loads(pickle.dumps(fitted))
    loaded = reloaded(model.set_params(**changed), path)
    ((name, _),) = changed.items()
    found = getattr(loaded, name)
    assert (type(found), found) == (type(expected), expected)


@pytest.mark.parametrize("dtype", ["bool", "int32", ">i8", "float32", "float64"])
def test_weights_in_an_array(fitted, path, dtype):
    model = pickle.loads(pickle.dumps(fitted))
    weights = np.array([[1, 3], [2, 4]], dtype)[:, 0]
    if dtype == "bool":
        with pytest.raises(ValueError, match=r"cannot be saved: .*weight of 'x0' must be a number"):
            model.set_params(feature_weights=weights).save(path)
        return
    loaded = reloaded(model.set_params(feature_weights=weights), path)
    np.testing.assert_array_equal(loaded.feature_weights, weights)
    assert loaded.feature_weights.dtype == weights.dtype.newbyteorder("=")


class MyPrior(TreePrior):
    pass


@pytest.mark.parametrize(
    ("changed", "error", "says"),
    [
        ({"tree_prior": MyPrior()}, TypeError, "cannot be saved: tree_prior: .*type MyPrior"),
        ({"operators": [print]}, TypeError, "cannot be saved: operators: .* cannot be kept"),
        ({"draws": 0}, ValueError, "cannot be saved: .*draws is 0; it must be at least 1"),
        ({"operators": ["sinus"]}, ValueError, "cannot be saved: .*'sinus' is not an operator"),
        ({"feature_weights": [1]}, ValueError, "cannot be saved: .*1 entries and X has 2 columns"),
        ({"random_state": -1}, ValueError, "cannot be saved: .*random_state is -1"),
        ({"n_terms": 0}, ValueError, "cannot be saved: .*n_terms is 0"),
    ],
)
def test_parameters_that_cannot_be_kept(fitted, path, changed, error, says):
    fitted.save(path)
    data = path.read_bytes()
    model = pickle.loads(pickle.dumps(fitted)).set_params(**changed)
    with pytest.raises(error, match=says):
        model.save(path)
    assert path.read_bytes() == data
