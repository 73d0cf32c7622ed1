"""Runs a command, and turns what goes wrong into one line."""

from __future__ import annotations

import os
import shlex
import sys
import traceback
from collections.abc import Sequence

from .arguments import parser
from .messages import UsageError, accept_any_character, explain, say, warnings_as_lines
from .statuses import BROKEN_PIPE, FAILED, INTERRUPTED, USAGE


def run(words: list[str]) -> int:
    """Run the command line; return the exit status."""
    accept_any_character()
    try:
        try:
            return _run(words)
        finally:
            _flush()
    except BrokenPipeError:
        status = BROKEN_PIPE
    except KeyboardInterrupt as stop:
        say(str(stop) or "stopped")
        status = INTERRUPTED
    except Exception as error:
        if _debugging(words):
            traceback.print_exc()
        say(explain(error))
        status = USAGE if isinstance(error, UsageError) else FAILED
    _drop_what_is_left()
    return status


def _run(words: list[str]) -> int:
    whole = parser()
    options, unknown = whole.parse_known_args(words)
    if unknown:
        # Of the command, where there is one: its help tells what it takes.
        getattr(options, "parser", whole).error(f"unrecognized arguments: {' '.join(unknown)}")
    if not hasattr(options, "run"):
        whole.print_help(sys.stderr)
        return USAGE
    options.command = shlex.join(["symbayes", *words])
    with warnings_as_lines():
        return options.run(options)


def _debugging(words: Sequence[str]) -> bool:
    return "--debug" in words or os.environ.get("SYMBAYES_DEBUG", "") not in ("", "0")


def _flush() -> None:
    if sys.stdout is not None:
        sys.stdout.flush()


def _drop_what_is_left() -> None:
    """Keep Python from complaining on its way out about output that nobody takes."""
    try:
        _flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
