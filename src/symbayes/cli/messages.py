"""What the command line says on standard error: one line for each mistake, warning or note."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .. import ConvergenceWarning, DataWarning, SamplingWarning
from ..show.display import printable
from .wording import with_options

# What the library complains with; anything else is a mistake of its own.
_COMPLAINTS = (ValueError, TypeError, ImportError, OSError)


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
    if isinstance(error, _COMPLAINTS) and str(error):
        return str(error)
    return f"unexpected {type(error).__name__}: {error} (--debug shows where)"


@contextmanager
def warnings_as_lines() -> Iterator[None]:
    """Let warnings be lines like all others, without the line of source they come from."""

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        say(f"warning: {with_options(str(message))}")

    with warnings.catch_warnings():
        for category in (DataWarning, SamplingWarning):
            warnings.simplefilter("always", category)
        # The answer ends with the verdict.
        warnings.filterwarnings("ignore", "Not converged", ConvergenceWarning)
        warnings.showwarning = show
        yield


def accept_any_character() -> None:
    """Let what standard output cannot encode be written as an escape, not as a crash."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
