"""The command line, `symbayes`: how its words are read, and what each command does."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from .statuses import INTERRUPTED


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit status."""
    try:
        # Importing takes a moment, in which Ctrl-C is to be no traceback either.
        from .running import run
    except KeyboardInterrupt:
        print("symbayes: stopped", file=sys.stderr)
        return INTERRUPTED
    return run(sys.argv[1:] if arguments is None else list(arguments))
