"""Checkpoints on disks that are full or read-only: real ones, which only this test sees."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
#: The run of `tests.storage.killing`; in the middle of it something happens to its disk.
SCRIPT = """
import json, subprocess, sys, warnings
from tests.storage.killing import X, Y, BayesianSymbolicRegressor, Path
from tests.storage.killing import checkpoint, digest, estimator

folder, happens = sys.argv[1:]
path = Path(folder) / "run"
checkpoint.SECONDS_BETWEEN, checkpoint._MOST_OF_THE_TIME = 0.0, 1e9

def remount(how):
    subprocess.run(["mount", "-o", f"remount,{how}", folder], check=True)

def progress(status):
    if status.phase == "settling" and happens == "read-only":
        remount("ro")

result = {}
if happens == "read-only from the beginning":
    remount("ro")
    try:
        estimator("tempered").fit(X, Y, checkpoint=path)
    except OSError as error:
        result["error"] = str(error)
else:
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        model = estimator("tempered").set_params(progress=progress)
        whole = digest(model.fit(X, Y, checkpoint=path))
    result["warned"] = [str(one.message) for one in warned]
    remount("rw,size=50m")
    run = checkpoint.read_archive(path, "checkpoint", 1)[0]["point"]
    result["finished"] = run["finished"]
    result["same"] = digest(BayesianSymbolicRegressor.resume(path, X, Y)) == whole
    result["left"] = sorted(one.name for one in path.parent.iterdir())
print(json.dumps(result))
"""


@pytest.fixture
def on_a_disk_of(tmp_path):
    """Run the script in a folder that is a disk of this many kilobytes, in a world of its own."""
    folder = tmp_path / "disk"
    folder.mkdir()

    def run(kilobytes, happens):
        mount = 'mount -t tmpfs -o size="$1"k none "$2"'
        words = ["sh", str(kilobytes), folder, sys.executable, SCRIPT, happens]
        tried = subprocess.run(["unshare", "-rm", "sh", "-c", mount, *words], capture_output=True)
        if tried.returncode:
            pytest.skip("this user may not mount a disk")
        done = subprocess.run(
            ["unshare", "-rm", "sh", "-c", f'{mount} && exec "$3" -c "$4" "$2" "$5"', *words],
            capture_output=True, text=True, timeout=300, cwd=ROOT,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run


pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("unshare") is None, reason="needs unshare, to mount a disk"),
]


@pytest.mark.parametrize(
    ("kilobytes", "happens", "why"),
    [(100, "", "No space left on device"), (50_000, "read-only", "this file is write-protected")],
    ids=["full", "read-only"],
)
def test_the_run_and_the_last_checkpoint_survive(on_a_disk_of, kilobytes, happens, why):
    result = on_a_disk_of(kilobytes, happens)
    (message,) = [text for text in result["warned"] if "checkpoint" in text]
    assert why in message
    assert "the run continues" in message
    assert result["finished"] is False
    assert result["same"] is True
    assert result["left"] == ["run", "run.previous"]


def test_no_work_where_nothing_can_be_written(on_a_disk_of):
    result = on_a_disk_of(1000, "read-only from the beginning")
    assert "no file can be made in this folder (Read-only file system)" in result["error"]
