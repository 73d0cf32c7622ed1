"""`symbayes report`: the page about a model."""

from __future__ import annotations

import argparse

from .destinations import check_destination
from .models import read_model


def run(options: argparse.Namespace) -> int:
    """Write the page, and print where."""
    check_destination("--out", options.out, [options.model])
    read_model(options.model).report(options.out)
    print(options.out)
    return 0
