"""The machine a benchmark runs on, and how libraries are limited to one core."""

from __future__ import annotations

import os
import platform
import re
import sys
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent

THREAD_LIMITS = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMBA_NUM_THREADS",
)


def prepare() -> None:
    """Limit libraries to one thread, here and in child processes; call before importing NumPy."""
    for name in THREAD_LIMITS:
        os.environ[name] = "1"
    # As in the Makefile, so that a run without make finds the same compiled code.
    os.environ.setdefault("NUMBA_CACHE_DIR", str(Path(sys.prefix) / "numba-cache"))


def describe() -> dict[str, Any]:
    """Return what a reader has to know about the machine; call after `prepare`."""
    import symbayes

    return {
        "CPU": cpu_name(),
        "cores": os.cpu_count(),
        "system": platform.system(),
        "Python": platform.python_version(),
        **{name: version(name) for name in ("numpy", "numba", "scikit-learn")},
        # Not from the metadata: it may be on the path without being installed.
        "symbayes": symbayes.__version__,
    }


def now() -> str:
    """Return date and time, to the minute."""
    return datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")


def load() -> float | None:
    """Return how many processes wanted to run in the last minute: others disturb a measurement."""
    return round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None


def cpu_name() -> str:
    """Return what the processor calls itself."""
    try:
        found = re.search(r"model name\s*:\s*(.+)", Path("/proc/cpuinfo").read_text())
    except OSError:
        found = None
    return found.group(1).strip() if found else platform.processor() or platform.machine()


def megabytes(name: str) -> float:
    """Return an entry of this process in /proc: VmRSS, its memory now, or VmHWM, its peak.

    Not getrusage, which starts with the peak of the process that forked this one.
    """
    status = Path("/proc/self/status").read_text()
    return int(re.findall(name + r":\s+(\d+) kB", status)[0]) * 1024 / 1e6
