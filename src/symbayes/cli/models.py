"""Models from files."""

from __future__ import annotations

from typing import Any


def read_model(path: str) -> Any:
    """Return a saved model, or raise an error that names its file."""
    from .. import load

    return load(path)
