"""What the command line says on standard error, one line each, and what it tells the shell."""

from __future__ import annotations

import re
import sys

from ..show.display import printable

FAILED, USAGE = 1, 2
# As a shell reports a program that Ctrl-C has ended, and one whose reader has gone.
INTERRUPTED, BROKEN_PIPE = 130, 141
# Complaints about a parameter of the estimator begin with its name.
_OPTIONS = {
    "n_terms": "--terms", "known_terms": "--known", "initial_formulas": "--initial",
    "noise_prior": "--noise", "sample_weight": "--weights",
}  # fmt: skip


class UsageError(ValueError):
    """A wrong call that shows only once the data are known."""


def say(message: str) -> None:
    """Print one line on standard error."""
    print(f"symbayes: {one_line(message)}", file=sys.stderr, flush=True)


def one_line(text: str) -> str:
    """Return text without line breaks, and with control characters written out."""
    return printable(" ".join(filter(None, map(str.strip, text.splitlines()))))


def explain(error: Exception) -> str:
    """Return what an error has to say, for a reader who knows no Python."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror if error.filename is None else f"{error.filename}: {error.strerror}"
    if isinstance(error, MemoryError):
        return "there is not enough memory"
    # Anything else is a mistake of the library's own.
    if isinstance(error, ValueError | TypeError | ImportError | OSError) and str(error):
        return re.sub(r"^\w+", lambda name: _OPTIONS.get(name[0], name[0]), str(error))
    return f"unexpected {type(error).__name__}: {error} (--debug shows where)"
