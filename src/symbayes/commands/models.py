"""Models from files."""

from __future__ import annotations

from typing import Any


def read_model(path: str) -> Any:
    """Return a saved model, or raise an error that names its file."""
    from .. import load

    open(path, "rb").close()  # what cannot be opened gets the same error as any other file
    return load(path)
