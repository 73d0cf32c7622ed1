"""From stored runs to the pages."""

import re

import pytest
from benchmarks.quality.registry import LEFT_OUT, METHODS
from benchmarks.quality.store import Store
from benchmarks.quality.summary import fifths, select, wilson
from benchmarks.quality.sweeps import SWEEPS
from benchmarks.quality.targets import goals

PEERS = SWEEPS["peers"]


def record(method, place, noise, right, version="1", date="2026-01-01", **values):
    return {
        "suite": "feynman", "problem": f"p{place:02d}", "place": place, "noise": noise, "seed": 0,
        "method": method, "version": version, "seconds": PEERS.seconds, "cores": PEERS.cores,
        "date": date, "cpu": "a processor", "commit": "", "failure": None,
        "nodes": 10 if method == "symbayes" else 30, "r2": 1.0,
        "right": right, "srbench": right, "srbench_by": "sympy" if right else "", "found_at": 2.0,
        "seconds_used": 3.0, **values,
    }  # fmt: skip


def comparison(methods, share):
    return [
        record(method, 3 * i, noise, i < share[method])
        for method in methods
        for noise in PEERS.noise
        for i in range(PEERS.problems)
    ]


def chosen(records):
    return lambda sweep, method: select(records, SWEEPS[sweep], method, {})


def test_wilson():
    assert wilson(0, 10)[0] == 0.0
    assert wilson(10, 10)[1] == 1.0
    assert wilson(8, 10) == pytest.approx((0.4902, 0.9433), abs=1e-4)
    assert wilson(0, 0) == (0.0, 1.0)


def test_the_latest_version_counts():
    records = [
        record("symbayes", 0, 0.0, True, "1", "2026-01-01"),
        record("symbayes", 0, 0.0, False, "2", "2026-01-02"),
    ]
    assert select(records, PEERS, "symbayes", {}).count("right") == 0
    assert select(records, PEERS, "symbayes", {"symbayes": "1"}).count("right") == 1


def test_a_sweep_takes_its_own_runs_only():
    records = [
        record("symbayes", 0, 0.0, True),
        record("symbayes", 1, 0.0, True),
        record("symbayes", 3, 0.1, True),
        record("symbayes", 3, 0.0, True, seconds=60.0),
        record("symbayes", 6, 0.01, True),
    ]
    runs = select(records, PEERS, "symbayes", {})
    assert [r["place"] for r in runs.records] == [0, 6]
    assert runs.missing == "40 of 42 not run"


def test_goals_without_runs_say_so():
    for goal in goals(chosen([])):
        assert goal.verdict == "not run"
        assert goal.reached.startswith("not run (0 of")


def test_ahead_of_every_peer():
    share = dict.fromkeys(PEERS.methods, 5) | {"symbayes": 18}
    goal = next(g for g in goals(chosen(comparison(PEERS.methods, share))) if "third" in g.problems)
    assert goal.verdict == "yes"
    goal = next(
        g
        for g in goals(chosen(comparison(PEERS.methods, share | {"gplearn": 18})))
        if "third" in g.problems
    )
    assert goal.verdict == "no"
    goal = next(
        g for g in goals(chosen(comparison(PEERS.methods[:-1], share))) if "third" in g.problems
    )
    assert goal.verdict == "incomplete"
    assert PEERS.methods[-1] in goal.reached


def test_calibration_by_fifths():
    records = [
        {"reported": [[0.9, True, True], [0.15, True, False], [0.1, None, None]]},
        {"reported": [[1.0, True, True]]},
    ]
    low, high = fifths(records)
    assert (low.low, low.formulas, low.true) == (0.0, 1, 0)
    assert (high.low, high.formulas, high.share) == (0.8, 2, 1.0)
    assert high.reported == pytest.approx(0.95)


def test_the_pages(tmp_path):
    pytest.importorskip("matplotlib")
    from benchmarks.quality.report import Report

    share = dict.fromkeys(PEERS.methods, 5) | {"symbayes": 18}
    records = comparison(PEERS.methods[:-1], share)
    for i, one in enumerate(records):
        one["commit"] = ("abc", "abc-dirty", "")[i % 3]
    report = Report(records, {}, tmp_path)
    page, details = report.text(), report.details()
    assert (
        "| symbayes | 18 of 21, 86% (65% to 95%) | 10 | 18 of 21, 86% (65% to 95%) | 10 |" in page
    )
    assert "| symbayes | 1 | 18 of 21, 86% (65% to 95%) |" in details
    assert "symbayes 1 (commit abc), on a processor." in details
    for text in (page, details):
        assert "not run (0 of 21)" in text
    for name, sweep in SWEEPS.items():
        assert re.search(rf"SWEEP=.*\b{name}\b", page)
        assert sweep.command in details
    for method in METHODS.values():
        assert f"- **{method.label}**" in details
        assert method.settings in details
        assert method.handicaps in details
    assert "pysr (adapter untested)" in details
    for name, reason in LEFT_OUT.items():
        assert f"- {name}: {reason}." in details
    assert any("autora-theorist-bsr" in name for name in LEFT_OUT)
    for name in ("exact-against-time.svg", "r2-against-nodes.svg"):
        assert (tmp_path / name).stat().st_size > 1000
        assert f"images/{name}" in page


def test_pages_are_those_of_the_stored_runs(tmp_path):
    pytest.importorskip("matplotlib")
    from benchmarks.quality.report import DETAILS, PAGE, Report

    suites = sorted({sweep.suite for sweep in SWEEPS.values()})
    report = Report([record for suite in suites for record in Store(suite).values()], {}, tmp_path)
    assert PAGE.read_text() == report.text()
    assert DETAILS.read_text() == report.details()
