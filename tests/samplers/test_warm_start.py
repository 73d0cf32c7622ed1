"""A fit that goes on with an earlier one: the same draws, bit for bit, as if it had not stopped."""

import pickle
from functools import cache

import numpy as np
import pytest
from sklearn.base import clone

import symbayes
from symbayes import PaperSampler, SamplingWarning, TemperedSampler, TreePrior
from symbayes.samplers import tempered
from symbayes.show import progress

from ..fits import EXACT, X, assert_same, small
from ..storage.saving import answers

RNG = np.random.default_rng(160)
NOISY = X[:, 0] ** 2 + np.sin(3 * X[:, 1]) + X[:, 0] * X[:, 1] + RNG.normal(0, 0.5, 60)
FEW = {
    "chains": 2, "tune": 100, "operators": ["+", "*", "sin"],
    "sampler": TemperedSampler(temperatures=3, search=False),
}  # fmt: skip
# A run has more to carry on with constants; to polish those of its formulas takes most of its time.
LT = {"operators": ["+", "*", "sin", "lt"], "tune": 200}


def model(**options):
    return small(**(FEW | {"warm_start": True} | options))


@pytest.fixture
def endless(monkeypatch):
    """Nothing ends early, and rounds end after every seventh draw."""
    monkeypatch.setattr(tempered, "settled", lambda *_: False)
    monkeypatch.setattr(tempered, "LARGEST_ROUND", 7)


def draws_of(fitted):
    """All draws as bytes, and everything that was counted on the way."""
    chains = fitted.result_.run.trace.chains
    about = fitted.diagnostics_
    return (
        [[nodes.tobytes() for nodes in chain.nodes] for chain in chains],
        [np.array(chain.numbers).tobytes() for chain in chains],
        [chain.times for chain in chains],
        about["proposals"], about["evaluations"], repr(about["acceptance"]),
        repr(about["swap_rates"]), about["round_trips"], about["verdict"],
        [text for _, text in about["found"]],
    )  # fmt: skip


def in_steps(*steps, **options):
    made = model(draws=steps[0], **options).fit(X, NOISY)
    for draws in steps[1:]:
        made.set_params(draws=draws).fit(X, NOISY)
    return made


@cache
def whole_run(draws, with_constants=False):
    """A run in one fit; for tests that are `endless` and change nothing else."""
    return in_steps(draws, **(LT if with_constants else {}))


@cache
def short_run():
    """A pickled run, for tests that give no other one to go on with."""
    return pickle.dumps(in_steps(20))


@pytest.mark.parametrize("steps", [(100, 150), (128, 150), (1, 64, 65, 130, 150)], ids=str)
def test_going_on_is_the_same_chain(endless, steps):
    """Also where a run stops in the middle of a round, or between two looks."""
    whole, parts = whole_run(150, with_constants=True), in_steps(*steps, **LT)
    assert draws_of(parts) == draws_of(whole)
    assert_same(parts, whole)
    assert len(whole.result_.run.trace.chains[0]) == 150


def test_where_a_run_ends_nobody_asks_whether_to_restart(endless, monkeypatch):
    """That is asked at looks, and a run may end between two of them."""
    monkeypatch.setattr(tempered, "_FAR_BEHIND", 0.0)
    assert draws_of(in_steps(1, 100)) == draws_of(in_steps(100))


def test_proposals_judged_in_two_stages(endless):
    options = LT | {"sampler": TemperedSampler(temperatures=3, search=False, first_rows=20)}
    whole, parts = in_steps(100, **options), in_steps(75, 100, **options)
    assert draws_of(parts) == draws_of(whole)


def test_the_paper_goes_on_as_well():
    options = {"sampler": PaperSampler(400), "n_terms": 2, "tune": 20}
    assert draws_of(in_steps(30, 31, 90, **options)) == draws_of(in_steps(90, **options))


def test_the_number_of_trees_can_be_raised():
    whole = model(sampler=PaperSampler(2000), n_terms=2, draws=10**6).fit(X, NOISY)
    parts = model(sampler=PaperSampler(700), n_terms=2, draws=10**6).fit(X, NOISY)
    parts.set_params(sampler=PaperSampler(2000)).fit(X, NOISY)
    assert draws_of(parts) == draws_of(whole)
    assert_same(parts, whole)
    assert parts.history_.equals(whole.history_)


def test_thinned_runs_go_on(endless, monkeypatch):
    monkeypatch.setattr(tempered, "_most_kept", lambda n: 32)
    parts = in_steps(33, 100, 150)
    assert draws_of(parts) == draws_of(in_steps(150))
    assert parts.diagnostics_["thinning"] == 8


def test_large_formulas_cost_the_same(endless, monkeypatch):
    """Draws that cost more use up the budget sooner, wherever a run has paused."""
    monkeypatch.setattr(symbayes.samplers.ladder, "_ORDINARY_NODES", 2.0)
    whole = in_steps(300)
    assert len(whole.result_.run.trace.chains[0]) < 300
    assert draws_of(in_steps(100, 300)) == draws_of(whole)


def test_no_warm_up_again(endless, monkeypatch):
    made = in_steps(20, sampler=TemperedSampler(temperatures=3))
    phases = []
    made.set_params(draws=40, progress=lambda report: phases.append(report.phase))
    made.fit(X, NOISY)
    assert set(phases) == {"drawing"}


def test_draws_that_agree_already_are_added_to(monkeypatch):
    """A first run ends when they do; who goes on wants more."""
    made = model(chains=2, draws=1000, sampler="tempered").fit(X, EXACT)
    before = made.result_.run.trace.chains[0].made
    assert made.diagnostics_["settled"]
    assert before < 1000
    made.fit(X, EXACT)
    assert made.result_.run.trace.chains[0].made == 1000
    assert (
        made.diagnostics_["verdict"]
        == "Converged: the formula found fits the data to rounding error."
    )


def test_a_run_that_was_stopped_is_finished(endless, monkeypatch):
    # Reports after every round, however fast the machine is.
    monkeypatch.setattr(progress, "SECONDS_PER_REPORT", 0.0)
    monkeypatch.setattr(progress, "_LEAST_REST", 0.0)
    whole = in_steps(150)
    stop = {"n": 0}

    def impatient(report):
        stop["n"] += report.phase == "drawing"
        return stop["n"] >= 2

    with pytest.warns(SamplingWarning, match="interrupted"):
        parts = model(draws=150, progress=impatient).fit(X, NOISY)
    assert len(parts.result_.run.trace.chains[0]) < 150
    parts.set_params(progress=False).fit(X, NOISY)
    assert draws_of(parts) == draws_of(whole)
    assert not parts.diagnostics_["interrupted"]


def test_one_that_had_not_warmed_up_begins_anew(endless):
    with pytest.warns(SamplingWarning, match="interrupted"):
        parts = model(draws=100, progress=lambda report: True).fit(X, NOISY)
    parts.set_params(progress=False).fit(X, NOISY)
    assert draws_of(parts) == draws_of(whole_run(100))


def test_seconds_are_those_of_both(endless):
    made = in_steps(50)
    first = made.diagnostics_["seconds"]
    made.set_params(draws=100).fit(X, NOISY)
    assert made.diagnostics_["seconds"] > first


def test_a_failure_leaves_the_earlier_run_as_it_was(endless):
    made = in_steps(50)
    before = draws_of(made)

    def fail(report):
        raise RuntimeError("no more")

    with pytest.raises(RuntimeError, match="no more"):
        made.set_params(draws=100, progress=fail).fit(X, NOISY)
    assert draws_of(made) == before
    made.set_params(progress=False).fit(X, NOISY)
    assert draws_of(made) == draws_of(whole_run(100))


def test_pickled_models_go_on(endless):
    made = pickle.loads(pickle.dumps(in_steps(50)))
    made.set_params(draws=100).fit(X, NOISY)
    assert draws_of(made) == draws_of(whole_run(100))


def test_files_begin_anew(endless, tmp_path):
    made = in_steps(50)
    made.save(tmp_path / "a")
    loaded = symbayes.load(tmp_path / "a")
    assert loaded.warm_start is True
    assert answers(loaded, X) == answers(made, X)
    with pytest.warns(SamplingWarning, match="no run to continue"):
        loaded.set_params(draws=100).fit(X, NOISY)
    assert draws_of(loaded) == draws_of(whole_run(100))


def test_stacked_models_go_on(endless):
    assert_same(in_steps(50, 100, combine="stack"), in_steps(100, combine="stack"))


def test_without_it_nothing_is_kept(endless):
    made = in_steps(50)
    assert not hasattr(clone(made), "result_")
    made.set_params(warm_start=False).fit(X, NOISY)
    assert made.result_.run is None
    assert_same(made, model(draws=50).fit(X, NOISY))


def test_a_run_with_a_checkpoint_goes_on_without_having_been_told(endless, tmp_path):
    """Nobody knows before a long run that more draws will be wanted."""
    path = tmp_path / "run"
    model(draws=50, warm_start=False).fit(X, NOISY, checkpoint=path)
    later = type(model()).resume(path, X, NOISY).set_params(draws=100, warm_start=True)
    assert draws_of(later.fit(X, NOISY)) == draws_of(whole_run(100))


# What has to be the same.


@pytest.mark.parametrize(
    ("table", "y", "weights"),
    [(X + 1e-12, NOISY, None), (X, 2 * NOISY, None), (X[:50], NOISY[:50], None),
     (X, NOISY, np.arange(1, 61))],
    ids=["X", "y", "rows", "weights"],
)  # fmt: skip
def test_another_table(table, y, weights):
    made = pickle.loads(short_run())
    with pytest.raises(ValueError, match="this table is another one, or its rows"):
        made.set_params(draws=40).fit(table, y, weights)


@pytest.mark.parametrize(
    "changed",
    [{"operators": ["+", "*"]}, {"tree_prior": TreePrior(alpha=0.3)}, {"noise_prior": 0.3},
     {"n_terms": 2}, {"hyperparameters": "fixed"}, {"known_terms": ["x0"]}, {"sampler": "paper"},
     {"feature_weights": [1, 2]}, {"sampler": TemperedSampler(steps_per_draw=20)},
     {"sampler": TemperedSampler(temperatures=3, search=False, first_rows=20)}],
    ids=lambda changed: "-".join(changed),
)  # fmt: skip
def test_other_beliefs(changed):
    made = pickle.loads(short_run())
    with pytest.raises(ValueError, match="adds to the draws of the earlier fit"):
        made.set_params(draws=40, **changed).fit(X, NOISY)


def test_another_number_of_chains():
    made = pickle.loads(short_run())
    with pytest.raises(ValueError, match="it had 2 chains, not 3"):
        made.set_params(draws=40, chains=3).fit(X, NOISY)


def test_fewer_draws():
    made = pickle.loads(short_run())
    with pytest.raises(ValueError, match="draws is 10, and 20 were made already"):
        made.set_params(draws=10).fit(X, NOISY)


def test_nothing_to_do():
    made = pickle.loads(short_run())
    before = draws_of(made)
    with pytest.warns(SamplingWarning, match="nothing left to draw; raise draws to continue"):
        made.fit(X, NOISY)
    assert draws_of(made) == before


@pytest.mark.parametrize("value", [None, 1, "yes"])
def test_it_is_yes_or_no(value):
    with pytest.raises(TypeError, match="warm_start must be True or False"):
        small(warm_start=value).fit(X, NOISY)


def test_what_has_no_influence_may_change(endless):
    made = in_steps(20).set_params(
        draws=100, n_jobs=1, random_state=5, model_selection="accuracy", timeout=100, tune=7
    )
    assert draws_of(made.fit(X, NOISY)) == draws_of(whole_run(100))
