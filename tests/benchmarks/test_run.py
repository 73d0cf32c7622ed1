"""The harness: what is run, how failures are kept, and that nothing is run twice."""

import json
import sys
import time
from pathlib import Path

import pytest
from benchmarks.quality import jobs, run, suites
from benchmarks.quality.registry import COMPARED, METHODS, Method, version
from benchmarks.quality.store import Store, key_of

METHODS_FOLDER = Path(jobs.__file__).parent / "methods"

STUB = """
import sys
sys.path.insert(0, {folder!r})
from contract import read_job, write_result
job = read_job()
assert job["feature_names"] == ["x0", "x1"] and job["suite"] == "paper"
true = "8*x0**2 + 8*x1**3 - 15"
x0, x1 = job["X_test"].T
value = 8*x0**2 + 8*x1**3 - 15
history = [(0.1, "x0"), (0.2, "8*x0^2+8*cube(x1)-15.1")]
write_result([(true, 0.9), ("x0", 0.05)], value, 0.5, history, value - 1, value + 1, [1.0, 0.4],
             {{"nan": float("nan")}})
"""


def method(tmp_path, text):
    """A method whose script is made here."""
    script = tmp_path / "script.py"
    script.write_text(text)
    return Method("stub", str(script), (), "none", "none")


def session(tmp_path, seconds=1.0):
    return run.Session(seconds, 1, suites.DATA, Store("paper", tmp_path), {"stub": "1"}, "")


def task(stub):
    return run.Task("paper", "f2", 1, 0.0, 0, stub)


@pytest.mark.parametrize("suite", ["classic", "feynman", "real"])
def test_data_that_is_not_there_is_one_line(tmp_path, capsys, monkeypatch, suite):
    monkeypatch.setattr(run.environment, "prepare", lambda: None)
    monkeypatch.setattr(run.signal, "signal", lambda *_: None)
    words = ["--suite", suite, "--data", str(tmp_path), "--results", str(tmp_path)]
    assert run.main(words) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    (line,) = captured.err.splitlines()
    assert line.startswith(str(tmp_path))
    assert "is not shipped: benchmarks/quality/README.md says" in line


def test_a_run_is_made_judged_and_kept(tmp_path):
    stub = method(tmp_path, STUB.format(folder=str(METHODS_FOLDER)))
    work = session(tmp_path)
    run.work(work, [task(stub)], 1)
    (record,) = Store("paper", tmp_path).values()
    assert record["failure"] is None
    assert record["right"]
    assert record["srbench"]
    assert record["nodes"] == record["truth_nodes"] == 11
    assert record["r2"] == record["r2_formula"] == 1.0
    assert record["coverage"] == 1.0
    assert record["found_at"] == 0.2
    assert record["reported"] == [[0.9, True, True], [0.05, False, False]]
    assert (record["truth_rank"], record["truth_probability"]) == (1, 0.9)
    assert record["inclusion"] == {"x0": 1.0, "x1": 0.4}
    assert "right" in run.describe(record)
    assert key_of(work.identity(task(stub))) in Store("paper", tmp_path)


def test_a_crash_is_kept_with_its_reason(tmp_path):
    stub = method(tmp_path, "raise ValueError('no such thing')")
    run.work(session(tmp_path), [task(stub)], 1)
    (record,) = Store("paper", tmp_path).values()
    assert record["failure"] == "exit status 1: ValueError: no such thing"
    assert "no such thing" in run.describe(record)


def test_a_hang_is_killed(tmp_path, monkeypatch):
    monkeypatch.setattr(jobs, "SPARE_SECONDS", 0.3)
    stub = method(tmp_path, "import time; time.sleep(60)")
    started = time.monotonic()
    run.work(session(tmp_path, 0.2), [task(stub)], 1)
    (record,) = Store("paper", tmp_path).values()
    assert "no end after" in record["failure"]
    assert time.monotonic() - started < 10


def test_a_result_without_formulas_is_a_failure(tmp_path):
    stub = method(tmp_path, "import sys; open(sys.argv[3], 'w').write('{\"formulas\": []}')")
    run.work(session(tmp_path), [task(stub)], 1)
    (record,) = Store("paper", tmp_path).values()
    assert record["failure"].startswith("result cannot be read")


def test_the_plan_takes_subsets():
    options = run.arguments(["--suite", "paper", "--every", "3", "--noise", "0", "0.1"])
    tasks = run.plan(options)
    assert [(t.name, t.place, t.noise) for t in tasks] == [
        ("f1", 0, 0.0), ("f1", 0, 0.1), ("f4", 3, 0.0), ("f4", 3, 0.1),
    ]  # fmt: skip
    options = run.arguments(["--suite", "paper", "--only", "f6", "--seeds", "2"])
    assert [(t.name, t.seed) for t in run.plan(options)] == [("f6", 0), ("f6", 1)]
    with pytest.raises(SystemExit, match="no problem f9"):
        run.plan(run.arguments(["--suite", "paper", "--only", "f9"]))


def test_options_override_those_of_a_sweep():
    options = run.arguments(["--sweep", "real", "--seeds", "1"])
    assert (options.suite, options.seconds, options.cores, options.seeds) == ("real", 30.0, 1, 1)
    assert options.methods == ["symbayes", "pyoperon"]


def test_slots_have_cores_of_their_own(monkeypatch):
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: {0, 1, 2, 3}, raising=False)
    assert run.core_sets(2, 2) == [{0, 1}, {2, 3}]
    with pytest.raises(SystemExit, match="there are 4 cores"):
        run.core_sets(3, 2)


def test_methods_have_versions():
    assert version(METHODS["pyoperon"]) == "0.6.2"
    assert "+" in version(METHODS["symbayes"])
    assert jobs.interpreter(METHODS["symbayes"]) == Path(sys.executable)


@pytest.mark.parametrize("name", METHODS)
def test_methods_are_complete(name):
    method = METHODS[name]
    assert method.path.exists()
    assert method.settings.endswith(".")
    assert method.handicaps.endswith(".")
    assert all("==" in requirement for requirement in method.requirements)
    assert (name in COMPARED) == method.tested


def test_records_are_json(tmp_path):
    stub = method(tmp_path, STUB.format(folder=str(METHODS_FOLDER)))
    run.work(session(tmp_path), [task(stub)], 1)
    (line,) = (tmp_path / "paper.jsonl").read_text().splitlines()
    assert json.loads(line)["extra"] == {"nan": None}
