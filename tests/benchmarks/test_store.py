"""A killed run resumes where it was."""

import json

from benchmarks.quality.store import KEY, Store, key_of


def record(**values):
    base = {"suite": "s", "problem": "p", "noise": 0.0, "seed": 0, "method": "m", "version": "1"}
    return {**base, "seconds": 1.0, "cores": 1, **values}


def test_results_are_kept_and_found_again(tmp_path):
    store = Store("s", tmp_path)
    store.append(record(r2=0.5))
    store.append(record(seed=1, r2=float("nan")))
    again = Store("s", tmp_path)
    assert len(again) == 2
    assert key_of(record()) in again
    assert key_of(record(seed=2)) not in again
    assert [r["r2"] for r in again.values()] == [0.5, None]


def test_every_part_of_the_key_counts(tmp_path):
    store = Store("s", tmp_path)
    store.append(record())
    for name in KEY:
        other = record(**{name: "other"})
        assert key_of(other) not in store


def test_a_torn_line_is_passed_over(tmp_path):
    path = tmp_path / "s.jsonl"
    store = Store("s", tmp_path)
    store.append(record())
    with path.open("a") as file:
        file.write(json.dumps(record(seed=1))[:25])
    torn = Store("s", tmp_path)
    assert len(torn) == 1
    torn.append(record(seed=2))
    assert {r["seed"] for r in Store("s", tmp_path).values()} == {0, 2}


def test_the_last_of_repeated_runs_counts(tmp_path):
    store = Store("s", tmp_path)
    store.append(record(r2=0.1))
    store.append(record(r2=0.2))
    assert [r["r2"] for r in Store("s", tmp_path).values()] == [0.2]
