"""A run that is killed again and again, and resumed each time: a program, which tests start.

It forks a process for each part of the run, so that a kill costs no start of Python, and prints as
JSON in which phases the kills came, and a digest of the draws at the end.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import signal
import sys
import time
import warnings
from collections import Counter
from pathlib import Path

import numpy as np

from symbayes import BayesianSymbolicRegressor, SamplingWarning, TemperedSampler
from symbayes.kernels import units
from symbayes.samplers.run import clock
from symbayes.storage import archive, atomic, checkpoint

RNG = np.random.default_rng(7)
X = RNG.uniform(0.5, 2, (40, 2))
Y = np.sqrt(X[:, 0] + X[:, 1] ** 2) + RNG.normal(0, 0.1, 40)
RUNS = {
    "tempered": {
        "sampler": TemperedSampler(temperatures=3, steps_per_draw=20), "tune": 1200, "draws": 300,
    },
    "paper": {"sampler": "paper", "n_terms": 2, "tune": 50, "draws": 300},
}  # fmt: skip
#: Parts of a write at which a process may kill itself, and the function that it then does not call.
IN_WRITES = {
    "before it": (checkpoint, "write_archive"),
    "before its content": (archive, "write_zip"),
    "before it is on disk": (atomic.os, "fsync"),
    "before the first name": (atomic.os, "replace"),
    "before the second name": (atomic.os, "replace"),
}


def estimator(kind):
    return BayesianSymbolicRegressor(
        chains=2, n_jobs=1, random_state=3, warm_start=True, **RUNS[kind]
    )


def digest(model):
    """All draws, and what was counted on the way, as one text."""
    trace = model.result_.run.trace
    parts = [trace.counts, *(record.power for record in trace.ladders)]
    for chain in trace.chains:
        parts += [*chain.nodes, *chain.numbers, np.array(chain.n_terms), np.array(chain.times)]
    result = hashlib.sha256(b"".join(np.ascontiguousarray(part).tobytes() for part in parts))
    result.update(repr(model.formulas_.to_csv()).encode())
    return result.hexdigest()


def go_on(kind, path):
    """Begin the run, or resume it from its checkpoint."""
    checkpoint.SECONDS_BETWEEN = 0.0
    checkpoint._MOST_OF_THE_TIME = 1e9
    clock._SECONDS_AT_ONCE = 1e-9  # a checkpoint after every round
    if path.exists() or Path(atomic.previous_of(str(path))).exists():
        return BayesianSymbolicRegressor.resume(path, X, Y)
    return estimator(kind).fit(X, Y, checkpoint=path)


def kill_in_write(where, number):
    """Let this process kill itself in the middle of writing a checkpoint, not the first one."""
    owner, name = IN_WRITES[where]
    real, calls = getattr(owner, name), 0
    number = 2 * number + (where == "before the second name") if name == "replace" else number

    def last_call(*arguments, **options):
        nonlocal calls
        calls += 1
        if calls > number:
            if name == "write_zip":
                arguments[0].write(b"PK\x03\x04 and so on")
                arguments[0].flush()
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*arguments, **options)

    setattr(owner, name, last_call)


def fork(kind, path, out, kill=None):
    """Start a process that resumes the run, and writes its digest if it comes to its end."""
    process = os.fork()
    if process:
        return process
    try:
        warnings.simplefilter("ignore", SamplingWarning)
        if kill is not None:
            kill_in_write(*kill)
        out.write_text(digest(go_on(kind, path)))
        os._exit(0)
    except BaseException as error:
        out.write_text(f"{type(error).__name__}: {error}")
        os._exit(1)


def phase(path):
    """Return what a checkpoint is in the middle of."""
    for name in (str(path), atomic.previous_of(str(path))):
        if os.path.exists(name):
            run = archive.read_archive(name, "checkpoint", 1)[0]["point"]
            break
    else:
        return "nothing"
    if run["finished"]:
        return "end"
    if run["search"] is not None:
        return "search"
    if run["trace"] is None:
        return "start"
    return "drawing" if run["settling"] is None else "settling"


def main(kind, folder, seed, kills, in_writes):
    units.load(kind)
    rng, folder = random.Random(seed), Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    _, status = os.waitpid(fork(kind, folder / "whole", folder / "digest"), 0)
    assert status == 0, (folder / "digest").read_text()
    whole, seconds = (folder / "digest").read_text(), time.monotonic() - began
    seen: Counter[str] = Counter()
    run = 0
    path, out = folder / "run-0", folder / "out"
    while sum(seen.values()) < kills:
        kill = None
        if rng.random() < in_writes:
            kill = rng.choice(list(IN_WRITES)), rng.randint(1, 6)
        process = fork(kind, path, out, kill)
        if kill is None:
            time.sleep(rng.uniform(0, 0.4) * seconds)
            os.kill(process, signal.SIGKILL)
        _, status = os.waitpid(process, 0)
        if os.WIFSIGNALED(status):
            where = phase(path)
            seen[where] += 1
            if where != "end":
                continue
            # Else most kills would come there: it is let go to its end, and another is begun.
            os.waitpid(fork(kind, path, out), 0)
        assert out.read_text() == whole, out.read_text()
        run += 1
        path = folder / f"run-{run}"
    _, status = os.waitpid(fork(kind, path, out), 0)
    left = sorted(one.name for one in folder.iterdir())
    print(json.dumps({"whole": whole, "end": out.read_text(), "seen": seen, "left": left}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), float(sys.argv[5]))
