"""Problems are the same on every machine, and what the data says they are."""

import numpy as np
import pytest
from benchmarks.quality import suites
from benchmarks.quality.formulas import evaluate, symbols, to_sympy
from benchmarks.quality.problems import DATA, MissingData
from benchmarks.quality.suites import calibration, columns
from benchmarks.quality.sweeps import SWEEPS

with_data = pytest.mark.skipif(not DATA.exists(), reason="the data folder is not there")
NAMES = {
    "paper": "f3",
    "columns": "mixed",
    "calibration": "c017",
    "feynman": "I_15_3t",
    "classic": "Nguyen-9",
    "real": "Concrete",
}
SUITES = [
    pytest.param(suite, marks=with_data if suite in ("feynman", "classic", "real") else ())
    for suite in NAMES
]


@pytest.mark.parametrize("suite", SUITES)
def test_a_problem_is_reproducible(suite):
    name = NAMES[suite]
    noise = suites.noises(suite, name, [0.01])[0]
    first, again, other = (suites.load(suite, name, noise, seed) for seed in (3, 3, 4))
    for field in ("X", "y", "X_test", "y_test", "y_test_observed"):
        np.testing.assert_array_equal(getattr(first, field), getattr(again, field))
    assert not np.array_equal(first.y, other.y)


def test_the_stream_does_not_change():
    # Results that are kept were made with these very numbers.
    problem = suites.load("paper", "f2", 0.1, 0)
    np.testing.assert_allclose(problem.X[0], [0.9154966672428548, -1.324952111056039], rtol=1e-12)
    assert problem.y[0] == pytest.approx(-21.70149698983002, rel=1e-12)


def test_noise_is_added_to_the_same_rows():
    clean, noisy = (suites.load("paper", "f1", noise, 0) for noise in (0.0, 0.1))
    np.testing.assert_array_equal(clean.X, noisy.X)
    np.testing.assert_array_equal(clean.y_test, noisy.y_test)
    np.testing.assert_array_equal(clean.y, evaluate(clean.truth, clean.X))
    size = np.std(noisy.y - clean.y) / np.sqrt(np.mean(clean.y**2))
    assert 0.07 < size < 0.13
    assert 0.09 < np.std(noisy.y_test_observed - clean.y_test) / np.sqrt(np.mean(clean.y**2)) < 0.11


def test_the_relevant_columns_are_those_of_the_formula():
    problem = suites.load("columns", "mixed", 0.1, 0)
    used = to_sympy(problem.truth, symbols(200)).free_symbols
    assert {str(symbol) for symbol in used} == set(columns.RELEVANT["mixed"])
    assert problem.X.shape == (500, 200)


def test_drawn_problems_are_of_all_kinds():
    names = calibration.names(DATA)
    assert len(set(map(calibration.truth, names[:48]))) > 40
    assert {suites.noises("calibration", name, [])[0] for name in names} == {
        0.05,
        0.1,
        0.2,
        0.4,
        0.7,
    }
    sizes = {len(suites.load("calibration", name, 0.1, 0).y) for name in names[:16]}
    assert sizes == {30, 60, 120, 300}


@with_data
@pytest.mark.parametrize("suite", ["paper", "classic", "feynman"])
def test_every_truth_has_a_value_and_an_expression(suite):
    for name in suites.names(suite):
        problem = suites.load(suite, name, 0.0, 0)
        assert np.isfinite(problem.y).all()
        assert to_sympy(problem.truth, symbols(problem.X.shape[1])).free_symbols


@with_data
def test_the_classic_grids():
    for name, low, high in (("R1", -1, 1), ("R1a", -10, 10)):
        problem = suites.load("classic", name, 0.0, 0)
        np.testing.assert_allclose(problem.X[:, 0], np.linspace(low, high, 20))
    assert "const" not in suites.load("classic", "Jin-1", 0.0, 0).operators
    assert "lt" in suites.load("classic", "Jin-1", 0.0, 0).operators


@with_data
def test_real_data_is_split_by_the_seed():
    problem = suites.load("real", "192_vineyard", 0.0, 0)
    assert problem.feature_names == ("lugs_1989", "lugs_1990")
    assert (len(problem.y), len(problem.y_test)) == (39, 13)
    other = suites.load("real", "192_vineyard", 0.0, 1)
    assert sorted(np.r_[problem.y, problem.y_test]) == sorted(np.r_[other.y, other.y_test])


@with_data
@pytest.mark.parametrize("name", SWEEPS)
def test_sweeps_know_how_many_problems_there_are(name):
    sweep = SWEEPS[name]
    names = [n for n in suites.names(sweep.suite) if not sweep.only or n in sweep.only]
    assert len(names[:: sweep.every]) == sweep.problems


def test_missing_data_is_reported(tmp_path):
    with pytest.raises(MissingData, match="--data"):
        suites.names("feynman", tmp_path)
