"""A virtual environment for each peer, and running its script there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from benchmarks.environment import ROOT

from .registry import Peer

_HERE = Path(__file__).resolve().parent
_ENVIRONMENTS = ROOT / "benchmarks" / ".environments"
# Installing may compile something; a peer that hangs must not hang the benchmark.
_INSTALL_SECONDS, _SPARE_SECONDS = 900, 180


class PeerFailed(RuntimeError):
    """A peer could not be installed or did not run; the message says why, in one line."""


class Installable(Protocol):
    """What `install` has to know."""

    @property
    def name(self) -> str: ...
    @property
    def requirements(self) -> tuple[str, ...]: ...


def install(peer: Installable) -> Path:
    """Return the Python of the peer's environment, made if it is not there.

    A peer with `build_requirements` gets those first, and is then built with them rather than in
    isolation: for source packages that do not say what they are built with.
    """
    folder = _ENVIRONMENTS / peer.name
    python = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
    installed = folder / "installed.txt"
    first: tuple[str, ...] = getattr(peer, "build_requirements", ())
    wanted = "\n".join((*first, *peer.requirements))
    if not (installed.exists() and installed.read_text() == wanted):
        print(f"installing {' '.join(peer.requirements)}", flush=True)
        _call([sys.executable, "-m", "venv", "--clear", str(folder)], _INSTALL_SECONDS)
        pip = [str(python), "-m", "pip", "install", "-q"]
        if first:
            _call([*pip, *first], _INSTALL_SECONDS)
            pip.append("--no-build-isolation")
        _call([*pip, *peer.requirements], _INSTALL_SECONDS)
        installed.write_text(wanted)
    return python


def run(
    peer: Peer, X: np.ndarray, y: np.ndarray, seconds: float, seed: int, **settings: Any
) -> dict[str, Any]:
    """Return what the peer's script reports (see `counting.finish`).

    Further settings, if its script reads any, are stored as JSON with the table.
    """
    python = install(peer)
    with tempfile.TemporaryDirectory() as folder:
        data, result = Path(folder, "data.npz"), Path(folder, "result.json")
        np.savez(data, X=X, y=y, settings=json.dumps(settings))
        command = [str(python), str(_HERE / peer.script), str(data), str(seconds), str(seed)]
        _call([*command, str(result)], seconds + _SPARE_SECONDS)
        return json.loads(result.read_text())


def _call(command: list[str], seconds: float) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds)
    except subprocess.TimeoutExpired:
        raise PeerFailed(f"no end after {seconds:.0f} s") from None
    if done.returncode != 0:
        raise PeerFailed(_reason(done.stderr or done.stdout))


def _reason(output: str) -> str:
    """Return the line that says what went wrong: pip's first error, or a traceback's last line."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR:")]
    line = errors[0] if errors else (lines[-1] if lines else "no message")
    # The report goes into the repository; where it was made does not.
    return line.replace(str(ROOT), ".")[:200]
