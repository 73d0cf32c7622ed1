"""The verdict: every way a run can end, and what a user is told to do."""

import json
from dataclasses import replace

import numpy as np
import pytest
from sklearn import exceptions

from symbayes import ConvergenceWarning, NoisePrior, SamplingWarning, TemperedSampler
from symbayes.kernels.chain import LOG_LIKELIHOOD, NUMBERS, RSS
from symbayes.kernels.tree import NODE
from symbayes.posterior.diagnostics import cut_short
from symbayes.posterior.posterior import Gap
from symbayes.posterior.verdict import Reason, judge, verdict_of
from symbayes.samplers.convergence import _moments, effective_draws, r_hat
from symbayes.samplers.trace import ChainTrace, DrawingState, LadderRecord, Trace

from ..fits import EXACT, NOISY, X, small
from ..problems import problem, table

PROBLEM = problem(table(20), {"+": 1.0}, noise_prior=NoisePrior())
NAMES = ["left", "right"]
EXACT_RUN = {"rss": 1e-30, "settled": True, "state": DrawingState([], 0, exact=True)}
RNG = np.random.default_rng(90)
GOOD = RNG.normal(size=(4, 300))
APART = GOOD + 3.0 * np.arange(4)[:, None]
SHORT = RNG.normal(size=(4, 60))
MIXED = LadderRecord(np.array([1.0, 0.5, 0.1]), np.array([0.5, 0.6]), 3)
STUCK = LadderRecord(np.array([1.0, 0.5, 0.1]), np.array([0.02, 0.6]), 0)
NO_TRIPS = LadderRecord(np.array([1.0, 0.5, 0.1]), np.array([0.5, 0.6]), 0)
ONE = LadderRecord(np.ones(1), np.empty(0), 0)


def trace(log_likelihood, sizes=None, rss=1.0, ladder=MIXED, weights=None, **options):
    """A run whose draws have these log-likelihoods, one row a chain."""
    chains = []
    for i, row in enumerate(log_likelihood):
        numbers = np.zeros((len(row), NUMBERS + 2))
        numbers[:, LOG_LIKELIHOOD], numbers[:, RSS] = row, rss
        nodes = np.ones(len(row), int) if sizes is None else sizes[i]
        chains.append(ChainTrace([np.zeros(n, NODE) for n in nodes], [1] * len(row), list(numbers)))
    return Trace(
        chains=chains,
        weights=weights or [np.ones(len(row)) for row in log_likelihood],
        counts=np.zeros((len(chains), 3, 9)),
        seconds=1.0,
        ladders=[ladder] * len(chains) if ladder else [],
        **options,
    )


def verdict(made, leading=None, gap=None, of=PROBLEM):
    leading = [0.6] * len(made.chains) if leading is None else leading
    result = judge(made, of, leading, NAMES, gap, "2*left + 1")
    # The text is made of the data, and the data survive a file of JSON.
    stored = json.loads(json.dumps(result["verdict_data"]))
    assert verdict_of(result | {"verdict_data": stored}).text() == result["verdict"]
    return result


def not_converged(result):
    assert not result["converged"]
    start, _, rest = result["verdict"].partition(": ")
    assert start == "Not converged"
    assert rest.endswith(".")
    return rest


def test_chains_that_agree():
    result = verdict(trace(GOOD, search_agreed=True))
    assert result["converged"] is True
    assert result["verdict"] == (
        f"Converged: the chains agree (R-hat {r_hat(GOOD):.3f} for log-likelihood, size and "
        "predictions) and their draws are worth "
        f"{effective_draws(GOOD):.0f} independent ones."
    )
    hats, effective = result["r_hat"], result["effective_draws"]
    assert hats["log_likelihood"] == r_hat(GOOD)
    assert effective["log_likelihood"] == effective_draws(GOOD)
    # Nothing else changes.
    assert {*hats.values()} == {r_hat(GOOD), 1.0}
    assert {*effective.values()} == {effective_draws(GOOD), 1200}
    assert result["leading_by_chain"] == [0.6] * 4
    assert result["search_agreed"] is True


def test_a_formula_that_should_have_been_drawn():
    assert verdict(trace(GOOD), gap=Gap(0.19))["converged"]
    rest = not_converged(verdict(trace(GOOD), gap=Gap(0.45)))
    assert "2*left + 1 was met and never drawn, and has a probability of 45% by its" in rest
    assert "Raise draws, or compare another random_state" in rest
    # An exact formula leaves nothing to look for.
    assert verdict(trace(APART, **EXACT_RUN), gap=Gap(0.9, away=0.9))["converged"]


def test_formulas_drawn_out_of_proportion_to_their_evidence():
    quiet, loud = (verdict(trace(GOOD), gap=Gap(away=away)) for away in (0.29, 0.55))
    assert quiet["converged"]
    assert loud["converged"]
    assert "evidence" not in quiet["verdict"]
    assert "by their evidence 55% of the draws of the leading formulas" in loud["verdict"]


def test_exact_draws_have_converged_whatever_the_numbers():
    made = trace(APART, **EXACT_RUN)
    said = "Converged: the formula found fits the data to rounding error."
    assert verdict(made)["verdict"] == said
    assert verdict(made)["converged"]
    one = trace(APART[:1], **EXACT_RUN)
    assert verdict(one)["converged"]
    # What looks exact but did not end the run, or the search, is not.
    not_converged(verdict(trace(APART, **EXACT_RUN | {"settled": False})))
    not_converged(verdict(trace(APART, **EXACT_RUN | {"state": DrawingState([], 0)})))
    made.chains[2].numbers[-1][RSS] = 1e-3
    not_converged(verdict(made))


def test_chains_that_do_not_agree():
    rest = not_converged(verdict(trace(APART)))
    assert f"the chains do not agree (R-hat {r_hat(APART):.3f} for the log-likelihood" in rest
    assert "Raise draws and tune, use more chains, or leave out operators" in rest
    assert "interrupted" not in rest


def test_with_many_rows_small_differences_may_be_overlooked():
    many = problem(table(301), {"+": 1.0}, noise_prior=NoisePrior())
    rest = not_converged(verdict(trace(APART), of=many))
    assert (
        "Raise draws and tune, overlook small differences in error (tolerance=0.005), use" in rest
    )
    rest = not_converged(verdict(trace(GOOD, ladder=NO_TRIPS), of=many))
    assert "tolerance=0.005" in rest
    # Rows that count less already are not many.
    few = problem(table(301, weights=np.full(301, 0.4)), {"+": 1.0}, noise_prior=NoisePrior())
    assert "tolerance" not in verdict(trace(APART), of=few)["verdict"]
    assert "tolerance" not in verdict(trace(GOOD), of=many)["verdict"]


def test_chains_that_do_not_agree_on_the_size():
    sizes = np.tile(np.arange(1, 5)[:, None], 300) + (GOOD > 0)
    rest = not_converged(verdict(trace(GOOD, sizes)))
    assert "for the size of formulas" in rest


def with_columns(made, columns):
    """The same draws, as many of each chain with the second column as is said."""
    for chain, n in zip(made.chains, columns, strict=True):
        for nodes in chain.nodes[:n]:
            nodes["feature"] = 1
    return made


def test_chains_that_contradict_each_other_on_a_column():
    """Log-likelihood and size are the same for both, so that they say nothing."""
    rest = not_converged(verdict(with_columns(trace(GOOD), [0, 300, 0, 290])))
    assert rest.startswith(
        "the chains do not agree: the probability that the formula uses left is 100% in one of "
        "them and less than 1% in another. Raise draws and tune"
    )


def test_chains_that_never_leave_where_they_began():
    result = verdict(with_columns(trace(GOOD), [0, 300, 0, 300]))
    not_converged(result)
    assert result["chains_disagree"]
    assert result["r_hat"]["uses right"] == np.inf
    assert result["effective_draws"]["uses right"] == 4


def test_probabilities_that_are_hardly_known():
    """Each chain changes sides once, so that draws are worth little; all have the same means."""
    rest = not_converged(verdict(with_columns(trace(GOOD), [150] * 4)))
    assert "do not agree" in rest
    # One visit in one chain is worth no word: the probability is known to be small.
    assert verdict(with_columns(trace(GOOD), [0, 2, 0, 0]))["converged"]
    rest = not_converged(verdict(with_columns(trace(GOOD), [0, 40, 0, 0])))
    assert "of them and" not in rest


def test_one_chain_that_drifts():
    rest = not_converged(verdict(trace(GOOD[:1] + np.linspace(0, 5, 300))))
    assert rest.startswith("the two halves of the chain do not agree")


def test_temperatures_that_hardly_swap():
    rest = not_converged(verdict(trace(APART, ladder=STUCK)))
    assert "use more of them (sampler=TemperedSampler(temperatures=5))" in rest
    assert "fewer operators" in rest
    not_converged(verdict(trace(GOOD, ladder=STUCK)))


def test_temperatures_that_swap_without_a_round_trip():
    rest = not_converged(verdict(trace(APART, ladder=NO_TRIPS)))
    assert "Few states pass through all temperatures: raise draws, or leave out operators" in rest
    assert "swap" not in rest


@pytest.mark.parametrize(
    ("trips", "said"),
    [(0, "no state has"), (1, "only once has a state"), (9, "only 9 times has a state"), (10, "")],
)
def test_agreement_without_round_trips_is_none(trips, said):
    """Whatever the number of draws: chains that all began at one formula agree on it."""
    records = [replace(NO_TRIPS, round_trips=n) for n in (trips, 0, 0, 0)]
    for n in (300, 2_000):
        made = trace(RNG.normal(size=(4, n)))
        made.ladders = records
        result = verdict(made)
        assert result["converged"] == (said == "")
        if said:
            assert not_converged(result) == (
                f"{said} travelled from the coldest temperature to the hottest and back, and 10 "
                "times are wanted, so that formulas as good as those found may have been missed. "
                "Raise draws, or leave out operators and columns that are not needed."
            )


def test_one_temperature_has_nothing_to_swap_with():
    assert "temperatures" not in not_converged(verdict(trace(APART, ladder=ONE)))
    assert "temperatures" not in verdict(trace(GOOD, ladder=ONE))["verdict"]


def test_too_few_draws():
    rest = not_converged(verdict(trace(SHORT)))
    assert rest == (
        "the draws are worth only 240 independent ones for the size of formulas, and 400 are "
        "wanted. Raise draws."
    )


def test_few_draws_may_only_be_too_short_to_agree():
    values = SHORT.copy()
    values[0] += 0.4
    assert 1.01 < r_hat(values) < 1.1
    assert not_converged(verdict(trace(values))).startswith("the draws are worth only")
    long = np.tile(values, 10)
    assert 1.01 < r_hat(long) < 1.1
    assert effective_draws(long) > 400
    assert not_converged(verdict(trace(long))).startswith("the chains do not agree")


@pytest.mark.parametrize("n", [1, 3])
def test_hardly_any_draws(n):
    result = verdict(trace(GOOD[:, :n], interrupted=True))
    rest = not_converged(result)
    assert rest == f"there are only {4 * n} draws; the run was interrupted. Let it run on."
    assert np.isnan(list(result["r_hat"].values())).all()
    assert np.isnan(list(result["effective_draws"].values())).all()


def test_one_chain_cannot_be_checked():
    one = RNG.normal(size=(1, 1_000))
    rest = not_converged(verdict(trace(one)))
    assert "agreement between chains cannot be checked. Use more (chains=4)" in rest


@pytest.mark.parametrize(
    ("options", "reason", "advice"),
    [
        ({"interrupted": True}, "the run was interrupted", "Let it run on"),
        ({"timed_out": True}, "the time limit was reached", "Raise timeout"),
    ],
)
def test_runs_that_were_cut_short(options, reason, advice):
    for values in (APART, SHORT):
        rest = not_converged(verdict(trace(values, **options)))
        assert f"; {reason}. {advice}" in rest
        assert "tune" not in rest
    before = not_converged(verdict(trace(GOOD, warmed_up=False, **options)))
    assert before.startswith(f"{reason} before warm-up was finished")
    assert advice in before
    # Draws that agree are as good as if the run had ended by itself.
    assert verdict(trace(GOOD, **options))["converged"]


def test_warm_up_that_was_not_finished_is_never_enough():
    made = trace(GOOD, **EXACT_RUN, warmed_up=False, timed_out=True)
    assert "Raise timeout, or lower tune" in not_converged(verdict(made))


def test_a_search_that_was_cut_short_is_told():
    made = trace(GOOD, search_cut=True, search_agreed=False, timed_out=True)
    result = verdict(made)
    assert result["converged"]
    assert result["verdict"].endswith(
        "But the time limit cut the search short, so that there may be a better formula: raise "
        "timeout."
    )
    assert str(SamplingWarning(*cut_short(made))) == (
        "the time limit cut the search short, so that there may be a better formula; raise timeout"
    )
    assert cut_short(trace(GOOD, timed_out=True)) is None


def test_a_search_that_did_not_agree_is_told():
    result = verdict(trace(GOOD, search_agreed=False))
    assert result["converged"]
    assert "may be a better one: raise tune, or compare another random_state" in result["verdict"]
    assert "better one" not in verdict(trace(GOOD, search_agreed=None))["verdict"]


def test_many_formulas_of_which_none_stands_out():
    result = verdict(trace(GOOD), [0.04, 0.05, 0.03, 0.04])
    assert result["converged"]
    assert "has a probability of 4%: more rows or less noise" in result["verdict"]


def test_the_paper_gets_other_advice():
    rest = not_converged(verdict(trace(APART, ladder=None)))
    assert "Raise draws and the max_trees of PaperSampler, or use sampler='tempered'" in rest


def test_the_data_name_the_reason_and_its_numbers():
    data = verdict(trace(APART))["verdict_data"]
    assert data["reason"] == Reason.DISAGREEMENT
    facts = {"chains": 4, "quantity": "log_likelihood", "r_hat": r_hat(APART)}
    assert data["facts"] == facts
    assert data["remedies"] == ["RAISE_DRAWS_AND_TUNE", "USE_MORE_CHAINS", "LEAVE_OUT"]


@pytest.mark.parametrize(
    "damage",
    [
        {},
        {"verdict_data": None},
        {"verdict_data": np.zeros(3)},
        {"reason": "boredom"},
        {"facts": {}},
        {"facts": {"chains": 4, "quantity": "log_likelihood", "r_hat": "large"}},
        {"facts": {"chains": 4, "quantity": 7, "r_hat": 2.0}},
        {"facts": {"chains": 4, "quantity": "log_likelihood", "r_hat": 10**400}},
        {"remedies": ["PRAY"]},
        {"remedies": ["ADD_TEMPERATURES"]},
        {"stacking_gain": "much"},
    ],
    ids=str,
)
def test_data_that_are_missing_or_damaged_are_none(damage):
    result = verdict(trace(APART))
    if not damage:
        del result["verdict_data"]
    elif "verdict_data" in damage:
        result |= damage
    else:
        result["verdict_data"] |= damage
    assert verdict_of(result) is None


def test_models_count_as_long_as_they_are_held():
    picks = _moments([np.array([0.0, 1, 3]), np.array([2.0, 1, 1])])
    assert np.array(picks).tolist() == [[1, 2, 2, 2], [0, 0, 1, 2]]
    picks = np.array(_moments([np.array([0.0, 1e9, 3e9]), np.array([2e9, 1e9, 1e9])]))
    assert picks.shape == (2, 10_000)
    assert (picks[0] == 1).mean() == pytest.approx(0.25, abs=1e-3)
    assert (picks[1] == 0).mean() == pytest.approx(0.5, abs=1e-3)


# Fits.


def test_fits_that_converge():
    noisy = small(chains=2, draws=1_000, sampler=TemperedSampler(temperatures=6)).fit(X, NOISY)
    record = noisy.diagnostics_
    assert record["settled"]
    assert record["converged"]
    assert record["verdict"].startswith("Converged: the chains agree")
    assert max(record["r_hat"][name] for name in ("log_likelihood", "n_nodes")) <= 1.01
    assert record["search_agreed"] is False  # its budget is far too small for that
    leading = noisy.formulas_["probability"].iloc[0]
    assert len(record["leading_by_chain"]) == 2
    assert np.mean(record["leading_by_chain"]) == pytest.approx(leading)
    exact = small(chains=2, draws=200).fit(X, EXACT).diagnostics_
    assert exact["verdict"] == "Converged: the formula found fits the data to rounding error."
    assert exact["search_agreed"] is True


@pytest.mark.parametrize("sampler", ["tempered", "paper", TemperedSampler(temperatures=1)])
def test_a_fit_that_is_too_short(sampler):
    record = small(chains=2, draws=20, sampler=sampler).fit(X, NOISY).diagnostics_
    assert not record["converged"]
    assert record["verdict"].startswith("Not converged: ")
    assert len(record["leading_by_chain"]) == 2


def test_a_fit_that_has_not_converged_warns():
    """In one sentence with its remedy, as scikit-learn's own estimators do."""
    with pytest.warns(ConvergenceWarning) as caught:
        model = small(chains=2, draws=20).fit(X, NOISY)
    (warned,) = caught
    assert issubclass(ConvergenceWarning, exceptions.ConvergenceWarning)
    assert model.diagnostics_["verdict"].startswith(str(warned.message))
    assert "formulas_by_chain" not in str(warned.message)
    assert warned.filename == __file__


def test_a_fit_that_was_cut_short_warns_once():
    with pytest.warns(ConvergenceWarning) as caught:
        model = small(draws=10**6, tune=10**6, timeout=0.5).fit(X, NOISY)
    (warned,) = caught
    assert model.diagnostics_["verdict"].startswith(str(warned.message))
    assert not model.diagnostics_["converged"]


@pytest.mark.filterwarnings("error::symbayes.ConvergenceWarning")
def test_a_fit_that_has_converged_does_not_warn():
    small(chains=2, draws=200).fit(X, EXACT)
