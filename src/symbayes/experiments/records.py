"""Finished runs, one line of JSON each, appended and never rewritten.

A killed run loses at most the line it was writing: a line that is no JSON is passed over, and the
next record starts on a line of its own.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

Record = dict[str, Any]


class Records(dict[tuple[Any, ...], Record]):
    """The records in a file by their keys; where a key occurs twice, its last line counts.

    Parameters
    ----------
    path : Path
        The file; it and its folder are made when the first record is added.
    key : tuple of str
        The fields that distinguish a run from all others.
    """

    def __init__(self, path: Path, key: tuple[str, ...]):
        self._path = path
        self._key = key
        lines = path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""
        for line in lines.splitlines():
            with suppress(json.JSONDecodeError, KeyError, TypeError):  # torn
                record = json.loads(line)
                self[self.key_of(record)] = record

    def key_of(self, record: Mapping[str, Any]) -> tuple[Any, ...]:
        """Return what distinguishes a run from all others."""
        return tuple(record[name] for name in self._key)

    def append(self, record: Record) -> None:
        """Add a finished run, on disk before this returns; NaN and infinity become None."""
        record = json.loads(json.dumps(record), parse_constant=lambda _: None)
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("ab+") as file:
            file.seek(max(0, file.tell() - 1))
            torn = file.read() not in (b"", b"\n")
            # One write, so that two programs may share a file.
            file.write(("\n" * torn + json.dumps(record) + "\n").encode())
            file.flush()
            os.fsync(file.fileno())
        self[self.key_of(record)] = record
