"""One run: a method's script in its own process, on its own cores, killed if it hangs."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.environment import ROOT, THREAD_LIMITS
from benchmarks.peers.environments import PeerFailed, install

from .problems import Problem
from .registry import Method

#: For imports, compilation and writing the result; a run that takes longer hangs.
SPARE_SECONDS = 60.0

_running: set[subprocess.Popen[bytes]] = set()
_installing = threading.Lock()


class RunFailed(RuntimeError):
    """A run without a result; the message says why, in one line."""


def interpreter(method: Method) -> Path:
    """Return the Python that runs a method; its environment is made if there is none."""
    if not method.requirements:
        return Path(sys.executable)
    with _installing:
        try:
            return install(method)
        except PeerFailed as error:
            raise RunFailed(f"cannot be installed: {error}") from None


def run(
    method: Method, python: Path, problem: Problem, seconds: float, cores: int
) -> dict[str, Any]:
    """Return what the script of a method reports; see `methods/contract.py`.

    It runs on the cores that the calling thread is bound to.
    """
    job = {
        "seconds": seconds,
        "cores": cores,
        "seed": problem.seed,
        "operators": list(problem.operators),
        "feature_names": problem.column_names,
        "suite": problem.suite,
    }
    with tempfile.TemporaryDirectory() as folder:
        arrays, entries, result = (
            Path(folder, name) for name in ("job.npz", "job.json", "result.json")
        )
        np.savez(arrays, X=problem.X, y=problem.y, X_test=problem.X_test)
        entries.write_text(json.dumps(job))
        command = [str(python), str(method.path), *map(str, (arrays, entries, result))]
        output = Path(folder, "output.txt")
        _call(command, _environment(method, cores), output, seconds + SPARE_SECONDS)
        try:
            return json.loads(result.read_text())
        except (OSError, json.JSONDecodeError):
            raise RunFailed("ended without a result") from None


def stop_all() -> None:
    """Kill whatever still runs."""
    for process in list(_running):
        _kill(process)


def _call(command: list[str], env: dict[str, str], output: Path, seconds: float) -> None:
    with output.open("wb") as file:
        # Its own process group, so that its children die with it.
        process = subprocess.Popen(
            command, stdout=file, stderr=file, env=env, cwd=ROOT, start_new_session=True
        )
        _running.add(process)
        try:
            code = process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            raise RunFailed(f"no end after {seconds:.0f} s") from None
        finally:
            _kill(process)
            _running.discard(process)
    if code != 0:
        lines = output.read_text(errors="replace").strip().splitlines()
        last = lines[-1].strip()[:300] if lines else "no message"
        raise RunFailed(f"exit status {code}: {last}")


def _kill(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    process.wait()


def _environment(method: Method, cores: int) -> dict[str, str]:
    env = {**os.environ, **dict.fromkeys(THREAD_LIMITS, str(cores))}
    if method.requirements:
        # It has its own packages.
        env.pop("PYTHONPATH", None)
    return env
