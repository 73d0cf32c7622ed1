"""Runs that are killed with -9 at random moments end with the same draws as one that is not."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a system that forks")


def killed(kind, folder, seed, kills, in_writes):
    """What became of a run that was killed so often, some of the times in the middle of a write."""
    words = [kind, folder, seed, kills, in_writes]
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "tests.storage.killing", *map(str, words)],
        capture_output=True, text=True, timeout=600, cwd=ROOT,
        # Threads of the linear algebra do not survive a fork.
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["end"] == result["whole"]
    # What was being written when a kill came is gone.
    assert not [name for name in result["left"] if name.endswith((".new", ".tmp"))]
    return result["seen"]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["tempered", "paper"])
def test_many_kills(tmp_path, kind):
    seen = killed(kind, tmp_path, 2, 20, 0.3)
    assert sum(seen.values()) == 20
    assert "drawing" in seen


@pytest.mark.slow
def test_kills_in_the_middle_of_writing(tmp_path):
    seen = killed("tempered", tmp_path, 3, 20, 1.0)
    assert {"search", "drawing"} <= seen.keys()
