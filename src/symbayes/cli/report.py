"""`symbayes report`: the page about a model."""

from __future__ import annotations

import argparse

from .. import load
from .output import check_destination


def run(options: argparse.Namespace) -> int:
    """Write the page, and print where."""
    check_destination("--out", options.out, [options.model])
    load(options.model).report(options.out)
    print(options.out)
    return 0
