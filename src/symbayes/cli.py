"""The command line, `symbayes`."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from .commands.statuses import INTERRUPTED


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit status."""
    try:
        # Importing takes a moment, in which Ctrl-C is to be no traceback either.
        from .commands.running import run
    except KeyboardInterrupt:
        print("symbayes: stopped", file=sys.stderr)
        return INTERRUPTED
    return run(sys.argv[1:] if arguments is None else list(arguments))
