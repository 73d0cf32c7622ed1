"""Thousands of archives altered at random: what is damaged is noticed, within limits of memory."""

import subprocess
import sys
from pathlib import Path

import pytest

from .fuzzing import MOST_MEGABYTES, fuzz, most_megabytes, within_limits
from .mutations import FORGED, PLAIN, labelled_mutations, mutations
from .test_archive import load, same, save


@pytest.fixture
def original(tmp_path):
    return save(tmp_path / "a.symbayes").read_bytes()


def test_mutations_are_many_and_repeat(original):
    first = list(labelled_mutations(original, 51, seed=1))
    assert first == list(labelled_mutations(original, 51, seed=1))
    assert [data for _, data in first] == list(mutations(original, 51, seed=1))
    assert {name for name, _ in first} == PLAIN.keys() | FORGED.keys()
    assert len({data for _, data in first}) > 40
    assert first != list(labelled_mutations(original, 51, seed=2))


def check_ends(ends):
    """All damage was noticed at least once, and what was meant to get through did."""
    assert all(ends[name, "refused"] for name in PLAIN)
    assert all(ends[name, "loaded"] for name in FORGED)


def test_mutations(tmp_path, original):
    check_ends(fuzz(load, same, original, 216, seed=0, folder=tmp_path))


def fuzz_alone(folder, n):
    original = save(folder / "original").read_bytes()
    check_ends(fuzz(within_limits(load), same, original, n, seed=1, folder=folder))
    print(most_megabytes())


@pytest.mark.slow
def test_two_thousand_mutations(tmp_path):
    command = f"""
from pathlib import Path
from tests.storage.test_mutated_archives import fuzz_alone
fuzz_alone(Path({str(tmp_path)!r}), 2_000)
"""
    result = subprocess.run(
        [sys.executable, "-c", command],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[2],
        timeout=1800,
    )
    assert result.returncode == 0, result.stderr
    assert float(result.stdout) < MOST_MEGABYTES
