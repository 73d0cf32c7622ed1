"""Checkpoints whose checksums fit and whose content does not: a clear error, and never a crash."""

import contextlib
import os
import random
import signal
import time
import warnings
from collections import Counter

import numpy as np
import pytest

from symbayes import BayesianSymbolicRegressor, ModelFileError
from symbayes.storage import atomic, checkpoint
from symbayes.storage.archive import read_archive, write_archive

from .killing import RUNS, X, Y, estimator


@pytest.fixture(scope="module")
def points(tmp_path_factory):
    """What checkpoints of all phases hold, by phase."""
    folder, found = tmp_path_factory.mktemp("points"), {}
    real = checkpoint.CheckpointWriter.write

    def write(self, point, seconds):
        real(self, point, seconds)
        phase = "search" if point.search else "end" if point.finished else "settling"
        if phase == "settling" and (point.trace is None or point.settling is None):
            phase = "start" if point.trace is None else f"{kind} drawing"
        found[phase] = read_archive(self.path, "checkpoint", 1)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checkpoint.CheckpointWriter, "write", write)
        patch.setattr(checkpoint, "SECONDS_BETWEEN", 0.0)
        patch.setattr(checkpoint, "_MOST_OF_THE_TIME", 1e9)
        for kind in RUNS:
            estimator(kind).fit(X, Y, checkpoint=folder / kind)
    return found


def forge(path, point, edit):
    document, arrays = point
    arrays = {name: array.copy() for name, array in arrays.items()}
    edit(arrays)
    write_archive(path, "checkpoint", 1, document, arrays)


def element(name, value, at=0):
    def edit(arrays):
        arrays[name].reshape(-1)[at] = value

    return edit


FORGED = [
    ("search", element("search/ladders/chains/slots", 99)),
    ("search", lambda arrays: arrays["search/ladders/chains/slots"].fill(1)),
    ("search", element("search/ladders/chains/n_terms", 90)),
    ("search", element("search/ladders/chains/n_terms", -90)),
    ("search", element("search/ladders/own/replica", 7)),
    ("search", element("search/ladders/own/power", np.nan)),
    ("search", element("search/ladders/priors/feature_cdf", np.nan)),
    ("search", element("search/ladders/priors/operator_cdf", 0.0, -1)),
    ("search", element("search/ladders/nodes/op", 200)),
    ("search", element("search/history/nodes/op", 200)),
    ("search", element("search/stages", -1)),
    ("search", element("search/ladders/met/size", 61)),
    ("search", element("search/ladders/met/size", 1)),
    ("search", element("search/ladders/met/count", 10**6)),
    ("search", element("search/ladders/met/rss", np.nan)),
    ("search", element("search/ladders/met/nodes/op", 200)),
    ("settling", element("found/met/size", 0)),
    ("settling", element("found/met/nodes/trees", 30)),
    ("settling", element("found/met/nodes/feature", 99, slice(None))),
    ("end", lambda arrays: arrays.pop("ladders/met/rss")),
    ("tempered drawing", element("ladders/share", 5e-324)),
    ("settling", element("ladders/nodes/trees", 500)),
    ("settling", element("ladders/nodes/length", 0)),
    ("tempered drawing", element("draws/nodes/length", 10**6)),
    ("tempered drawing", element("draws/count", 10**9)),
    ("tempered drawing", element("draws/stride", 0)),
    ("tempered drawing", lambda arrays: arrays.pop("draws/times")),
    ("tempered drawing", lambda arrays: arrays.update(more=np.zeros(3))),
    ("paper drawing", lambda arrays: arrays["ladders/chains/rng"].fill(0)),
    ("paper drawing", element("ladders/own/clock", -5)),
    ("paper drawing", element("ladders/own/clock", 1)),
    ("paper drawing", element("draws/times", 10**6, 3)),
    ("paper drawing", element("draws/times", -1)),
    ("end", element("weights", -1.0)),
]


@pytest.mark.parametrize(("phase", "edit"), FORGED)
def test_what_cannot_be_is_refused(points, tmp_path, phase, edit):
    path = tmp_path / "run"
    forge(path, points[phase], edit)
    with pytest.raises(ModelFileError, match=r"^'.*run' is damaged: .*; restore a backup or"):
        BayesianSymbolicRegressor.resume(path, X, Y)


@pytest.mark.parametrize(
    ("entry", "value"),
    [
        ("entropy", [1, 2, 3]), ("entropy", [1, 2, 3, -4]), ("seconds", -1.0), ("origin", 3),
        ("point", None), ("point", {}), ("table", {}), ("symbayes", 3), ("parameters", {}),
    ],
)  # fmt: skip
def test_a_document_that_cannot_be(points, tmp_path, entry, value):
    document, arrays = points["settling"]
    write_archive(tmp_path / "run", "checkpoint", 1, document | {entry: value}, arrays)
    with pytest.raises(ModelFileError, match="is damaged: "):
        BayesianSymbolicRegressor.resume(tmp_path / "run", X, Y)


EXTREME = {"f": [np.nan, np.inf, -np.inf, 0.0, -1.0, 1e300, 5e-324], "i": [0, -1, 1, 2, 60, 10**9]}


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a system that forks")
def test_a_run_from_anything_ends_in_time(points, tmp_path):
    """Whatever a number is replaced by, the run continues or is refused, each in its process."""
    rng, path, ends = random.Random(0), tmp_path / "run", Counter()
    for _ in range(150):
        phase = rng.choice(sorted(points.keys() - {"start"}))
        arrays = points[phase][1]
        name = rng.choice([name for name in sorted(arrays) if arrays[name].size])
        kind = "f" if arrays[name].dtype.kind == "f" else "i"
        values = [v for v in EXTREME[kind] if kind == "f" or v <= np.iinfo(arrays[name].dtype).max]
        if arrays[name].dtype.kind in "ub":
            values = [value for value in values if value >= 0]
        value, at = rng.choice(values), rng.randrange(arrays[name].size)
        forge(path, points[phase], element(name, value, at))
        end = ending(path)
        assert end in ("refused", "went on"), f"{phase} {name} {at} {value}: {end}"
        ends[end] += 1
        with contextlib.suppress(FileNotFoundError):
            os.remove(atomic.previous_of(str(path)))
    assert min(ends["refused"], ends["went on"]) > 10


def ending(path):
    """What becomes of a run that is resumed in another process."""
    process = os.fork()
    if process == 0:
        warnings.simplefilter("ignore")
        try:
            BayesianSymbolicRegressor.resume(path, X, Y, n_jobs=1)
        except ValueError:
            os._exit(3)
        except BaseException:
            os._exit(4)
        os._exit(0)
    began = time.monotonic()
    while True:
        done, status = os.waitpid(process, os.WNOHANG)
        if done:
            break
        if time.monotonic() - began > 60:
            os.kill(process, signal.SIGKILL)
            os.waitpid(process, 0)
            return "no end"
        time.sleep(0.01)
    if os.WIFSIGNALED(status):
        return f"signal {os.WTERMSIG(status)}"
    return {0: "went on", 3: "refused"}.get(os.WEXITSTATUS(status), "another error")
