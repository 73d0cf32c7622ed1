"""Checksums that tell whether something is what it was."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

import numpy as np

# Bytes of an array that are read at once, so that it is never copied whole.
_BYTES_AT_ONCE = 2**20


def checksum(parts: Iterable[Any]) -> str:
    """Return the SHA-256 of arrays, by their values, and of other things, by how they print.

    Examples
    --------
    >>> import numpy as np
    >>> from symbayes.inputs.checksums import checksum
    >>> table = np.arange(6.0).reshape(3, 2)
    >>> checksum([table, "y"]) == checksum([np.asfortranarray(table), "y"])
    True
    >>> checksum([table, "y"]) == checksum([table[::-1], "y"])
    False
    """
    digest = hashlib.sha256()
    for part in parts:
        if not isinstance(part, np.ndarray):
            text = repr(part).encode()
            digest.update(len(text).to_bytes(8, "little") + text)
            continue
        digest.update(repr((part.dtype.str, part.shape)).encode())
        part = np.atleast_1d(part)
        rows = max(1, _BYTES_AT_ONCE * len(part) // max(1, part.nbytes))
        for start in range(0, len(part), rows):
            some = np.ascontiguousarray(part[start : start + rows])
            digest.update(some.view(np.uint8).data)
    return digest.hexdigest()
