"""Mutations of a saved file, each loaded within limits."""

from __future__ import annotations

import re
import resource
import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from symbayes.storage.archive import ModelFileError

from .mutations import FORGED, labelled_mutations

MOST_SECONDS, MOST_MEGABYTES = 2.0, 500


def fuzz(
    load: Callable[[Path], Any],
    same: Callable[[Any], bool],
    original: bytes,
    n: int,
    seed: int,
    folder: Path,
) -> Counter[tuple[str, str]]:
    """Load `n` mutations; return how often each was loaded, and refused.

    Parameters
    ----------
    load
        May raise a ModelFileError that begins with the path, and nothing else.
    same
        Tells whether what was loaded is what the original holds.
    """
    path = folder / "mutated.symbayes"
    ends: Counter[tuple[str, str]] = Counter()
    for i, (name, data) in enumerate(labelled_mutations(original, n, seed)):
        path.write_bytes(data)
        try:
            loaded = load(path)
        except ModelFileError as error:
            fine, end = str(error).startswith(repr(str(path))), "refused"
        except BaseException as error:
            error.add_note(f"mutation {i} of seed {seed}: {name}")
            raise
        else:
            fine, end = name in FORGED or same(loaded), "loaded"
        assert fine, f"mutation {i} of seed {seed}: {name} was {end}"
        ends[name, end] += 1
    return ends


def within_limits(load: Callable[[Path], Any]) -> Callable[[Path], Any]:
    """Return `load`, which kills the process when one call takes more than two seconds of it."""

    def limited(path: Path) -> Any:
        # Time of this process, so that a busy machine does not count.
        signal.setitimer(signal.ITIMER_PROF, MOST_SECONDS)
        try:
            return load(path)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)

    return limited


def most_megabytes() -> float:
    """Return the most memory that this process has had."""
    status = Path("/proc/self/status")
    if status.exists():
        # Not getrusage, which on Linux starts with the peak of the process that started this one.
        return int(re.search(r"VmHWM:\s+(\d+) kB", status.read_text())[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
