"""The command line, `symbayes`: runs a command, and turns what goes wrong into one line."""

from __future__ import annotations

import os
import shlex
import sys
import traceback
from collections.abc import Sequence

from .messages import BROKEN_PIPE, FAILED, INTERRUPTED, USAGE, UsageError, explain, say


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit status."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            # What a stream cannot encode is written as an escape, and is no reason to crash.
            stream.reconfigure(errors="backslashreplace")
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
        if "--debug" in words or os.environ.get("SYMBAYES_DEBUG", "") not in ("", "0"):
            traceback.print_exc()
        say(explain(error))
        status = USAGE if isinstance(error, UsageError) else FAILED
    try:
        _flush()
    except OSError:  # Python would complain on its way out about output that nobody takes
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return status


def _run(words: list[str]) -> int:
    # Imported only here, so that Ctrl-C in the meantime is no traceback either.
    from .arguments import parser

    whole = parser()
    options, unknown = whole.parse_known_args(words)
    if unknown:
        # Of the command, where there is one: its help tells what it takes.
        getattr(options, "parser", whole).error(f"unrecognized arguments: {' '.join(unknown)}")
    if not hasattr(options, "run"):
        whole.print_help(sys.stderr)
        return USAGE
    options.command = shlex.join(["symbayes", *words])
    from .wording import warnings_as_lines

    with warnings_as_lines():
        return options.run(options)


def _flush() -> None:
    if sys.stdout is not None:
        sys.stdout.flush()
