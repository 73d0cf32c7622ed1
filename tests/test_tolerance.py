"""A tolerance: the table counts as at most so many rows, and short formulas win."""

import numpy as np
import pytest

from symbayes import BayesianSymbolicRegressor, TemperedSampler, load
from symbayes.inputs.task import make_task

RNG = np.random.default_rng(7)
X = RNG.uniform(0.5, 2.0, (400, 2))
# Without the second column the error is three per cent larger.
Y = 3.0 * X[:, 0] ** 2 + RNG.normal(0.0, 0.3, 400)
Y += 0.075 * (X[:, 1] - X[:, 1].mean()) / X[:, 1].std()


def model(**options):
    defaults = {"draws": 300, "tune": 300, "chains": 2, "random_state": 0}
    return BayesianSymbolicRegressor(["+", "*", "square"], **(defaults | options))


def same(one, other):
    assert one.formulas_.equals(other.formulas_)
    np.testing.assert_array_equal(
        one.predict(X, return_std=True), other.predict(X, return_std=True)
    )


def test_it_is_a_weight_of_the_rows():
    """The posterior is that of weighted rows, which is tested against enumeration."""
    plain = TemperedSampler(search=False)
    told = model(tolerance=0.02, sampler=plain).fit(X, Y)
    weighted = model(sampler=plain).fit(X, Y, sample_weight=np.full(400, 50.0 / 400))
    same(told, weighted)


def test_a_table_that_is_small_enough_is_taken_as_it_is():
    same(model(draws=100).fit(X, Y), model(draws=100, tolerance=1 / 400).fit(X, Y))


def test_what_hardly_changes_the_error_is_left_out():
    strict, tolerant = (
        model(tolerance=tolerance).fit(X, Y).inclusion_probability()["x1"]
        for tolerance in (0.0, 0.05)
    )
    assert strict > 0.9
    assert tolerant < 0.5


def test_rows_are_counted_as_the_user_does(tmp_path):
    fitted = model(tolerance=0.05, draws=50).fit(X, Y)
    fitted.save(tmp_path / "model")
    assert "400, counting as 20" in fitted.report(tmp_path / "page.html").read_text()
    weights = np.where(np.arange(400) < 200, 2.0, 1.0)
    for one in (fitted, load(tmp_path / "model")):
        assert one.result_.n_rows == 400
        assert one.result_.total_weight == pytest.approx(400)
        assert not one.result_.is_weighted
        assert one.result_.posterior.mixture.n == pytest.approx(20)
    fitted.fit(X, Y, sample_weight=weights)
    assert fitted.result_.total_weight == pytest.approx(600)
    assert fitted.result_.is_weighted
    assert fitted.result_.posterior.mixture.n == pytest.approx(20)


def test_a_part_of_the_rows_counts_as_much_as_all_but_no_row_more_than_its_weight():
    problem = make_task(model(tolerance=0.02), X, Y, None).problem
    assert problem.data.n == pytest.approx(50)
    for rows, n in ((100, 50), (30, 30), (400, 50)):
        part = problem.on_rows(np.arange(rows))
        assert part.data.n == pytest.approx(n)
        assert part.trust == pytest.approx(n / rows)
        # And so does a part of the part.
        assert part.on_rows(np.arange(20)).data.n == pytest.approx(20)
    assert problem.in_two_stages(np.arange(100)).part.n == pytest.approx(50)
    everything = make_task(model(), X, Y, None).problem
    assert everything.on_rows(np.arange(100)).data.n == 100
