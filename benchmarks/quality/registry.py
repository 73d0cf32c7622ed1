"""The methods that the harness runs: symbayes, and the peers of `methods/registry.py`."""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path

from benchmarks.environment import ROOT

from .methods.registry import LEFT_OUT, PEERS, Method

__all__ = ["COMPARED", "LEFT_OUT", "METHODS", "Method", "commit", "version"]

_SYMBAYES = Method(
    "symbayes",
    "run_symbayes.py",
    (),
    "All parameters at their defaults but for operators, seconds, cores and seed; the most "
    "probable formula.",
    "R2 is that of its own prediction, a mean over formulas, with the R2 of the formula alone "
    "beside it. Compilation (once per machine, about ten seconds) is not counted. It may stop "
    "before time is up. In its favour: its search was tuned on these problems, the peers' were "
    "not.",
)

METHODS = {method.name: method for method in (_SYMBAYES, *PEERS)}

#: Those that a comparison runs by default.
COMPARED = tuple(name for name, method in METHODS.items() if method.tested)


def version(method: Method) -> str:
    """Return what distinguishes two versions of a method.

    For symbayes a hash over its sources, so that no result of other code is taken for its own.
    """
    if method.requirements:
        return method.requirements[0].partition("==")[2] or "latest"
    import symbayes

    digest = hashlib.sha256()
    source = Path(symbayes.__file__).parent
    for path in sorted(source.rglob("*.py")):
        digest.update(str(path.relative_to(source)).encode() + path.read_bytes())
    return f"{symbayes.__version__}+{digest.hexdigest()[:10]}"


def commit() -> str:
    """Return the commit of the harness, marked where files were changed since; "" if unknown."""
    try:
        done = subprocess.run(
            ["git", "describe", "--always", "--dirty", "--exclude=*"],
            cwd=ROOT, capture_output=True, text=True, timeout=30,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip()
