"""A fit that goes on with an earlier one: the same draws, bit for bit, as if it had not stopped."""

import pickle

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
    "chains": 3, "tune": 200, "operators": ["+", "*", "sin", "lt"],
    "sampler": TemperedSampler(temperatures=4, search=False),
}  # fmt: skip


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


@pytest.mark.parametrize("steps", [(150, 300), (128, 300), (1, 64, 65, 200, 300)], ids=str)
def test_going_on_is_the_same_chain(endless, steps):
    """Also where a run stops in the middle of a round, or between two looks."""
    whole, parts = in_steps(300), in_steps(*steps)
    assert draws_of(parts) == draws_of(whole)
    assert_same(parts, whole)
    assert len(whole.result_.run.trace.chains[0]) == 300


def test_proposals_judged_in_two_stages(endless):
    sampler = TemperedSampler(temperatures=4, search=False, first_rows=20)
    whole, parts = in_steps(200, sampler=sampler), in_steps(75, 200, sampler=sampler)
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
    parts = in_steps(33, 100, 300)
    assert draws_of(parts) == draws_of(in_steps(300))
    assert parts.diagnostics_["thinning"] == 16


def test_large_formulas_cost_the_same(endless, monkeypatch):
    """Draws that cost more use up the budget sooner, wherever a run has paused."""
    monkeypatch.setattr(symbayes.samplers.ladder, "_ORDINARY_NODES", 2.0)
    whole = in_steps(600)
    assert len(whole.result_.run.trace.chains[0]) < 600
    assert draws_of(in_steps(100, 600)) == draws_of(whole)


def test_no_warm_up_again(endless, monkeypatch):
    made = in_steps(20, sampler="tempered")
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
    whole = in_steps(300)
    stop = {"n": 0}

    def impatient(report):
        stop["n"] += report.phase == "drawing"
        return stop["n"] >= 2

    with pytest.warns(SamplingWarning, match="interrupted"):
        parts = model(draws=300, progress=impatient).fit(X, NOISY)
    assert len(parts.result_.run.trace.chains[0]) < 300
    parts.set_params(progress=False).fit(X, NOISY)
    assert draws_of(parts) == draws_of(whole)
    assert not parts.diagnostics_["interrupted"]


def test_one_that_had_not_warmed_up_begins_anew(endless):
    with pytest.warns(SamplingWarning, match="interrupted"):
        parts = model(draws=50, progress=lambda report: True).fit(X, NOISY)
    parts.set_params(progress=False).fit(X, NOISY)
    assert draws_of(parts) == draws_of(in_steps(50))


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
        made.set_params(draws=200, progress=fail).fit(X, NOISY)
    assert draws_of(made) == before
    made.set_params(progress=False).fit(X, NOISY)
    assert draws_of(made) == draws_of(in_steps(200))


def test_pickled_models_go_on(endless):
    made = pickle.loads(pickle.dumps(in_steps(50)))
    made.set_params(draws=100).fit(X, NOISY)
    assert draws_of(made) == draws_of(in_steps(100))


def test_files_begin_anew(endless, tmp_path):
    made = in_steps(50)
    made.save(tmp_path / "a")
    loaded = symbayes.load(tmp_path / "a")
    assert loaded.warm_start is True
    assert answers(loaded, X) == answers(made, X)
    with pytest.warns(SamplingWarning, match="no run to continue"):
        loaded.set_params(draws=100).fit(X, NOISY)
    assert draws_of(loaded) == draws_of(in_steps(100))


def test_stacked_models_go_on(endless):
    made = in_steps(50, combine="stack").set_params(draws=100).fit(X, NOISY)
    assert_same(made, in_steps(100, combine="stack"))


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
    assert draws_of(later.fit(X, NOISY)) == draws_of(in_steps(100))


# What has to be the same.


@pytest.mark.parametrize(
    ("table", "y", "weights"),
    [(X + 1e-12, NOISY, None), (X, 2 * NOISY, None), (X[:50], NOISY[:50], None),
     (X, NOISY, np.arange(1, 61))],
    ids=["X", "y", "rows", "weights"],
)  # fmt: skip
def test_another_table(endless, table, y, weights):
    made = in_steps(20)
    with pytest.raises(ValueError, match="this table is another one, or its rows"):
        made.set_params(draws=40).fit(table, y, weights)


@pytest.mark.parametrize(
    "changed",
    [{"operators": ["+", "*"]}, {"tree_prior": TreePrior(alpha=0.3)}, {"noise_prior": 0.3},
     {"n_terms": 2}, {"hyperparameters": "fixed"}, {"known_terms": ["x0"]}, {"sampler": "paper"},
     {"feature_weights": [1, 2]}, {"sampler": TemperedSampler(steps_per_draw=20)},
     {"sampler": TemperedSampler(temperatures=4, first_rows=20)}],
    ids=lambda changed: "-".join(changed),
)  # fmt: skip
def test_other_beliefs(endless, changed):
    made = in_steps(20)
    with pytest.raises(ValueError, match="adds to the draws of the earlier fit"):
        made.set_params(draws=40, **changed).fit(X, NOISY)


def test_another_number_of_chains(endless):
    made = in_steps(20)
    with pytest.raises(ValueError, match="it had 3 chains, not 4"):
        made.set_params(draws=40, chains=4).fit(X, NOISY)


def test_fewer_draws(endless):
    made = in_steps(20)
    with pytest.raises(ValueError, match="draws is 10, and 20 were made already"):
        made.set_params(draws=10).fit(X, NOISY)


def test_nothing_to_do(endless):
    made = in_steps(20)
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
        draws=40, n_jobs=1, random_state=5, model_selection="accuracy", timeout=100, tune=7
    )
    assert draws_of(made.fit(X, NOISY)) == draws_of(in_steps(40))
