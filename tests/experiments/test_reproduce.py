"""Each experiment at its smallest size: shapes, resuming, repeating."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from symbayes import run
from symbayes.datasets import PAPER_FORMULAS
from symbayes.experiments import DEFAULT, EXPERIMENTS, METHODS, PAPER, TASKS, published
from symbayes.experiments.methods import evolve, gplearn_regressor
from symbayes.experiments.reproduce import _EXPERIMENTS, reproduce
from symbayes.experiments.runs import FULL, QUICK, Effort, Job, Setting
from symbayes.experiments.signals import example_prices
from symbayes.experiments.simulated import measure, simulate, stopped_at

TINY = Effort(
    replications=2,
    trees=300,
    generations=2,
    noisy_replications=1,
    memory_replications=1,
    signals=3,
    signal_trees=300,
    draws=20,
    tune=100,
)
PUBLISHED = [published.BSR, published.GP]


@pytest.fixture(scope="module", autouse=True)
def gplearn():
    """Nearly all of it compares with genetic programming."""
    pytest.importorskip("gplearn", reason="needs symbayes[reproduce]")


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    return tmp_path_factory.mktemp("reproduced")


def make(experiment, out, **options):
    options = {"effort": TINY, "n_jobs": 1, "seed": 1, "tasks": ["f2", "f5"], **options}
    report = reproduce(experiment, out, **options)
    return report.read_text(encoding="utf-8"), pd.read_csv(out / f"{experiment}.csv")


@pytest.mark.slow
def test_accuracy(out):
    text, table = make("accuracy", out)
    assert list(table.columns[:6]) == ["task", "dataset", "method", "mean", "std", "replications"]
    assert len(table) == 2 * 4 * 6
    assert list(dict.fromkeys(table["method"])) == [*PUBLISHED, *METHODS]
    of = table.set_index(["task", "dataset", "method"])
    assert of.loc[("f2", "test_6", published.GP), ["mean", "std"]].tolist() == [121.41, 126.19]
    assert of.loc[("f2", "train", DEFAULT), "mean"] < 1e-6
    assert (of["replications"] == [50, 50, 2, 2, 2, 2] * 8).all()
    assert "121.41 ± 126.19" in text
    assert re.search(r"^\| f2 \| \d of 2, \S+ \| 2 of 2, \S+e-1\d \|", text, re.MULTILINE)
    assert "symbayes" in text.splitlines()[0] or "reproduced" in text.splitlines()[0]


@pytest.mark.slow
def test_complexity_counts_trees_only(out):
    _, table = make("complexity", out)
    of = table.set_index(["task", "method"])
    assert of.loc[("f2", published.BSR), "mean"] == 12.25
    # b (square(x0)) + c (cube(x1)): four nodes; coefficients and intercept do not count.
    assert of.loc[("f2", DEFAULT), "mean"] == 4
    # sin(x0) cos(x1): five.
    assert of.loc[("f5", DEFAULT), "mean"] == 5


@pytest.mark.slow
def test_expressions(out):
    text, table = make("expressions", out)
    found = table.set_index(["task", "method"])["expression"]
    assert found["f2", "truth"] == "8*x0**2 + 8*x1**3 - 15"
    assert found["f2", DEFAULT] == "8*x0**2 + 8*x1**3 - 15"
    assert "`8*x0**2" in text


@pytest.mark.slow
def test_terms(out):
    _, table = make("terms", out)
    assert list(dict.fromkeys(table["method"])) == [published.BSR, PAPER, DEFAULT]
    assert sorted(set(table["terms"])) == [2, 4, 8]
    assert len(table) == 2 * 3 * 3


@pytest.mark.slow
def test_training(out):
    _, table = make("training", out)
    assert set(table["method"]) == set(METHODS)
    paper = table[(table["task"] == "f2") & (table["method"] == PAPER)]
    assert (paper["trees"].diff().dropna() > 0).all()
    assert paper["train"].notna().all()
    assert (paper["nodes"] >= 2).all()
    genetic = table[(table["task"] == "f2") & (table["method"] == "gplearn 100")]
    assert genetic["trees"].tolist() == [100, 200]
    for ending in ("svg", "png"):
        assert (out / f"training.{ending}").stat().st_size > 1000


@pytest.mark.slow
def test_memory(out):
    _, table = make("memory", out, tasks=["f2"], methods=[PAPER, "gplearn 100"], n_jobs=2)
    of = table.set_index(["method", "measure"])["mean"]
    assert of[PAPER, "peak"] > 30
    assert of[PAPER, "fit"] >= 0


@pytest.mark.slow
def test_robustness(out):
    _, table = make("robustness", out, tasks=["f5"], methods=[PAPER, DEFAULT])
    assert sorted(set(table["noise"])) == [0.01, 0.05, 0.1]
    of = table.set_index(["noise", "dataset", "method"])["mean"]
    assert of[0.1, "test_3", DEFAULT] < of[0.1, "train", DEFAULT]


@pytest.mark.slow
def test_length(out):
    text, table = make("length", out, effort=replace(TINY, trees=2000), tasks=["f5"])
    assert list(dict.fromkeys(table["length"])) == [
        published.BSR,
        "until 100 rejections in a row",
        "1,000 trees",
        "2,000 trees",
    ]
    of = table.set_index(["length", "dataset"])
    assert of.loc[("2,000 trees", "train"), "mean"] <= of.loc[("1,000 trees", "train"), "mean"]
    assert of.loc[("1,000 trees", "test_6"), "replications"] == 2
    assert "| f5 | train | 0.68 ± 1.14 |" in text


def test_a_chain_without_patience_ends_at_the_first_long_wait():
    assert stopped_at(np.array([0, 3, 90, 191, 195]), 1000) == 2
    assert stopped_at(np.array([0, 3, 90, 190, 195]), 1000) == 4
    assert stopped_at(np.array([0, 3, 90]), 120) == 2


@pytest.mark.slow
def test_signals(out, tmp_path):
    prices = tmp_path / "index.csv"
    example_prices().to_csv(prices)
    text, table = make("signals", out, prices=prices)
    assert len(table) == 3
    assert table["train"].between(0, 1).all()
    beliefs = pd.read_csv(out / "signals_default.csv")
    assert beliefs["dataset"].tolist() == ["train", "test"]
    assert text.splitlines()[0].endswith("signals (none of 3 signals survives)")
    body = text.split("## ")[1].splitlines()[4]
    assert body.startswith("**None of the 3 signals looked at in these prices survives**")
    assert (out / "signals.svg").exists()
    # The generated series says so.
    text, _ = make("signals", out)
    assert "the generated example (a random walk)" in text


@pytest.mark.slow
def test_signals_know_nothing_of_the_test_years(tmp_path):
    prices = example_prices()
    other = prices.copy()
    later = prices.index.year > 2016
    other.loc[later] *= np.random.default_rng(1).uniform(0.5, 2, (later.sum(), 1))
    formulas = []
    for name, table in (("one", prices), ("two", other)):
        table.to_csv(tmp_path / f"{name}.csv")
        make("signals", tmp_path / name, prices=tmp_path / f"{name}.csv")
        formulas.append(pd.read_csv(tmp_path / name / "signals.csv")["formula"].tolist())
    assert formulas[0] == formulas[1]


@pytest.mark.slow
def test_all_in_one_report(out):
    report = reproduce("all", out, effort=TINY.repeated(1), n_jobs=1, seed=1, tasks=["f5"])
    text = report.read_text(encoding="utf-8")
    for title in EXPERIMENTS.values():
        assert f"## {title}" in text
    for name in re.findall(r"\]\((?!http)([^)]+)\)", text):
        assert (out / name).exists(), name
    assert "200 times 100 is 20,000" in text
    assert text.count("Seed 1, replications: 1.") == len(EXPERIMENTS)


@pytest.mark.slow
def test_runs_are_shared_and_never_repeated(out):
    make("accuracy", out)
    before = (out / "runs.jsonl").read_text()
    make("accuracy", out)
    make("complexity", out)
    assert (out / "runs.jsonl").read_text() == before


@pytest.fixture
def ctrl_c(monkeypatch):
    """Ctrl-C as soon as a fit begins to sample."""
    real = run.sample

    def sample(*arguments, **options):
        signal.raise_signal(signal.SIGINT)
        return real(*arguments, **options)

    monkeypatch.setattr(run, "sample", sample)


@pytest.mark.usefixtures("ctrl_c")
@pytest.mark.parametrize(
    ("experiment", "method"),
    [
        ("accuracy", DEFAULT),
        ("accuracy", PAPER),
        ("training", DEFAULT),
        ("length", PAPER),
        ("signals", DEFAULT),
    ],
)
def test_a_run_cut_short_is_not_kept(tmp_path, experiment, method):
    with pytest.raises(KeyboardInterrupt):
        make(experiment, tmp_path, methods=[method], tasks=["f5"])
    runs = tmp_path / "runs.jsonl"
    assert not runs.exists() or runs.read_text() == ""


@pytest.mark.usefixtures("ctrl_c")
def test_memory_of_a_run_cut_short_is_not_told():
    with pytest.raises(KeyboardInterrupt):
        measure(Job("memory", DEFAULT, "f5", 0, 1), Setting(TINY, 1, METHODS, TASKS, None))


def test_another_seed_or_size_is_another_run(tmp_path):
    options = {"methods": [PAPER], "tasks": ["f5"]}
    _, first = make("accuracy", tmp_path, **options)
    _, second = make("accuracy", tmp_path, seed=2, **options)
    assert not first.equals(second)
    _, again = make("accuracy", tmp_path, **options)
    pd.testing.assert_frame_equal(first, again)


def test_cores_do_not_matter(tmp_path):
    options = {"methods": [PAPER], "tasks": ["f5"]}
    one, two = tmp_path / "one", tmp_path / "two"
    make("accuracy", one, **options)
    make("accuracy", two, n_jobs=2, **options)
    assert (one / "accuracy.csv").read_bytes() == (two / "accuracy.csv").read_bytes()


def test_replications_have_fresh_rows_and_methods_the_same():
    first, second = simulate("f1", 0, seed=3), simulate("f1", 1, seed=3)
    X, y = first["train"]
    assert X.shape == (100, 2)
    assert not np.array_equal(X, second["train"][0])
    rows = {"train": 100, "test_3": 30, "test_6": 30, "test_3_6": 30}
    assert {name: len(values) for name, (_, values) in first.items()} == rows
    assert first["test_3_6"][0].min() >= 3
    noisy = simulate("f1", 0, seed=3, noise=0.1)
    np.testing.assert_array_equal(noisy["train"][0], X)
    np.testing.assert_array_equal(noisy["test_6"][1], first["test_6"][1])
    ratio = np.std(noisy["train"][1] - y) / np.sqrt(np.mean(y**2))
    assert 0.07 < ratio < 0.13


def test_the_names_are_those_of_what_there_is():
    assert list(_EXPERIMENTS) == list(EXPERIMENTS)
    assert tuple(PAPER_FORMULAS) == TASKS


def test_generations_one_by_one_are_those_of_one_evolution():
    X, y = simulate("f4", 0, 0)["train"]
    steps = list(evolve(X, y, 50, 4, 7))
    assert len(steps) == 4
    with np.errstate(all="ignore"):
        whole = gplearn_regressor(50, 7).set_params(generations=4).fit(X, y)._program
        np.testing.assert_array_equal(steps[-1].predict(X), whole.execute(X))
    assert steps[-1].n_nodes == whole.length_


def test_efforts():
    assert FULL.replications == 50
    assert FULL.trees == 100_000
    assert FULL.generations == 200
    assert (FULL.signals, FULL.signal_trees) == (200, 10_000)
    assert QUICK.tune is FULL.tune is None  # a shorter search misses formulas
    assert QUICK.repeated(3).replications == QUICK.repeated(3).signals == 3


@pytest.mark.slow
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_killed_in_the_middle_it_goes_on(tmp_path, n_jobs):
    """Kill -9, the same command again, and the result is that of a run that was never killed."""

    def command(out):
        return [
            sys.executable, "-m", "symbayes", "reproduce", "accuracy", "--quick", "--tasks", "f3",
            "--methods", PAPER, "--replications", "8", "--n-jobs", str(n_jobs), "--out", str(out),
        ]  # fmt: skip

    killed, whole = tmp_path / "killed", tmp_path / "whole"
    runs = killed / "runs.jsonl"
    process = subprocess.Popen(command(killed), start_new_session=True, stderr=subprocess.PIPE)
    until = time.monotonic() + 120
    while not (runs.exists() and runs.read_text().count("\n") >= 2):
        assert process.poll() is None, "it ended before it could be killed"
        assert time.monotonic() < until
        time.sleep(0.002)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    kept = runs.read_text()
    assert 2 <= kept.count("\n") < 8
    # As if it had been killed while writing a line.
    with runs.open("a") as file:
        file.write('{"kind": "simul')
    subprocess.run(command(killed), check=True, capture_output=True)
    subprocess.run(command(whole), check=True, capture_output=True)
    assert runs.read_text().startswith(kept)
    complete = [json.loads(line) for line in runs.read_text().splitlines() if line.endswith("}")]
    assert len({record["replication"] for record in complete}) == len(complete) == 8
    assert (killed / "accuracy.csv").read_bytes() == (whole / "accuracy.csv").read_bytes()
